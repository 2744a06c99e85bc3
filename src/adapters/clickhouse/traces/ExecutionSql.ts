/**
 * Executions out of their own facts, as a subquery: one row for each. Which facts count is decided
 * as `TraceView` does, the last execution.started and the last execution.ended; rows that are in
 * the store twice change nothing. Knows nothing of paging.
 */
import { type TraceStatus, terminalStatuses } from "../../../domain/traces/TraceFact.ts"
import type { ExecutionPageQuery } from "../../../ports/TraceStore.ts"
import type { Parameters } from "../client/Parameters.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { Scope } from "./TraceColumns.ts"

/** Bytes that grouping a tenant's executions may take in memory; the rest waits on disk. */
const GROUPING_BYTES_MAX = 512 * 1_048_576

/** For every statement that groups. */
export const GROUPING_SETTINGS = `max_bytes_before_external_group_by = ${GROUPING_BYTES_MAX}`

export type ExecutionFilter = Omit<ExecutionPageQuery, "offset" | "limit">

export const STARTED = "type = 'execution.started'"
const ENDED = "type = 'execution.ended'"

/** Of the terminal statuses, from 1: numbers are grouped in half the time that texts take. */
const STATUS_CODE = `indexOf(['${terminalStatuses.join("', '")}'], status)`

const codeOf = (status: TraceStatus): number =>
  (terminalStatuses as ReadonlyArray<TraceStatus>).indexOf(status) + 1

/** The facts of the tenant's executions themselves, nothing of their spans. */
export const ofTenant = (tenantId: string, bind: Parameters): string =>
  `${bind.tenant(tenantId)} AND scope = ${Scope.execution}`

/** Conditions on the facts that say when an execution has started, and by whom. */
export const startConditions = (
  { agentId, from, to }: ExecutionFilter,
  bind: Parameters
): ReadonlyArray<string> => [
  ...(agentId === undefined ? [] : [`agent_id = ${bind.string(agentId)}`]),
  ...(from === undefined ? [] : [`started_at >= ${bind.time(from)}`]),
  ...(to === undefined ? [] : [`started_at <= ${bind.time(to)}`])
]

const grouped = (
  store: StoreClient,
  facts: string,
  values: ReadonlyArray<string>,
  conditions: ReadonlyArray<string>
): string => {
  const all = [
    "execution_id AS id",
    `argMaxIf(started_at, fact_number, ${STARTED}) AS started`,
    `maxIf(fact_number, ${STARTED}) AS start_number`,
    "max(chain_sequence) AS last",
    ...values
  ]
  return (
    `SELECT id, started, last FROM (SELECT ${all.join(", ")} FROM ${store.facts}`
    + ` WHERE ${facts} GROUP BY execution_id)`
    + ` WHERE ${["start_number > 0", ...conditions].join(" AND ")}`
  )
}

/**
 * Columns `id`, `started` and `last` (the chain sequence of its last fact) of the executions that
 * match; `facts` says which rows are looked at.
 */
export const matchingExecutions = (
  store: StoreClient,
  filter: ExecutionFilter,
  facts: string,
  bind: Parameters
): string => {
  const matches = startConditions(filter, bind).join(" AND ")
  const { status } = filter
  return grouped(
    store,
    facts,
    [
      ...(matches === "" ? [] : [`argMaxIf(${matches}, fact_number, ${STARTED}) AS matching`]),
      ...(status === undefined ? [] : [`argMaxIf(${STATUS_CODE}, fact_number, ${ENDED}) AS code`])
    ],
    [
      ...(matches === "" ? [] : ["matching"]),
      ...(status === undefined ? [] : [`code = ${codeOf(status)}`])
    ]
  )
}

/** The same columns of the executions that ran at any time within [from, to]. */
export const overlappingExecutions = (
  store: StoreClient,
  from: string,
  to: string,
  facts: string,
  bind: Parameters
): string =>
  grouped(
    store,
    facts,
    [
      `argMaxIf(ended_at, fact_number, ${ENDED}) AS ended`,
      `maxIf(fact_number, ${ENDED}) AS end_number`
    ],
    [`started <= ${bind.time(to)}`, `(end_number = 0 OR ended >= ${bind.time(from)})`]
  )
