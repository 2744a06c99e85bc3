/**
 * What of a chain's topic the sequencer has not written, found by the ends of the chains alone: what a
 * head leads back to by its hashes is the sequencer's. For where the changelog has lost the records
 * that say so. Reads the topic twice; holds what is there more than once.
 */
import { Effect } from "effect"
import type { ChainLink } from "../../domain/chain/ChainLink.ts"
import type { Chain, Head } from "../../domain/chain/Chains.ts"
import type { StrayRange } from "../../domain/records/OwnOffsets.ts"
import { linkOfRecord } from "../log/ChainRecord.ts"
import { scan } from "../log/PartitionScan.ts"
import type { Restoring } from "./Restoring.ts"

/** Larger counts are told apart from one, which is all that matters. */
const COUNT_MAX = 2

/** The links of one tenant, by how many have the same number. */
class Candidates {
  readonly #head: Head
  readonly #counts: Uint8Array
  readonly #rivals = new Map<number, Array<{ readonly link: ChainLink; readonly offset: number }>>()
  /** Of numbers that are there once, where the one before is not. */
  readonly #prevHashes = new Map<number, string>()

  constructor(head: Head) {
    this.#head = head
    this.#counts = new Uint8Array(head.sequence_number + 1)
  }

  /** False for what is not within the chain. */
  count({ sequenceNumber }: ChainLink): boolean {
    const known = this.#counts[sequenceNumber]
    if (known === undefined || sequenceNumber === 0) return false
    this.#counts[sequenceNumber] = Math.min(known + 1, COUNT_MAX)
    return true
  }

  /** After all are counted. */
  take(link: ChainLink, offset: number): void {
    const { prevHash, sequenceNumber } = link
    if (this.#counts[sequenceNumber] === 1) {
      if (this.#counts[sequenceNumber - 1] === COUNT_MAX) {
        this.#prevHashes.set(sequenceNumber, prevHash)
      }
      return
    }
    const rivals = this.#rivals.get(sequenceNumber) ?? []
    this.#rivals.set(sequenceNumber, rivals)
    rivals.push({ link, offset })
  }

  /** Offsets of the links that the head does not lead back to. */
  get others(): ReadonlyArray<number> {
    const others: Array<number> = []
    const numbers = [...this.#rivals.keys()].sort((left, right) => right - left)
    for (const number of numbers) {
      const rivals = this.#rivals.get(number)!
      const wanted =
        number === this.#head.sequence_number ? this.#head.hash : this.#prevHashes.get(number + 1)
      const own = rivals.find(({ link }) => link.hash === wanted)
      if (own !== undefined) this.#prevHashes.set(number, own.link.prevHash)
      for (const rival of rivals) if (rival !== own) others.push(rival.offset)
    }
    return others
  }
}

/**
 * The places of records that the heads do not lead back to, up to the end of the topic. `isWhole`: there
 * are no other chains, so what is of none of them is among these, too.
 */
export const placesBeside = Effect.fnUntraced(function* (
  { log, partition, reader }: Restoring,
  chain: Chain,
  heads: ReadonlyMap<string, Head>,
  isWhole: boolean
) {
  const { end: next, start } = yield* log.bounds(chain, partition)
  const byTenant = new Map([...heads].map(([tenantId, head]) => [tenantId, new Candidates(head)]))
  const strays: Array<number> = []
  const each = (
    take: (candidates: Candidates | undefined, link: ChainLink | undefined, offset: number) => void
  ) =>
    scan(reader, { topic: chain, partition, offset: start }, next, (records) => {
      for (const record of records) {
        const link = linkOfRecord(chain, record)
        take(link && byTenant.get(link.tenantId), link, record.offset)
      }
    })
  yield* each((candidates, link, offset) => {
    const isOfChain = candidates !== undefined && link !== undefined
    if (isOfChain ? !candidates.count(link) : isWhole) strays.push(offset)
  })
  yield* each((candidates, link, offset) => {
    if (candidates !== undefined && link !== undefined) candidates.take(link, offset)
  })
  for (const candidates of byTenant.values()) {
    for (const offset of candidates.others) strays.push(offset)
  }
  return strays.map((offset): StrayRange => ({ chain, first: offset, next: offset + 1 }))
})
