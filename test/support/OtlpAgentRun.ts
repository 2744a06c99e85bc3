/**
 * One run of an agent as the OpenTelemetry SDK for JavaScript records it, and its delivery by the
 * real exporters in any grouping: plan, model call, two tools at once that the call caused, one of
 * them failing, a retrieval below the other, and a model call that both tools caused.
 */
import { Metadata } from "@grpc/grpc-js"
import {
  type Attributes,
  type Context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace
} from "@opentelemetry/api"
import { OTLPTraceExporter as GrpcExporter } from "@opentelemetry/exporter-trace-otlp-grpc"
import { OTLPTraceExporter as JsonExporter } from "@opentelemetry/exporter-trace-otlp-http"
import { OTLPTraceExporter as ProtobufExporter } from "@opentelemetry/exporter-trace-otlp-proto"
import { resourceFromAttributes } from "@opentelemetry/resources"
import {
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  type SpanExporter,
  TracerProvider
} from "@opentelemetry/sdk-trace"

export const encodings = ["json", "protobuf", "grpc"] as const
/** What is sent, and over what: JSON and protobuf over HTTP. */
export type Encoding = (typeof encodings)[number]

/** Where exports go. */
export interface OtlpTarget {
  /** Base URL of an API process. */
  readonly url: string
  /** Where it takes OTLP over gRPC. */
  readonly grpcUrl: string
  /** A key with read and write scope. */
  readonly key: string
}

/** What has to come out of a span. */
export interface ExpectedSpan {
  readonly name: string
  readonly type: string
  readonly status: "COMPLETED" | "FAILED"
  /** Name of the parent. */
  readonly parent?: string
  /** Names of the causes. */
  readonly causes: ReadonlyArray<string>
  /** Canonical microsecond form. */
  readonly startedAt: string
  readonly endedAt: string
  readonly durationMicros: number
  readonly depth: number
  readonly error?: string
  /** Types and times of its events. */
  readonly events: ReadonlyArray<readonly [type: string, timestamp: string]>
}

export interface AgentRun {
  readonly agentId: string
  readonly agentName: string
  readonly traceId: string
  /** In the order in which they ended: children first, the root last. */
  readonly spans: ReadonlyArray<ReadableSpan>
  readonly expected: ReadonlyArray<ExpectedSpan>
}

export const ROOT = "invoke_agent Planner"
const AGENT_NAME = "Planner"
/** 2026-11-21T10:00:00Z plus some; the SDK takes seconds and nanoseconds apart. */
const START_SECONDS = 1_795_255_200
const NANOS_PER_MICRO = 1_000
const MICROS_PER_SECOND = 1_000_000

/** A time so many microseconds into the run; the nanoseconds on top have to be cut. */
const at = (micros: number): [number, number] => [
  START_SECONDS + Math.floor(micros / MICROS_PER_SECOND),
  (micros % MICROS_PER_SECOND) * NANOS_PER_MICRO + 789
]

const canonical = (micros: number): string => {
  const seconds = new Date((START_SECONDS + Math.floor(micros / MICROS_PER_SECOND)) * 1_000)
  const fraction = String(micros % MICROS_PER_SECOND).padStart(6, "0")
  return `${seconds.toISOString().slice(0, 19)}.${fraction}Z`
}

interface Step {
  readonly name: string
  readonly type: string
  readonly parent?: string
  readonly depth: number
  readonly causes?: ReadonlyArray<string>
  readonly from: number
  readonly to: number
  readonly attributes: Attributes
  readonly kind?: SpanKind
  readonly error?: Error
  readonly events?: ReadonlyArray<readonly [name: string, type: string, at: number]>
}

const steps = (agentId: string): ReadonlyArray<Step> => [
  {
    name: ROOT,
    type: "AGENT",
    depth: 0,
    from: 0,
    to: 9_000_001,
    attributes: {
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.agent.id": agentId,
      "gen_ai.agent.name": AGENT_NAME
    }
  },
  {
    name: "plan",
    type: "PLANNING",
    parent: ROOT,
    depth: 1,
    from: 1_000,
    to: 400_000,
    attributes: { "gen_ai.operation.name": "plan" }
  },
  {
    name: "chat first",
    type: "LLM_CALL",
    parent: ROOT,
    depth: 1,
    causes: ["plan"],
    from: 500_000,
    to: 2_000_000,
    kind: SpanKind.CLIENT,
    attributes: {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "openai",
      "gen_ai.request.model": "gpt-4o",
      "gen_ai.request.temperature": 0.5,
      "gen_ai.usage.input_tokens": 97,
      "gen_ai.response.finish_reasons": ["tool_calls"]
    },
    events: [
      ["gen_ai.user.message", "gen_ai.user.message", 500_100],
      ["First Token", "first_token", 700_000],
      ["gen_ai.choice", "gen_ai.choice", 1_900_000]
    ]
  },
  {
    name: "execute_tool weather",
    type: "TOOL_CALL",
    parent: ROOT,
    depth: 1,
    causes: ["chat first"],
    from: 2_100_000,
    to: 4_000_000,
    attributes: { "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather" }
  },
  {
    name: "retrieval stations",
    type: "RETRIEVAL",
    parent: "execute_tool weather",
    depth: 2,
    from: 2_200_000,
    to: 3_000_000,
    attributes: {
      "openinference.span.kind": "RETRIEVER",
      "retrieval.documents.0.document.id": "s1"
    }
  },
  {
    name: "execute_tool hotel",
    type: "TOOL_CALL",
    parent: ROOT,
    depth: 1,
    causes: ["chat first"],
    from: 2_100_000,
    to: 3_500_000,
    attributes: { "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "hotel" },
    error: new TypeError("the hotel did not answer")
  },
  {
    name: "chat second",
    type: "LLM_CALL",
    parent: ROOT,
    depth: 1,
    causes: ["execute_tool weather", "execute_tool hotel"],
    from: 4_100_000,
    to: 8_900_000,
    kind: SpanKind.CLIENT,
    attributes: { "gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o" }
  }
]

const expectedOf = (step: Step): ExpectedSpan => ({
  name: step.name,
  type: step.type,
  status: step.error === undefined ? "COMPLETED" : "FAILED",
  ...(step.parent === undefined ? {} : { parent: step.parent }),
  causes: step.causes ?? [],
  startedAt: canonical(step.from),
  endedAt: canonical(step.to),
  durationMicros: step.to - step.from,
  depth: step.depth,
  ...(step.error === undefined ? {} : { error: step.error.message }),
  events: [
    ...(step.events ?? []).map(([, type, micros]) => [type, canonical(micros)] as const),
    ...(step.error === undefined ? [] : [["exception", canonical(step.to)] as const])
  ]
})

/** Record the run. Nothing is sent yet. */
export const recordAgentRun = async (agentId: string): Promise<AgentRun> => {
  const memory = new InMemorySpanExporter()
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ "service.name": "planner-service", "service.version": "7" }),
    spanProcessors: [new SimpleSpanProcessor({ exporter: memory })]
  })
  const tracer = provider.getTracer("alk-tests", "1.0.0")
  const contexts = new Map<string, Context>()
  const spans = new Map<string, Span>()
  const all = steps(agentId)
  for (const step of all) {
    const context = step.parent === undefined ? ROOT_CONTEXT : contexts.get(step.parent)!
    const span = tracer.startSpan(
      step.name,
      {
        startTime: at(step.from),
        attributes: step.attributes,
        kind: step.kind ?? SpanKind.INTERNAL,
        links: (step.causes ?? []).map((name) => ({ context: spans.get(name)!.spanContext() }))
      },
      context
    )
    spans.set(step.name, span)
    contexts.set(step.name, trace.setSpan(ROOT_CONTEXT, span))
    for (const [name, , micros] of step.events ?? []) {
      span.addEvent(name, { step: name }, at(micros))
    }
  }
  for (const step of all.toReversed()) {
    const span = spans.get(step.name)!
    if (step.error !== undefined) {
      span.recordException(step.error, at(step.to))
      span.setStatus({ code: SpanStatusCode.ERROR, message: step.error.message })
    }
    span.end(at(step.to))
  }
  await provider.forceFlush()
  return {
    agentId,
    agentName: AGENT_NAME,
    traceId: spans.get(ROOT)!.spanContext().traceId,
    spans: memory.getFinishedSpans(),
    expected: all.map(expectedOf)
  }
}

/** The real exporter for an encoding. */
export const exporterTo = (
  { grpcUrl, key, url }: OtlpTarget,
  encoding: Encoding,
  compressed = false
): SpanExporter => {
  const authorization = `Bearer ${key}`
  const coding = compressed ? { compression: "gzip" as never } : {}
  if (encoding === "grpc") {
    const metadata = new Metadata()
    metadata.set("authorization", authorization)
    return new GrpcExporter({ url: grpcUrl, metadata, ...coding })
  }
  const options = { url: `${url}/v1/traces`, headers: { authorization }, ...coding }
  return encoding === "json" ? new JsonExporter(options) : new ProtobufExporter(options)
}

/** Send spans in one request; rejects if the exporter does not call that a success. */
export const deliver = (
  exporter: SpanExporter,
  spans: ReadonlyArray<ReadableSpan>
): Promise<void> =>
  new Promise((resolve, reject) => {
    exporter.export([...spans], ({ code, error }) =>
      code === 0 ? resolve() : reject(error ?? new Error("the export failed"))
    )
  })
