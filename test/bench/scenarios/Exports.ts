/** Rows a second that leave the service: NDJSON, CSV, and the evidence pack. */
import type { LargeStore } from "../harness/LargeStore.ts"
import { sizeText } from "../harness/Samples.ts"
import type { Bench, LargeScenario } from "../Scenario.ts"

/** Rows of an export at most: a part of the store shows the rate. */
const ROWS_MAX = 1_000_000
/** Events of a pack: it holds much more than the rows. */
const PACK_EVENTS_MAX = { quick: 10_000, full: 200_000 }

const formats = [
  { name: "NDJSON", accept: "application/x-ndjson", headLines: 0 },
  { name: "CSV", accept: "text/csv", headLines: 1 }
]

const runAt = async (bench: Bench, store: LargeStore, size: number): Promise<void> => {
  const { options, recorder, say } = bench
  const api = await store.api()
  const at = sizeText(size)
  const rows = Math.min(size, ROWS_MAX)
  const packed = Math.min(size, PACK_EVENTS_MAX[options.quick ? "quick" : "full"])
  // The middle of the store.
  const first = Math.floor((size - rows) / 2) + 1
  const range = `from_sequence=${first}&to_sequence=${first + rows - 1}`
  for (let run = 0; run < options.runs; run++) {
    say(`run ${run + 1} of ${options.runs}`)
    for (const { accept, headLines, name } of formats) {
      const started = performance.now()
      const { lines } = await api.drain(`/v1/events?order=asc&${range}`, { headers: { accept } })
      if (lines !== rows + headLines) throw new Error(`${name}: ${lines} lines, not ${rows}`)
      const rate = rows / ((performance.now() - started) / 1_000)
      recorder.add(`${at}: ${name}`, "rows/s", rate, { goal: 100_000 })
    }
    const started = performance.now()
    const { bytes } = await api.drain(
      `/v1/export/evidence-pack?pdf=false&from_sequence=1&to_sequence=${packed}`
    )
    const seconds = (performance.now() - started) / 1_000
    recorder.add(`${at}: pack, without PDF`, "events/s", packed / seconds)
    recorder.add(`${at}: pack, its size`, "MB", bytes / 1e6)
  }
}

export const exports: LargeScenario = {
  name: "exports",
  title: "Exports",
  about: ({ quick }) =>
    `Over HTTP without compression, read to the end: ${ROWS_MAX.toLocaleString("en-US")} rows from `
    + `the middle of the store at most; packs of the first `
    + `${PACK_EVENTS_MAX[quick ? "quick" : "full"].toLocaleString("en-US")} events at most.`,
  runAt
}
