/** The CPU of an event by the number of events that are stored already. */
import type { LargeStore } from "../harness/LargeStore.ts"
import { SIDE_TENANT } from "../harness/LargeStore.ts"
import { bodiesOf, type LoadShape, sendFor } from "../harness/Load.ts"
import { sizeText } from "../harness/Samples.ts"
import { CpuWatch, sumOf } from "../harness/Threads.ts"
import type { Bench, LargeScenario } from "../Scenario.ts"

const SHAPE: LoadShape = { batch: 1_000, size: "400 bytes", sync: false, clients: 6 }

/** The events of the load stay in the store: not too many of them. */
const SECONDS_MAX = 10

const cpuName = (size: number): string => `${sizeText(size)}: CPU of an event`

const runAt = async (bench: Bench, store: LargeStore, size: number): Promise<void> => {
  const { options, recorder, say } = bench
  const program = await store.program()
  const bodies = bodiesOf(SHAPE)
  for (let run = 0; run < options.runs; run++) {
    say(`run ${run + 1} of ${options.runs}`)
    const watch = new CpuWatch(program.process.pid)
    const api = program.api(SIDE_TENANT)
    const most = Math.min(SECONDS_MAX, options.seconds)
    const { events, seconds } = await sendFor([api], SHAPE, bodies, most)
    recorder.add(`${sizeText(size)}: rate`, "events/s", events / seconds)
    recorder.add(cpuName(size), "µs", sumOf(watch.lap()) / events)
  }
  const first = options.sizes[0]!
  if (size === first) return
  const over = `CPU of an event, ${sizeText(size)} over ${sizeText(first)}`
  recorder.ratio(over, [cpuName(size)], [cpuName(first)])
}

export const growth: LargeScenario = {
  name: "growth",
  title: "Ingest into a large store",
  about: ({ seconds }) =>
    `Batches of 1,000 for ${Math.min(SECONDS_MAX, seconds)} s, until listed, by the events that are stored already. CPU is `
    + `that of all threads of the program and the broker.`,
  runAt
}
