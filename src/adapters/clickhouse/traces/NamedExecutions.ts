/**
 * Where in a tenant's chain the executions that a query names have facts: so that a window of the
 * chain is asked for the few that are there. They are looked up in groups, and no statement grows
 * with their number.
 */
import { Effect } from "effect"
import { inSlices } from "../../../domain/InSlices.ts"
import type { Sliced } from "../../../domain/Slices.ts"
import type { StoreResult } from "../../../ports/EventStore.ts"
import type { ChainQuery } from "../../../ports/TraceStore.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { textSet } from "../client/TextSets.ts"

/** Ids of one statement: some 400 KB of it. */
const NAMED_AT_ONCE = 10_000
/** Sequences that are one place. */
const STRETCH = 1_024

interface Place {
  readonly stretch: number
  readonly executionId: string
}

export class NamedExecutions {
  readonly #stretches = new Map<number, Array<string>>()

  /** All that have facts in a range, and some that have theirs close by. */
  within(first: number, last: number): ReadonlyArray<string> {
    const found: Array<string> = []
    const end = Math.floor(last / STRETCH)
    for (let stretch = Math.floor(first / STRETCH); stretch <= end; stretch++) {
      found.push(...(this.#stretches.get(stretch) ?? []))
    }
    return found
  }

  /** A sequence from which on one of them may have a fact, and none has before it. */
  next(from: number): number | undefined {
    let next: number | undefined
    for (const stretch of this.#stretches.keys()) {
      if ((stretch + 1) * STRETCH <= from) continue
      next = Math.min(next ?? Number.POSITIVE_INFINITY, Math.max(from, stretch * STRETCH))
    }
    return next
  }

  /** One in a step. */
  *add(places: ReadonlyArray<Place>): Sliced<void> {
    for (const { executionId, stretch } of places) {
      const known = this.#stretches.get(stretch)
      if (known === undefined) this.#stretches.set(stretch, [executionId])
      else known.push(executionId)
      yield
    }
  }
}

const placesOf = (
  store: StoreClient,
  { first, last, tenantId }: ChainQuery,
  ids: ReadonlyArray<string>
) =>
  store.read(
    "chain",
    (bind) =>
      `SELECT DISTINCT intDiv(chain_sequence, ${STRETCH}), execution_id FROM ${store.facts}`
      + ` WHERE ${bind.tenant(tenantId)} AND execution_id IN ${textSet(ids)}`
      + ` AND ${bind.between("chain_sequence", first, last)}`,
    (row): Place => ({ stretch: row.uint64(), executionId: row.string() })
  )

/** Those that a query names. */
export const namedExecutions = (
  store: StoreClient,
  query: ChainQuery
): StoreResult<NamedExecutions> =>
  Effect.gen(function* () {
    const named = new NamedExecutions()
    const { executions = [] } = query
    for (let at = 0; at < executions.length; at += NAMED_AT_ONCE) {
      const places = yield* placesOf(store, query, executions.slice(at, at + NAMED_AT_ONCE))
      yield* inSlices(() => named.add(places))
    }
    return named
  })
