/**
 * What alk does on this machine against what the parts could do at all, side by side in one run: the
 * ratios are the result, not the times. Everything stands on the machine that runs it: the program,
 * the embedded broker, ClickHouse and the load. `npm run bench -- --quick` is the small form.
 */
import { spawnSync } from "node:child_process"
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { createClient } from "@clickhouse/client"
import { Client, type Json } from "../support/Client.ts"
import { freePort } from "../support/FreePort.ts"
import { freshFolder, start, TEST_SECRET, testKey } from "../support/Program.ts"

const quick = process.argv.includes("--quick")
/** Runs of each measurement: medians and spread come from these. */
const RUNS = quick ? 2 : 5
const EVENTS = quick ? 20_000 : 100_000
const BATCH = 1_000
const CLIENTS = 6
const SINGLES = quick ? 20 : 200
const PAGES = quick ? 10 : 50
const TENANTS = 4

const event = (n: number): Json => ({
  timestamp: `2026-11-21T10:00:00.${String(n % 1_000_000).padStart(6, "0")}Z`,
  actor: { id: `user-${n % 1_000}`, type: "human", email: `user-${n % 1_000}@example.com` },
  action: ["document.read", "document.share", "login.succeeded"][n % 3],
  resource: { id: `doc-${n % 5_000}`, type: "document", name: `Document ${n}` },
  outcome: n % 5 === 0 ? "failure" : "success",
  metadata: { ip: `10.0.0.${n % 255}`, tags: ["a", "b"], request: { n, ms: n * 1.5 } }
})

/** Spans of an execution of the load, the root aside; each has an event. */
const SPANS = 4
/** A start, an end, and of each span a start, an event and an end. */
const OPERATIONS_PER_EXECUTION = 2 + SPANS * 3
const EXECUTIONS_PER_BATCH = Math.floor(BATCH / OPERATIONS_PER_EXECUTION)
const OPERATIONS_PER_BATCH = EXECUTIONS_PER_BATCH * OPERATIONS_PER_EXECUTION

/** What an SDK sends of one run; `id` is the client's own, so that a retry is safe. */
const operations = (id: string, n: number): ReadonlyArray<Json> => {
  const started = `2026-11-21T10:00:00.${String(n % 1_000_000).padStart(6, "0")}Z`
  const ended = "2026-11-21T10:00:05.000000Z"
  const spans = Array.from({ length: SPANS }, (_, span) => `${id}-${span}`)
  return [
    {
      op: "execution.start",
      id,
      agent_id: `agent-${n % 100}`,
      agent_name: "Planner",
      started_at: started,
      metadata: { release: "1.4.2", customer: n }
    },
    ...spans.flatMap((span, index) => [
      {
        op: "span.start",
        execution_id: id,
        id: span,
        name: `step ${index}`,
        span_type: index % 2 ? "TOOL_CALL" : "LLM_CALL",
        started_at: started,
        metadata: { model: "m-1", temperature: 0.5 },
        ...(index === 0 ? {} : { caused_by_span_ids: [spans[index - 1]] })
      },
      {
        op: "span.event",
        span_id: span,
        event_type: "llm.response",
        timestamp: started,
        payload: { text: "The answer to the question, in a sentence or two.", tokens: 40 + n }
      },
      { op: "span.end", span_id: span, ended_at: ended }
    ]),
    { op: "execution.end", execution_id: id, ended_at: ended, metadata: { cost: 0.01 } }
  ]
}

const median = (values: ReadonlyArray<number>): number =>
  [...values].sort((left, right) => left - right)[values.length >> 1]!

interface Measured {
  readonly name: string
  readonly values: ReadonlyArray<number>
}

const spread = ({ values }: Measured): string => {
  const low = Math.min(...values) / median(values)
  const high = Math.max(...values) / median(values)
  return `spread ${low.toFixed(2)}-${high.toFixed(2)} of the median, ${values.length} runs`
}

const ratio = (what: string, of: Measured, to: Measured): void => {
  const value = median(of.values) / median(to.values)
  console.log(`${what}: ${value.toFixed(2)}`)
  console.log(`    ${of.name}: ${spread(of)}`)
  console.log(`    ${to.name}: ${spread(to)}`)
}

const repeat = async (name: string, once: () => Promise<number>): Promise<Measured> => {
  const values: Array<number> = []
  for (let run = 0; run < RUNS; run++) values.push(await once())
  return { name, values }
}

const folder = freshFolder("bench")
const tenants = Array.from({ length: TENANTS }, (_, index) => `bench-${index}`)
const program = await start({
  ALK_DATA_DIR: folder,
  ALK_SECRET: TEST_SECRET,
  ALK_KAFKA_PORT: String(await freePort()),
  ALK_ROLES: "api,sequencer,projection,store",
  ALK_STORE_PORT: "0",
  LOG_LEVEL: "warn",
  ALK_BOOTSTRAP_KEYS: [...tenants, "single"]
    .map((tenant) => `${testKey(tenant)}=${tenant}:read+write`)
    .join(",")
})
const client = (tenant: string): Client => new Client(program.url, testKey(tenant))

/** Events per second from the first request until the last event is in every list. */
const endToEnd = async (): Promise<number> => {
  const bodies = Array.from({ length: 10 }, (_, b) =>
    JSON.stringify({ events: Array.from({ length: BATCH }, (__, n) => event(b * BATCH + n)) })
  )
  const started = performance.now()
  const receipts: Array<readonly [string, string]> = []
  let next = 0
  await Promise.all(
    Array.from({ length: CLIENTS }, async () => {
      while (next < EVENTS / BATCH) {
        const n = next++
        const tenant = tenants[n % TENANTS]!
        const { body, status, text } = await client(tenant).call("/v1/events/batch", {
          raw: bodies[n % bodies.length]!
        })
        if (status !== 202) throw new Error(`batch: ${status} ${text}`)
        receipts.push([tenant, body.receipt_id])
      }
    })
  )
  for (const [tenant, receipt] of receipts) await client(tenant).settled(receipt, 120_000)
  return EVENTS / ((performance.now() - started) / 1_000)
}

/** Stands in the prepared requests where the run and the batch are to stand. */
const RUN_MARK = "@run@"
const traceBody = JSON.stringify({
  operations: Array.from({ length: EXECUTIONS_PER_BATCH }, (_, n) =>
    operations(`${RUN_MARK}-${n}`, n)
  ).flat()
})
let traceRuns = 0

/** Operations on traces per second from the first request until all of them can be read. */
const traces = async (): Promise<number> => {
  const run = traceRuns++
  const batches = Math.ceil(EVENTS / OPERATIONS_PER_BATCH)
  const started = performance.now()
  const receipts: Array<readonly [string, string]> = []
  let next = 0
  await Promise.all(
    Array.from({ length: CLIENTS }, async () => {
      while (next < batches) {
        const n = next++
        const tenant = tenants[n % TENANTS]!
        const { body, status, text } = await client(tenant).call("/api/v1/traces/batch", {
          raw: traceBody.replaceAll(RUN_MARK, `run-${run}-${n}`)
        })
        if (status !== 202) throw new Error(`traces: ${status} ${text}`)
        receipts.push([tenant, body.receipt_id])
      }
    })
  )
  for (const [tenant, receipt] of receipts) {
    const { rejected } = await client(tenant).settled(receipt, 120_000)
    if (rejected !== 0) throw new Error(`traces: ${rejected} operations of ${receipt} refused`)
  }
  return (batches * OPERATIONS_PER_BATCH) / ((performance.now() - started) / 1_000)
}

const KAFKA_VERSION = "4.3.1"

/** Kafka's own tools, which the broker does without: fetched through Maven for this run. */
const kafkaTools = (): string => {
  const project = freshFolder("tools")
  writeFileSync(
    join(project, "pom.xml"),
    `<project><modelVersion>4.0.0</modelVersion><groupId>bench</groupId>
     <artifactId>bench</artifactId><version>1</version><dependencies><dependency>
     <groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId>
     <version>${KAFKA_VERSION}</version></dependency></dependencies></project>`
  )
  const goal = ["-B", "-q", "dependency:copy-dependencies", `-DoutputDirectory=${project}/jars`]
  const { status, stderr, stdout } = spawnSync("mvn", goal, { cwd: project, encoding: "utf8" })
  if (status !== 0) throw new Error(stdout + stderr)
  return join(project, "jars", "*")
}

/** Records per second of Kafka's own load tool, the same count and size, acks=all. */
const kafkaAlone = async (jars: string, bytes: number): Promise<number> => {
  const topic = `bench-${Date.now()}`
  const tool = (main: string, ...args: ReadonlyArray<string>) =>
    spawnSync("java", ["-Xmx256m", "-cp", jars, main, ...args], { encoding: "utf8" })
  const made = tool(
    "org.apache.kafka.tools.TopicCommand",
    ...["--bootstrap-server", program.kafka, "--create", "--topic", topic, "--partitions", "4"]
  )
  if (made.status !== 0) throw new Error(made.stdout + made.stderr)
  const { status, stderr, stdout } = tool(
    "org.apache.kafka.tools.ProducerPerformance",
    ...["--topic", topic, "--num-records", String(EVENTS), "--record-size", String(bytes)],
    ...["--throughput", "-1", "--producer-props", `bootstrap.servers=${program.kafka}`, "acks=all"]
  )
  const found = /([\d.]+) records\/sec/.exec(stdout.trim().split("\n").at(-1) ?? "")
  if (status !== 0 || found === null) throw new Error(stdout + stderr)
  return Number(found[1])
}

/** Rows per second of bare inserts into the same table in one block each, through the same client. */
const insertAlone = async (bodies: ReadonlyArray<string>): Promise<number> => {
  const clickhouse = createClient({ url: program.store })
  const table = `alk.bench_${Date.now()}`
  await clickhouse.command({ query: `CREATE TABLE ${table} AS alk.events` })
  // A separator that JSON can't hold, and no quoting: the bytes go in as they are.
  const rows = Buffer.from(bodies.map((body, n) => `0\x01${n}\x01${body}\n`).join(""))
  const rounds = Math.max(1, Math.round(EVENTS / bodies.length))
  const started = performance.now()
  for (let round = 0; round < rounds; round++) {
    const url = new URL(program.store)
    url.searchParams.set(
      "query",
      `INSERT INTO ${table} (kafka_partition, kafka_offset, body) FORMAT CSV`
    )
    url.searchParams.set("format_csv_delimiter", "\x01")
    url.searchParams.set("format_csv_allow_single_quotes", "0")
    url.searchParams.set("format_csv_allow_double_quotes", "0")
    const answer = await fetch(url, { method: "POST", body: rows })
    if (!answer.ok) throw new Error(await answer.text())
  }
  const seconds = (performance.now() - started) / 1_000
  await clickhouse.command({ query: `DROP TABLE ${table}` })
  await clickhouse.close()
  return (rounds * bodies.length) / seconds
}

/** Milliseconds of one synchronous event, from request to answer. */
const single = async (): Promise<number> => {
  const api = client("single")
  const times: Array<number> = []
  for (let n = 0; n < SINGLES; n++) {
    const started = performance.now()
    const { status } = await api.call("/v1/events?sync=true", { body: event(n) })
    if (status !== 201) throw new Error(`single: ${status}`)
    times.push(performance.now() - started)
  }
  return median(times)
}

/** Milliseconds of one page. */
const page = async (query: string): Promise<number> => {
  const times: Array<number> = []
  for (let n = 0; n < PAGES; n++) {
    const started = performance.now()
    await client(tenants[0]!).call(`/v1/events?${query}`)
    times.push(performance.now() - started)
  }
  return median(times)
}

try {
  console.log(
    `alk bench: ${EVENTS} events in batches of ${BATCH}, ${CLIENTS} clients, ${TENANTS} tenants; `
      + `program, broker, ClickHouse and load on one machine`
  )
  await endToEnd()
  const { body } = await client(tenants[0]!).call("/v1/events?page_size=1000")
  const stored = (body.events as Array<Json>).map((entry) => JSON.stringify(entry))
  const bytes = Math.round(stored.reduce((sum, text) => sum + text.length, 0) / stored.length)
  const sample = Array.from({ length: 10 }, () => stored).flat()
  console.log(`a stored event has ${bytes} bytes on average`)
  const whole = await repeat("events/s end to end, until listed", endToEnd)
  const jars = kafkaTools()
  const kafka = await repeat("records/s of Kafka's ProducerPerformance", () =>
    kafkaAlone(jars, bytes)
  )
  const insert = await repeat("rows/s of bare inserts into the same table", () =>
    insertAlone(sample)
  )
  ratio("end to end, of what Kafka alone takes", whole, kafka)
  ratio("end to end, of what ClickHouse alone takes", whole, insert)
  console.log(
    `    30,000 events/s are ${(30_000 / median(whole.values)).toFixed(2)} of the median run`
  )
  await traces()
  const traced = await repeat("operations/s on traces, until they can be read", traces)
  ratio("traces, of events", traced, whole)
  const goal = 20_000 / median(traced.values)
  console.log(`    20,000 operations/s are ${goal.toFixed(2)} of the median run`)
  const health = await repeat("GET /healthz", async () => {
    const started = performance.now()
    for (let n = 0; n < PAGES; n++) await client("single").call("/healthz")
    return (performance.now() - started) / PAGES
  })
  const one = await repeat("one synchronous event", single)
  ratio("a synchronous event, in empty requests", one, health)
  console.log(`    50 ms are ${(50 / median(one.values)).toFixed(2)} of the median`)
  const filtered = await repeat("a page filtered by actor and outcome", () =>
    page("actor_id=user-7&outcome=success")
  )
  ratio("a filtered page, in empty requests", filtered, health)
  const { body: all } = await client(tenants[0]!).call("/v1/events?page_size=1")
  console.log(
    `    over ${all.total} events of the tenant; 50 ms are `
      + `${(50 / median(filtered.values)).toFixed(2)} of the median`
  )
} finally {
  await program.stop()
  rmSync(folder, { recursive: true, force: true })
}
