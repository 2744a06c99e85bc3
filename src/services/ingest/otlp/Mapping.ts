/**
 * What the attributes of OpenTelemetry spans mean to alk: the whole mapping, as tables, in one
 * file. Its version is stored with every span, so that a reader knows by which table a type was
 * chosen; a change of a table is a new version. Knows no span as a whole and stores nothing.
 *
 * Sources: OpenTelemetry semantic conventions for generative AI 1.28 to 1.41 and the repository
 * they have moved to since (`gen_ai.*`, `mcp.*`), OpenInference (`openinference.span.kind`),
 * OpenLLMetry (`traceloop.span.kind`, `llm.request.type`), the Vercel AI SDK 5 and 6
 * (`ai.operationId`).
 */
import { isText } from "../../../domain/events/AuditEvent.ts"
import { isClientId } from "../../../domain/Identifiers.ts"
import type { JsonObject, JsonValue } from "../../../domain/json/Json.ts"
import type { TerminalStatus } from "../../../domain/traces/TraceFact.ts"
import { SPAN_TYPE_FORM, SPAN_TYPE_LENGTH_MAX } from "../../../domain/traces/TraceFact.ts"
import { TRACE_NAME_LENGTH_MAX } from "../PrepareTrace.ts"

export const MAPPING_VERSION = "alk-otlp-2"

/** Attribute by which a sender chooses the type itself, for instance HANDOFF. */
export const TYPE_ATTRIBUTE = "alk.span_type"
/** The type of a span that no row is about. */
export const DEFAULT_TYPE = "CUSTOM"

/** Attribute of the Vercel AI SDK that says what a span is. */
const OPERATION_ID = "ai.operationId"
/** Name that the caller of the Vercel AI SDK has given to what it does. */
const FUNCTION_ID = "ai.telemetry.functionId"

interface TypeRule {
  readonly attribute: string
  /** Span type by value in lower case. */
  readonly types: Readonly<Record<string, string>>
}

/** The first row whose attribute has a value that it knows decides. */
export const typeRules: ReadonlyArray<TypeRule> = [
  {
    attribute: "gen_ai.operation.name",
    types: {
      chat: "LLM_CALL",
      text_completion: "LLM_CALL",
      generate_content: "LLM_CALL",
      fetch_response: "LLM_CALL",
      embeddings: "EMBEDDING",
      execute_tool: "TOOL_CALL",
      invoke_agent: "AGENT",
      create_agent: "AGENT",
      invoke_workflow: "WORKFLOW",
      plan: "PLANNING",
      retrieval: "RETRIEVAL",
      create_memory: "MEMORY",
      search_memory: "MEMORY",
      update_memory: "MEMORY",
      upsert_memory: "MEMORY",
      delete_memory: "MEMORY",
      create_memory_store: "MEMORY",
      delete_memory_store: "MEMORY"
    }
  },
  {
    attribute: OPERATION_ID,
    types: {
      "ai.generatetext": "AGENT",
      "ai.streamtext": "AGENT",
      "ai.generateobject": "AGENT",
      "ai.streamobject": "AGENT",
      "ai.generatetext.dogenerate": "LLM_CALL",
      "ai.streamtext.dostream": "LLM_CALL",
      "ai.generateobject.dogenerate": "LLM_CALL",
      "ai.streamobject.dostream": "LLM_CALL",
      "ai.toolcall": "TOOL_CALL",
      // The call of the model is below, with the same tokens.
      "ai.embed": "WORKFLOW",
      "ai.embedmany": "WORKFLOW",
      "ai.embed.doembed": "EMBEDDING",
      "ai.embedmany.doembed": "EMBEDDING",
      "ai.rerank": "WORKFLOW",
      "ai.rerank.dorerank": "RERANK"
    }
  },
  {
    attribute: "openinference.span.kind",
    types: {
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
  {
    attribute: "traceloop.span.kind",
    types: { workflow: "WORKFLOW", task: "WORKFLOW", agent: "AGENT", tool: "TOOL_CALL" }
  },
  {
    attribute: "llm.request.type",
    types: {
      chat: "LLM_CALL",
      completion: "LLM_CALL",
      rerank: "RERANK",
      embedding: "EMBEDDING"
    }
  },
  {
    attribute: "mcp.method.name",
    types: { "tools/call": "TOOL_CALL", "resources/read": "RETRIEVAL", "prompts/get": "PROMPT" }
  }
]

/** For spans of which no rule knows a value: the first attribute that is there decides. */
export const presenceRules: ReadonlyArray<readonly [attribute: string, type: string]> = [
  ["gen_ai.tool.name", "TOOL_CALL"],
  ["gen_ai.tool.call.id", "TOOL_CALL"],
  ["gen_ai.evaluation.name", "EVALUATION"],
  ["gen_ai.retrieval.query.text", "RETRIEVAL"],
  ["gen_ai.embeddings.dimension.count", "EMBEDDING"],
  ["gen_ai.request.model", "LLM_CALL"],
  ["gen_ai.response.model", "LLM_CALL"],
  ["llm.model_name", "LLM_CALL"]
]

const textAt = (attributes: JsonObject, name: string): string | undefined => {
  const value = Object.hasOwn(attributes, name) ? attributes[name] : undefined
  return typeof value === "string" && value !== "" ? value : undefined
}

const isSpanType = (name: string): boolean =>
  name.length <= SPAN_TYPE_LENGTH_MAX && SPAN_TYPE_FORM.test(name)

/** How the instrumentation of the OpenAI Agents SDK names a hand-over, which is a tool by its kind. */
const HANDOFF_NAME = /^handoff to ./i

/** The span type that the attributes of a span mean, and its name if they are no help. */
export const spanTypeOf = (attributes: JsonObject, name = ""): string => {
  const chosen = textAt(attributes, TYPE_ATTRIBUTE)
  if (chosen !== undefined && isSpanType(chosen)) return chosen
  if (HANDOFF_NAME.test(name)) return "HANDOFF"
  for (const { attribute, types } of typeRules) {
    const value = textAt(attributes, attribute)?.toLowerCase()
    if (value !== undefined && Object.hasOwn(types, value)) return types[value]!
  }
  const present = presenceRules.find(([attribute]) => Object.hasOwn(attributes, attribute))
  return present?.[1] ?? DEFAULT_TYPE
}

/** By operation of the Vercel AI SDK, the attribute that says which tool or function it was. */
const nameRules: Readonly<Record<string, string>> = {
  "ai.toolCall": "ai.toolCall.name",
  "ai.generateText": FUNCTION_ID,
  "ai.streamText": FUNCTION_ID,
  "ai.generateObject": FUNCTION_ID,
  "ai.streamObject": FUNCTION_ID
}

/** The name of a span for people: that of the tool or function where its own says the kind only. */
export const spanNameOf = (name: string, attributes: JsonObject): string => {
  const operation = textAt(attributes, OPERATION_ID) ?? ""
  const rule = Object.hasOwn(nameRules, operation) ? nameRules[operation] : undefined
  const found = rule === undefined ? undefined : textAt(attributes, rule)
  return found !== undefined && isText(found, TRACE_NAME_LENGTH_MAX) ? found : name
}

/** Attributes with the name of the agent, the newest convention first. */
const agentNameAttributes = ["gen_ai.agent.name", "agent.name", FUNCTION_ID]
/** What OpenTelemetry calls a service without a name. */
export const UNKNOWN_SERVICE = "unknown_service"

/** The id of the agent at work: the span's own word for it, else the service's name. */
export const agentIdOf = (attributes: JsonObject, resource: JsonObject): string =>
  [
    textAt(attributes, "gen_ai.agent.id"),
    textAt(attributes, FUNCTION_ID),
    textAt(resource, "service.name")
  ].find((id) => id !== undefined && isClientId(id)) ?? UNKNOWN_SERVICE

/** Its name for people, if the attributes have one. */
export const agentNameOf = (attributes: JsonObject): string | undefined =>
  agentNameAttributes
    .map((attribute) => textAt(attributes, attribute))
    .find((name) => name !== undefined && isText(name, TRACE_NAME_LENGTH_MAX))

/** An event of a span, as far as the mapping looks at it. */
export interface MappedEvent {
  readonly name: string
  readonly attributes: JsonObject
}

/** Errors by which languages and protocols say that work was cancelled; lower case. */
export const cancellations: ReadonlySet<string> = new Set([
  "aborterror",
  "asyncio.cancellederror",
  "asyncio.exceptions.cancellederror",
  "cancelled",
  "cancellederror",
  "concurrent.futures._base.cancellederror",
  "context.canceled",
  "java.util.concurrent.cancellationexception",
  "kotlinx.coroutines.jobcancellationexception",
  "system.operationcanceledexception",
  "system.threading.tasks.taskcanceledexception"
])

/** Values of `StatusCode` in the protocol. */
const STATUS_OK = 1
const STATUS_ERROR = 2
const STATUS_UNSET = 0

/** The last exception that the span recorded. */
const exceptionOf = (events: ReadonlyArray<MappedEvent>): JsonObject | undefined =>
  events.findLast(({ name }) => name === "exception")?.attributes

/** What a span came to. */
export interface SpanOutcome {
  readonly status: TerminalStatus
  /** A sentence, only of a span that has failed or was cancelled and that says why. */
  readonly error?: string
}

const messageOf = (exception: JsonObject | undefined): string | undefined => {
  if (exception === undefined) return undefined
  const parts = ["exception.type", "exception.message"].map((name) => textAt(exception, name))
  const text = parts.filter((part) => part !== undefined).join(": ")
  return text === "" ? undefined : text
}

/**
 * OK and UNSET are COMPLETED, ERROR is FAILED, or CANCELLED if `error.type` or the last exception
 * is one of `cancellations`. Undefined for a status code that the protocol doesn't have.
 */
export const outcomeOf = (
  code: number,
  message: string,
  attributes: JsonObject,
  events: ReadonlyArray<MappedEvent>
): SpanOutcome | undefined => {
  if (code === STATUS_UNSET || code === STATUS_OK) return { status: "COMPLETED" }
  if (code !== STATUS_ERROR) return undefined
  const exception = exceptionOf(events)
  const errorType = textAt(attributes, "error.type")
  const kind = errorType ?? (exception && textAt(exception, "exception.type"))
  const status = cancellations.has(kind?.toLowerCase() ?? "") ? "CANCELLED" : "FAILED"
  const error = message === "" ? (messageOf(exception) ?? errorType) : message
  return error === undefined ? { status } : { status, error }
}

/** Characters of an event type. */
export const EVENT_TYPE_LENGTH_MAX = 128
/** The type of an event whose name has nothing that a type could be made of. */
export const DEFAULT_EVENT_TYPE = "event"

/**
 * The name of a span event as a trace event's type: lower case, everything but ASCII letters,
 * digits, dots, `_` and `-` written as `_`. A name that is such a type already stays as it is.
 */
export const eventTypeOf = (name: string): string => {
  const words = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, "_")
    .replaceAll(/\.{2,}/g, ".")
    .replaceAll(/^[._-]+|[._-]+$/g, "")
  return words.slice(0, EVENT_TYPE_LENGTH_MAX) || DEFAULT_EVENT_TYPE
}

const spanKinds = ["UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"]

/** The kind of a span as metadata says it; a number that has no name yet stays one. */
export const kindOf = (kind: number): JsonValue | undefined =>
  kind === 0 ? undefined : (spanKinds[kind] ?? kind)

const statusCodes = ["UNSET", "OK", "ERROR"]

/** The status as metadata says it; nothing if that is what an unset one says. */
export const statusOf = (code: number, message: string): JsonObject | undefined =>
  code === STATUS_UNSET && message === ""
    ? undefined
    : { code: statusCodes[code] ?? code, ...(message === "" ? {} : { message }) }
