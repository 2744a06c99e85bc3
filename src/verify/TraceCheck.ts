/**
 * One pass over the facts of an execution: recomputes content and links from the stored bytes,
 * counts fact numbers, and collects what does not hold. Pure.
 */

import type { Head } from "../domain/chain/Chains.ts"
import { GENESIS_HASH } from "../domain/chain/Chains.ts"
import type { Sliced } from "../domain/Slices.ts"
import { type RecomputedFact, recomputeFact } from "../domain/traces/FactText.ts"
import type { TraceFact } from "../domain/traces/TraceFact.ts"
import type { StoredRow } from "../ports/EventStore.ts"
import type { FactLink } from "../ports/TraceStore.ts"
import {
  contentFaults,
  eventIdOf,
  isUndetailed,
  UndetailedFacts,
  undetailedFault
} from "./FactSource.ts"
import { ABSENT, BREAKS_MAX, type BreakReason, type TraceBreak } from "./VerifyReport.ts"

/** The links of the tenant's chain at some sequences; more than one where a row was forged. */
export type Neighbours = ReadonlyMap<number, ReadonlyArray<Pick<FactLink, "hash" | "prevHash">>>

/** The links of a store by their sequence. */
export const neighboursOf = (links: ReadonlyArray<FactLink>): Neighbours =>
  Map.groupBy(links, ({ chainSequence }) => chainSequence)

export class TraceCheck {
  readonly #tenantId: string
  readonly #executionId: string
  readonly #head: Head | undefined
  readonly #breaks: Array<TraceBreak> = []
  /** Sequences that have been reported as missing. */
  readonly #gaps = new Set<number>()
  readonly #undetailed = new UndetailedFacts()
  /** Facts after the head that the check began with: the chain may have grown since. */
  readonly #beyond: Array<TraceFact> = []
  #breaksTotal = 0
  #checked = 0
  #erased = 0
  #first: number | undefined
  #last: StoredRow | undefined
  #lastHash: string | undefined
  #lastNumber = 0

  /** `head` is the tenant's, from before the rows are read; they come by chain sequence. */
  constructor(tenantId: string, executionId: string, head: Head | undefined) {
    this.#tenantId = tenantId
    this.#executionId = executionId
    this.#head = head
  }

  get checked(): number {
    return this.#checked
  }

  get erased(): number {
    return this.#erased
  }

  get first(): number | undefined {
    return this.#first
  }

  get last(): number | undefined {
    return this.#last?.sequenceNumber
  }

  get breaks(): ReadonlyArray<TraceBreak> {
    return this.#breaks
  }

  get breaksTotal(): number {
    return this.#breaksTotal
  }

  /** Rows that follow those before, with what is before and after each of them; one in a step. */
  *rows(rows: ReadonlyArray<StoredRow>, neighbours: Neighbours): Sliced<void> {
    for (const row of rows) {
      this.#row(row, neighbours)
      yield
    }
  }

  /** A fact of this execution that the log has and the store has not. */
  tailMissing(sequence: number, factNumber: number | undefined): void {
    const expected = `the fact with sequence ${sequence}, as the log says`
    this.#broken(sequence, factNumber, "tail_missing", expected, ABSENT)
  }

  /**
   * Details that are gone without a fact that records it, and facts that the log does not have.
   * `head` is the tenant's, from after the rows were read.
   */
  end(head: Head | undefined): void {
    for (const fact of this.#beyond) this.#checkHead(fact, head)
    for (const undetailed of this.#undetailed.open) {
      const { eventId, factNumber, sequence } = undetailed
      const { actual, expected, reason } = undetailedFault(undetailed)
      this.#broken(sequence, factNumber, reason, expected, actual, eventId)
    }
  }

  #row(row: StoredRow, neighbours: Neighbours): void {
    const found = recomputeFact(row.body)
    const isAgain = this.#last?.sequenceNumber === row.sequenceNumber
    // The row that erasing leaves replaces another one with the same hash.
    if (isAgain && found?.exact === true && found.hash === this.#lastHash) {
      return this.#checkContent(row, found)
    }
    this.#checked += 1
    this.#first ??= row.sequenceNumber
    this.#last = row
    this.#lastHash = found?.hash
    if (found === undefined) {
      const { sequenceNumber } = row
      this.#broken(sequenceNumber, null, "content_mismatch", "a fact", "bytes that are none")
      return
    }
    const { fact } = found
    if (isAgain) {
      this.#report(fact, "duplicate_sequence", "one fact", `another one with hash ${fact.hash}`)
      return
    }
    this.#checkNumber(fact)
    this.#checkContent(row, found)
    this.#undetailed.take(fact.chain_sequence, fact)
    if (isUndetailed(fact)) this.#erased += 1
    this.#checkLinks(fact, neighbours)
  }

  #checkNumber(fact: TraceFact): void {
    const expected = this.#lastNumber + 1
    this.#lastNumber = Math.max(this.#lastNumber, fact.fact_number)
    if (fact.fact_number === expected) return
    this.#report(
      fact,
      fact.fact_number > expected ? "sequence_gap" : "duplicate_sequence",
      `fact_number ${expected}`,
      `fact_number ${fact.fact_number}`
    )
  }

  #checkContent({ sequenceNumber, wrongColumns }: StoredRow, found: RecomputedFact): void {
    const { fact } = found
    const place = [this.#tenantId, this.#executionId, sequenceNumber].join(", ")
    const stated = [fact.tenant_id, fact.execution_id, fact.chain_sequence].join(", ")
    const isElsewhere = stated !== place
    if (isElsewhere) this.#report(fact, "content_mismatch", place, stated)
    for (const { actual, expected, reason } of contentFaults(
      isElsewhere ? [] : wrongColumns,
      found
    )) {
      this.#report(fact, reason, expected, actual)
    }
  }

  /** By the hash that the fact states: whether that is right is checked with its content. */
  #checkLinks(fact: TraceFact, neighbours: Neighbours): void {
    const { chain_sequence: sequence, prev_hash } = fact
    const before = neighbours.get(sequence - 1)
    if (sequence === 1) {
      if (prev_hash !== GENESIS_HASH) {
        this.#report(fact, "prev_hash_mismatch", GENESIS_HASH, prev_hash)
      }
    } else if (before === undefined) {
      this.#gap(sequence - 1)
    } else if (!before.some((link) => link.hash === prev_hash)) {
      const expected = before.map((link) => link.hash).join(" or ")
      this.#report(fact, "prev_hash_mismatch", expected, prev_hash)
    }
    this.#checkNext(fact, neighbours.get(sequence + 1))
    if (sequence <= (this.#head?.sequence_number ?? 0)) this.#checkHead(fact, this.#head)
    else if (this.#beyond.length < BREAKS_MAX) this.#beyond.push(fact)
  }

  #checkHead(fact: TraceFact, head: Head | undefined): void {
    const { chain_sequence: sequence, hash } = fact
    const length = head?.sequence_number ?? 0
    if (sequence > length) {
      this.#report(fact, "hash_mismatch", `${length} facts, as the log says`, `fact ${sequence}`)
    } else if (head !== undefined && sequence === length && hash !== head.hash) {
      this.#report(fact, "hash_mismatch", `${head.hash}, as the log says`, hash)
    }
  }

  /** The next fact of the tenant's chain has to link to this one. */
  #checkNext(fact: TraceFact, next: ReadonlyArray<Pick<FactLink, "prevHash">> | undefined): void {
    if (next === undefined || next.some(({ prevHash }) => prevHash === fact.hash)) return
    const expected = `${next[0]!.prevHash}, as the next fact says`
    this.#report(fact, "hash_mismatch", expected, fact.hash)
  }

  /** Without the fact before, nothing shows that the link holds. */
  #gap(sequence: number): void {
    if (this.#gaps.has(sequence)) return
    this.#gaps.add(sequence)
    const expected = `sequence ${sequence} of the tenant's chain`
    this.#broken(sequence, null, "sequence_gap", expected, ABSENT)
  }

  #report(fact: TraceFact, reason: BreakReason, expected: string, actual: string): void {
    const { chain_sequence, fact_number } = fact
    this.#broken(chain_sequence, fact_number, reason, expected, actual, eventIdOf(fact))
  }

  #broken(
    sequence_number: number,
    factNumber: number | null | undefined,
    reason: BreakReason,
    expected: string,
    actual: string,
    event_id: string | null = null
  ): void {
    this.#breaksTotal += 1
    if (this.#breaks.length >= BREAKS_MAX) return
    const fact_number = factNumber ?? null
    this.#breaks.push({ sequence_number, fact_number, event_id, reason, expected, actual })
  }
}
