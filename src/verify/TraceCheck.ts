/**
 * One pass over the facts of an execution: recomputes content and links from the stored bytes,
 * counts fact numbers, and writes down where they don't hold. Pure bookkeeping; where rows and
 * neighbours come from is not its business.
 */

import type { Head } from "../domain/chain/Head.ts"
import { GENESIS_HASH } from "../domain/chain/LinkHash.ts"
import { type RecomputedFact, recomputeFact, type TraceFact } from "../domain/traces/TraceFact.ts"
import type { StoredRow } from "../ports/EventStore.ts"
import type { FactLink } from "../ports/TraceStore.ts"
import { contentFaults } from "./FactSource.ts"
import { BREAKS_MAX, type BreakReason, type TraceBreak } from "./VerifyReport.ts"

const ABSENT = "none"

/** Facts that have lost their details at one time. */
interface Undetailed {
  /** The first of them. */
  readonly fact: TraceFact
  /** Number of the last of them. */
  last: number
}

/** What is in the tenant's chain at some sequences; more than one where a row was forged. */
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
  /** By the time of their erasure, until the fact that records it is found. */
  readonly #undetailed = new Map<string, Undetailed>()
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

  /** Rows that follow those before, with what is before and after each of them. */
  rows(rows: ReadonlyArray<StoredRow>, neighbours: Neighbours): void {
    for (const row of rows) this.#row(row, neighbours)
  }

  /** A fact of this execution that the log has and the store has not. */
  tailMissing(sequence: number, factNumber: number | undefined): void {
    this.#broken({
      sequence_number: sequence,
      fact_number: factNumber ?? null,
      event_id: null,
      reason: "tail_missing",
      expected: `the fact with sequence ${sequence}, as the log says`,
      actual: ABSENT
    })
  }

  /**
   * Details that are gone without a fact that says so, and facts that the log does not know.
   * `head` is the tenant's, from after the rows were read.
   */
  end(head: Head | undefined): void {
    for (const fact of this.#beyond) this.#checkHead(fact, head)
    for (const { fact } of this.#undetailed.values()) {
      this.#report(
        fact,
        "content_mismatch",
        "details, or a later fact execution.erased of this time",
        `no details, erased_at ${fact.erased_at ?? ABSENT}`
      )
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
      this.#broken({
        sequence_number: row.sequenceNumber,
        fact_number: null,
        event_id: null,
        reason: "content_mismatch",
        expected: "a fact",
        actual: "bytes that are none"
      })
      return
    }
    const { fact } = found
    if (isAgain) {
      this.#report(fact, "duplicate_sequence", "one fact", `another one with hash ${fact.hash}`)
      return
    }
    this.#checkNumber(fact)
    this.#checkContent(row, found)
    this.#checkErasure(fact)
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

  #checkErasure(fact: TraceFact): void {
    const { details, details_hash, erased_at = "", fact_number } = fact
    if (fact.type === "execution.erased") {
      const earlier = this.#undetailed.get(fact.created_at)
      if (earlier !== undefined && earlier.last < fact_number) {
        this.#undetailed.delete(fact.created_at)
      }
    }
    if (details !== undefined || details_hash === undefined) {
      if (erased_at !== "" && details !== undefined) {
        this.#report(fact, "content_mismatch", "no details, since it says erased_at", "details")
      }
      return
    }
    this.#erased += 1
    const known = this.#undetailed.get(erased_at)
    if (known === undefined) this.#undetailed.set(erased_at, { fact, last: fact_number })
    else known.last = fact_number
  }

  /** By the hash that the fact states: whether it is true has been said. */
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

  /** What follows in the tenant's chain points at this fact; whether it is there is asked apart. */
  #checkNext(fact: TraceFact, next: ReadonlyArray<Pick<FactLink, "prevHash">> | undefined): void {
    if (next === undefined || next.some(({ prevHash }) => prevHash === fact.hash)) return
    const expected = `${next[0]!.prevHash}, as the next fact says`
    this.#report(fact, "hash_mismatch", expected, fact.hash)
  }

  /** Without the fact in front nothing shows that the link holds. */
  #gap(sequence: number): void {
    if (this.#gaps.has(sequence)) return
    this.#gaps.add(sequence)
    this.#broken({
      sequence_number: sequence,
      fact_number: null,
      event_id: null,
      reason: "sequence_gap",
      expected: `sequence ${sequence} of the tenant's chain`,
      actual: ABSENT
    })
  }

  #report(fact: TraceFact, reason: BreakReason, expected: string, actual: string): void {
    this.#broken({
      sequence_number: fact.chain_sequence,
      fact_number: fact.fact_number,
      event_id: fact.type === "span.event" ? fact.event_id : null,
      reason,
      expected,
      actual
    })
  }

  #broken(found: TraceBreak): void {
    this.#breaksTotal += 1
    if (this.#breaks.length < BREAKS_MAX) this.#breaks.push(found)
  }
}
