/** How long lists, graphs and summaries of runs take for a tenant with very many spans. */
import { createHash } from "node:crypto"
import { setTimeout as sleep } from "node:timers/promises"
import type { Api } from "../harness/Api.ts"
import { Program } from "../harness/Programs.ts"
import { recordTimes, timesOf } from "../harness/Samples.ts"
import type { Bench, PlainScenario } from "../Scenario.ts"

const SIZES = {
  quick: { runs: 20, spansOfRun: 50, largeRun: 1_000, samples: 5 },
  full: { runs: 4_950, spansOfRun: 200, largeRun: 10_000, samples: 40 }
}
type Size = (typeof SIZES)["full"]

const spansIn = ({ largeRun, runs, spansOfRun }: Size): number => runs * spansOfRun + largeRun

const BATCH = 1_000
const CLIENTS = 6
const ATTEMPTS_MAX = 5
const RETRY_MS = 1_000
const MODELS = ["gpt-4.1", "gpt-4.1-mini", "claude-sonnet-4", "gemini-2.5-pro", "llama-4"]
const START_MS = Date.UTC(2026, 10, 21, 10)
const LARGE = "large"

const hex = (text: string, bytes: number): string =>
  createHash("sha256")
    .update(text)
    .digest("hex")
    .slice(0, 2 * bytes)

const attribute = (key: string, value: string | number) => ({
  key,
  value: typeof value === "number" ? { intValue: String(value) } : { stringValue: value }
})

const nanos = (ms: number): string => `${ms}000000`

/** The n-th span of a run: every third is a call of a model, the others are tools. */
const spanOf = (run: string, n: number, spans: number) => {
  const isCall = n % 3 === 1
  const at = START_MS + n
  return {
    traceId: hex(run, 16),
    spanId: hex(`${run}/${n}`, 8),
    ...(n === 0 ? {} : { parentSpanId: hex(`${run}/${Math.floor((n - 1) / 4)}`, 8) }),
    name: n === 0 ? "invoke_agent" : isCall ? "chat" : `tool ${n % 7}`,
    startTimeUnixNano: nanos(at),
    endTimeUnixNano: nanos(n === 0 ? START_MS + spans + 100 : at + 50),
    attributes: [
      attribute(
        "gen_ai.operation.name",
        n === 0 ? "invoke_agent" : isCall ? "chat" : "execute_tool"
      ),
      attribute("gen_ai.agent.name", `agent ${Number.parseInt(hex(run, 1), 16) % 20}`),
      attribute("session.id", `chat-${run}`),
      ...(isCall
        ? [
            attribute("gen_ai.response.model", MODELS[n % MODELS.length]!),
            attribute("gen_ai.usage.input_tokens", 100 + (n % 900)),
            attribute("gen_ai.usage.output_tokens", n % 200)
          ]
        : [attribute("gen_ai.tool.name", `tool ${n % 7}`)])
    ],
    status: n % 50 === 49 ? { code: 2, message: "it did not work" } : {}
  }
}

/** Requests of an export each, the spans of a run in one after the other. */
function* exportsOf(size: Size): Generator<string> {
  const runs = [
    ...Array.from({ length: size.runs }, (_, n) => [`run-${n}`, size.spansOfRun] as const),
    [LARGE, size.largeRun] as const
  ]
  let spans: Array<ReturnType<typeof spanOf>> = []
  const request = () => JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans }] }] })
  for (const [run, count] of runs) {
    for (let n = 0; n < count; n++) {
      spans.push(spanOf(run, n, count))
      if (spans.length < BATCH) continue
      yield request()
      spans = []
    }
  }
  if (spans.length > 0) yield request()
}

/** Sends an export, again where the service asks for that, as exporters do. */
const send = async (api: Api, body: string): Promise<void> => {
  for (let attempt = 1; ; attempt++) {
    const { status, text } = await api.call("/v1/traces", { body })
    if (status === 200 && JSON.parse(text).partialSuccess === undefined) return
    if (status !== 503 || attempt === ATTEMPTS_MAX) throw new Error(`/v1/traces: ${status} ${text}`)
    await sleep(RETRY_MS)
  }
}

const load = async (api: Api, size: Size): Promise<void> => {
  const requests = exportsOf(size)
  const client = async () => {
    for (const body of requests) await send(api, body)
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
}

interface Question {
  readonly name: string
  readonly path: (n: number, size: Size, large: string) => string
  /** Milliseconds of the p95. */
  readonly goal?: number
}

const list = (query: string): string => `/api/v1/executions?${query}`

const questions: ReadonlyArray<Question> = [
  { name: "list", path: (n) => list(`page=${1 + n}`), goal: 100 },
  { name: "list by status", path: (n) => list(`status=COMPLETED&page=${1 + n}`), goal: 100 },
  { name: "list by agent", path: (n) => list(`name=agent%20${n % 20}`), goal: 100 },
  {
    name: "list by session",
    path: (n, { runs }) => list(`session_id=chat-run-${n % runs}`),
    goal: 100
  },
  { name: "list by model", path: (n) => list(`model=${MODELS[n % MODELS.length]}`), goal: 100 },
  { name: "list by errors", path: (n) => list(`has_error=true&page=${1 + n}`), goal: 100 },
  { name: "list by tokens", path: (n) => list(`min_tokens=${1_000 + n}`) },
  { name: "list, most tokens first", path: (n) => list(`sort=tokens&page=${1 + n}`) },
  { name: "one execution", path: (_n, _size, large) => `/api/v1/executions/${large}`, goal: 100 },
  {
    name: "graph of the large run",
    path: (_n, _size, large) => `/api/v1/executions/${large}/dag`,
    goal: 1_000
  },
  {
    name: "aggregated graph of the large run",
    path: (_n, _size, large) => `/api/v1/executions/${large}/dag/aggregated`,
    goal: 500
  }
]

/** The answers themselves, once: a fast answer that is wrong is none. */
const checkAnswers = async (api: Api, size: Size): Promise<string> => {
  const { total } = await api.json(list("page_size=1"))
  if (total !== size.runs + 1) throw new Error(`${total} executions are listed`)
  const { executions } = await api.json(list(`session_id=chat-${LARGE}`))
  const [large] = executions
  if (executions.length !== 1 || large.summary.spans !== size.largeRun) {
    throw new Error(`the large run: ${JSON.stringify(executions)}`)
  }
  const { nodes } = await api.json(`/api/v1/executions/${large.id}/dag`)
  if (nodes.length !== size.largeRun) throw new Error(`${nodes.length} nodes`)
  return large.id
}

const run = async ({ options, recorder, say, subjects }: Bench): Promise<void> => {
  const size = SIZES[options.quick ? "quick" : "full"]
  const program = await Program.start(subjects[0]!, { tenants: ["runs"] })
  try {
    const api = program.api("runs")
    say(`${spansIn(size)} spans are sent`)
    const startedAt = performance.now()
    await load(api, size)
    recorder.add("sent", "spans/s", (spansIn(size) * 1_000) / (performance.now() - startedAt))
    const large = await checkAnswers(api, size)
    for (let round = 0; round < options.runs; round++) {
      say(`run ${round + 1} of ${options.runs}`)
      for (const { goal, name, path } of questions) {
        const ask = (n: number) => api.json(path(n, size, large))
        await ask(size.samples)
        const times = await timesOf(size.samples, ask)
        recordTimes(recorder, name, times, { p50: undefined, p95: goal })
      }
    }
  } finally {
    await program.stop()
  }
}

export const runs: PlainScenario = {
  name: "runs",
  title: "Runs of agents",
  about: ({ quick }) => {
    const size = SIZES[quick ? "quick" : "full"]
    return (
      `One tenant with ${spansIn(size).toLocaleString("en-US")} spans: `
      + `${size.runs.toLocaleString("en-US")} runs of ${size.spansOfRun} and one of `
      + `${size.largeRun.toLocaleString("en-US")}, sent as OpenTelemetry JSON in requests of `
      + `${BATCH}. Each page has 50 executions with their summaries and the exact total. Requests `
      + `one after another, ${size.samples} of each in a run.`
    )
  },
  run
}
