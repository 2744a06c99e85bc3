/**
 * The tables that read-only SQL sees: views of one tenant, as common table expressions that stand
 * before the statement. Nothing else can be named in it, see SqlStatement.ts.
 */

import { type SqlColumn, type SqlTable, sqlTableNames } from "../../../domain/sql/SqlTables.ts"
import type { Repair } from "../../../domain/traces/Repairs.ts"
import { decidedRepairOf } from "../../../domain/traces/ShownSpans.ts"
import { readable, withFloatDigits } from "../client/JsonColumns.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { digitsOf, isErased, literal } from "../events/EventText.ts"
import { spanSummary } from "../traces/SummarySql.ts"
import { Scope } from "../traces/TraceColumns.ts"
import { viewName } from "./SqlStatement.ts"

const orNull = (condition: string, value: string): string => `if(${condition}, ${value}, NULL)`

/** A text of few values, as any text. */
const text = (column: string): string => `CAST(${column}, 'String')`

/** Whether a row of the table, as `e`, was erased. */
export const isErasedRow = isErased("e.erased_at")

/** A member of a JSON text: the arguments of JSONExtract functions. */
const member = (json: string, ...path: ReadonlyArray<string>): string =>
  `${readable(json, json)}, ${path.map(literal).join(", ")}`

const textOf = (json: string, ...path: ReadonlyArray<string>): string =>
  `JSONExtractString(${member(json, ...path)})`

const rawOf = (json: string, ...path: ReadonlyArray<string>): string =>
  `JSONExtractRaw(${member(json, ...path)})`

const textOrNull = (json: string, ...path: ReadonlyArray<string>): string =>
  orNull(`${rawOf(json, ...path)} != ''`, textOf(json, ...path))

/** A detail that a column holds as JSON, empty where it is absent. */
const detail = (column: string): string =>
  orNull(
    `${column} != '' AND NOT (${isErasedRow})`,
    `JSONExtractString(concat('[', ${column}, ']'), 1)`
  )

const time = (text: string): string => `parseDateTime64BestEffortOrZero(${text}, 6, 'UTC')`

/** Of the table of events, as `e`. */
export const eventColumns: Readonly<Record<SqlColumn<"events">, string>> = {
  sequence_number: "e.sequence_number",
  id: "e.id",
  timestamp: "e.timestamp",
  created_at: "e.created_at",
  actor_id: text("e.actor_id"),
  actor_type: text("e.actor_type"),
  actor_email: detail("e.actor_email"),
  action: text("e.action"),
  resource_id: text("e.resource_id"),
  resource_type: text("e.resource_type"),
  resource_name: detail("e.resource_name"),
  outcome: text("e.outcome"),
  metadata:
    `if(${isErasedRow}, '', if(match(e.metadata, '[0-9]{19}'),`
    + ` ${withFloatDigits("e.metadata")}, e.metadata))`,
  erased_at: orNull(isErasedRow, "e.erased_at"),
  hash: "e.hash",
  prev_hash: digitsOf("e.prev_hash"),
  content_hash: digitsOf("e.content_hash")
}

const members = (json: string): string =>
  `CAST(JSONExtractKeysAndValuesRaw(${rawOf(json, "details", "metadata")}), 'Map(String, String)')`

/** What was sent at the start and at the end as one object: of members in both, the later one. */
const mergedMetadata = (started: string, ended: string): string => {
  const all = `mapUpdate(${members(started)}, ${members(ended)})`
  return (
    "concat('{', arrayStringConcat(arrayMap((k, v) -> concat(toJSONString(k), ':', v),"
    + ` mapKeys(${all}), mapValues(${all})), ','), '}')`
  )
}

const millis = (from: string, to: string): string =>
  `(toUnixTimestamp64Micro(${to}) - toUnixTimestamp64Micro(${from})) / 1000`

const executionEnds = "x.end_fact > 0"

const executions: Readonly<Record<SqlColumn<"executions">, string>> = {
  execution_id: "x.execution_id",
  agent_id: "x.agent",
  agent_name: `coalesce(${textOrNull("x.started_body", "details", "agent_name")}, x.agent)`,
  status: `if(${executionEnds}, x.ended_status, 'RUNNING')`,
  root_span_id: textOf("x.started_body", "root_span_id"),
  trigger: textOrNull("x.started_body", "details", "trigger"),
  source: textOf("x.started_body", "source"),
  started_at: "x.started",
  ended_at: orNull(executionEnds, "x.ended"),
  duration_ms: orNull(executionEnds, millis("x.started", "x.ended")),
  metadata: mergedMetadata("x.started_body", "x.ended_body"),
  is_erased: "toBool(x.is_erased)"
}

/** What a span has where it has ended, where its execution has, and where neither has. */
const byEnd = (own: string, implied: string, running: string): string =>
  `multiIf(s.end_fact > 0, toNullable(${own}), ${executionEnds}, toNullable(${implied}), ${running})`

/** A span that still runs ends with its execution, not before its start. */
const impliedEnd = "greatest(x.ended, s.started)"
const errorJson = rawOf("s.ended_body", "details", "error")

const saidText = (name: string): string => orNull(`s.span_${name} != ''`, `s.span_${name}`)
const saidNumber = (name: string, type: string): string =>
  orNull(`s.span_${name} >= 0`, `to${type}(s.span_${name})`)

/** JSON of the repairs of a span: those that its start says, and those that follow from others. */
const repairsOfSpan = (() => {
  const said = (condition: string, repair: Repair) =>
    `if(${condition}, [${literal(JSON.stringify(repair))}], [])`
  const all =
    `arrayConcat(JSONExtractArrayRaw(${member("s.started_body", "details", "repairs")}),`
    + ` ${said("s.has_others", decidedRepairOf.other_content)}, ${said("s.is_shared", decidedRepairOf.shared_id)})`
  return `if(empty(${all}), '', concat('[', arrayStringConcat(${all}, ','), ']'))`
})()

const spans: Readonly<Record<SqlColumn<"spans">, string>> = {
  execution_id: "s.execution_id",
  span_id: "s.span_id",
  parent_span_id:
    "coalesce(if(s.moved_fact > s.start_fact, s.moved_parent, NULL),"
    + ` ${textOrNull("s.started_body", "parent_span_id")},`
    + ` nullIf(nullIf(${textOf("x.started_body", "root_span_id")}, s.span_id), ''))`,
  caused_by_span_ids: `JSONExtract(${member("s.started_body", "caused_by_span_ids")}, 'Array(String)')`,
  span_type: textOf("s.started_body", "span_type"),
  name: textOf("s.started_body", "details", "name"),
  status: `assumeNotNull(${byEnd("s.ended_status", "x.ended_status", "'RUNNING'")})`,
  started_at: "s.started",
  ended_at: byEnd("s.ended", impliedEnd, "NULL"),
  duration_ms: byEnd(millis("s.started", "s.ended"), millis("s.started", impliedEnd), "NULL"),
  error:
    `multiIf(${errorJson} = '', NULL, startsWith(${errorJson}, '"'),`
    + ` toNullable(${textOf("s.ended_body", "details", "error")}), toNullable(${errorJson}))`,
  model: saidText("model"),
  input_tokens: saidNumber("input_tokens", "UInt64"),
  output_tokens: saidNumber("output_tokens", "UInt64"),
  cost: saidNumber("cost", "Float64"),
  session_id: saidText("session_id"),
  user_id: saidText("user_id"),
  metadata: mergedMetadata("s.started_body", "s.ended_body"),
  repairs: repairsOfSpan
}

const traceEvents: Readonly<Record<SqlColumn<"trace_events">, string>> = {
  execution_id: "t.execution_id",
  span_id: "t.span_id",
  event_id: textOf("t.body", "event_id"),
  event_type: textOf("t.body", "event_type"),
  sequence_number: "t.sequence_number",
  timestamp: time(textOf("t.body", "timestamp")),
  payload: rawOf("t.body", "details", "payload")
}

const columns: Readonly<Record<SqlTable, Readonly<Record<string, string>>>> = {
  events: eventColumns,
  executions,
  spans,
  trace_events: traceEvents
}

const listed = (table: SqlTable): string =>
  Object.entries(columns[table])
    .map(([name, expression]) => `${expression} AS ${name}`)
    .join(", ")

/** Of facts of one kind, in a group, the last start and the last end; of an erased one its version 1. */
const startAndEnd = (kind: "execution" | "span"): string => {
  const started = `type = '${kind}.started'`
  const ended = `type = '${kind}.ended'`
  const ends = `type IN ('${kind}.ended', '${kind}.resumed')`
  const last = (value: string, of: string) => `argMaxIf(${value}, (fact_number, version), ${of})`
  return [
    `maxIf(fact_number, ${started}) AS start_fact`,
    // 0 where it has been resumed since.
    `${last(`if(${ended}, fact_number, 0)`, ends)} AS end_fact`,
    `${last("body", started)} AS started_body`,
    `${last("started_at", started)} AS started`,
    `${last("body", ended)} AS ended_body`,
    `${last(text("status"), ended)} AS ended_status`,
    `${last("ended_at", ended)} AS ended`
  ].join(", ")
}

const ofAmendment = (name: string): string =>
  `if(type = 'span.amended', ${textOf("body", name)}, '')`
const parentThen = ofAmendment("parent_span_id")
const sharedThen = ofAmendment("shared_span_id")

/** Of the facts of a span, in a group, what comes of their span.amended. */
const amendments = [
  `argMaxIf(${parentThen}, fact_number, ${parentThen} != '') AS moved_parent`,
  `maxIf(fact_number, ${parentThen} != '') AS moved_fact`,
  `countIf(${sharedThen} != '') > 0 AS is_shared`,
  `countIf(type = 'span.amended' AND ${parentThen} = '' AND ${sharedThen} = '') > 0 AS has_others`
]

/** Settings under which the views are right. */
export const viewSettings = {
  // A condition of the statement is never computed before the one on the tenant.
  optimize_move_to_prewhere: 0,
  query_plan_optimize_prewhere: 0,
  // With patched columns, ClickHouse 26.7 gives wrong answers.
  query_plan_direct_read_from_text_index: 0
} as const

/**
 * The SELECT that each view of a tenant is. The condition on the tenant is in PREWHERE, so no other
 * expression is ever computed on the row of another one.
 */
export const viewSelects = (
  store: Pick<StoreClient, "events" | "facts">,
  tenantId: string,
  deduplicate: boolean
): ReadonlyArray<readonly [name: SqlTable, select: string]> => {
  // No parameter: a text in the statement may look like one.
  const tenant = `unhex('${Buffer.from(tenantId, "utf8").toString("hex")}')`
  const facts = (scope: number) =>
    `FROM ${store.facts} PREWHERE tenant_id = ${tenant} AND scope = ${scope}`
  const grouped =
    `(SELECT execution_id, ${startAndEnd("execution")},`
    + ` argMaxIf(${text("agent_id")}, (fact_number, version), type = 'execution.started') AS agent,`
    + ` max(type = 'execution.erased') AS is_erased`
    + ` ${facts(Scope.execution)} GROUP BY execution_id HAVING start_fact > 0) AS x`
  const groupedSpans =
    `(SELECT execution_id, span_id, ${startAndEnd("span")}, ${spanSummary.join(", ")},`
    + ` ${amendments.join(", ")}`
    + ` ${facts(Scope.span)} GROUP BY execution_id, span_id HAVING start_fact > 0) AS s`
  const sources: Readonly<Record<SqlTable, string>> = {
    events: `${store.events} AS e${deduplicate ? " FINAL" : ""} PREWHERE e.tenant_id = ${tenant}`,
    executions: grouped,
    spans: `${groupedSpans} LEFT JOIN ${grouped} ON x.execution_id = s.execution_id`,
    trace_events:
      `${store.facts} AS t FINAL` + ` PREWHERE t.tenant_id = ${tenant} AND t.scope = ${Scope.event}`
  }
  return sqlTableNames.map(
    (name) => [name, `SELECT ${listed(name)} FROM ${sources[name]}`] as const
  )
}

/** The definitions of some views of a tenant, as they stand behind WITH. */
export const viewDefinitions = (
  names: ReadonlyArray<string>,
  ...of: Parameters<typeof viewSelects>
): ReadonlyArray<string> =>
  viewSelects(...of)
    .filter(([name]) => names.includes(name))
    .map(([name, select]) => `${viewName(name)} AS (${select})`)
