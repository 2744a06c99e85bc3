/**
 * Of the facts of an execution or a span those that it is shown by. What is sent again and again makes
 * a fact of all its details each time, and of most only the last one counts.
 */
import type { StoreClient } from "../client/StoreClient.ts"
import { WITHOUT_DETAILS } from "./TraceSql.ts"

const firstOf = (condition: string): string => `minIf(fact_number, ${condition})`
const lastOf = (condition: string): string => `maxIf(fact_number, ${condition})`

const STARTED = "type = 'execution.started'"
export const ERASED = "type = 'execution.erased'"
const OF_EXECUTION = [
  firstOf(STARTED),
  lastOf(STARTED),
  lastOf("type IN ('execution.ended', 'execution.resumed')"),
  lastOf(ERASED)
]

/** Whether an amendment names a span; in its details, the same may be the name of anything. */
const names = (member: string): string => `position(${WITHOUT_DETAILS}, '"${member}":"') > 0`

const SPAN_STARTED = "type = 'span.started'"
const AMENDED = "type = 'span.amended'"
/** Amendments are of a span that has started, and may be older than its last start. */
const OF_SPAN = [
  firstOf(SPAN_STARTED),
  lastOf(SPAN_STARTED),
  lastOf("type = 'span.ended'"),
  lastOf(`${AMENDED} AND ${names("parent_span_id")}`),
  lastOf(`${AMENDED} AND ${names("shared_span_id")}`),
  lastOf(`${AMENDED} AND NOT ${names("parent_span_id")} AND NOT ${names("shared_span_id")}`)
]

const counted = (
  store: StoreClient,
  column: "execution_id" | "span_id",
  numbers: ReadonlyArray<string>,
  rows: string
): string =>
  `(${column}, fact_number) IN (SELECT ${column}, arrayJoin([${numbers.join(", ")}])`
  + ` FROM ${store.facts} WHERE ${rows} GROUP BY ${column})`

/** Of executions, whose own facts are the rows that meet `rows`: four of each at most. */
export const countedOfExecutions = (store: StoreClient, rows: string): string =>
  counted(store, "execution_id", OF_EXECUTION, rows)

/** Of spans of one execution: six of each at most. */
export const countedOfSpans = (store: StoreClient, rows: string): string =>
  counted(store, "span_id", OF_SPAN, rows)
