/** Operations on execution traces a second, as an SDK sends them, until they can be read. */
import type { Api } from "../harness/Api.ts"
import { Program, type Subject } from "../harness/Programs.ts"
import { CpuWatch, sumOf } from "../harness/Threads.ts"
import { type Bench, inTurn, type PlainScenario } from "../Scenario.ts"

type Operation = Readonly<Record<string, unknown>>

const BATCH = 1_000
const CLIENTS = 6
const TENANTS = 4
/** Spans of an execution of the load, the root aside; each has an event. */
const SPANS = 4
/** A start, an end, and of each span a start, an event and an end. */
const OPERATIONS_PER_EXECUTION = 2 + SPANS * 3
const EXECUTIONS = Math.floor(BATCH / OPERATIONS_PER_EXECUTION)
const OPERATIONS = EXECUTIONS * OPERATIONS_PER_EXECUTION
const STARTED = "2026-11-21T10:00:00.000000Z"
const ENDED = "2026-11-21T10:00:05.000000Z"

const spanOperations = (execution: string, index: number, n: number): ReadonlyArray<Operation> => {
  const id = `${execution}-${index}`
  return [
    {
      op: "span.start",
      execution_id: execution,
      id,
      name: `step ${index}`,
      span_type: index % 2 === 0 ? "LLM_CALL" : "TOOL_CALL",
      started_at: STARTED,
      metadata: { model: "m-1", temperature: 0.5 },
      ...(index === 0 ? {} : { caused_by_span_ids: [`${execution}-${index - 1}`] })
    },
    {
      op: "span.event",
      span_id: id,
      event_type: "llm.response",
      timestamp: STARTED,
      payload: { text: "The answer to the question, in a sentence or two.", tokens: 40 + n }
    },
    { op: "span.end", span_id: id, ended_at: ENDED }
  ]
}

/** What an SDK sends of one execution; its id is the client's own, so that a retry is safe. */
const operationsOf = (id: string, n: number): ReadonlyArray<Operation> => [
  {
    op: "execution.start",
    id,
    agent_id: `agent-${n % 100}`,
    agent_name: "Planner",
    started_at: STARTED,
    metadata: { release: "1.4.2", customer: n }
  },
  ...Array.from({ length: SPANS }, (_, index) => spanOperations(id, index, n)).flat(),
  { op: "execution.end", execution_id: id, ended_at: ENDED, metadata: { cost: 0.01 } }
]

/** In the prepared request, where the number of the request goes: ids are used once. */
const MARK = "@request@"
const template = JSON.stringify({
  operations: Array.from({ length: EXECUTIONS }, (_, n) => operationsOf(`${MARK}-${n}`, n)).flat()
}).split(MARK)

let requests = 0

interface TraceLoad {
  readonly operations: number
  /** Until all of them can be read. */
  readonly seconds: number
}

const send = async (apis: ReadonlyArray<Api>, seconds: number): Promise<TraceLoad> => {
  const started = performance.now()
  const receipts: Array<readonly [Api, string]> = []
  const client = async (): Promise<void> => {
    while (performance.now() - started < seconds * 1_000) {
      const api = apis[requests % apis.length]!
      const body = template.join(`run-${requests++}`)
      receipts.push([api, (await api.json("/api/v1/traces/batch", { body })).receipt_id])
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
  for (const [api, receipt] of receipts) await api.settled(receipt)
  return {
    operations: receipts.length * OPERATIONS,
    seconds: (performance.now() - started) / 1_000
  }
}

const runOnce = async (
  { options, recorder, say }: Bench,
  subject: Subject,
  run: number
): Promise<void> => {
  say(`run ${run + 1} of ${options.runs}`)
  const tenants = Array.from({ length: TENANTS }, (_, n) => `traces-${n}`)
  const program = await Program.start(subject, { tenants })
  try {
    const apis = tenants.map((tenant) => program.api(tenant))
    await send(apis, Math.min(10, options.seconds))
    const watch = new CpuWatch(program.process.pid)
    const { operations, seconds } = await send(apis, options.seconds)
    const of = subject.name
    recorder.add("operations", "operations/s", operations / seconds, { of, goal: 20_000 })
    recorder.add("CPU of an operation", "µs", sumOf(watch.lap()) / operations, { of })
  } finally {
    await program.stop()
  }
}

export const traces: PlainScenario = {
  name: "traces",
  title: "Traces",
  about: ({ seconds }) =>
    `Executions of ${SPANS} spans with an event each, sent as ${OPERATIONS_PER_EXECUTION} `
    + `operations in batches of ${OPERATIONS} by ${CLIENTS} clients for ${TENANTS} tenants, for `
    + `${seconds} s; until all of them can be read.`,
  run: async (bench) => {
    await inTurn(bench, (subject, run) => runOnce(bench, subject, run))
    bench.recorder.ratio("operations, of against", ["operations"], ["operations", "against"])
  }
}
