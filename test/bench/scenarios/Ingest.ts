/** Events a second from the first request until the last event is listed, and the CPU of an event. */
import { setTimeout as sleep } from "node:timers/promises"
import type { Api } from "../harness/Api.ts"
import { ingestFile } from "../harness/IngestFile.ts"
import { bodiesOf, type LoadShape, sendFor } from "../harness/Load.ts"
import { Program, type Subject } from "../harness/Programs.ts"
import { CpuWatch, plus, sumOf, threadGroups } from "../harness/Threads.ts"
import { type Bench, inTurn, type PlainScenario } from "../Scenario.ts"

interface Case {
  readonly name: string
  readonly shape: LoadShape
  readonly tenants: number
  /** Events a second. */
  readonly goal?: number
}

const base: LoadShape = { batch: 1_000, size: "400 bytes", sync: false, clients: 6 }

/** The goal is that of two cores. */
const cases: ReadonlyArray<Case> = [
  { name: "batches of 1,000", shape: base, tenants: 1, goal: 60_000 },
  { name: "batches of 1,000, 16 tenants", shape: base, tenants: 16 },
  { name: "batches of 1,000, events of 4 KB", shape: { ...base, size: "4 KB" }, tenants: 1 },
  { name: "batches of 1,000, sync", shape: { ...base, sync: true }, tenants: 1 },
  { name: "batches of 100", shape: { ...base, batch: 100, clients: 16 }, tenants: 1 },
  {
    name: "batches of 100, sync, 16 tenants",
    shape: { ...base, batch: 100, sync: true, clients: 16 },
    tenants: 16
  },
  { name: "single events", shape: { ...base, batch: 1, clients: 32 }, tenants: 1 },
  {
    name: "single events, sync, 16 tenants",
    shape: { ...base, batch: 1, sync: true, clients: 32 },
    tenants: 16
  }
]

const TENANTS_MAX = 16
const tenantName = (index: number): string => `bench-${index}`
export const ingestTenants = Array.from({ length: TENANTS_MAX }, (_, n) => tenantName(n))

/** Share of a core below which the program counts as idle again. */
const IDLE_SHARE = 0.1
const IDLE_CHECK_MS = 1_000

/** Waits until merges and the like are done; gives the CPU that they took. */
const settle = async (watch: CpuWatch, secondsMax: number) => {
  let times = watch.lap()
  const until = performance.now() + secondsMax * 1_000
  for (;;) {
    await sleep(IDLE_CHECK_MS)
    const lap = watch.lap()
    times = plus(times, lap)
    const share = sumOf(lap) / 1_000 / IDLE_CHECK_MS
    if (share < IDLE_SHARE || performance.now() > until) return times
  }
}

/** Seconds of load that come before the measured ones: compilers and heaps get ready. */
const warmUpSeconds = (seconds: number): number => Math.min(10, seconds)

/** Seconds that merges get after the load at most. */
const settleSeconds = (seconds: number): number => Math.max(2, seconds)

const measure = async (
  { options, recorder }: Bench,
  subject: Subject,
  program: Program,
  { goal, name, shape, tenants }: Case
): Promise<number> => {
  const apis = ingestTenants.slice(0, tenants).map((tenant) => program.api(tenant))
  const bodies = bodiesOf(shape)
  const watch = new CpuWatch(program.process.pid)
  const ownBefore = process.cpuUsage()
  const { events, seconds } = await sendFor(apis, shape, bodies, options.seconds)
  const own = process.cpuUsage(ownBefore)
  const times = await settle(watch, settleSeconds(options.seconds))
  const of = subject.name
  recorder.add(name, "events/s", events / seconds, {
    of,
    ...(goal === undefined ? {} : { goal })
  })
  for (const group of threadGroups) {
    recorder.add(group, "µs", times[group] / events, { of, sum: name })
  }
  recorder.add("load generator", "µs", (own.user + own.system) / events, { of, sum: name })
  return events
}

const FILE_CASE = "alk ingest of a file"
/** Lines of the file for each second of load: about as long as the other cases take. */
const LINES_PER_SECOND = 20_000

const measureFile = async (
  { options, recorder }: Bench,
  subject: Subject,
  program: Program
): Promise<number> => {
  const lines = options.seconds * LINES_PER_SECOND
  const { events, seconds } = await ingestFile(program, ingestTenants[0]!, lines)
  recorder.add(FILE_CASE, "events/s", events / seconds, { of: subject.name })
  await settle(new CpuWatch(program.process.pid), settleSeconds(options.seconds))
  return events
}

/** Throws unless every event that was acknowledged is listed, and no other. */
const checkTotals = async (apis: ReadonlyArray<Api>, sent: number): Promise<void> => {
  let total = 0
  for (const api of apis) total += await api.total()
  if (total !== sent) throw new Error(`${sent} events were acknowledged and ${total} are listed`)
}

/** All cases on one program, which then has to list every event. */
const runOnce = async (bench: Bench, subject: Subject, run: number): Promise<void> => {
  const { options, say, subjects } = bench
  const of = subjects.length > 1 ? ` (${subject.name})` : ""
  const program = await Program.start(subject, { tenants: ingestTenants })
  try {
    const apis = ingestTenants.map((tenant) => program.api(tenant))
    let { events } = await sendFor(apis, base, bodiesOf(base), warmUpSeconds(options.seconds))
    await settle(new CpuWatch(program.process.pid), settleSeconds(options.seconds))
    for (const one of cases) {
      say(`run ${run + 1} of ${options.runs}${of}: ${one.name}`)
      events += await measure(bench, subject, program, one)
    }
    say(`run ${run + 1} of ${options.runs}${of}: ${FILE_CASE}`)
    events += await measureFile(bench, subject, program)
    await checkTotals(apis, events)
  } finally {
    await program.stop()
  }
}

/** Of the rate of the same events sent without a file, ids and a journal. */
const FILE_GOAL = 0.8
/** Times the rate of the checkout of before the work on speed. */
const AGAINST_GOAL = 3

export const ingest: PlainScenario = {
  name: "ingest",
  title: "Ingest",
  about: ({ seconds }) =>
    `From the first request until the last event is in every list. Asynchronous, one tenant and `
    + `events of about 400 bytes unless said otherwise; ${seconds} s of load for each value, 6 `
    + `requests at once with batches of 1,000, 16 with batches of 100, 32 with single events. CPU `
    + `is microseconds an event by groups of threads, merges after the load included.`,
  run: async (bench) => {
    await inTurn(bench, (subject, run) => runOnce(bench, subject, run))
    for (const { name } of cases) {
      const goal = name === cases[0]!.name ? AGAINST_GOAL : undefined
      bench.recorder.ratio(`${name}, of against`, [name], [name, "against"], goal)
    }
    const loads = cases[0]!.name
    bench.recorder.ratio(`${FILE_CASE}, of ${loads}`, [FILE_CASE], [loads], FILE_GOAL)
  }
}
