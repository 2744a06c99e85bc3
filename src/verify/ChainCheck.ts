/**
 * One pass over the rows of a chain: recomputes content and links from the stored bytes and writes
 * down where they don't hold. Pure bookkeeping; where the rows come from is not its business, nor
 * is who else has recomputed a block that it is told to take as it is.
 */
import type { Head } from "../actors/SequencerState.ts"
import type { AuditEvent } from "../domain/AuditEvent.ts"
import { faultOf, GENESIS_HASH, recompute, type Recomputed } from "../domain/HashChain.ts"
import { BLOCK_EVENTS, type RecomputedBlock } from "../ports/ChainRecompute.ts"
import type { ConflictRow, StoredRow } from "../ports/EventStore.ts"
import type { Erasures } from "./Erasures.ts"
import { GrowingTree } from "./GrowingTree.ts"
import { Breaks, type Break, type BreakReason } from "./VerifyReport.ts"

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
   * More than one where rows stand side by side under one sequence: a link to any of them holds.
   */
  readonly hashes: ReadonlyArray<string>
  /** One of the rows was counted as erased. */
  readonly erased: boolean
}

export interface ChainCheckOptions {
  readonly tenantId: string
  /** Rows come in ascending order, the one before `firstWanted` first if there is one. */
  readonly firstWanted: number
  /** Bounds by event time that are counted, canonical form, inclusive. */
  readonly bounds: { readonly from: string; readonly to: string }
  /** Tree sizes whose roots will be asked for; only of a check that starts with the chain. */
  readonly treeSizes?: Iterable<number>
}

const ABSENT = "none"
/**
 * The one column that an event may have either way once it is erased: how is the store's business.
 */
const VERSION = "version"

/** What is wrong with an event by itself, wherever it stands. */
export const faultsOf = (
  tenantId: string,
  { body, sequenceNumber, wrongColumns }: StoredRow,
  found: Recomputed,
  erasures: Erasures
): ReadonlyArray<Pick<Break, "reason" | "expected" | "actual">> => {
  const { event } = found
  const faults: Array<Pick<Break, "reason" | "expected" | "actual">> = []
  const report = (reason: BreakReason, expected: string, actual: string) =>
    faults.push({ reason, expected, actual })
  const isErased = erasures.coversEvent(event)
  const columns = wrongColumns.filter((name) => name !== VERSION || !isErased)
  if (columns.length > 0) {
    report(
      "content_mismatch",
      "filter columns equal to the stored bytes",
      `other values in ${columns.join(", ")}`
    )
  }
  if (event.sequence_number !== sequenceNumber || event.tenant_id !== tenantId) {
    report(
      "content_mismatch",
      `tenant ${tenantId}, sequence ${sequenceNumber}`,
      `tenant ${event.tenant_id}, sequence ${event.sequence_number}`
    )
  }
  if (event.erased_at !== undefined && !isErased) {
    report(
      "content_mismatch",
      `an erasure event in the chain that names sequence ${sequenceNumber} and its content_hash`,
      `erased at ${event.erased_at} without one`
    )
    return faults
  }
  const fault = faultOf(found, undefined, isErased)
  if (fault !== undefined) report(fault.reason, fault.expected, fault.actual)
  else if (!found.exact) {
    report(
      "content_mismatch",
      "the bytes that the sequencer writes for this event",
      `${Buffer.byteLength(body)} other bytes for it, or members that no hash covers`
    )
  }
  return faults
}

export class ChainCheck {
  readonly #tenantId: string
  readonly #firstWanted: number
  readonly #bounds: { readonly from: string; readonly to: string }
  readonly #breaks = new Breaks()
  readonly #tree: GrowingTree | undefined
  #checked = 0
  #inBounds = 0
  #erased = 0
  #first: number | undefined
  #previous: Previous | undefined

  constructor({ bounds, firstWanted, tenantId, treeSizes }: ChainCheckOptions) {
    this.#tenantId = tenantId
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
      previous !== undefined &&
      previous.sequenceNumber + 1 === block.first &&
      previous.hashes.length === 1 &&
      previous.hashes[0] === block.prevHash
    )
  }

  /** Take a block that somebody else has recomputed; it has to be perfect, and to continue. */
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

  row(row: StoredRow, erasures: Erasures): void {
    const found = this.#read(row)
    const event = found?.event
    const { sequenceNumber } = row
    if (sequenceNumber < this.#firstWanted) {
      this.#remember(sequenceNumber, event?.hash, false)
      return
    }
    // Until the store has merged them, an event and its erased form may stand side by side.
    const isSameEvent = this.#isBeside(sequenceNumber, event?.hash) && row.version > 0
    const isErased = event !== undefined && erasures.coversEvent(event)
    if (isErased && !(isSameEvent && this.#previous?.erased === true)) this.#erased += 1
    if (found !== undefined && event !== undefined) {
      if (!isSameEvent) this.#checkPlace(sequenceNumber, event)
      for (const fault of faultsOf(this.#tenantId, row, found, erasures)) {
        this.#broken({ sequence_number: sequenceNumber, event_id: event.id, ...fault })
      }
    }
    if (isSameEvent) {
      this.#previous = { ...this.#previous!, erased: isErased || this.#previous!.erased }
      return
    }
    this.#count(sequenceNumber, found)
    this.#remember(sequenceNumber, event?.hash, isErased)
  }

  /** A record of the topic that did not link when it was projected. */
  conflict({ reason, sequenceNumber }: ConflictRow): void {
    const duplicate = reason === "sequence_mismatch"
    this.#broken({
      sequence_number: sequenceNumber,
      event_id: null,
      reason: duplicate ? "duplicate_sequence" : "prev_hash_mismatch",
      expected: "a record of alk.events that follows the one before it",
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

  /** Rows stand behind the head that the log tells. */
  beyond(head: number, last: number): void {
    this.#broken({
      sequence_number: head + 1,
      event_id: null,
      reason: "hash_mismatch",
      expected: `head ${head}, as the log says`,
      actual: `events up to ${last}`
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
      previous?.sequenceNumber === sequenceNumber &&
      hash !== undefined &&
      previous.hashes.includes(hash)
    )
  }

  #count(sequenceNumber: number, found: Recomputed | undefined): void {
    this.#checked += 1
    this.#first ??= sequenceNumber
    const isNext = sequenceNumber === (this.#previous?.sequenceNumber ?? this.#firstWanted - 1) + 1
    if (found === undefined || !isNext) this.#tree?.spoil()
    else this.#tree?.append(found.hash)
    if (found === undefined) return
    const { timestamp } = found.event
    const { from, to } = this.#bounds
    if (timestamp >= from && timestamp <= to) this.#inBounds += 1
  }

  #read(row: StoredRow): Recomputed | undefined {
    const found = recompute(row.body)
    if (found === undefined) {
      this.#broken({
        sequence_number: row.sequenceNumber,
        event_id: null,
        reason: "content_mismatch",
        expected: "the JSON of an event",
        actual: "bytes that are none"
      })
    }
    return found
  }

  #checkPlace(sequenceNumber: number, event: AuditEvent): void {
    const previous = this.#previous
    const expected = previous === undefined ? this.#firstWanted : previous.sequenceNumber + 1
    const id = event.id
    if (sequenceNumber > expected) {
      this.#missing("sequence_gap", expected, sequenceNumber - 1)
      return
    }
    if (sequenceNumber < expected) {
      this.#broken({
        sequence_number: sequenceNumber,
        event_id: id,
        reason: "duplicate_sequence",
        expected: "one event for each sequence number",
        actual: `another event with hash ${event.hash}`
      })
      return
    }
    const prevHashes = sequenceNumber === 1 ? [GENESIS_HASH] : previous?.hashes
    if (prevHashes !== undefined && !prevHashes.includes(event.prev_hash)) {
      this.#broken({
        sequence_number: sequenceNumber,
        event_id: id,
        reason: "prev_hash_mismatch",
        expected: prevHashes.join(" or "),
        actual: event.prev_hash
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
