/**
 * Lists of executions: a page with its total, and all that ran within a time with everything they
 * did. What comes out are the stored bytes of facts.
 */
import { Effect, Option, Stream } from "effect"
import type { OverlapQuery, TraceStore } from "../../../ports/TraceStore.ts"
import { CHUNK_BYTES_MAX, CHUNK_ROWS_MAX } from "../client/Chunks.ts"
import type { Parameters, Statement } from "../client/Parameters.ts"
import type { ReadOptions, StoreClient } from "../client/StoreClient.ts"
import { countedOfExecutions } from "./CountedFacts.ts"
import {
  type ExecutionFilter,
  GROUPING_SETTINGS,
  matchingExecutions,
  ofTenant,
  overlappingExecutions,
  STARTED,
  sortKeys,
  startConditions
} from "./ExecutionSql.ts"
import { summariesOf } from "./SummarySql.ts"
import { Scope } from "./TraceColumns.ts"
import { newestBy, ofExecutions, STRUCTURE } from "./TraceSql.ts"

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

/** What of executions is read. */
interface Part {
  /** For errors. */
  readonly operation: "page" | "overlapping"
  readonly tenantId: string
  readonly scopes: string
  /** Chain sequence of the last fact that is looked at. */
  readonly last: number
}

const ofExecutionsThemselves = `scope = ${Scope.execution}`

const upTo = (last: number, bind: Parameters): string => `chain_sequence <= ${bind.integer(last)}`

/** By grouping the facts of each execution: right whatever there is. */
const findByGroups = Effect.fnUntraced(function* (
  store: StoreClient,
  filter: ExecutionFilter,
  { limit, offset }: Slice
) {
  const isNear = limit > 0 && offset + limit <= FOUND_PAGE_END_MAX
  const keys = sortKeys(filter)
  const ids = isNear
    ? `arrayMap(entry -> entry.${keys.length}, groupArraySorted(${offset + limit})`
      + `((${keys.join(", ")})))`
    : "[]::Array(String)"
  const found = yield* store.readOne(
    "page",
    (bind) => {
      const facts = ofTenant(filter.tenantId, bind)
      const executions = matchingExecutions(store, filter, facts, bind)
      return `SELECT count(), max(last), ${ids} FROM (${executions})`
    },
    (row): Found => ({
      total: row.uint64(),
      last: row.uint64(),
      ids: row.list(() => row.string()).slice(offset)
    }),
    { settings: GROUPING_SETTINGS }
  )
  if (isNear || limit === 0 || found.total <= offset) return found
  const page = yield* store.read(
    "page",
    (bind) => {
      const then = `${ofTenant(filter.tenantId, bind)} AND ${upTo(found.last, bind)}`
      return (
        `SELECT id FROM (${matchingExecutions(store, filter, then, bind)})`
        + ` ORDER BY ${keys.join(", ")} LIMIT ${bind.integer(limit)} OFFSET ${bind.integer(offset)}`
      )
    },
    (row) => row.string(),
    { settings: GROUPING_SETTINGS }
  )
  return { ...found, ids: page }
})

const countStarts = (store: StoreClient, tenantId: string, matches: Statement) =>
  store.readOne(
    "page",
    (bind) =>
      `SELECT countIf(${matches(bind)}), max(chain_sequence),`
      + ` countIf(${STARTED} AND fact_number > 1), countIf(${STARTED} AND version = 1)`
      + ` FROM ${store.facts} WHERE ${ofTenant(tenantId, bind)}`,
    (row) => ({
      total: row.uint64(),
      last: row.uint64(),
      repeated: row.uint64(),
      erased: row.uint64()
    })
  )

/** What the started facts say all of. */
const OF_STARTS: ReadonlySet<string> = new Set([
  "tenantId",
  "agentId",
  "agentName",
  "from",
  "to",
  "order",
  "sort"
] satisfies ReadonlyArray<keyof ExecutionFilter>)

const isOfStarts = (filter: ExecutionFilter): boolean =>
  (filter.sort ?? "started_at") === "started_at"
  && Object.keys(filter).every((name) => OF_STARTS.has(name))

/**
 * By the started facts alone, many times faster: right as long as each execution has one, as those
 * have that did not come from OpenTelemetry. Undefined if that is not so.
 */
const findByStarts = Effect.fnUntraced(function* (
  store: StoreClient,
  filter: ExecutionFilter,
  { limit, offset }: Slice
) {
  const { tenantId } = filter
  const starts: Statement = (bind) => [STARTED, ...startConditions(filter, bind)].join(" AND ")
  const counts = yield* countStarts(store, tenantId, starts)
  if (counts.repeated > 0) return undefined
  // While it is being erased, an execution has two: with version 0 the one that was there before.
  const matches: Statement = (bind) =>
    counts.erased === 0
      ? `${starts(bind)} AND version = 0`
      : `${starts(bind)} AND (version = 1 OR execution_id NOT IN (SELECT execution_id`
        + ` FROM ${store.facts} WHERE ${ofTenant(tenantId, bind)} AND version = 1))`
  const { last, total } =
    counts.erased === 0 ? counts : yield* countStarts(store, tenantId, matches)
  if (limit === 0 || total <= offset) return { total, last, ids: [] }
  const ids = yield* store.read(
    "page",
    (bind) =>
      `SELECT execution_id FROM ${store.facts}`
      + ` WHERE ${ofTenant(tenantId, bind)} AND ${matches(bind)} AND ${upTo(last, bind)}`
      + ` ORDER BY started_at ${filter.order ?? "desc"}, execution_id`
      + ` LIMIT ${bind.integer(limit)} OFFSET ${bind.integer(offset)}`,
    (row) => row.string()
  )
  return { total, last, ids }
})

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

const rowsOf = (
  { last, scopes, tenantId }: Part,
  ids: ReadonlyArray<string>,
  bind: Parameters
): string => `${ofExecutions(tenantId, ids, bind, scopes)} AND ${upTo(last, bind)}`

/** The pieces that the facts of these executions are read in. */
const loadsOf = (store: StoreClient, part: Part, ids: ReadonlyArray<string>) =>
  store
    .read(
      part.operation,
      (bind) =>
        `SELECT execution_id, count(), sum(length(body)) FROM ${store.facts}`
        + ` WHERE ${rowsOf(part, ids, bind)} GROUP BY execution_id`,
      (row) => [row.string(), { rows: row.uint64(), bytes: row.uint64() }] as const
    )
    .pipe(Effect.map((sizes) => toLoads(ids, new Map(sizes))))

/** The facts of each of these executions; of its own those that count. */
const factsOf = (
  store: StoreClient,
  part: Part,
  ids: ReadonlyArray<string>,
  options?: ReadOptions
) =>
  store
    .read(
      part.operation,
      (bind) => {
        const rows = rowsOf(part, ids, bind)
        const shown =
          part.scopes === ofExecutionsThemselves ? ` AND ${countedOfExecutions(store, rows)}` : ""
        return (
          `SELECT execution_id, body FROM ${store.facts} WHERE ${rows}${shown}`
          + ` ${newestBy("execution_id, fact_number, hash")}`
        )
      },
      (row) => ({ id: row.string(), body: row.string() }),
      options
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

/** The facts and the summary of each of these executions, asked for at the same time. */
const listed = (store: StoreClient, part: Part, own: ReadonlyArray<string>) =>
  Effect.all(
    [
      factsOf(store, part, own, { isBulk: own.length > UNMEASURED_MAX }),
      summariesOf(store, part.tenantId, own)
    ],
    { concurrency: "unbounded" }
  ).pipe(
    Effect.map(([executions, summaries]) =>
      executions.map(({ executionId, facts }) => ({ facts, summary: summaries.get(executionId) }))
    )
  )

export const makePage = (store: StoreClient): Store["page"] =>
  Effect.fn("TraceStore.page")(function* ({ limit, offset, ...filter }, deduplicate) {
    const { tenantId } = filter
    const slice = { limit, offset }
    const byStarts =
      deduplicate || !isOfStarts(filter) ? undefined : yield* findByStarts(store, filter, slice)
    const { ids, last, total } = byStarts ?? (yield* findByGroups(store, filter, slice))
    const part: Part = { operation: "page", tenantId, scopes: ofExecutionsThemselves, last }
    const isMeasured = ids.length > UNMEASURED_MAX
    const pieces = isMeasured
      ? (yield* loadsOf(store, part, ids)).map((load) => load.ids)
      : ids.length === 0
        ? []
        : [ids]
    return {
      total,
      isLarge: pieces.length > 1,
      executions: Stream.fromIterable(pieces).pipe(
        Stream.mapEffect((own) => listed(store, part, own))
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
  { from, to }: Pick<OverlapQuery, "from" | "to">,
  after: Place | undefined
) => {
  const start = "toUnixTimestamp64Micro(started)"
  return store.read(
    "overlapping",
    (bind) => {
      const facts = `${ofTenant(tenantId, bind)} AND ${upTo(last, bind)}`
      const beyond =
        after === undefined
          ? "true"
          : `(${start}, id) > (${bind.as("Int64", after.started)}, ${bind.string(after.id)})`
      return (
        `SELECT id, ${start} FROM (${overlappingExecutions(store, from, to, facts, bind)})`
        + ` WHERE ${beyond} ORDER BY started, id LIMIT ${FOUND_AT_ONCE}`
      )
    },
    (row): Place => ({ id: row.string(), started: row.int64() }),
    { settings: GROUPING_SETTINGS }
  )
}

const scopesOf = { structure: STRUCTURE, execution: ofExecutionsThemselves } as const

export const makeOverlapping =
  (store: StoreClient): Store["overlapping"] =>
  ({ last = Number.MAX_SAFE_INTEGER, selection, tenantId, ...time }) => {
    const part: Part = { operation: "overlapping", tenantId, scopes: scopesOf[selection], last }
    return Stream.paginate(undefined as Place | undefined, (after) =>
      nextPlaces(store, part, time, after).pipe(
        Effect.map((places) => [places, Option.fromUndefinedOr(places[FOUND_AT_ONCE - 1])] as const)
      )
    ).pipe(
      Stream.map(({ id }) => id),
      Stream.grouped(MEASURED_AT_ONCE),
      Stream.mapEffect((ids) => loadsOf(store, part, ids)),
      Stream.flattenIterable,
      Stream.mapEffect(({ ids, isLarge }) => {
        const own = isLarge ? { ...part, scopes: scopesOf.execution } : part
        return factsOf(store, own, ids, { isBulk: true }).pipe(
          Effect.map((all) => all.map((one) => ({ ...one, isLarge })))
        )
      })
    )
  }
