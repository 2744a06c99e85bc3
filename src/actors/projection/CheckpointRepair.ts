/**
 * Puts back checkpoints that the store has lost: the rows of a partition are compared with the
 * records of `alk.checkpoints`, and what is missing is inserted again.
 */
import { Effect } from "effect"
import type { CheckpointRow } from "../../ports/CheckpointStore.ts"
import { CheckpointStore } from "../../ports/CheckpointStore.ts"
import { EventLog, type LogReader, type LogRecord } from "../../ports/EventLog.ts"
import { StoredTopics } from "../../ports/TopicRows.ts"
import { scan } from "../log/PartitionScan.ts"

/** Offsets that are compared at a time. */
const WINDOW_OFFSETS = 10_000

/** `rowOf`: the row of a record; undefined for one that is not a checkpoint. */
export const repairCheckpoints = Effect.fn("CheckpointRepair")(function* (
  reader: LogReader,
  partition: number,
  upTo: number,
  rowOf: (record: LogRecord) => CheckpointRow | undefined
) {
  const log = yield* EventLog
  const store = yield* CheckpointStore
  const stored = yield* StoredTopics
  const { start } = yield* log.bounds("checkpoints", partition)
  let missing = 0
  for (let from = start; from < upTo; from += WINDOW_OFFSETS) {
    const end = Math.min(upTo, from + WINDOW_OFFSETS)
    const rows = yield* stored.of("checkpoints").rows(partition, from, end)
    const there = new Set(rows.map(({ offset }) => offset))
    const lost: Array<CheckpointRow> = []
    yield* scan(reader, { topic: "checkpoints", partition, offset: from }, end, (records) => {
      for (const record of records) {
        const row = there.has(record.offset) ? undefined : rowOf(record)
        if (row !== undefined) lost.push(row)
      }
    })
    if (lost.length > 0) yield* store.insert(lost)
    missing += lost.length
  }
  if (missing === 0) return
  yield* Effect.logError("the store had lost checkpoints; they are back from their topic", {
    partition,
    checkpoints: missing
  })
})
