/**
 * Conditions and expressions that statements on facts share: which rows are those of an execution,
 * and what is left of a stored text without its details.
 */
import {
  ANSWERING_PARTS,
  ASKING_PART,
  HINT_NAME,
  LANGGRAPH_MARK,
  MESSAGE_NAMES,
  PART_IDS,
  PARTS,
  RUN_METADATA
} from "../../../domain/traces/GraphHints.ts"
import { readable } from "../client/JsonColumns.ts"
import type { Parameters } from "../client/Parameters.ts"
import { textSet } from "../client/TextSets.ts"
import { Scope } from "./TraceColumns.ts"

/** Facts that have a row of `span_ids`. */
export const NAMES_A_SPAN = "type IN ('span.started', 'execution.started') AND span_id != ''"

export const ALL_SCOPES = `scope IN (${Object.values(Scope).join(", ")})`
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

/** Facts in the order of their executions and numbers. */
export const IN_ORDER = newestBy("execution_id, fact_number, hash")

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

/** Bytes of the text of the details; 0 without. */
export const DETAILS_BYTES =
  `if(position(body, '${DETAILS}') = 0, 0,`
  + ` length(body) - length(${WITHOUT_DETAILS}) - ${DETAILS.length - 1})`

const CALLS = ["tool_calls", "tool_results"] as const

/** Whether an event may be a log record of a model that tells of calls. */
export const TELLS_CALLS =
  `position(body, '"event_type":"gen_ai.') > 0 AND (`
  + `${CALLS.map((name) => `position(body, '"${name}":[') > 0`).join(" OR ")})`

const callsIn = (name: string): string =>
  `JSONExtractRaw(${readable("body")}, 'details', 'payload', '${name}')`

/** What an event tells of calls, as the JSON text of an object. */
export const EVENT_CALLS = `concat('{', arrayStringConcat(arrayFilter(text -> text != '', [${CALLS.map(
  (name) => `if(startsWith(${callsIn(name)}, '['), concat('"${name}":', ${callsIn(name)}), '')`
).join(", ")}]), ','), '}')`

/** Of an event. */
export const EVENT_ID = `JSONExtractString(${WITHOUT_DETAILS}, 'event_id')`

/** Of a span of one side of a call CLIENT or SERVER, as its details say; else an empty text. */
export const SPAN_SIDE =
  `if(type = 'span.started' AND match(body, '"kind":"(CLIENT|SERVER)"'),`
  + ` JSONExtractString(${readable("body")}, 'details', 'metadata', 'kind'), '')`

/** Bits of the flags of a span that say that its parent is of another process. */
const REMOTE = 0x300

/** 1 of a span whose details say that its parent is of another process. */
export const SPAN_IS_REMOTE =
  `toUInt8(type = 'span.started' AND match(body, '"flags":[0-9]') AND bitAnd(`
  + `JSONExtractUInt(${readable("body")}, 'details', 'metadata', 'flags'), ${REMOTE}) = ${REMOTE})`

/** Of the details of a span what a graph shows: its name, and the JSON text of its error. */
export const SPAN_NAME = `JSONExtractString(${readable("body")}, 'details', 'name')`
export const SPAN_ERROR = `JSONExtractRaw(${readable("body")}, 'details', 'error')`

/** Messages with nothing but type and id of the parts that are about calls of tools. */
const callsOf = (messages: string): string => {
  const list = `if(startsWith(${messages}, '"'), JSONExtractString(${messages}), ${messages})`
  const types = [ASKING_PART, ...ANSWERING_PARTS].map((type) => `'${type}'`).join(", ")
  const isCall = `JSONExtractString(part, 'type') IN (${types})`
  const ids = PART_IDS.map(
    (name) =>
      `if(JSONHas(part, '${name}'), concat(',"${name}":', JSONExtractRaw(part, '${name}')), '')`
  )
  const call = `concat('{"type":', JSONExtractRaw(part, 'type'), ${ids.join(", ")}, '}')`
  const ofMessage = PARTS.map((name) => `JSONExtractArrayRaw(message, '${name}')`).join(", ")
  const parts =
    `arrayMap(part -> ${call}, arrayFilter(part -> ${isCall},`
    + ` arrayFlatten(arrayMap(message -> arrayConcat(${ofMessage}),`
    + ` JSONExtractArrayRaw(${list})))))`
  return `concat('[{"parts":[', arrayStringConcat(${parts}, ','), ']}]')`
}

/**
 * Members of an object that a graph looks at, as the inside of one. The names are ASCII without
 * quotes, so they need no escapes.
 */
const hintsIn = (object: string, bind: Parameters): string => {
  const isLookedAt =
    `match(member.1, ${bind.string(HINT_NAME)}) AND (member.1 != '${RUN_METADATA}'`
    + ` OR position(member.2, '${LANGGRAPH_MARK}') > 0)`
  const value =
    `if(member.1 IN (${MESSAGE_NAMES.map((name) => `'${name}'`).join(", ")}),`
    + ` ${callsOf("member.2")}, member.2)`
  return (
    `arrayStringConcat(arrayMap(member -> concat('"', member.1, '":', ${value}),`
    + ` arrayFilter(member -> ${isLookedAt}, ${object})), ',')`
  )
}

/** Of the metadata of a span what a graph looks at, as JSON text; see SpanOutline. */
export const spanHints = (bind: Parameters): string => {
  const members = (...path: ReadonlyArray<string>) =>
    `JSONExtractKeysAndValuesRaw(${[readable("body"), ...path.map((one) => `'${one}'`)].join(", ")})`
  const metadata = ["details", "metadata"]
  const has = (...path: ReadonlyArray<string>) =>
    `JSONHas(${[readable("body"), ...path.map((one) => `'${one}'`)].join(", ")})`
  return (
    `if(NOT ${has(...metadata)}, '', concat('{', arrayStringConcat(arrayFilter(some -> some != '',`
    + ` [${hintsIn(members(...metadata), bind)}, if(${has(...metadata, "attributes")},`
    + ` concat('"attributes":{', ${hintsIn(members(...metadata, "attributes"), bind)}, '}'), '')]),`
    + " ','), '}'))"
  )
}
