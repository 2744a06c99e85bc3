/**
 * Going through a tenant's facts in the order of their chain, although the table is in that of
 * executions: a window of sequences at a time, so that no statement looks at more than the bodies
 * of one window.
 */
import { Effect, Option, Stream } from "effect"
import type { StoreUnavailable } from "../../../ports/EventStore.ts"
import type { Statement } from "../client/Parameters.ts"
import type { StoreClient } from "../client/StoreClient.ts"

/**
 * Sequences that are looked at together. Facts of many executions are far apart, so each look reads
 * more than it gives; facts with large payloads fill a chunk with few.
 */
const WINDOW_MIN = 64
const WINDOW_START = 1_024
const WINDOW_MAX = 4_096

interface Place {
  readonly from: number
  readonly window: number
}

export interface Windows<Row> {
  readonly first: number
  readonly last: number
  /** The rows of a window by sequence, from its start as many as fit into a chunk. */
  readonly rows: (from: number, end: number) => Effect.Effect<ReadonlyArray<Row>, StoreUnavailable>
  readonly sequenceOf: (row: Row) => number
  /** The first sequence at or after one that may have a row; undefined if none has. */
  readonly next: (from: number) => Effect.Effect<number | undefined, StoreUnavailable>
}

/** The rows in chunks; bounded memory. */
export const inWindows = <Row>({ first, last, next, rows, sequenceOf }: Windows<Row>) =>
  Stream.paginate({ from: first, window: WINDOW_START } as Place, ({ from, window }) =>
    Effect.gen(function* () {
      const end = Math.min(last, from + window - 1)
      const found = from > last ? [] : yield* rows(from, end)
      const final = found.at(-1)
      if (final === undefined) {
        const later = end >= last ? undefined : yield* next(end + 1)
        const place =
          later === undefined
            ? Option.none<Place>()
            : Option.some({ from: later, window: Math.min(WINDOW_MAX, 2 * window) })
        return [[] as ReadonlyArray<ReadonlyArray<Row>>, place] as const
      }
      const reached = sequenceOf(final)
      const wanted = reached < end ? found.length : 2 * window
      const place: Place = {
        from: reached + 1,
        window: Math.max(WINDOW_MIN, Math.min(WINDOW_MAX, wanted))
      }
      return [[found] as ReadonlyArray<ReadonlyArray<Row>>, Option.some(place)] as const
    })
  )

/** The lowest sequence of [from, last] among the facts of a condition. */
export const nextSequence = (
  store: StoreClient,
  from: number,
  last: number,
  condition: Statement
) =>
  store
    .readOne(
      "chainRows",
      (bind) =>
        `SELECT count() > 0, min(chain_sequence) FROM ${store.facts}`
        + ` WHERE ${condition(bind)} AND ${bind.between("chain_sequence", from, last)}`,
      (row) => ({ isAny: row.uint8() === 1, sequence: row.uint64() })
    )
    .pipe(Effect.map(({ isAny, sequence }) => (isAny ? sequence : undefined)))
