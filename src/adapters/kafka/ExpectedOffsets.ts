/**
 * Whether records are where their writer expected them, before others refer to their offsets, and the
 * transaction that they began is still open; and where they are not, whether another owner of the
 * partition has written what is there instead.
 */
import type { PlacedSigning, Position } from "../../ports/EventLog.ts"
import { ClusterReader } from "./PartitionReader.ts"
import { countOf, type PartitionRecords } from "./protocol/BatchSender.ts"
import type { RawCluster } from "./protocol/KafkaClient.ts"
import { keyOf } from "./protocol/ProducerRequests.ts"
import type { ProducerState } from "./protocol/ProducerStates.ts"
import { retryWhile } from "./protocol/Retry.ts"

/** One fetch of what others have written. */
const LIMITS = { waitMs: 100, maxBytes: 1_048_576 }

/** Another writer has written to a partition that only this one writes to. */
export class OffsetConflict extends Error {}

/**
 * `next` moves on after the records.
 * @throws PlaceTaken if records are after where they were expected, Error if before
 */
export const checkOffsets = (
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
    if (base > expected) throw new OffsetConflict(`records are at ${base}, not at ${expected}`)
    next.set(keyOf(part), expected + countOf(part))
  }
}

/**
 * What is wrong where the transaction that is open is not the one that began with these records:
 * it was ended with the identity of its writer.
 */
export const endOfBegun = (
  begins: ReadonlyMap<string, number>,
  states: ReadonlyArray<ProducerState>
): string | undefined => {
  for (const state of states) {
    const key = keyOf(state)
    const begin = begins.get(key)
    if (begin === undefined || state.transactionStart === begin) continue
    return `another program has ended the transaction of alk that began in ${key} at offset ${begin}`
  }
  return undefined
}

/** Another owner of the partition has begun to write: this writer is over. */
export class TakenOver extends Error {
  override readonly name = "TakenOver"
}

/**
 * Up to where a writer knows what stands in the partitions whose records are signed for their places:
 * what it has seen, and written itself.
 */
export class SeenOffsets {
  readonly #cluster: RawCluster
  readonly #prefix: string
  readonly #signing: PlacedSigning
  readonly #places = new Map<string, Position>()

  constructor(cluster: RawCluster, prefix: string, signing: PlacedSigning) {
    this.#cluster = cluster
    this.#prefix = prefix
    this.#signing = signing
  }

  get places(): ReadonlyMap<string, Position> {
    return this.#places
  }

  /** What is before this place does not count: the writer is newer. */
  beginAt(key: string, place: Position): void {
    this.#places.set(key, place)
  }

  wroteUpTo(key: string, offset: number): void {
    const place = this.#places.get(key)
    if (place !== undefined) this.#places.set(key, { ...place, offset })
  }

  /**
   * Read on to where the partitions end now, once all of that is decided. Nothing of this writer may
   * be open.
   * @throws TakenOver where a genuine record stands
   */
  async lookOn(shouldContinue: () => boolean): Promise<void> {
    for (const [key, from] of this.#places) {
      let place = from
      let end: number | undefined
      while (end === undefined || place.offset < end) {
        const { nextOffset, records, writtenEnd } = await this.#fetch(place, shouldContinue)
        const genuine = records.find((record) => this.#signing.isGenuine(record, place))
        if (genuine !== undefined) {
          throw new TakenOver(
            `another owner of the partition has written at offset ${genuine.offset} of alk.`
              + `${keyOf(place)}, with another transactional id`
          )
        }
        end ??= writtenEnd
        place = { ...place, offset: nextOffset }
        if (place.offset < end && !shouldContinue()) {
          throw new Error(`what others have written to alk.${keyOf(place)} is not decided yet`)
        }
      }
      this.#places.set(key, place)
    }
  }

  #fetch(place: Position, shouldContinue: () => boolean) {
    return retryWhile(this.#cluster, shouldContinue, async () => {
      const reader = new ClusterReader(this.#cluster, this.#prefix)
      const [fetched] = await reader.fetch([place], LIMITS)
      return fetched!
    })
  }
}
