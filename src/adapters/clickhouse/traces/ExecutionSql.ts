/**
 * Executions out of their own facts, as a subquery: one row for each. Which facts count is decided
 * as `TraceView` does, the last execution.started, and the last execution.ended unless an
 * execution.resumed follows it; rows that are in the store twice change nothing. Which of an
 * execution's spans have failed is read from narrow columns of the facts about spans, only where it
 * is asked for.
 */
import { type TraceStatus, terminalStatuses } from "../../../domain/traces/TraceFact.ts"
import type { ExecutionPageQuery, TextChoice } from "../../../ports/TraceStore.ts"
import type { Parameters } from "../client/Parameters.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { callTotals } from "./SummarySql.ts"
import { Scope } from "./TraceColumns.ts"

/** Bytes that grouping a tenant's executions may take in memory; the rest waits on disk. */
const GROUPING_BYTES_MAX = 512 * 1_048_576

/** For every statement that groups. */
export const GROUPING_SETTINGS = `max_bytes_before_external_group_by = ${GROUPING_BYTES_MAX}`

export type ExecutionFilter = Omit<ExecutionPageQuery, "offset" | "limit">

export const STARTED = "type = 'execution.started'"
const ENDED = "type = 'execution.ended'"
/** The facts of which the last says whether an execution runs. */
const LAST_OF = "type IN ('execution.ended', 'execution.resumed')"

/** Of the terminal statuses, from 1: numbers are grouped in half the time that texts take. */
const STATUS_CODE = `indexOf(['${terminalStatuses.join("', '")}'], status)`

const codeOf = (status: TraceStatus): number =>
  (terminalStatuses as ReadonlyArray<TraceStatus>).indexOf(status) + 1

/**
 * The spans of a tenant that have failed: as many rows as it has of spans are looked through, by two
 * columns of one byte each.
 */
const ofFailedSpans = (store: StoreClient, tenantId: string, bind: Parameters): string =>
  `FROM ${store.facts} WHERE ${bind.tenant(tenantId)} AND scope = ${Scope.span}`
  + " AND type = 'span.ended' AND status = 'FAILED'"

/** Executions with failed spans and the number of these. */
const failedSpans = (store: StoreClient, tenantId: string, bind: Parameters): string =>
  "SELECT execution_id AS id, uniqExact(span_id) AS errors"
  + ` ${ofFailedSpans(store, tenantId, bind)} GROUP BY execution_id`

/** True for an execution that has failed, or a span of it: half the time that counting takes. */
const failed = (store: StoreClient, tenantId: string, bind: Parameters): string =>
  `(code = ${codeOf("FAILED")}`
  + ` OR id IN (SELECT DISTINCT execution_id ${ofFailedSpans(store, tenantId, bind)}))`

/** A text is one of these, or starts with one that is open. */
const isOneOf = (column: string, choice: TextChoice, bind: Parameters): string => {
  const whole = choice.filter(({ isOpen }) => !isOpen).map(({ text }) => text)
  const starts = choice.filter(({ isOpen }) => isOpen).map(({ text }) => text)
  const conditions = [
    ...(whole.length === 0 ? [] : [`${column} IN (${bind.strings(whole)})`]),
    ...starts.map((text) => `(${column} != '' AND startsWith(${column}, ${bind.string(text)}))`)
  ]
  return `(${conditions.join(" OR ")})`
}

/** STRUCTURE for all executions at once: as a range of the key it is read a third faster. */
const ALL_STRUCTURE = `scope <= ${Scope.span}`

/** Executions of which a fact says something that `summary` holds. */
const ofWhichOneSays = (store: StoreClient, filter: ExecutionFilter, bind: Parameters) =>
  (
    [
      ["model", filter.model],
      ["session_id", filter.sessionId],
      ["user_id", filter.userId]
    ] as const
  ).flatMap(([name, choice]) =>
    choice === undefined
      ? []
      : [
          `execution_id IN (SELECT execution_id FROM ${store.facts}`
            + ` WHERE ${bind.tenant(filter.tenantId)} AND ${ALL_STRUCTURE}`
            + ` AND ${isOneOf(`summary.${name}`, choice, bind)})`
        ]
  )

/** Microseconds from start to end, never below zero; of an execution that has ended. */
const DURATION = "greatest(0, toUnixTimestamp64Micro(ended) - toUnixTimestamp64Micro(started))"

/** What the rows of `matchingExecutions` are sorted by, ascending: the last in it is the id. */
export const sortKeys = ({ order = "desc", sort = "started_at" }: ExecutionFilter) => {
  const sign = order === "desc" ? "-" : ""
  switch (sort) {
    case "started_at":
      return [`${sign}toUnixTimestamp64Micro(started)`, "id"] as const
    case "duration":
      return ["end_number = 0", `${sign}${DURATION}`, "id"] as const
    case "errors":
      return [`${sign}toInt64(errors)`, "id"] as const
    case "tokens":
      return [`${sign}tokens`, "id"] as const
    case "cost":
      return ["priced = 0", `${sign}cost`, "id"] as const
  }
}

/** The facts of the tenant's executions themselves, nothing of their spans. */
export const ofTenant = (tenantId: string, bind: Parameters): string =>
  `${bind.tenant(tenantId)} AND scope = ${Scope.execution}`

/** The name of an agent; its id where it has none. */
const AGENT_NAME = "if(summary.agent_name = '', CAST(agent_id, 'String'), summary.agent_name)"

/** Conditions on the facts that say when an execution has started, and by whom. */
export const startConditions = (
  { agentId, agentName, from, to }: ExecutionFilter,
  bind: Parameters
): ReadonlyArray<string> => [
  ...(agentId === undefined ? [] : [isOneOf("agent_id", agentId, bind)]),
  ...(agentName === undefined ? [] : [isOneOf(AGENT_NAME, agentName, bind)]),
  ...(from === undefined ? [] : [`started_at >= ${bind.time(from)}`]),
  ...(to === undefined ? [] : [`started_at <= ${bind.time(to)}`])
]

/** How an execution ended: when, and by which fact; 0 while it runs. */
const END = [
  `argMaxIf(ended_at, fact_number, ${ENDED}) AS ended`,
  `argMaxIf(if(${ENDED}, fact_number, 0), fact_number, ${LAST_OF}) AS end_number`
]

interface Grouping {
  readonly facts: string
  /** Aggregates, each with its name. */
  readonly values: ReadonlyArray<string>
  readonly conditions: ReadonlyArray<string>
  /** Of the values, what is shown too. */
  readonly shown?: ReadonlyArray<string>
  /** Joined by `id`; where one has no row of an execution, its columns are 0. */
  readonly joined?: ReadonlyArray<string>
}

const grouped = (
  store: StoreClient,
  { conditions, facts, joined = [], shown = [], values }: Grouping
): string => {
  const all = [
    "execution_id AS id",
    `argMaxIf(started_at, fact_number, ${STARTED}) AS started`,
    `maxIf(fact_number, ${STARTED}) AS start_number`,
    "max(chain_sequence) AS last",
    ...values
  ]
  return (
    `SELECT ${["id", "started", "last", ...shown].join(", ")}`
    + ` FROM (SELECT ${all.join(", ")} FROM ${store.facts} WHERE ${facts} GROUP BY execution_id)`
    + (joined.length === 0 ? "" : " AS executions")
    + joined.map((some, at) => ` LEFT JOIN (${some}) AS joined${at} USING (id)`).join("")
    + ` WHERE ${["start_number > 0", ...conditions].join(" AND ")}`
  )
}

/**
 * Columns `id`, `started` and `last` (the chain sequence of its last fact) of the executions that
 * match, and what `sortKeys` names; `facts` says which rows are looked at.
 */
export const matchingExecutions = (
  store: StoreClient,
  filter: ExecutionFilter,
  facts: string,
  bind: Parameters
): string => {
  const matches = startConditions(filter, bind).join(" AND ")
  const { hasError, minDurationMicros, minTokens, sort, status, tenantId } = filter
  const needsErrors = sort === "errors"
  const needsStatus = hasError !== undefined || status !== undefined
  const needsEnd = minDurationMicros !== undefined || sort === "duration"
  const needsTotals = minTokens !== undefined || sort === "tokens" || sort === "cost"
  return grouped(store, {
    facts: [facts, ...ofWhichOneSays(store, filter, bind)].join(" AND "),
    values: [
      ...(matches === "" ? [] : [`argMaxIf(${matches}, fact_number, ${STARTED}) AS matching`]),
      ...(needsStatus ? [`argMaxIf(${STATUS_CODE}, fact_number, ${LAST_OF}) AS code`] : []),
      ...(needsEnd ? END : [])
    ],
    conditions: [
      ...(matches === "" ? [] : ["matching"]),
      ...(status === undefined ? [] : [`code IN (${status.map(codeOf).join(", ")})`]),
      ...(hasError === undefined
        ? []
        : [`${hasError ? "" : "NOT "}${failed(store, tenantId, bind)}`]),
      ...(minDurationMicros === undefined
        ? []
        : [`end_number > 0 AND ${DURATION} >= ${bind.as("Int64", minDurationMicros)}`]),
      ...(minTokens === undefined ? [] : [`tokens >= ${bind.integer(minTokens)}`])
    ],
    shown: [
      ...(needsEnd ? ["ended", "end_number"] : []),
      ...(needsErrors ? ["errors"] : []),
      ...(needsTotals ? ["tokens", "cost", "priced"] : [])
    ],
    joined: [
      ...(needsErrors ? [failedSpans(store, tenantId, bind)] : []),
      ...(needsTotals ? [callTotals(store, tenantId, bind)] : [])
    ]
  })
}

/** The same columns of the executions that ran at any time within [from, to]. */
export const overlappingExecutions = (
  store: StoreClient,
  from: string,
  to: string,
  facts: string,
  bind: Parameters
): string =>
  grouped(store, {
    facts,
    values: END,
    conditions: [`started <= ${bind.time(to)}`, `(end_number = 0 OR ended >= ${bind.time(from)})`]
  })
