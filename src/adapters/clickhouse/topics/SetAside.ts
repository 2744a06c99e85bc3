/**
 * Moves rows that a topic has denied into the table `set_aside`, where operators can look at them,
 * and takes the details out of them when the same is erased in the view. Every step can be done
 * again: rows are copied, the copy is checked, and only then are they removed. Decides nothing.
 */
import { Effect } from "effect"
import { StoreUnavailable } from "../../../ports/EventStore.ts"
import type {
  ComparedRecord,
  Denied,
  DeniedRows,
  StoredRecord,
  TopicRows
} from "../../../ports/TopicRows.ts"
import { sumBefore } from "../client/Chunks.ts"
import type { disagreementOf } from "../client/JsonColumns.ts"
import type { Parameters, Statement } from "../client/Parameters.ts"
import type { RowBinary } from "../client/RowBinary.ts"
import type { StoreClient } from "../client/StoreClient.ts"

/** A table whose rows are records of a topic. */
export interface MirrorTable {
  readonly table: string
  /** What `set_aside.source` calls it. */
  readonly source: "events" | "conflicts" | "facts" | "fact_conflicts" | "checkpoints" | "receipts"
  /** What goes into `set_aside.sequence_number` and `set_aside.detail`. */
  readonly sequence: string
  readonly detail: string
  /** The column with the stored bytes. */
  readonly text: "body" | "json"
  /** The columns that its rows are made of; by default that with the bytes. */
  readonly columns?: ReadonlyArray<string>
  /** Which of its columns differ from the bytes. */
  readonly disagreement?: ReturnType<typeof disagreementOf>
  /** Columns that are not part of the bytes, and whether this service has written what they say. */
  readonly marked?: {
    readonly columns: string
    readonly isGenuine: (row: RowBinary) => boolean
  }
  /**
   * The number that a tenant's rows have in its chain, where rows of one number replace each other.
   */
  readonly chained?: "sequence_number" | "chain_sequence"
}

/** More to do for one kind of rows. */
export interface SetAsideSteps {
  /** Once the copies are there: erase in them what is erased in the view. */
  readonly copied?: (partition: number) => Effect.Effect<void, StoreUnavailable>
  /** Before rows are removed: what goes with them. */
  readonly removing?: (partition: number, denied: Denied) => Effect.Effect<void, StoreUnavailable>
  /** Once they are removed. */
  readonly removed?: Effect.Effect<void, StoreUnavailable>
  /** What is made of rows beside their table. */
  readonly index?: TopicRows["index"]
}

const OPERATION = "setAside"
/** Of the stored bytes, 64 hex digits. */
export const digestOf = (text: MirrorTable["text"]): string => `lower(hex(SHA256(${text})))`
/** Bytes that may be what erasing has left. */
const mayBeErased = (text: MirrorTable["text"]): string => `position(${text}, '"erased_at":"') > 0`
/** Without details: erased, or never had any and was erased all the same. */
export const isErased = (text: MirrorTable["text"]): string =>
  `${mayBeErased(text)} AND position(${text}, '"details_salt":') = 0`
/** Offsets beyond it are shown as it: a double holds no larger ones exactly. */
const OFFSET_MAX = Number.MAX_SAFE_INTEGER
/** Copies of one statement that takes details out at most, and their bytes. */
const ERASED_ROWS_MAX = 64
const ERASED_BYTES_MAX = 65_536

const offset = (expression: string): string => `least(${expression}, ${OFFSET_MAX})`

/** The condition for them. */
export const deniedRows = (
  partition: number,
  { below, confirmed, from }: Denied,
  bind: Parameters,
  text: MirrorTable["text"] = "body"
): string => {
  const kept = confirmed.map((digest) => bind.string(digest)).join(", ")
  const at = bind.integer(from)
  return (
    `${bind.partition(partition)} AND kafka_offset >= ${at}`
    + (below === undefined ? "" : ` AND kafka_offset < ${bind.integer(below)}`)
    + (kept === "" ? "" : ` AND NOT (kafka_offset = ${at} AND ${digestOf(text)} IN (${kept}))`)
  )
}

const reasonOf = ({ end }: Denied, bind: Parameters): string =>
  `if(kafka_offset >= ${bind.integer(end)}, 'beyond_end', 'not_in_topic')`

/** The condition for the rows that stay. */
export const confirmedRows = (
  partition: number,
  denied: Denied,
  bind: Parameters,
  text: MirrorTable["text"] = "body"
): string => `${bind.partition(partition)} AND NOT (${deniedRows(partition, denied, bind, text)})`

const countOf = (
  store: StoreClient,
  { source, table, text }: MirrorTable,
  partition: number,
  denied: Denied
) =>
  store.read(
    "denied",
    (bind) =>
      `SELECT ${reasonOf(denied, bind)} AS reason, count(), ${offset("min(kafka_offset)")},`
      + ` ${offset("max(kafka_offset)")} FROM ${table}`
      + ` WHERE ${deniedRows(partition, denied, bind, text)} GROUP BY reason ORDER BY reason`,
    (row): DeniedRows => ({
      table: source,
      reason: row.string() as DeniedRows["reason"],
      rows: row.uint64(),
      firstOffset: row.uint64(),
      lastOffset: row.uint64()
    })
  )

/** Copies that were there before are replaced by the same. */
const copy = (
  store: StoreClient,
  { detail, sequence, source, table, text }: MirrorTable,
  partition: number,
  denied: Denied
) =>
  store.copy(
    OPERATION,
    (bind) =>
      `INSERT INTO ${store.setAside} (source, kafka_partition, kafka_offset, tenant_id,`
      + " sequence_number, detail, reason, erased, digest, body)"
      + ` SELECT ${bind.string(source)}, kafka_partition, kafka_offset, tenant_id,`
      + ` ${sequence}, ${detail}, ${reasonOf(denied, bind)}, ${isErased(text)}, ${digestOf(text)},`
      + ` ${text} FROM ${table} WHERE ${deniedRows(partition, denied, bind, text)}`
  )

/** Rows are removed only after their copies have been read in the other table. */
const checkCopied = Effect.fnUntraced(function* (
  store: StoreClient,
  { source, table, text }: MirrorTable,
  partition: number,
  denied: Denied
) {
  const missing = yield* store.readOne(
    OPERATION,
    (bind) =>
      `SELECT count() FROM ${table} WHERE ${deniedRows(partition, denied, bind, text)}`
      + ` AND (kafka_offset, ${digestOf(text)}) NOT IN (SELECT kafka_offset, digest FROM ${store.setAside}`
      + ` WHERE source = ${bind.string(source)} AND ${bind.partition(partition)}`
      + ` AND kafka_offset >= ${bind.integer(denied.from)})`,
    (row) => row.uint64()
  )
  if (missing === 0) return
  const cause = new Error(`${missing} rows of ${table} are not in ${store.setAside}: none removed`)
  return yield* new StoreUnavailable({ operation: OPERATION, cause })
})

/**
 * Rows of one number and hash replace each other, so a forged place may be all that is left of one
 * that the confirmed chain goes on from. It stays in the chain, at the lowest offset: there nothing
 * is compared with the topic, and verification judges it like any other.
 */
const keepInChain = (
  store: StoreClient,
  { columns = ["body"], table, text }: MirrorTable,
  chained: string,
  partition: number,
  denied: Denied
) =>
  store.copy(OPERATION, (bind) => {
    const condition = deniedRows(partition, denied, bind, text)
    const confirmed = confirmedRows(partition, denied, bind, text)
    const inside = `SELECT tenant_id, ${chained} FROM ${table} WHERE ${condition}`
    return (
      `INSERT INTO ${table} (kafka_partition, kafka_offset, ${columns.join(", ")})`
      + ` SELECT kafka_partition, 0, ${columns.map((name) => `denied.${name}`).join(", ")}`
      + ` FROM ${table} AS denied INNER JOIN`
      + ` (SELECT tenant_id, max(${chained}) AS last FROM ${table} WHERE ${confirmed}`
      + " GROUP BY tenant_id) AS ends ON denied.tenant_id = ends.tenant_id"
      + ` WHERE ${condition} AND ${chained} < last AND (denied.tenant_id, ${chained}) NOT IN`
      + ` (SELECT tenant_id, ${chained} FROM ${table} WHERE ${confirmed}`
      + ` AND (tenant_id, ${chained}) IN (${inside}))`
    )
  })

const remove = (
  store: StoreClient,
  { table, text }: MirrorTable,
  partition: number,
  denied: Denied
) => store.remove(OPERATION, table, (bind) => deniedRows(partition, denied, bind, text))

const removeRows = (
  store: StoreClient,
  { table, text }: MirrorTable,
  partition: number,
  rows: ReadonlyArray<StoredRecord>
) =>
  store.remove(OPERATION, table, (bind) => {
    const places = rows.map(
      ({ digest, offset: at }) => `(${bind.integer(at)}, ${bind.string(digest)})`
    )
    const offsets = rows.map(({ offset: at }) => bind.integer(at))
    return (
      `${bind.partition(partition)} AND kafka_offset IN (${offsets.join(", ")})`
      + ` AND (kafka_offset, ${digestOf(text)}) IN (${places.join(", ")})`
    )
  })

const highestOf = (
  store: StoreClient,
  { table }: MirrorTable,
  partition: number,
  below: number | undefined
) =>
  store.read(
    "position",
    (bind) =>
      `SELECT ${offset("max(kafka_offset)")} FROM ${table} WHERE ${bind.partition(partition)}`
      + (below === undefined ? "" : ` AND kafka_offset < ${bind.integer(below)}`)
      + " HAVING count() > 0",
    (row) => row.uint64()
  )

const recordOf = (row: RowBinary): StoredRecord => {
  const [at, digest, isShown, body] = [row.uint64(), row.string(), row.uint8(), row.string()]
  return { offset: at, digest, body: isShown === 1 ? body : undefined }
}

const rowsOf = (
  store: StoreClient,
  { table, text }: MirrorTable,
  partition: number,
  from: number,
  below: number,
  whole: boolean
) =>
  store.read(
    "compare",
    (bind) =>
      `SELECT kafka_offset, ${digestOf(text)}, ${whole ? "1" : mayBeErased(text)} AS is_shown,`
      + ` if(is_shown, ${text}, '')`
      + ` FROM ${table} WHERE ${bind.partition(partition)}`
      + ` AND kafka_offset >= ${bind.integer(from)} AND kafka_offset < ${bind.integer(below)}`,
    recordOf
  )

const comparedOf = (
  store: StoreClient,
  { disagreement, marked, table, text }: MirrorTable,
  partition: number,
  from: number,
  below: number,
  tenantId: string | undefined
) =>
  store.read(
    "compare",
    (bind) => {
      const temporaries = disagreement === undefined ? "" : `${disagreement.with} `
      const isDisagreeing = disagreement === undefined ? "0" : `notEmpty(${disagreement.names})`
      return (
        `${temporaries}SELECT kafka_offset, ${digestOf(text)}, ${mayBeErased(text)} AS erased,`
        + ` if(erased, ${text}, ''), ${isDisagreeing}`
        + (marked === undefined ? "" : `, ${marked.columns}`)
        + ` FROM ${table} WHERE ${bind.partition(partition)}`
        + ` AND kafka_offset >= ${bind.integer(from)} AND kafka_offset < ${bind.integer(below)}`
        + (tenantId === undefined ? "" : ` AND ${bind.tenant(tenantId)}`)
      )
    },
    (row): ComparedRecord => {
      const record = recordOf(row)
      const isDisagreeing = row.uint8() === 1
      const isGenuine = marked?.isGenuine(row) ?? true
      return { ...record, isDisagreeing: isDisagreeing || !isGenuine }
    }
  )

/** The tables that hold the records of one topic. */
export const topicRows = (
  store: StoreClient,
  tables: ReadonlyArray<MirrorTable>,
  steps: SetAsideSteps = {}
): TopicRows => {
  /** The same of each table, together. */
  const ofAll = <A>(
    ask: (table: MirrorTable) => Effect.Effect<ReadonlyArray<A>, StoreUnavailable>
  ) => Effect.map(Effect.forEach(tables, ask), (answers) => answers.flat())
  return {
    asideTable: store.setAside,
    highest: (partition, below) =>
      ofAll((table) => highestOf(store, table, partition, below)).pipe(
        Effect.map((found) => (found.length === 0 ? undefined : Math.max(...found)))
      ),
    rows: (partition, from, below, whole = false) =>
      ofAll((table) => rowsOf(store, table, partition, from, below, whole)),
    compare: (partition, from, below, tenantId) =>
      ofAll((table) => comparedOf(store, table, partition, from, below, tenantId)),
    remove: (partition, rows) =>
      Effect.forEach(tables, (table) => removeRows(store, table, partition, rows), {
        discard: true
      }),
    index: steps.index ?? (() => Effect.succeed(0)),
    denied: (partition, what) => ofAll((table) => countOf(store, table, partition, what)),
    setAside: Effect.fn("TopicRows.setAside")(function* (partition, what) {
      for (const table of tables) {
        yield* copy(store, table, partition, what)
        yield* checkCopied(store, table, partition, what)
        if (table.chained !== undefined) {
          yield* keepInChain(store, table, table.chained, partition, what)
        }
      }
      yield* steps.copied?.(partition) ?? Effect.void
      yield* steps.removing?.(partition, what) ?? Effect.void
      for (const table of tables) yield* remove(store, table, partition, what)
      yield* steps.removed ?? Effect.void
    })
  }
}

/** The keys (of the tenant, and a column) of copies that still have their details. */
export const unerasedKeys = (
  store: StoreClient,
  source: MirrorTable["source"],
  column: string,
  partition: string
): string =>
  `SELECT tenant_id, ${column} FROM ${store.setAside}`
  + ` WHERE source = '${source}' AND ${partition} AND erased = 0`

/** Copies that still have their details, some of them. */
const unerased = (store: StoreClient, source: MirrorTable["source"], condition: Statement) =>
  store.read(
    "eraseDetails",
    (bind) =>
      `SELECT DISTINCT digest, body FROM (SELECT digest, body,`
      + ` ${sumBefore("length(body)", "digest")} AS bytes_before FROM ${store.setAside}`
      + ` WHERE source = ${bind.string(source)} AND erased = 0 AND ${condition(bind)}`
      + ` ORDER BY digest LIMIT ${ERASED_ROWS_MAX}) WHERE bytes_before < ${ERASED_BYTES_MAX}`,
    (row) => ({ digest: row.string(), body: row.string() })
  )

/**
 * Take the details out of copies. Of what is not a record nothing is left: it names its tenant, and
 * not what of it are details.
 */
export const eraseSetAside = Effect.fnUntraced(function* (
  store: StoreClient,
  source: MirrorTable["source"],
  condition: Statement,
  erased: (body: string) => string | undefined
) {
  for (;;) {
    const copies = yield* unerased(store, source, condition)
    if (copies.length === 0) return
    yield* store.change("eraseDetails", (bind) => {
      const digests = bind.strings(copies.map(({ digest }) => digest))
      const bodies = bind.strings(copies.map(({ body }) => erased(body) ?? ""))
      return (
        `ALTER TABLE ${store.setAside}`
        + ` UPDATE erased = 1, body = transform(digest, [${digests}], [${bodies}], body)`
        + ` WHERE source = ${bind.string(source)} AND digest IN (${digests})`
        + " SETTINGS mutations_sync = 2"
      )
    })
  }
})
