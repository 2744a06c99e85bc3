/**
 * What verification reads: every row as it is, with the filter columns that disagree with its
 * bytes, and the records that did not link. Judges nothing.
 *
 * The columns of a row are read as they are, and its JSON is put together here: ClickHouse takes
 * 50 ms to analyse the expressions for it, however few the rows are. They are asked for where the
 * columns alone do not say what a row is.
 */
import { Effect } from "effect"
import { parseJson } from "../../../domain/json/Json.ts"
import type { EventStore, StoredRow } from "../../../ports/EventStore.ts"
import { CHUNK_ROWS_MAX, chunkEnd, inChunks } from "../client/Chunks.ts"
import type { Statement } from "../client/Parameters.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { readStoredRows } from "../topics/ChainTable.ts"
import { disagreement } from "./EventColumns.ts"
import { EVENT_ROW, type EventFields, readEventFields, textOfFields } from "./EventRows.ts"

type Store = EventStore["Service"]

/** What a row may take of a chunk, but for columns of bounded length. */
const ROW_BYTES = "length(metadata) + length(search)"

const CONTROL_CHARACTER = /[\u0000-\u001f]/
const STRING_OR_KEY = /"(?:[^"\\]|\\.)*":?/g

const stringsOf = (metadata: string): ReadonlyArray<string> =>
  (metadata.match(STRING_OR_KEY) ?? [])
    .filter((token) => !token.endsWith(":"))
    .map((token) => parseJson(token) as string)

const stringOf = (text: string): string => (text === "" ? "" : (parseJson(text) as string))

/** What is searched in an event of these columns; undefined if they are no JSON. */
const searchOf = (fields: EventFields): string | undefined => {
  const { action, actorEmail, actorId, metadata, resourceId, resourceName, resourceType } = fields
  try {
    return [
      action,
      actorId,
      stringOf(actorEmail),
      resourceId,
      resourceType,
      stringOf(resourceName),
      ...stringsOf(metadata)
    ]
      .join("\0")
      .toLowerCase()
  } catch {
    return undefined
  }
}

/** True if columns in UTF-8 say what the row is: then the expressions would give the same. */
const isPlain = (fields: EventFields, search: string): boolean => {
  const { action, actorId, actorType, hash, id, outcome, resourceId, resourceType } = fields
  const texts = [id, actorId, actorType, action, resourceId, resourceType, outcome, hash]
  return (
    !texts.some((text) => CONTROL_CHARACTER.test(text))
    && [fields.timestamp, fields.createdAt, fields.erasedAt].every(Number.isSafeInteger)
    // Of other cases than ClickHouse's own, it has the word.
    && searchOf(fields) === search
  )
}

/** As VERSION_HOLDS. */
const isVersion = (version: number, fields: EventFields): boolean =>
  version === 0
  || (version === 1
    && fields.erasedAt > 0
    && fields.actorEmail + fields.resourceName + fields.metadata === ""
    && fields.detailsSalt === undefined)

interface PlainRow extends StoredRow {
  readonly hash: string
  readonly isPlain: boolean
}

const compare = (left: string, right: string): number => (left < right ? -1 : Number(left > right))

/** By sequence, hash, version and bytes. */
const inOrder = (left: PlainRow, right: PlainRow): number =>
  left.sequenceNumber - right.sequenceNumber
  || compare(left.hash, right.hash)
  || left.version - right.version
  || compare(left.body, right.body)

/** Rows in order, those that are equal once; sorted before but for their bytes. */
const distinct = (rows: ReadonlyArray<PlainRow>): ReadonlyArray<PlainRow> =>
  rows
    .toSorted(inOrder)
    .filter((row, at, sorted) => at === 0 || inOrder(sorted[at - 1]!, row) !== 0)

interface EventRowsQuery {
  readonly operation: string
  /** Which rows. */
  readonly condition: Statement
  /** Of a sequence with thousands of rows, enough to see that it has several. */
  readonly limit: number
}

/** Rows in order; those that are equal once. */
export const readStoredEvents = Effect.fnUntraced(function* (
  store: StoreClient,
  { condition, limit, operation }: EventRowsQuery
) {
  const rows = yield* store.read(
    operation,
    (bind) =>
      `SELECT ${EVENT_ROW}, version, search FROM ${store.events} WHERE ${condition(bind)}`
      + ` ORDER BY sequence_number, hash, version LIMIT ${limit}`,
    (row): PlainRow => {
      const fields = readEventFields(row)
      const { hash, sequenceNumber } = fields
      const [version, search] = [row.uint8(), row.string()]
      return {
        sequenceNumber,
        version,
        hash,
        body: textOfFields(fields),
        wrongColumns: isVersion(version, fields) ? [] : ["version"],
        isPlain: row.takeExact() && isPlain(fields, search)
      }
    }
  )
  const isOther = ({ isPlain }: PlainRow) => !isPlain
  const first = rows.find(isOther)?.sequenceNumber
  const last = rows.findLast(isOther)?.sequenceNumber
  if (first === undefined || last === undefined) return distinct(rows)
  const others = yield* readStoredRows(store, {
    operation,
    table: store.events,
    sequence: "sequence_number",
    text: "json",
    disagreement,
    condition: (bind) => `${condition(bind)} AND ${bind.between("sequence_number", first, last)}`,
    limit
  })
  return [
    ...distinct(rows.filter(({ sequenceNumber }) => sequenceNumber < first)),
    ...others,
    ...distinct(rows.filter(({ sequenceNumber }) => sequenceNumber > last))
  ] as ReadonlyArray<StoredRow>
})

export const makeRows =
  (store: StoreClient): Store["rows"] =>
  (tenantId, fromSequence, toSequence) =>
    inChunks(
      (last: StoredRow | undefined) =>
        readStoredEvents(store, {
          operation: "rows",
          condition: (bind) => {
            const from = last === undefined ? fromSequence : last.sequenceNumber + 1
            const within = `${bind.tenant(tenantId)} AND ${bind.between("sequence_number", from, toSequence)}`
            const end = chunkEnd(store.events, "sequence_number", within, ROW_BYTES)
            return `${within} AND sequence_number <= (${end})`
          },
          limit: 2 * CHUNK_ROWS_MAX
        }),
      ({ sequenceNumber }) => sequenceNumber >= toSequence
    )
