/**
 * What the attributes of OpenTelemetry spans mean to alk, by the rows of MappingTable.ts. The version
 * is stored with every span, so that a reader knows by which table a type was chosen; a change of the
 * table is a new version. Stores nothing.
 */
import { defined } from "../../../domain/Defined.ts"
import { isText } from "../../../domain/events/AuditEvent.ts"
import { isClientId } from "../../../domain/Identifiers.ts"
import { isObject, type JsonObject, type JsonValue, parseJson } from "../../../domain/json/Json.ts"
import {
  ANY,
  type Conditions,
  conventions,
  type FieldName,
  type FieldPath,
  OPERATION,
  SPAN_NAME
} from "../../../domain/traces/MappingTable.ts"
import type { SpanSummary } from "../../../domain/traces/SpanSummary.ts"
import type { TerminalStatus } from "../../../domain/traces/TraceFact.ts"
import { SPAN_TYPE_FORM, SPAN_TYPE_LENGTH_MAX } from "../../../domain/traces/TraceFact.ts"
import { TRACE_NAME_LENGTH_MAX } from "../PrepareTrace.ts"

export const MAPPING_VERSION = "alk-otlp-3"

/** Attribute by which a sender chooses the type itself, for instance HANDOFF. */
export const TYPE_ATTRIBUTE = "alk.span_type"
/** The type of a span that no row is about. */
export const DEFAULT_TYPE = "CUSTOM"

const textAt = (attributes: JsonObject, name: string): string | undefined => {
  const value = Object.hasOwn(attributes, name) ? attributes[name] : undefined
  return typeof value === "string" && value !== "" ? value : undefined
}

/** Characters of a value that a row may be about. */
const VALUE_LENGTH_MAX = 1_024

const QUOTED = /^"([^"\\]*)"$/

/** A text in lower case, without the quotes that it has as JSON. */
const valueAt = (attributes: JsonObject, name: string): string | undefined => {
  const text = textAt(attributes, name)
  return text === undefined || text.length > VALUE_LENGTH_MAX
    ? undefined
    : text.replace(QUOTED, "$1").toLowerCase()
}

const isLike = (value: string, pattern: string): boolean => {
  if (pattern.startsWith("*")) return value.endsWith(pattern.slice(1))
  return pattern.endsWith("*") ? value.startsWith(pattern.slice(0, -1)) : value === pattern
}

const isPresent = (attributes: JsonObject, name: string): boolean =>
  Object.hasOwn(attributes, name) && attributes[name] !== null

const holds = (
  attribute: string,
  wanted: Conditions[string],
  attributes: JsonObject,
  name: string
): boolean => {
  if (wanted === ANY) return isPresent(attributes, attribute)
  const value = attribute === SPAN_NAME ? name.toLowerCase() : valueAt(attributes, attribute)
  if (value === undefined) return false
  return typeof wanted === "string"
    ? isLike(value, wanted)
    : wanted.some((pattern) => isLike(value, pattern))
}

/** True if all conditions hold of the span. */
const holdAll = (conditions: Conditions, attributes: JsonObject, name: string): boolean =>
  Object.entries(conditions).every(([attribute, wanted]) =>
    holds(attribute, wanted, attributes, name)
  )

const isSpanType = (name: string): boolean =>
  name.length <= SPAN_TYPE_LENGTH_MAX && SPAN_TYPE_FORM.test(name)

/** How the instrumentation of the OpenAI Agents SDK names a hand-over, which is a tool by its kind. */
const HANDOFF_NAME = /^handoff to ./i

/** The span type that the attributes of a span, and its name, mean. */
export const spanTypeOf = (attributes: JsonObject, name = ""): string => {
  const chosen = textAt(attributes, TYPE_ATTRIBUTE)
  if (chosen !== undefined && isSpanType(chosen)) return chosen
  if (HANDOFF_NAME.test(name)) return "HANDOFF"
  for (const { rows = [], types = {} } of conventions) {
    const row = rows.find(([when]) => holdAll(when, attributes, name))
    if (row !== undefined) return row[1]
    for (const [attribute, byValue] of Object.entries(types)) {
      const value = valueAt(attributes, attribute)
      if (value !== undefined && Object.hasOwn(byValue, value)) return byValue[value]!
    }
  }
  // An operation that no row is about may be anything: a picture, a voice, a list of threads.
  if (textAt(attributes, OPERATION) !== undefined) return DEFAULT_TYPE
  for (const { present = {} } of conventions) {
    const found = Object.keys(present).find((attribute) => isPresent(attributes, attribute))
    if (found !== undefined) return present[found]!
  }
  return DEFAULT_TYPE
}

/** The name of a span for people: that of the tool or function where its own says the kind only. */
export const spanNameOf = (name: string, attributes: JsonObject): string => {
  for (const { names = [] } of conventions) {
    const row = names.find(([when]) => holdAll(when, attributes, name))
    const found = row && textAt(attributes, row[1])
    if (found !== undefined && isText(found, TRACE_NAME_LENGTH_MAX)) return found
  }
  return name
}

/** Characters of a JSON text that is looked into: outputs of models may be in it. */
const LOOKED_INTO_MAX = 1_048_576

/** A member of a value, which may be the JSON text of an object. */
const memberOf = (value: unknown, members: ReadonlyArray<string>): unknown => {
  let found = value
  if (typeof found === "string" && members.length > 0) {
    if (found.length > LOOKED_INTO_MAX || !found.startsWith("{")) return undefined
    try {
      found = parseJson(found)
    } catch {
      // No JSON, so nothing is said in it.
      return undefined
    }
  }
  for (const member of members) {
    if (!isObject(found) || !Object.hasOwn(found, member)) return undefined
    found = found[member]
  }
  return found
}

const memberAt = (attributes: JsonObject, path: FieldPath): unknown => {
  const [attribute, ...members] = typeof path === "string" ? [path] : path
  if (!Object.hasOwn(attributes, attribute)) return undefined
  return memberOf(attributes[attribute], members)
}

/** Every value that the table has for a field of this span, the first to be believed first. */
const valuesOf = (field: FieldName, attributes: JsonObject, name: string): ReadonlyArray<unknown> =>
  conventions.flatMap(({ fields, when }) => {
    const paths = fields?.[field]
    if (paths === undefined || (when !== undefined && !holdAll(when, attributes, name))) return []
    return paths.map((path) => memberAt(attributes, path)).filter((value) => value !== undefined)
  })

const textOf = (value: unknown): string | undefined => {
  if (typeof value === "number") return String(value)
  if (typeof value !== "string") return undefined
  const text = value.replace(QUOTED, "$1")
  return text === "" || !isText(text, TRACE_NAME_LENGTH_MAX) ? undefined : text
}

const NUMBER = /^\s*[0-9]{1,40}(?:[.][0-9]{1,40})?(?:[eE][-+]?[0-9]{1,2})?\s*$/

const amountOf = (value: unknown): number | undefined => {
  const number = typeof value === "string" && NUMBER.test(value) ? Number(value) : value
  return typeof number === "number" && Number.isFinite(number) && number >= 0 ? number : undefined
}

/** As the forms of summaries have it. */
const COUNT_MAX = 999_999_999_999_999

/** A count, also one that was sent as a text or with a fraction. */
const countOf = (value: unknown): number | undefined => {
  const amount = amountOf(value)
  return amount === undefined || amount > COUNT_MAX ? undefined : Math.round(amount)
}

const textsOf = (value: unknown): ReadonlyArray<string> | undefined => {
  const texts = (Array.isArray(value) ? value : [value]).map(textOf)
  return texts.length === 0 || texts.includes(undefined)
    ? undefined
    : texts.filter((text) => text !== undefined)
}

/** What the table says of a span. */
export const saidOfSpan = (attributes: JsonObject, name = ""): SpanSummary => {
  const first = <A>(field: FieldName, read: (value: unknown) => A | undefined): A | undefined => {
    for (const value of valuesOf(field, attributes, name)) {
      const found = read(value)
      if (found !== undefined) return found
    }
    return undefined
  }
  return defined({
    model: first("model", textOf),
    input_tokens: first("inputTokens", countOf),
    output_tokens: first("outputTokens", countOf),
    finish_reasons: first("finishReasons", textsOf),
    session_id: first("sessionId", textOf),
    user_id: first("userId", textOf),
    cost: first("cost", amountOf)
  })
}

/** What OpenTelemetry calls a service without a name. */
export const UNKNOWN_SERVICE = "unknown_service"

/** The id of the agent at work: the span's own word for it, else the service's name. */
export const agentIdOf = (attributes: JsonObject, resource: JsonObject): string =>
  [...valuesOf("agentId", attributes, ""), resource["service.name"]].find(
    (id): id is string => typeof id === "string" && isClientId(id)
  ) ?? UNKNOWN_SERVICE

/** Its name for people, if the attributes have one. */
export const agentNameOf = (attributes: JsonObject): string | undefined =>
  valuesOf("agentName", attributes, "").find(
    (name): name is string =>
      typeof name === "string" && name !== "" && isText(name, TRACE_NAME_LENGTH_MAX)
  )

/** An event of a span, as far as the mapping looks at it. */
export interface MappedEvent {
  readonly name: string
  readonly attributes: JsonObject
}

/** Errors by which languages and protocols say that work was cancelled; lower case. */
export const cancellations: ReadonlySet<string> = new Set([
  "aborterror",
  "asyncio.cancellederror",
  "asyncio.exceptions.cancellederror",
  "cancelled",
  "cancellederror",
  "concurrent.futures._base.cancellederror",
  "context.canceled",
  "java.util.concurrent.cancellationexception",
  "kotlinx.coroutines.jobcancellationexception",
  "system.operationcanceledexception",
  "system.threading.tasks.taskcanceledexception"
])

/** Values of `StatusCode` in the protocol. */
const STATUS_OK = 1
const STATUS_ERROR = 2
const STATUS_UNSET = 0

/** The last exception that the span recorded. */
const exceptionOf = (events: ReadonlyArray<MappedEvent>): JsonObject | undefined =>
  events.findLast(({ name }) => name === "exception")?.attributes

/** What a span came to. */
export interface SpanOutcome {
  readonly status: TerminalStatus
  /** A sentence, only of a span that has failed or was cancelled and that says why. */
  readonly error?: string
}

const messageOf = (exception: JsonObject | undefined): string | undefined => {
  if (exception === undefined) return undefined
  const parts = ["exception.type", "exception.message"].map((name) => textAt(exception, name))
  const text = parts.filter((part) => part !== undefined).join(": ")
  return text === "" ? undefined : text
}

/**
 * OK and UNSET are COMPLETED, ERROR is FAILED, or CANCELLED if `error.type` or the last exception
 * is one of `cancellations`. Undefined for a status code that the protocol doesn't have.
 */
export const outcomeOf = (
  code: number,
  message: string,
  attributes: JsonObject,
  events: ReadonlyArray<MappedEvent>
): SpanOutcome | undefined => {
  if (code === STATUS_UNSET || code === STATUS_OK) return { status: "COMPLETED" }
  if (code !== STATUS_ERROR) return undefined
  const exception = exceptionOf(events)
  const errorType = textAt(attributes, "error.type")
  const kind = errorType ?? (exception && textAt(exception, "exception.type"))
  const status = cancellations.has(kind?.toLowerCase() ?? "") ? "CANCELLED" : "FAILED"
  const error = message === "" ? (messageOf(exception) ?? errorType) : message
  return error === undefined ? { status } : { status, error }
}

/** Characters of an event type. */
export const EVENT_TYPE_LENGTH_MAX = 128
/** The type of an event whose name has nothing that a type could be made of. */
export const DEFAULT_EVENT_TYPE = "event"

/**
 * The name of a span event as a trace event's type: lower case, everything but ASCII letters,
 * digits, dots, `_` and `-` written as `_`. A name that is such a type already stays as it is.
 */
export const eventTypeOf = (name: string): string => {
  const words = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, "_")
    .replaceAll(/\.{2,}/g, ".")
    .replaceAll(/^[._-]+|[._-]+$/g, "")
  return words.slice(0, EVENT_TYPE_LENGTH_MAX) || DEFAULT_EVENT_TYPE
}

const spanKinds = ["UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"]

/** The kind of a span as metadata says it; a number that has no name yet stays one. */
export const kindOf = (kind: number): JsonValue | undefined =>
  kind === 0 ? undefined : (spanKinds[kind] ?? kind)

const statusCodes = ["UNSET", "OK", "ERROR"]

/** The status as metadata says it; nothing if that is what an unset one says. */
export const statusOf = (code: number, message: string): JsonObject | undefined =>
  code === STATUS_UNSET && message === ""
    ? undefined
    : { code: statusCodes[code] ?? code, ...(message === "" ? {} : { message }) }
