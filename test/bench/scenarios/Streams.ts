/** Live streams (SSE): how fast many readers of one tenant get its events. */
import { eventText } from "../harness/Events.ts"
import { bodiesOf, type LoadShape, pathOf, sendWhile } from "../harness/Load.ts"
import { Program, type Subject } from "../harness/Programs.ts"
import { recordTimes, timesOf } from "../harness/Samples.ts"
import { Subscribers } from "../harness/Subscribers.ts"
import { CpuWatch, sumOf } from "../harness/Threads.ts"
import { type Bench, inTurn, type PlainScenario } from "../Scenario.ts"

const READERS = [1, 100, 1_000]
/** Events to each reader: fewer where there are many readers. */
const eventsFor = (readers: number, quick: boolean): number => {
  if (readers === 1) return quick ? 5_000 : 100_000
  return readers === 100 ? (quick ? 500 : 10_000) : quick ? 200 : 2_000
}
const SINGLES = { quick: 5, full: 100 }
const SHAPE: LoadShape = { batch: 100, size: "400 bytes", sync: false, clients: 4 }
const TENANT = "stream"

const measure = async (
  { options, recorder, say }: Bench,
  subject: Subject,
  program: Program,
  readers: number
): Promise<void> => {
  say(`${readers.toLocaleString("en-US")} readers`)
  const of = subject.name
  const api = program.api(TENANT)
  const name = `${readers.toLocaleString("en-US")} ${readers === 1 ? "reader" : "readers"}`
  const subscribers = await Subscribers.open(api, readers)
  try {
    let sent = 0
    const single = async (n: number): Promise<void> => {
      await api.json(pathOf({ batch: 1, sync: false }), { body: eventText(n) })
      await subscribers.haveEach(++sent)
    }
    const times = await timesOf(SINGLES[options.quick ? "quick" : "full"], single)
    const shares = { p50: undefined, p99: undefined }
    recordTimes(recorder, `${name}: one event, until each has it`, times, shares, of)
    const events = eventsFor(readers, options.quick)
    const bodies = bodiesOf(SHAPE)
    const watch = new CpuWatch(program.process.pid)
    const started = performance.now()
    const load = await sendWhile(
      [api],
      SHAPE,
      (n) => bodies[n % bodies.length]!,
      (done) => done < events
    )
    await subscribers.haveEach(sent + load.events)
    const seconds = (performance.now() - started) / 1_000
    const deliveries = load.events * readers
    recorder.add(`${name}: deliveries`, "deliveries/s", deliveries / seconds, { of })
    const micros = sumOf(watch.lap()) / deliveries
    recorder.add(`${name}: CPU of a delivery`, "µs", micros, { of })
    recorder.add(`${name}: closed as too slow, and resumed`, "streams", subscribers.resumed, { of })
  } finally {
    subscribers.close()
  }
}

export const streams: PlainScenario = {
  name: "streams",
  title: "Live streams",
  about: ({ quick }) =>
    `Readers of GET /v1/events/stream of one tenant, in one process beside the load. `
    + `${READERS.map((n) => eventsFor(n, quick).toLocaleString("en-US")).join(", ")} events for `
    + `${READERS.map((n) => n.toLocaleString("en-US")).join(", ")} readers, until each has all of `
    + `them; ingest is part of the time and of the CPU. A reader that is closed because it is `
    + `too slow goes on after its last event. The scenario fails if one lacks an event or gets one twice.`,
  run: (bench) =>
    inTurn(bench, async (subject, run) => {
      bench.say(`run ${run + 1} of ${bench.options.runs}`)
      const environment = { ALK_STREAMS_MAX: "10000" }
      const program = await Program.start(subject, { tenants: [TENANT], environment })
      try {
        for (const readers of READERS) await measure(bench, subject, program, readers)
      } finally {
        await program.stop()
      }
    })
}
