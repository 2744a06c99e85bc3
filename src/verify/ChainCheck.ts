/**
 * One pass over the rows of a chain, each recomputed before: compares links and sequences, and
 * collects what does not hold. Pure.
 */

import type { Head } from "../domain/chain/Chains.ts"
import { GENESIS_HASH } from "../domain/chain/Chains.ts"
import { BLOCK_EVENTS, type RecomputedBlock, type SequenceRange } from "../ports/ChainRecompute.ts"
import { type ConflictRow, NOT_CANONICAL, NOT_SEQUENCED } from "../ports/EventStore.ts"
import type { JudgedRecord, JudgedRow } from "./ChainSource.ts"
import { GrowingTree, type TreeStart } from "./GrowingTree.ts"
import { ABSENT, type Break, type BreakReason, Breaks } from "./VerifyReport.ts"

export interface ChainVerdict {
  readonly eventsChecked: number
  readonly eventsInBounds: number
  /** From the first to the last of those. */
  readonly span: SequenceRange | undefined
  readonly first: number | undefined
  readonly last: number | undefined
  readonly lastHash: string | undefined
  readonly erased: number
  readonly breaks: ReadonlyArray<Break>
  readonly breaksTotal: number
}

interface Previous {
  readonly sequenceNumber: number
  /** More than one where several rows have one sequence: a link to any of them holds. */
  readonly hashes: ReadonlyArray<string>
  /** One of the rows was counted as erased. */
  readonly erased: boolean
}

export interface ChainCheckOptions {
  /** What the rows are, in texts: "event", "trace fact". */
  readonly noun: string
  /** Name of the topic. */
  readonly topic: string
  /** Rows come in ascending order, the one before `firstWanted` first if there is one. */
  readonly firstWanted: number
  /** Bounds by time that are counted, canonical form, inclusive. */
  readonly bounds: { readonly from: string; readonly to: string }
  /** Tree sizes whose roots will be asked for; only of a check that starts with the chain. */
  readonly treeSizes?: Iterable<number>
  /** What was removed before `firstWanted`: the first row has to link to it. */
  readonly after?: RemovedBefore
}

/** The end of what was removed, as a signed checkpoint proves it. */
export interface RemovedBefore extends TreeStart {
  readonly hash: string
}

/** What the reasons of conflicts are as breaks; of others: `prev_hash_mismatch`. */
const breakOfConflict: Readonly<Record<string, BreakReason>> = {
  sequence_mismatch: "duplicate_sequence",
  [NOT_SEQUENCED]: "duplicate_sequence",
  [NOT_CANONICAL]: "content_mismatch"
}

export class ChainCheck {
  readonly #options: ChainCheckOptions
  readonly #firstWanted: number
  readonly #breaks = new Breaks()
  readonly #tree: GrowingTree | undefined
  #checked = 0
  #inBounds = 0
  #span: SequenceRange | undefined
  #erased = 0
  #first: number | undefined
  #previous: Previous | undefined

  constructor(options: ChainCheckOptions) {
    const { after, firstWanted, treeSizes } = options
    this.#options = options
    this.#firstWanted = firstWanted
    this.#tree = treeSizes === undefined ? undefined : new GrowingTree(treeSizes, after)
    if (after !== undefined) this.#remember(after.size, after.hash, false)
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
    const { erased, first, hashes, inBounds, last, lastHash, rows, span, subtree } = block
    this.#checked += rows
    this.#within(inBounds, span)
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
      for (const { actual, expected, reason } of found.faults) {
        this.#broken(sequenceNumber, reason, expected, actual, found.id)
      }
    }
    if (isSame) {
      this.#previous = { ...this.#previous!, erased: isErased || this.#previous!.erased }
      return
    }
    this.#count(sequenceNumber, found)
    this.#remember(sequenceNumber, found?.hash, isErased)
  }

  /** A break that was found apart from the rows. */
  broken(found: Break): void {
    this.#breaks.add(found)
  }

  /** A row that is there more than once. */
  copied(sequenceNumber: number): void {
    this.#broken(sequenceNumber, "duplicate_sequence", "one row", "copies of it")
  }

  /** A record of the topic that was no part of the chain when it was projected. */
  conflict({ reason, sequenceNumber }: ConflictRow): void {
    this.#broken(
      sequenceNumber,
      breakOfConflict[reason] ?? "prev_hash_mismatch",
      `a record of ${this.#options.topic} that a sequencer wrote after the one before it`,
      reason
    )
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
      this.#broken(
        found,
        "hash_mismatch",
        `head ${wanted} with hash ${head?.hash ?? ABSENT}, as the log says`,
        `${found} with hash ${last?.hashes.join(" and ") ?? ABSENT}`
      )
    }
  }

  /** A bounded range must reach its last sequence. */
  end(last: number): void {
    const found = this.#previous?.sequenceNumber ?? this.#firstWanted - 1
    if (found < last) this.#missing("tail_missing", found + 1, last)
  }

  /** There are rows after the head on the topic. */
  beyond(head: number, last: number): void {
    const actual = `${this.#options.noun}s up to ${last}`
    this.#broken(head + 1, "hash_mismatch", `head ${head}, as the log says`, actual)
  }

  /** There are rows again that were removed. */
  returned(lowest: number, size: number): void {
    const expected = `sequences from ${size + 1} on: those before were pruned`
    this.#broken(lowest, "duplicate_sequence", expected, `a row with sequence ${lowest}`)
  }

  /** There are rows below the first sequence of a chain. */
  below(lowest: number): void {
    const actual = `a row with sequence ${lowest}`
    this.#broken(lowest, "duplicate_sequence", "sequences from 1 on", actual)
  }

  /** What a signed checkpoint says is not what the events make. */
  checkpoint(treeSize: number, expected: string, actual: string): void {
    this.#broken(Math.max(1, treeSize), "checkpoint_mismatch", expected, actual)
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
      span: this.#span,
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
    const { from, to } = this.#options.bounds
    if (found.time < from || found.time > to) return
    this.#within(1, { first: sequenceNumber, last: sequenceNumber })
  }

  #within(count: number, span: SequenceRange | undefined): void {
    this.#inBounds += count
    if (span !== undefined) this.#span = { first: this.#span?.first ?? span.first, last: span.last }
  }

  #unreadable(sequenceNumber: number): void {
    const { noun } = this.#options
    const expected = `the JSON of ${noun === "event" ? "an" : "a"} ${noun}`
    this.#broken(sequenceNumber, "content_mismatch", expected, "bytes that are none")
  }

  #checkPlace(sequenceNumber: number, { hash, id, prevHash }: JudgedRecord): void {
    const previous = this.#previous
    const expected = previous === undefined ? this.#firstWanted : previous.sequenceNumber + 1
    if (sequenceNumber > expected) {
      this.#missing("sequence_gap", expected, sequenceNumber - 1)
      return
    }
    if (sequenceNumber < expected) {
      const one = `one ${this.#options.noun} for each sequence number`
      this.#broken(sequenceNumber, "duplicate_sequence", one, `another one with hash ${hash}`, id)
      return
    }
    const prevHashes = sequenceNumber === 1 ? [GENESIS_HASH] : previous?.hashes
    if (prevHashes !== undefined && !prevHashes.includes(prevHash)) {
      const either = prevHashes.join(" or ")
      this.#broken(sequenceNumber, "prev_hash_mismatch", either, prevHash, id)
    }
  }

  #remember(sequenceNumber: number, hash: string | undefined, erased: boolean): void {
    const previous = this.#previous
    const beside = previous?.sequenceNumber === sequenceNumber ? previous.hashes : []
    this.#previous = { sequenceNumber, hashes: [...beside, hash ?? ABSENT], erased }
  }

  #missing(reason: "sequence_gap" | "tail_missing", from: number, to: number): void {
    const expected = from === to ? `sequence ${from}` : `sequences ${from} to ${to}`
    this.#broken(from, reason, expected, ABSENT)
  }

  #broken(
    sequenceNumber: number,
    reason: BreakReason,
    expected: string,
    actual: string,
    event_id: string | null = null
  ): void {
    this.#breaks.add({ sequence_number: sequenceNumber, event_id, reason, expected, actual })
  }
}
