/**
 * What the attributes of AI frameworks mean: one list of conventions, in which the first that says
 * something decides. To add a framework, add a convention here and a row to the fixtures in
 * test/services/ingest/otlp/frameworks.json. A span of which no row is sure is left CUSTOM.
 *
 * Names mean the same in all versions of the semantic conventions that have them (core 1.28 to 1.42,
 * semantic-conventions-genai): old and new names have rows of their own, so the schema URL of a
 * span decides nothing.
 */

/** Any value. */
export const ANY = "*"
/** In the place of an attribute: the name of the span. */
export const SPAN_NAME = "(name)"

/**
 * Attributes that all have to be there with one of these values, in lower case; quotes of JSON around
 * a value are passed over. `*` at one end of a value matches any text.
 */
export type Conditions = Readonly<Record<string, string | ReadonlyArray<string>>>

/** An attribute, or a member of an attribute that is an object or the JSON text of one. */
export type FieldPath = string | readonly [attribute: string, ...members: ReadonlyArray<string>]

/** What can be read of a span, and in which attributes: the first that says it decides. */
export interface FieldPaths {
  readonly model?: ReadonlyArray<FieldPath>
  readonly inputTokens?: ReadonlyArray<FieldPath>
  readonly outputTokens?: ReadonlyArray<FieldPath>
  readonly finishReasons?: ReadonlyArray<FieldPath>
  readonly sessionId?: ReadonlyArray<FieldPath>
  readonly userId?: ReadonlyArray<FieldPath>
  readonly cost?: ReadonlyArray<FieldPath>
  readonly agentId?: ReadonlyArray<FieldPath>
  readonly agentName?: ReadonlyArray<FieldPath>
}
export type FieldName = keyof FieldPaths

export interface Convention {
  /** Who sends this. */
  readonly of: string
  /** Types by the value of an attribute, which is in lower case here. */
  readonly types?: Readonly<Record<string, Readonly<Record<string, string>>>>
  /** Types by several attributes; they come before `types`. */
  readonly rows?: ReadonlyArray<readonly [when: Conditions, type: string]>
  /** Types by an attribute that is there, of spans without an operation that no row is about. */
  readonly present?: Readonly<Record<string, string>>
  /** Attributes with a better name, of spans whose own name says only what kind they are. */
  readonly names?: ReadonlyArray<readonly [when: Conditions, attribute: string]>
  /** Spans that `fields` is about, if not all. */
  readonly when?: Conditions
  readonly fields?: FieldPaths
}

/** The operation of OpenTelemetry: where it is there, presence alone says nothing. */
export const OPERATION = "gen_ai.operation.name"

/** Operation and caller's name in the Vercel AI SDK. */
const AI_OPERATION = "ai.operationId"
const AI_FUNCTION = "ai.telemetry.functionId"

const of = (type: string, ...values: ReadonlyArray<string>): Readonly<Record<string, string>> =>
  Object.fromEntries(values.map((value) => [value, type]))

/**
 * Names that mean this wherever they stand: they are read whenever a span is shown, in attributes and
 * in the metadata of other clients, and by the filters of lists. Those that begin with `alk.` are for
 * senders, and for what only a condition or a look into a value finds.
 */
export const commonConventions: ReadonlyArray<Convention> = [
  {
    of: "alk",
    fields: {
      model: ["alk.model"],
      inputTokens: ["alk.input_tokens"],
      outputTokens: ["alk.output_tokens"],
      finishReasons: ["alk.finish_reasons"],
      sessionId: ["alk.session_id"],
      userId: ["alk.user_id"],
      cost: ["alk.cost"]
    }
  },
  {
    of: "OpenTelemetry",
    types: {
      [OPERATION]: {
        ...of("LLM_CALL", "chat", "text_completion", "generate_content", "fetch_response"),
        ...of("EMBEDDING", "embeddings"),
        ...of("TOOL_CALL", "execute_tool", "execute_tool.internal"),
        ...of("AGENT", "invoke_agent", "create_agent"),
        ...of("AGENT", "invoke_agent.internal", "invoke_agent.client"),
        ...of("WORKFLOW", "invoke_workflow", "invoke_workflow.internal"),
        ...of("WORKFLOW", "handle_conversation_turn"),
        ...of("PLANNING", "plan"),
        ...of("RETRIEVAL", "retrieval"),
        ...of("MEMORY", "create_memory", "search_memory", "update_memory", "upsert_memory"),
        ...of("MEMORY", "delete_memory", "create_memory_store", "delete_memory_store")
      }
    },
    present: {
      "gen_ai.tool.name": "TOOL_CALL",
      "gen_ai.tool.call.id": "TOOL_CALL",
      "gen_ai.evaluation.name": "EVALUATION",
      "gen_ai.retrieval.query.text": "RETRIEVAL",
      "gen_ai.embeddings.dimension.count": "EMBEDDING",
      "gen_ai.request.model": "LLM_CALL",
      "gen_ai.response.model": "LLM_CALL"
    },
    fields: {
      model: ["gen_ai.response.model", "gen_ai.request.model"],
      inputTokens: ["gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"],
      outputTokens: ["gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"],
      finishReasons: ["gen_ai.response.finish_reasons"],
      sessionId: ["gen_ai.conversation.id", "session.id"],
      userId: ["user.id", "enduser.id"],
      cost: ["gen_ai.usage.cost"],
      agentId: ["gen_ai.agent.id"],
      agentName: ["gen_ai.agent.name"]
    }
  },
  {
    of: "Vercel AI SDK",
    types: {
      [AI_OPERATION]: {
        ...of("AGENT", "ai.generatetext", "ai.streamtext", "ai.generateobject", "ai.streamobject"),
        ...of("LLM_CALL", "ai.generatetext.dogenerate", "ai.streamtext.dostream"),
        ...of("LLM_CALL", "ai.generateobject.dogenerate", "ai.streamobject.dostream"),
        ...of("TOOL_CALL", "ai.toolcall"),
        // The call of the model is below, with the same tokens.
        ...of("WORKFLOW", "ai.embed", "ai.embedmany", "ai.rerank"),
        ...of("EMBEDDING", "ai.embed.doembed", "ai.embedmany.doembed"),
        ...of("RERANK", "ai.rerank.dorerank")
      }
    },
    names: [
      [{ [AI_OPERATION]: "ai.toolcall" }, "ai.toolCall.name"],
      [
        {
          [AI_OPERATION]: [
            "ai.generatetext",
            "ai.streamtext",
            "ai.generateobject",
            "ai.streamobject"
          ]
        },
        AI_FUNCTION
      ]
    ],
    fields: {
      model: ["ai.response.model", "ai.model.id"],
      inputTokens: ["ai.usage.inputTokens", "ai.usage.promptTokens", "ai.usage.tokens"],
      outputTokens: ["ai.usage.outputTokens", "ai.usage.completionTokens"],
      sessionId: ["ai.telemetry.metadata.sessionId"],
      userId: ["ai.telemetry.metadata.userId"],
      agentId: [AI_FUNCTION]
    }
  },
  {
    // Also smolagents, DSPy, LlamaIndex, CrewAI, the OpenAI Agents SDK and others by OpenInference.
    of: "OpenInference",
    types: {
      "openinference.span.kind": {
        llm: "LLM_CALL",
        chain: "WORKFLOW",
        tool: "TOOL_CALL",
        retriever: "RETRIEVAL",
        reranker: "RERANK",
        embedding: "EMBEDDING",
        agent: "AGENT",
        guardrail: "GUARDRAIL",
        evaluator: "EVALUATION",
        prompt: "PROMPT"
      }
    },
    present: { "llm.model_name": "LLM_CALL" },
    fields: {
      model: ["llm.model_name", "embedding.model_name", "reranker.model_name"],
      inputTokens: ["llm.token_count.prompt"],
      outputTokens: ["llm.token_count.completion"],
      finishReasons: ["llm.finish_reason"],
      cost: ["llm.cost.total"],
      agentName: ["agent.name", AI_FUNCTION]
    }
  },
  {
    of: "OpenLLMetry (Traceloop)",
    types: {
      "traceloop.span.kind": {
        workflow: "WORKFLOW",
        task: "WORKFLOW",
        agent: "AGENT",
        tool: "TOOL_CALL"
      },
      "llm.request.type": {
        chat: "LLM_CALL",
        completion: "LLM_CALL",
        rerank: "RERANK",
        embedding: "EMBEDDING"
      }
    },
    fields: {
      inputTokens: ["llm.usage.prompt_tokens"],
      outputTokens: ["llm.usage.completion_tokens"],
      sessionId: ["traceloop.association.properties.session_id"],
      userId: ["traceloop.association.properties.user_id"]
    }
  }
]

const CLAUDE_CALL: Conditions = { "span.type": "llm_request" }
const PYDANTIC_AGENT: Conditions = { agent_name: ANY, model_name: ANY, "logfire.msg": "* run" }
const GENKIT_MODEL: Conditions = { "genkit:metadata:subtype": ["model", "background-model"] }
const DB_OPERATIONS = ["query", "search", "similarity_search", "vector_search", "hybrid_search"]

/** What single frameworks call these things; read once, when a span arrives. */
const frameworks: ReadonlyArray<Convention> = [
  {
    of: "Semantic Kernel, Microsoft.Extensions.AI, Microsoft Agent Framework",
    types: {
      [OPERATION]: {
        ...of("LLM_CALL", "chat.completions", "chat.streaming_completions"),
        ...of("LLM_CALL", "text.completions", "text.streaming_completions"),
        ...of("WORKFLOW", "orchestrate_tools")
      }
    },
    fields: {
      inputTokens: ["gen_ai.response.input_tokens", "gen_ai.response.prompt_tokens"],
      outputTokens: ["gen_ai.response.output_tokens", "gen_ai.response.completion_tokens"]
    }
  },
  {
    of: "Azure AI agents",
    types: { [OPERATION]: of("AGENT", "process_thread_run") },
    fields: { sessionId: ["gen_ai.thread.id"] }
  },
  {
    of: "any-agent, Gemini CLI, early names of OpenTelemetry",
    types: {
      [OPERATION]: {
        ...of("LLM_CALL", "completion", "generate", "call_llm", "llm_call"),
        ...of("EMBEDDING", "embedding"),
        ...of("TOOL_CALL", "tool_call"),
        ...of("AGENT", "agent_call", "agent_run")
      }
    }
  },
  {
    of: "OpenLIT",
    types: { [OPERATION]: of("AGENT", "agent") },
    rows: [
      [{ [OPERATION]: "vectordb", "db.operation.name": DB_OPERATIONS }, "RETRIEVAL"],
      [{ [OPERATION]: "vectordb", "db.operation": DB_OPERATIONS }, "RETRIEVAL"]
    ]
  },
  {
    of: "Spring AI",
    types: { "spring.ai.kind": { chat_client: "WORKFLOW", tool_call: "TOOL_CALL" } },
    rows: [[{ "spring.ai.kind": "vector_store", "db.operation.name": "query" }, "RETRIEVAL"]],
    fields: { sessionId: ["spring.ai.chat.client.conversation.id"] }
  },
  {
    of: "Langfuse SDK",
    types: {
      "langfuse.observation.type": {
        generation: "LLM_CALL",
        embedding: "EMBEDDING",
        agent: "AGENT",
        tool: "TOOL_CALL",
        chain: "WORKFLOW",
        retriever: "RETRIEVAL",
        guardrail: "GUARDRAIL",
        evaluator: "EVALUATION"
      }
    },
    fields: {
      model: ["langfuse.observation.model.name"],
      inputTokens: [
        ["langfuse.observation.usage_details", "input"],
        ["langfuse.observation.usage_details", "input_tokens"],
        ["langfuse.observation.usage_details", "prompt_tokens"]
      ],
      outputTokens: [
        ["langfuse.observation.usage_details", "output"],
        ["langfuse.observation.usage_details", "output_tokens"],
        ["langfuse.observation.usage_details", "completion_tokens"]
      ],
      cost: [["langfuse.observation.cost_details", "total"]],
      sessionId: ["langfuse.session.id"],
      userId: ["langfuse.user.id"]
    }
  },
  {
    of: "MLflow",
    types: {
      "mlflow.spanType": {
        llm: "LLM_CALL",
        chat_model: "LLM_CALL",
        tool: "TOOL_CALL",
        agent: "AGENT",
        chain: "WORKFLOW",
        workflow: "WORKFLOW",
        task: "WORKFLOW",
        retriever: "RETRIEVAL",
        reranker: "RERANK",
        embedding: "EMBEDDING",
        memory: "MEMORY",
        guardrail: "GUARDRAIL",
        evaluator: "EVALUATION"
      }
    },
    fields: {
      model: ["mlflow.llm.model"],
      inputTokens: [["mlflow.chat.tokenUsage", "input_tokens"]],
      outputTokens: [["mlflow.chat.tokenUsage", "output_tokens"]],
      cost: [["mlflow.llm.cost", "total_cost"]],
      sessionId: ["mlflow.trace.session"],
      userId: ["mlflow.trace.user"]
    }
  },
  {
    of: "LangSmith",
    types: {
      "langsmith.span.kind": {
        llm: "LLM_CALL",
        chain: "WORKFLOW",
        tool: "TOOL_CALL",
        retriever: "RETRIEVAL",
        embedding: "EMBEDDING",
        prompt: "PROMPT"
      }
    },
    fields: {
      sessionId: [
        "langsmith.metadata.session_id",
        "langsmith.metadata.thread_id",
        "langsmith.metadata.conversation_id"
      ],
      userId: ["langsmith.metadata.user_id"]
    }
  },
  {
    of: "LangWatch",
    types: {
      "langwatch.span.type": {
        llm: "LLM_CALL",
        chain: "WORKFLOW",
        workflow: "WORKFLOW",
        tool: "TOOL_CALL",
        agent: "AGENT",
        rag: "RETRIEVAL",
        guardrail: "GUARDRAIL",
        evaluation: "EVALUATION"
      }
    },
    fields: {
      sessionId: ["langwatch.thread.id", "langwatch.thread_id"],
      userId: ["langwatch.user.id", "langwatch.user_id"]
    }
  },
  {
    of: "Genkit",
    types: {
      "genkit:metadata:subtype": {
        ...of("LLM_CALL", "model", "background-model"),
        ...of("TOOL_CALL", "tool", "tool.v2"),
        ...of("WORKFLOW", "flow"),
        ...of("AGENT", "agent"),
        ...of("PROMPT", "prompt", "executable-prompt"),
        ...of("RETRIEVAL", "retriever"),
        ...of("RERANK", "reranker"),
        ...of("EMBEDDING", "embedder"),
        ...of("EVALUATION", "evaluator")
      },
      "genkit:type": { flow: "WORKFLOW", flowstep: "WORKFLOW" }
    },
    when: GENKIT_MODEL,
    fields: {
      model: ["genkit:name"],
      inputTokens: [["genkit:output", "usage", "inputTokens"]],
      outputTokens: [["genkit:output", "usage", "outputTokens"]],
      finishReasons: [["genkit:output", "finishReason"]]
    }
  },
  { of: "Genkit", fields: { sessionId: ["genkit:sessionId", "genkit:metadata:sessionId"] } },
  {
    of: "LiveKit",
    rows: [
      // Speech has models too.
      [{ [SPAN_NAME]: ["tts_*", "stt_*", "user_turn", "eou_*"] }, "CUSTOM"],
      [{ "lk.tts.label": ANY }, "CUSTOM"],
      [{ [SPAN_NAME]: "agent_turn", "lk.generation_id": ANY }, "AGENT"]
    ],
    present: { "lk.function_tool.name": "TOOL_CALL", "lk.function_tool.id": "TOOL_CALL" },
    names: [[{ [SPAN_NAME]: "function_tool" }, "lk.function_tool.name"]],
    fields: { agentName: ["lk.agent_name"] }
  },
  {
    of: "Pydantic AI, Logfire",
    rows: [
      [PYDANTIC_AGENT, "AGENT"],
      [{ agent_name: ANY, model_name: ANY, [SPAN_NAME]: "agent run" }, "AGENT"]
    ],
    names: [[{ [SPAN_NAME]: "running tool" }, "gen_ai.tool.name"]],
    when: PYDANTIC_AGENT,
    fields: { model: ["model_name"], agentName: ["agent_name"] }
  },
  {
    of: "Logfire",
    when: { request_data: ANY, "logfire.msg": ANY, "gen_ai.request.model": ANY },
    fields: {
      inputTokens: [["response_data", "usage", "prompt_tokens"]],
      outputTokens: [["response_data", "usage", "completion_tokens"]]
    }
  },
  {
    of: "Google ADK",
    rows: [[{ [SPAN_NAME]: "agent_run [*", "gen_ai.system": "gcp.vertex.agent" }, "AGENT"]],
    present: { "gcp.vertex.agent.tool_call_args": "TOOL_CALL" },
    fields: { sessionId: ["gcp.vertex.agent.session_id"] }
  },
  {
    of: "Strands",
    types: { [OPERATION]: of("WORKFLOW", "execute_event_loop_cycle") },
    present: { "event_loop.cycle_id": "WORKFLOW" }
  },
  {
    of: "Haystack",
    rows: [
      [{ [SPAN_NAME]: ["haystack.pipeline.run", "haystack.async_pipeline.run"] }, "WORKFLOW"],
      [{ [SPAN_NAME]: "haystack.agent.run" }, "AGENT"],
      [{ [SPAN_NAME]: "haystack.agent.step.llm" }, "LLM_CALL"],
      [{ [SPAN_NAME]: "haystack.agent.step.tool" }, "TOOL_CALL"],
      [{ "haystack.component.type": "*imagegenerator" }, "CUSTOM"],
      [{ "haystack.component.type": "*generator" }, "LLM_CALL"],
      [{ "haystack.component.type": "*retriever" }, "RETRIEVAL"],
      [{ "haystack.component.type": "*embedder" }, "EMBEDDING"],
      [{ "haystack.component.type": "*ranker" }, "RERANK"],
      [{ "haystack.component.type": "*promptbuilder" }, "PROMPT"]
    ],
    types: { "haystack.component.type": { toolinvoker: "TOOL_CALL", agent: "AGENT" } }
  },
  {
    of: "Claude Code",
    rows: [
      [CLAUDE_CALL, "LLM_CALL"],
      [{ "span.type": "tool", tool_name: ANY }, "TOOL_CALL"],
      [{ "span.type": "tool", [SPAN_NAME]: "claude_code.*" }, "TOOL_CALL"],
      [{ "span.type": "tool.blocked_on_user" }, "HUMAN_APPROVAL"],
      // A part of a call, with the same id.
      [{ "span.type": "tool.execution" }, "CUSTOM"],
      [{ "span.type": "interaction", [SPAN_NAME]: "claude_code.*" }, "AGENT"]
    ],
    names: [[{ "span.type": "tool", [SPAN_NAME]: "claude_code.tool" }, "tool_name"]],
    when: CLAUDE_CALL,
    fields: {
      model: ["model"],
      inputTokens: ["input_tokens"],
      outputTokens: ["output_tokens"],
      finishReasons: ["stop_reason"]
    }
  },
  {
    of: "Codex",
    rows: [[{ "codex.turn.reasoning_effort": ANY, "turn.id": ANY }, "AGENT"]],
    when: { "codex.turn.reasoning_effort": ANY, "turn.id": ANY },
    fields: {
      model: ["model"],
      inputTokens: ["codex.turn.token_usage.input_tokens"],
      outputTokens: ["codex.turn.token_usage.output_tokens"],
      sessionId: ["thread.id"]
    }
  },
  {
    of: "LiteLLM",
    types: {
      "llm.request.type": {
        ...of("LLM_CALL", "acompletion", "text_completion", "atext_completion"),
        ...of("LLM_CALL", "responses", "aresponses"),
        ...of("EMBEDDING", "aembedding"),
        ...of("RERANK", "arerank"),
        ...of("CUSTOM", "image_generation", "aimage_generation", "speech", "aspeech"),
        ...of("CUSTOM", "transcription", "atranscription", "moderation", "amoderation")
      }
    }
  },
  {
    of: "Laminar",
    types: {
      "lmnr.span.type": {
        llm: "LLM_CALL",
        tool: "TOOL_CALL",
        evaluator: "EVALUATION",
        // An answer of a call before.
        cached: "CUSTOM"
      }
    },
    fields: {
      sessionId: ["lmnr.association.properties.session_id"],
      userId: ["lmnr.association.properties.user_id"]
    }
  },
  {
    of: "AgentOps",
    types: {
      "agentops.span.kind": {
        llm: "LLM_CALL",
        tool: "TOOL_CALL",
        agent: "AGENT",
        workflow: "WORKFLOW",
        session: "WORKFLOW",
        task: "WORKFLOW"
      }
    }
  },
  {
    of: "TruLens",
    types: {
      "ai.observability.span_type": {
        generation: "LLM_CALL",
        retrieval: "RETRIEVAL",
        tool: "TOOL_CALL",
        agent: "AGENT",
        record_root: "WORKFLOW",
        eval_root: "EVALUATION",
        eval: "EVALUATION"
      }
    }
  },
  {
    of: "promptflow",
    rows: [
      [{ framework: "promptflow", span_type: "llm" }, "LLM_CALL"],
      [{ framework: "promptflow", span_type: "embedding" }, "EMBEDDING"],
      [{ framework: "promptflow", span_type: "retrieval" }, "RETRIEVAL"],
      [{ framework: "promptflow", span_type: "flow" }, "WORKFLOW"]
    ],
    fields: { model: ["llm.response.model"] }
  },
  {
    of: "Model Context Protocol",
    types: {
      "mcp.method.name": {
        "tools/call": "TOOL_CALL",
        "resources/read": "RETRIEVAL",
        "prompts/get": "PROMPT"
      }
    }
  }
]

/** Whose spans also have the attributes of OpenTelemetry, and say more exactly what they are. */
const mastra: Convention = {
  of: "Mastra",
  types: {
    "mastra.span.type": {
      ...of("AGENT", "agent_run"),
      ...of("LLM_CALL", "model_generation", "llm_generation"),
      // Parts of a generation, with the same model and tokens.
      ...of("CUSTOM", "model_step", "model_chunk", "model_inference", "llm_chunk"),
      ...of("TOOL_CALL", "tool_call", "mcp_tool_call", "client_tool_call", "provider_tool_call"),
      ...of("WORKFLOW", "workflow_run", "workflow_step", "workflow_parallel", "workflow_loop"),
      ...of("WORKFLOW", "workflow_conditional"),
      ...of("MEMORY", "memory_operation"),
      ...of("EMBEDDING", "rag_embedding"),
      ...of("EVALUATION", "scorer_run")
    }
  },
  fields: {
    sessionId: ["mastra.metadata.sessionId", "mastra.metadata.threadId"],
    userId: ["mastra.metadata.userId"]
  }
}

export const conventions: ReadonlyArray<Convention> = [mastra, ...commonConventions, ...frameworks]
