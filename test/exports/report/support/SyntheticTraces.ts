/** Executions and spans without a store: execution n and its spans are functions of n. */
import { Layer, Stream } from "effect"
import { formatMicros } from "../../../../src/domain/Timestamp.ts"
import type { Execution, Span } from "../../../../src/domain/traces/TraceResources.ts"
import { TraceExport, type TraceScope } from "../../../../src/exports/pack/TraceExport.ts"

const START_MICROS = Date.parse("2026-02-01T08:00:00Z") * 1_000
const HOUR = 3_600_000_000
const SECOND = 1_000_000
const AGENTS = ["billing-agent", "support-agent", "research-agent"]
const CHUNK = 100

/** Of every seven executions one has failed, one is still running. */
export const executionAt = (n: number): Execution => {
  const isRunning = n % 7 === 6
  return {
    id: `exec_${String(n).padStart(6, "0")}`,
    agent_id: AGENTS[n % AGENTS.length]!,
    agent_name: AGENTS[n % AGENTS.length]!,
    status: isRunning ? "RUNNING" : n % 7 === 3 ? "FAILED" : "COMPLETED",
    root_span_id: `span_${n}_0`,
    started_at: formatMicros(START_MICROS + n * HOUR),
    ...(isRunning ? {} : { ended_at: formatMicros(START_MICROS + n * HOUR + (n + 1) * SECOND) }),
    metadata: {},
    created_at: formatMicros(START_MICROS + n * HOUR)
  }
}

/** The root, and a tool that takes n seconds; the tool of a failed execution says why. */
export const spansAt = (n: number): ReadonlyArray<Span> => {
  const { ended_at, id, root_span_id, started_at, status } = executionAt(n)
  const span = {
    execution_id: id,
    caused_by_span_ids: [],
    status,
    started_at,
    metadata: {},
    ...(ended_at === undefined ? {} : { ended_at })
  }
  return [
    { ...span, id: root_span_id, span_type: "AGENT", name: "run" },
    {
      ...span,
      id: `span_${n}_1`,
      parent_span_id: root_span_id,
      span_type: "TOOL_CALL",
      name: `ledger.lookup ${n}`,
      ...(ended_at === undefined
        ? {}
        : { ended_at: formatMicros(START_MICROS + n * HOUR + n * SECOND) }),
      ...(status === "FAILED" ? { error: { message: `timeout of ledger ${n}` } } : {})
    }
  ]
}

const linesOf = (values: Iterable<unknown>) =>
  Stream.fromIterable(values, { chunkSize: CHUNK }).pipe(
    Stream.map((value) => JSON.stringify(value)),
    Stream.grouped(CHUNK)
  )

function* each<A>(size: number, valuesOf: (n: number) => ReadonlyArray<A>): Generator<A> {
  for (let n = 0; n < size; n++) yield* valuesOf(n)
}

export const syntheticTraces = (size: number): Layer.Layer<TraceExport> =>
  Layer.succeed(TraceExport, {
    executions: () => linesOf(each(size, (n) => [executionAt(n)])),
    spans: () => linesOf(each(size, spansAt)),
    // A report reads neither.
    facts: () => Stream.empty,
    chain: () => Stream.empty
  })

export const traceScope: TraceScope = {
  tenantId: "acme",
  from: "1970-01-01T00:00:00.000000Z",
  to: "2261-12-31T23:59:59.999999Z",
  last: 1
}
