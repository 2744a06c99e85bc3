/**
 * Lists of executions: a page with its total, and all that ran within a time with everything they
 * did. What comes out are the stored bytes of facts.
 */
import { Effect, Option, Stream } from "effect"
import type { TraceStore } from "../../../ports/TraceStore.ts"
import { CHUNK_BYTES_MAX, CHUNK_ROWS_MAX } from "../client/Chunks.ts"
import { Parameters } from "../client/Parameters.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { textSet } from "../client/TextSets.ts"
import {
  type ExecutionFilter,
  GROUPING_SETTINGS,
  matchingExecutions,
  ofTenant,
  overlappingExecutions,
  STARTED,
  startConditions
} from "./ExecutionSql.ts"
import { Scope } from "./TraceColumns.ts"
import { ofExecutions, STRUCTURE } from "./TraceSql.ts"

/** Up to this end (offset and limit) a page is found together with its total. */
const FOUND_PAGE_END_MAX = 2_000
/** Executions whose own facts are read without asking for their size: 50 times about 64 KiB. */
const UNMEASURED_MAX = 50
/** Executions that an export looks up at a time. */
const FOUND_AT_ONCE = 20_000
/** Executions whose sizes are asked for at a time. */
const MEASURED_AT_ONCE = 200

type Store = TraceStore["Service"]

interface Slice {
  readonly offset: number
  readonly limit: number
}

/** What a list is made of: how many match, and which of them are on the page. */
interface Found {
  readonly total: number
  readonly ids: ReadonlyArray<string>
  /** Chain sequence of the last fact that was looked at: later ones are of another moment. */
  readonly last: number
}

const upTo = (last: number, parameters: Parameters): string =>
  `chain_sequence <= ${parameters.integer(last)}`

/** By grouping the facts of each execution: right whatever there is. */
const findByGroups = Effect.fnUntraced(function* (
  store: StoreClient,
  filter: ExecutionFilter,
  slice: Slice
) {
  const { limit, offset } = slice
  const parameters = new Parameters()
  const facts = ofTenant(filter.tenantId, parameters)
  const executions = matchingExecutions(store, filter, facts, parameters)
  const isNear = limit > 0 && offset + limit <= FOUND_PAGE_END_MAX
  const found = yield* store.readOne(
    {
      operation: "page",
      parameters,
      sql: `SELECT count(), max(last), ${
        isNear
          ? `arrayMap(entry -> entry.2, groupArraySorted(${offset + limit})`
            + "((-toUnixTimestamp64Micro(started), id)))"
          : "[]::Array(String)"
      } FROM (${executions})`,
      settings: GROUPING_SETTINGS
    },
    (row): Found => ({
      total: row.uint64(),
      last: row.uint64(),
      ids: row.list(() => row.string()).slice(offset)
    })
  )
  if (isNear || limit === 0 || found.total <= offset) return found
  const then = `${facts} AND ${upTo(found.last, parameters)}`
  const ids = yield* store.read(
    {
      operation: "page",
      parameters,
      sql:
        `SELECT id FROM (${matchingExecutions(store, filter, then, parameters)})`
        + " ORDER BY started DESC, id"
        + ` LIMIT ${parameters.integer(limit)} OFFSET ${parameters.integer(offset)}`,
      settings: GROUPING_SETTINGS
    },
    (row) => row.string()
  )
  return { ...found, ids }
})

const countStarts = (store: StoreClient, facts: string, matches: string, parameters: Parameters) =>
  store.readOne(
    {
      operation: "page",
      parameters,
      sql:
        `SELECT countIf(${matches}), max(chain_sequence),`
        + ` countIf(${STARTED} AND fact_number > 1), countIf(${STARTED} AND version = 1)`
        + ` FROM ${store.facts} WHERE ${facts}`
    },
    (row) => ({
      total: row.uint64(),
      last: row.uint64(),
      repeated: row.uint64(),
      erased: row.uint64()
    })
  )

/**
 * By the started facts alone, many times faster: right as long as each execution has one, as those
 * have that did not come from OpenTelemetry. Undefined if that is not so.
 */
const findByStarts = Effect.fnUntraced(function* (
  store: StoreClient,
  filter: ExecutionFilter,
  { limit, offset }: Slice
) {
  const parameters = new Parameters()
  const facts = ofTenant(filter.tenantId, parameters)
  const starts = [STARTED, ...startConditions(filter, parameters)].join(" AND ")
  const counts = yield* countStarts(store, facts, starts, parameters)
  if (counts.repeated > 0) return undefined
  // While it is being erased, an execution has two: with version 0 the one that was there before.
  const erased = `SELECT execution_id FROM ${store.facts} WHERE ${facts} AND version = 1`
  const matches =
    counts.erased === 0
      ? `${starts} AND version = 0`
      : `${starts} AND (version = 1 OR execution_id NOT IN (${erased}))`
  const { last, total } =
    counts.erased === 0 ? counts : yield* countStarts(store, facts, matches, parameters)
  if (limit === 0 || total <= offset) return { total, last, ids: [] }
  const ids = yield* store.read(
    {
      operation: "page",
      parameters,
      sql:
        `SELECT execution_id FROM ${store.facts}`
        + ` WHERE ${facts} AND ${matches} AND ${upTo(last, parameters)}`
        + ` ORDER BY started_at DESC, execution_id`
        + ` LIMIT ${parameters.integer(limit)} OFFSET ${parameters.integer(offset)}`
    },
    (row) => row.string()
  )
  return { total, last, ids }
})

/** The execution's own facts, for each of the ids. */
const factsOf = (
  store: StoreClient,
  tenantId: string,
  ids: ReadonlyArray<string>,
  last: number
) => {
  const parameters = new Parameters()
  return store
    .read(
      {
        operation: "page",
        parameters,
        isBulk: ids.length > UNMEASURED_MAX,
        sql:
          `SELECT execution_id, body FROM ${store.facts}`
          + ` WHERE ${ofTenant(tenantId, parameters)} AND execution_id IN ${textSet(ids)}`
          + ` AND ${upTo(last, parameters)}`
          + " ORDER BY execution_id, fact_number, hash, version DESC"
          + " LIMIT 1 BY execution_id, fact_number, hash"
      },
      (row) => ({ id: row.string(), body: row.string() })
    )
    .pipe(
      Effect.map((rows) => {
        const facts = Map.groupBy(rows, ({ id }) => id)
        return ids.map((id) => (facts.get(id) ?? []).map(({ body }) => body))
      })
    )
}

/** The ids of a page in the pieces that its facts are read in. */
const piecesOfPage = (store: StoreClient, tenantId: string, { ids, last }: Found) => {
  if (ids.length <= UNMEASURED_MAX) return Effect.succeed(ids.length === 0 ? [] : [ids])
  const parameters = new Parameters()
  return store
    .read(
      {
        operation: "page",
        parameters,
        sql:
          `SELECT execution_id, count(), sum(length(body)) FROM ${store.facts}`
          + ` WHERE ${ofTenant(tenantId, parameters)} AND execution_id IN ${textSet(ids)}`
          + ` AND ${upTo(last, parameters)} GROUP BY execution_id`
      },
      (row) => [row.string(), { rows: row.uint64(), bytes: row.uint64() }] as const
    )
    .pipe(Effect.map((sizes) => toLoads(ids, new Map(sizes)).map((load) => load.ids)))
}

export const makePage = (store: StoreClient): Store["page"] =>
  Effect.fn("TraceStore.page")(function* ({ limit, offset, ...filter }, final) {
    const slice = { limit, offset }
    const byStarts =
      final || filter.status !== undefined ? undefined : yield* findByStarts(store, filter, slice)
    const found = byStarts ?? (yield* findByGroups(store, filter, slice))
    const pieces = yield* piecesOfPage(store, filter.tenantId, found)
    return {
      total: found.total,
      isLarge: pieces.length > 1,
      executions: Stream.fromIterable(pieces).pipe(
        Stream.mapEffect((ids) => factsOf(store, filter.tenantId, ids, found.last))
      )
    }
  })

/** An execution in the order of exports. */
interface Place {
  readonly id: string
  /** Microseconds since 1970. */
  readonly started: number
}

/** The next executions that ran within the time, by start then id. */
const nextPlaces = (
  store: StoreClient,
  { last, tenantId }: Part,
  from: string,
  to: string,
  after: Place | undefined
) => {
  const parameters = new Parameters()
  const facts = `${ofTenant(tenantId, parameters)} AND ${upTo(last, parameters)}`
  const start = "toUnixTimestamp64Micro(started)"
  const beyond =
    after === undefined
      ? "true"
      : `(${start}, id) >`
        + ` (${parameters.bind("Int64", after.started)}, ${parameters.string(after.id)})`
  return store.read(
    {
      operation: "overlapping",
      parameters,
      sql: `SELECT id, ${start} FROM (${overlappingExecutions(
        store,
        from,
        to,
        facts,
        parameters
      )}) WHERE ${beyond} ORDER BY started, id LIMIT ${FOUND_AT_ONCE}`,
      settings: GROUPING_SETTINGS
    },
    (row): Place => ({ id: row.string(), started: row.int64() })
  )
}

/** Executions that are read at once, or a large one by itself. */
interface Load {
  readonly ids: ReadonlyArray<string>
  readonly isLarge: boolean
}

interface Size {
  readonly rows: number
  readonly bytes: number
}

const exceedsChunk = ({ bytes, rows }: Size): boolean =>
  rows > CHUNK_ROWS_MAX || bytes > CHUNK_BYTES_MAX

/** Cut executions, in order, into loads that fit into a chunk. */
const toLoads = (
  ids: ReadonlyArray<string>,
  sizes: ReadonlyMap<string, Size>
): ReadonlyArray<Load> => {
  const loads: Array<Load> = []
  let open: { readonly ids: Array<string>; size: Size } | undefined
  for (const id of ids) {
    const size = sizes.get(id)
    if (size === undefined) continue
    if (exceedsChunk(size)) {
      open = undefined
      loads.push({ ids: [id], isLarge: true })
      continue
    }
    const sum = {
      rows: size.rows + (open?.size.rows ?? 0),
      bytes: size.bytes + (open?.size.bytes ?? 0)
    }
    if (open === undefined || exceedsChunk(sum)) {
      open = { ids: [id], size }
      loads.push({ ids: open.ids, isLarge: false })
    } else {
      open.ids.push(id)
      open.size = sum
    }
  }
  return loads
}

/** What of an execution is exported. */
interface Part {
  readonly tenantId: string
  readonly scopes: string
  /** Chain sequence of the last fact that is looked at. */
  readonly last: number
}

/** Looks at no more facts of each than fit into a chunk: who has as many is large. */
const loadsOf = (
  store: StoreClient,
  { last, scopes, tenantId }: Part,
  ids: ReadonlyArray<string>
) => {
  const parameters = new Parameters()
  return store
    .read(
      {
        operation: "overlapping",
        parameters,
        sql:
          `SELECT execution_id, count(), sum(length(body)) FROM ${store.facts}`
          + ` WHERE ${ofExecutions(tenantId, ids, parameters, scopes)} AND ${upTo(last, parameters)}`
          + " GROUP BY execution_id"
      },
      (row) => [row.string(), { rows: row.uint64(), bytes: row.uint64() }] as const
    )
    .pipe(Effect.map((sizes) => toLoads(ids, new Map(sizes))))
}

const wholeExecutions = (
  store: StoreClient,
  { last, scopes, tenantId }: Part,
  ids: ReadonlyArray<string>
) => {
  const parameters = new Parameters()
  return store
    .read(
      {
        operation: "overlapping",
        parameters,
        isBulk: true,
        sql:
          `SELECT execution_id, body FROM ${store.facts}`
          + ` WHERE ${ofExecutions(tenantId, ids, parameters, scopes)} AND ${upTo(last, parameters)}`
          + " ORDER BY execution_id, fact_number, hash, version DESC"
          + " LIMIT 1 BY execution_id, fact_number, hash"
      },
      (row) => ({ id: row.string(), body: row.string() })
    )
    .pipe(
      Effect.map((rows) => {
        const facts = Map.groupBy(rows, ({ id }) => id)
        return ids.map((executionId) => ({
          executionId,
          facts: (facts.get(executionId) ?? []).map(({ body }) => body)
        }))
      })
    )
}

const scopesOf = {
  structure: STRUCTURE,
  execution: `scope = ${Scope.execution}`
} as const

export const makeOverlapping =
  (store: StoreClient): Store["overlapping"] =>
  ({ from, last = Number.MAX_SAFE_INTEGER, selection, tenantId, to }) => {
    const part: Part = { tenantId, scopes: scopesOf[selection], last }
    return Stream.paginate(undefined as Place | undefined, (after) =>
      nextPlaces(store, part, from, to, after).pipe(
        Effect.map((places) => [places, Option.fromUndefinedOr(places[FOUND_AT_ONCE - 1])] as const)
      )
    ).pipe(
      Stream.map(({ id }) => id),
      Stream.grouped(MEASURED_AT_ONCE),
      Stream.mapEffect((ids) => loadsOf(store, part, ids)),
      Stream.flattenIterable,
      Stream.mapEffect(({ ids, isLarge }) =>
        wholeExecutions(store, isLarge ? { ...part, scopes: scopesOf.execution } : part, ids).pipe(
          Effect.map((all) => all.map((one) => ({ ...one, isLarge })))
        )
      )
    )
  }
