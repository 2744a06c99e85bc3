/** Rows of any number in chunks: what one holds at most, where it ends, one after the other. */
import { Effect, Option, Stream } from "effect"

/** Rows and bytes of one chunk of a scan at most (one row may be larger). */
export const CHUNK_ROWS_MAX = 5_000
export const CHUNK_BYTES_MAX = 8 * 1_048_576

/** The sum of a column over the rows before each, in an order: none before the first. */
export const sumBefore = (column: string, order: string): string =>
  `sum(${column}) OVER (ORDER BY ${order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)`

/** The last sequence before which less than a chunk's bytes come: one row always does. */
export const chunkEnd = (
  table: string,
  sequence: string,
  condition: string,
  bytes = "length(body)"
): string =>
  `SELECT max(${sequence}) FROM (SELECT ${sequence}, ${sumBefore("bytes", sequence)}`
  + ` AS bytes_before FROM (SELECT ${sequence}, ${bytes} AS bytes FROM ${table}`
  + ` WHERE ${condition} ORDER BY ${sequence} LIMIT ${CHUNK_ROWS_MAX}))`
  + ` WHERE bytes_before < ${CHUNK_BYTES_MAX}`

/**
 * Chunks, each of what follows the last row of the one before it, until there are no more rows, or
 * a row is known to be the last.
 */
export const inChunks = <Row, E>(
  chunkAfter: (last: Row | undefined) => Effect.Effect<ReadonlyArray<Row>, E>,
  isLast: (row: Row) => boolean = () => false
): Stream.Stream<ReadonlyArray<Row>, E> =>
  Stream.paginate(undefined as Row | undefined, (last) =>
    Effect.map(chunkAfter(last), (chunk) => {
      const end = chunk.at(-1)
      const next = end === undefined || isLast(end) ? Option.none() : Option.some(end)
      return [end === undefined ? [] : [chunk], next as Option.Option<Row | undefined>] as const
    })
  )
