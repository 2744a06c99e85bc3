/**
 * One pass over the rows of a chain: recomputes content and links from the stored bytes and writes
 * down where they don't hold. Pure bookkeeping; where the rows come from is not its business.
 */
import type { Head } from "../actors/SequencerState.ts"
import type { AuditEvent } from "../domain/AuditEvent.ts"
import { faultOf, GENESIS_HASH, recompute, type Recomputed } from "../domain/HashChain.ts"
import type { ConflictRow, StoredRow } from "../ports/EventStore.ts"
import type { Break, BreakReason } from "./Verifier.ts"

/** Breaks that a report lists; it counts them all. */
export const BREAKS_MAX = 100

export interface ChainVerdict {
  readonly eventsChecked: number
  readonly eventsInBounds: number
  readonly first: number | undefined
  readonly last: number | undefined
  readonly erased: number
  readonly breaks: ReadonlyArray<Break>
  readonly breaksTotal: number
}

interface Previous {
  readonly sequenceNumber: number
  /** More than one where rows stand side by side under one sequence: a link to any of them holds. */
  readonly hashes: ReadonlyArray<string>
}

const ABSENT = "none"

export class ChainCheck {
  readonly #tenantId: string
  readonly #firstWanted: number
  readonly #bounds: { readonly from: string; readonly to: string }
  readonly #breaks: Array<Break> = []
  #breaksTotal = 0
  #checked = 0
  #inBounds = 0
  #erased = 0
  #first: number | undefined
  #previous: Previous | undefined

  /** Rows come in ascending order, the one before `firstWanted` first if there is one. */
  constructor(
    tenantId: string,
    firstWanted: number,
    bounds: { readonly from: string; readonly to: string }
  ) {
    this.#tenantId = tenantId
    this.#firstWanted = firstWanted
    this.#bounds = bounds
  }

  row(row: StoredRow): void {
    const found = this.#read(row)
    const event = found?.event
    const { sequenceNumber } = row
    if (sequenceNumber < this.#firstWanted) {
      this.#remember(sequenceNumber, event)
      return
    }
    this.#checked += 1
    this.#first ??= sequenceNumber
    if (row.version > 0) this.#erased += 1
    if (found !== undefined && event !== undefined) {
      const { from, to } = this.#bounds
      if (event.timestamp >= from && event.timestamp <= to) this.#inBounds += 1
      this.#checkPlace(sequenceNumber, event)
      this.#checkContent(row, found)
    }
    this.#remember(sequenceNumber, event)
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

  verdict(): ChainVerdict {
    return {
      eventsChecked: this.#checked,
      eventsInBounds: this.#inBounds,
      first: this.#first,
      last: this.#checked === 0 ? undefined : this.#previous?.sequenceNumber,
      erased: this.#erased,
      breaks: [...this.#breaks].sort((left, right) => left.sequence_number - right.sequence_number),
      breaksTotal: this.#breaksTotal
    }
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

  #checkContent(row: StoredRow, found: Recomputed): void {
    const { event } = found
    const { sequenceNumber, wrongColumns } = row
    const report = (reason: BreakReason, expected: string, actual: string) =>
      this.#broken({ sequence_number: sequenceNumber, event_id: event.id, reason, expected, actual })
    if (wrongColumns.length > 0) {
      report(
        "content_mismatch",
        "filter columns equal to the stored bytes",
        `other values in ${wrongColumns.join(", ")}`
      )
    }
    if (event.sequence_number !== sequenceNumber || event.tenant_id !== this.#tenantId) {
      report(
        "content_mismatch",
        `tenant ${this.#tenantId}, sequence ${sequenceNumber}`,
        `tenant ${event.tenant_id}, sequence ${event.sequence_number}`
      )
    }
    const fault = faultOf(found, undefined, false)
    if (fault !== undefined) report(fault.reason, fault.expected, fault.actual)
    else if (!found.exact) {
      report(
        "content_mismatch",
        "the bytes that the sequencer writes for this event",
        "the same event in other bytes, or with members that no hash covers"
      )
    }
  }

  #remember(sequenceNumber: number, event: AuditEvent | undefined): void {
    const previous = this.#previous
    const beside = previous?.sequenceNumber === sequenceNumber ? previous.hashes : []
    this.#previous = { sequenceNumber, hashes: [...beside, event?.hash ?? ABSENT] }
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
    this.#breaksTotal += 1
    if (this.#breaks.length < BREAKS_MAX) this.#breaks.push(found)
  }
}
