/**
 * Conditions and expressions that statements on facts share: which rows are those of an execution,
 * and what is left of a stored text without its details.
 */
import { readable } from "../client/JsonColumns.ts"
import type { Parameters } from "../client/Parameters.ts"
import { textSet } from "../client/TextSets.ts"
import { Scope } from "./TraceColumns.ts"

export const ALL_SCOPES = `scope IN (${Scope.execution}, ${Scope.span}, ${Scope.event})`
export const STRUCTURE = `scope IN (${Scope.execution}, ${Scope.span})`

/** Rows of one execution; with the scopes named, they are ranges of the primary key. */
export const ofExecution = (
  tenantId: string,
  executionId: string,
  bind: Parameters,
  scopes: string = ALL_SCOPES
): string => `${bind.tenant(tenantId)} AND ${scopes} AND execution_id = ${bind.string(executionId)}`

/** Rows of several executions. */
export const ofExecutions = (
  tenantId: string,
  executionIds: ReadonlyArray<string>,
  bind: Parameters,
  scopes: string
): string => `${bind.tenant(tenantId)} AND ${scopes} AND execution_id IN ${textSet(executionIds)}`

/** Rows in order, of those that are the same fact the newest version. */
export const newestBy = (columns: string): string =>
  `ORDER BY ${columns}, version DESC LIMIT 1 BY ${columns}`

/** Facts of one execution in the order of their numbers. */
export const IN_ORDER = newestBy("fact_number, hash")

/**
 * Members of a stored fact around its details. Quotes in texts are escaped, so the first such mark
 * is the member itself; what comes after the details holds texts only, so the last one is, too.
 */
const DETAILS = ',"details":{'
const SALT = ',"details_salt":"'

const reversed = (text: string): string => [...text].reverse().join("")

/** The stored text of a fact without its details: still a fact, of a bounded size. */
export const WITHOUT_DETAILS =
  `if(position(body, '${DETAILS}') = 0, body,`
  + ` concat(substring(body, 1, position(body, '${DETAILS}') - 1), substring(body,`
  + ` length(body) + ${2 - SALT.length} - position(reverse(body), '${reversed(SALT)}'))))`

/** Of the details of a span what a graph shows: its name, and the JSON text of its error. */
export const SPAN_NAME = `JSONExtractString(${readable("body")}, 'details', 'name')`
export const SPAN_ERROR = `JSONExtractRaw(${readable("body")}, 'details', 'error')`
