/** Whether records are where their writer expected them, before others refer to their offsets. */
import { countOf, type PartitionRecords } from "./protocol/BatchSender.ts"
import { keyOf } from "./protocol/ProducerRequests.ts"

/** Another writer has written to a partition that only this one writes to. */
export class PlaceTaken extends Error {}

/**
 * `next` moves on after the records.
 * @throws PlaceTaken if records are after where they were expected, Error if before
 */
export const checkPlaces = (
  request: ReadonlyArray<PartitionRecords>,
  bases: ReadonlyArray<number>,
  next: Map<string, number>
): void => {
  for (const [index, part] of request.entries()) {
    const expected = next.get(keyOf(part))
    if (expected === undefined) continue
    const base = bases[index]!
    // Fewer records than there were: this is not to be written over, but looked at by a restore.
    if (base < expected) throw new Error(`the log has lost records: at ${base}, not at ${expected}`)
    if (base > expected) throw new PlaceTaken(`records are at ${base}, not at ${expected}`)
    next.set(keyOf(part), expected + countOf(part))
  }
}
