/**
 * One pass over the rows of a chain: recomputes content and links from the stored bytes and writes
 * down where they don't hold. Pure bookkeeping; where the rows come from is not its business, nor
 * is who else has recomputed a block that it is told to take as it is.
 */

import type { Head } from "../domain/chain/Head.ts"
import { GENESIS_HASH } from "../domain/chain/LinkHash.ts"
import { BLOCK_EVENTS, type RecomputedBlock } from "../ports/ChainRecompute.ts"
import type { ConflictRow } from "../ports/EventStore.ts"
import type { JudgedRecord, JudgedRow } from "./ChainSource.ts"
import { GrowingTree } from "./GrowingTree.ts"
import { type Break, Breaks } from "./VerifyReport.ts"

export interface ChainVerdict {
  readonly eventsChecked: number
  readonly eventsInBounds: number
  readonly first: number | undefined
  readonly last: number | undefined
  readonly lastHash: string | undefined
  readonly erased: number
  readonly breaks: ReadonlyArray<Break>
  readonly breaksTotal: number
}

interface Previous {
  readonly sequenceNumber: number
  /**
   * More than one where several rows have one sequence: a link to any of them holds.
   */
  readonly hashes: ReadonlyArray<string>
  /** One of the rows was counted as erased. */
  readonly erased: boolean
}

export interface ChainCheckOptions {
  /** What the rows are, for words: "event", "trace fact". */
  readonly noun: string
  /** Name of the topic. */
  readonly topic: string
  /** Rows come in ascending order, the one before `firstWanted` first if there is one. */
  readonly firstWanted: number
  /** Bounds by time that are counted, canonical form, inclusive. */
  readonly bounds: { readonly from: string; readonly to: string }
  /** Tree sizes whose roots will be asked for; only of a check that starts with the chain. */
  readonly treeSizes?: Iterable<number>
}

const ABSENT = "none"

export class ChainCheck {
  readonly #noun: string
  readonly #topic: string
  readonly #firstWanted: number
  readonly #bounds: { readonly from: string; readonly to: string }
  readonly #breaks = new Breaks()
  readonly #tree: GrowingTree | undefined
  #checked = 0
  #inBounds = 0
  #erased = 0
  #first: number | undefined
  #previous: Previous | undefined

  constructor({ bounds, firstWanted, noun, topic, treeSizes }: ChainCheckOptions) {
    this.#noun = noun
    this.#topic = topic
    this.#firstWanted = firstWanted
    this.#bounds = bounds
    this.#tree = treeSizes === undefined ? undefined : new GrowingTree(treeSizes)
  }

  get eventsChecked(): number {
    return this.#checked
  }

  /** True if a perfect block with this first link goes on where the rows so far have ended. */
  continuesWith(block: RecomputedBlock): boolean {
    if (block.first === this.#firstWanted && this.#previous === undefined) {
      return block.first > 1 || block.prevHash === GENESIS_HASH
    }
    const previous = this.#previous
    return (
      previous !== undefined
      && previous.sequenceNumber + 1 === block.first
      && previous.hashes.length === 1
      && previous.hashes[0] === block.prevHash
    )
  }

  /** Take a block that another program has recomputed; it has to be perfect, and to continue. */
  block(block: RecomputedBlock): void {
    const { erased, first, hashes, inBounds, last, lastHash, rows, subtree } = block
    this.#checked += rows
    this.#inBounds += inBounds
    this.#erased += erased.length
    this.#first ??= first
    this.#previous = { sequenceNumber: last, hashes: [lastHash], erased: false }
    if (subtree !== undefined) this.#tree?.appendSubtree(BLOCK_EVENTS, subtree)
    else if (hashes.length === rows) for (const hash of hashes) this.#tree?.append(hash)
    else this.#tree?.spoil()
  }

  row({ found, row }: JudgedRow): void {
    const { sequenceNumber } = row
    if (sequenceNumber < this.#firstWanted) {
      this.#remember(sequenceNumber, found?.hash, false)
      return
    }
    // Until the store has merged them, a record and its erased form may both be there.
    const isSame = this.#isBeside(sequenceNumber, found?.hash) && row.version > 0
    const isErased = found?.isErased === true
    if (isErased && !(isSame && this.#previous?.erased === true)) this.#erased += 1
    if (found === undefined) this.#unreadable(sequenceNumber)
    else {
      if (!isSame) this.#checkPlace(sequenceNumber, found)
      for (const fault of found.faults) {
        this.#broken({ sequence_number: sequenceNumber, event_id: found.id, ...fault })
      }
    }
    if (isSame) {
      this.#previous = { ...this.#previous!, erased: isErased || this.#previous!.erased }
      return
    }
    this.#count(sequenceNumber, found)
    this.#remember(sequenceNumber, found?.hash, isErased)
  }

  /** What does not belong to one row of the range. */
  broken(found: Break): void {
    this.#broken(found)
  }

  /** A row that is there more than once. */
  copied(sequenceNumber: number): void {
    this.#broken({
      sequence_number: sequenceNumber,
      event_id: null,
      reason: "duplicate_sequence",
      expected: "one row",
      actual: "copies of it"
    })
  }

  /** A record of the topic that did not link when it was projected. */
  conflict({ reason, sequenceNumber }: ConflictRow): void {
    const duplicate = reason === "sequence_mismatch"
    this.#broken({
      sequence_number: sequenceNumber,
      event_id: null,
      reason: duplicate ? "duplicate_sequence" : "prev_hash_mismatch",
      expected: `a record of ${this.#topic} that follows the one before it`,
      actual: reason
    })
  }

  /** The chain must end exactly where the log says. */
  head(head: Head | undefined): void {
    const last = this.#previous
    const wanted = head?.sequence_number ?? 0
    const found = last?.sequenceNumber ?? this.#firstWanted - 1
    if (wanted < this.#firstWanted && last === undefined) return
    if (found < wanted) {
      this.#missing("tail_missing", found + 1, wanted)
    } else if (found > wanted || head === undefined || !last?.hashes.includes(head.hash)) {
      this.#broken({
        sequence_number: found,
        event_id: null,
        reason: "hash_mismatch",
        expected: `head ${wanted} with hash ${head?.hash ?? ABSENT}, as the log says`,
        actual: `${found} with hash ${last?.hashes.join(" and ") ?? ABSENT}`
      })
    }
  }

  /** A bounded span must reach its last sequence. */
  end(last: number): void {
    const found = this.#previous?.sequenceNumber ?? this.#firstWanted - 1
    if (found < last) this.#missing("tail_missing", found + 1, last)
  }

  /** There are rows beyond the head that the log tells. */
  beyond(head: number, last: number): void {
    this.#broken({
      sequence_number: head + 1,
      event_id: null,
      reason: "hash_mismatch",
      expected: `head ${head}, as the log says`,
      actual: `${this.#noun}s up to ${last}`
    })
  }

  /** There are rows below the first sequence of a chain. */
  below(lowest: number): void {
    this.#broken({
      sequence_number: lowest,
      event_id: null,
      reason: "duplicate_sequence",
      expected: "sequences from 1 on",
      actual: `a row with sequence ${lowest}`
    })
  }

  /** What a signed checkpoint says is not what the events make. */
  checkpoint(treeSize: number, expected: string, actual: string): void {
    this.#broken({
      sequence_number: Math.max(1, treeSize),
      event_id: null,
      reason: "checkpoint_mismatch",
      expected,
      actual
    })
  }

  /** Root of the tree over the recomputed hashes; undefined if not every one of them is there. */
  root(size: number): string | undefined {
    return this.#tree?.root(size)
  }

  verdict(): ChainVerdict {
    const isEmpty = this.#checked === 0
    return {
      eventsChecked: this.#checked,
      eventsInBounds: this.#inBounds,
      first: this.#first,
      last: isEmpty ? undefined : this.#previous?.sequenceNumber,
      lastHash: isEmpty ? undefined : this.#previous?.hashes[0],
      erased: this.#erased,
      breaks: this.#breaks.list(),
      breaksTotal: this.#breaks.total
    }
  }

  #isBeside(sequenceNumber: number, hash: string | undefined): boolean {
    const previous = this.#previous
    return (
      previous?.sequenceNumber === sequenceNumber
      && hash !== undefined
      && previous.hashes.includes(hash)
    )
  }

  #count(sequenceNumber: number, found: JudgedRecord | undefined): void {
    this.#checked += 1
    this.#first ??= sequenceNumber
    const isNext = sequenceNumber === (this.#previous?.sequenceNumber ?? this.#firstWanted - 1) + 1
    if (found === undefined || !isNext) this.#tree?.spoil()
    else this.#tree?.append(found.recomputed)
    if (found === undefined) return
    const { from, to } = this.#bounds
    if (found.time >= from && found.time <= to) this.#inBounds += 1
  }

  #unreadable(sequenceNumber: number): void {
    this.#broken({
      sequence_number: sequenceNumber,
      event_id: null,
      reason: "content_mismatch",
      expected: `the JSON of ${this.#noun === "event" ? "an" : "a"} ${this.#noun}`,
      actual: "bytes that are none"
    })
  }

  #checkPlace(sequenceNumber: number, { hash, id, prevHash }: JudgedRecord): void {
    const previous = this.#previous
    const expected = previous === undefined ? this.#firstWanted : previous.sequenceNumber + 1
    if (sequenceNumber > expected) {
      this.#missing("sequence_gap", expected, sequenceNumber - 1)
      return
    }
    if (sequenceNumber < expected) {
      this.#broken({
        sequence_number: sequenceNumber,
        event_id: id,
        reason: "duplicate_sequence",
        expected: `one ${this.#noun} for each sequence number`,
        actual: `another one with hash ${hash}`
      })
      return
    }
    const prevHashes = sequenceNumber === 1 ? [GENESIS_HASH] : previous?.hashes
    if (prevHashes !== undefined && !prevHashes.includes(prevHash)) {
      this.#broken({
        sequence_number: sequenceNumber,
        event_id: id,
        reason: "prev_hash_mismatch",
        expected: prevHashes.join(" or "),
        actual: prevHash
      })
    }
  }

  #remember(sequenceNumber: number, hash: string | undefined, erased: boolean): void {
    const previous = this.#previous
    const beside = previous?.sequenceNumber === sequenceNumber ? previous.hashes : []
    this.#previous = { sequenceNumber, hashes: [...beside, hash ?? ABSENT], erased }
  }

  #missing(reason: "sequence_gap" | "tail_missing", from: number, to: number): void {
    this.#broken({
      sequence_number: from,
      event_id: null,
      reason,
      expected: from === to ? `sequence ${from}` : `sequences ${from} to ${to}`,
      actual: ABSENT
    })
  }

  #broken(found: Break): void {
    this.#breaks.add(found)
  }
}
