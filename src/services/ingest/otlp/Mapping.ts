/**
 * What the attributes of OpenTelemetry spans mean to alk, by the rows of MappingTable.ts. The version
 * is stored with every span, so that a reader knows by which table a type was chosen; a change of the
 * table is a new version. Stores nothing.
 */
import { defined } from "../../../domain/Defined.ts"
import { isText } from "../../../domain/events/AuditEvent.ts"
import { isClientId } from "../../../domain/Identifiers.ts"
import { isObject, type JsonObject, type JsonValue } from "../../../domain/json/Json.ts"
import { JSON_TEXT_MAX, JsonTexts } from "../../../domain/traces/JsonTexts.ts"
import {
  ANY,
  type Conditions,
  conventions,
  type FieldName,
  OPERATION,
  SPAN_NAME
} from "../../../domain/traces/MappingTable.ts"
import type { SpanSummary } from "../../../domain/traces/SpanSummary.ts"
import type { TerminalStatus } from "../../../domain/traces/TraceFact.ts"
import { SPAN_TYPE_FORM, SPAN_TYPE_LENGTH_MAX } from "../../../domain/traces/TraceFact.ts"
import type { Side } from "../../../domain/traces/TraceOperation.ts"
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

const unquoted = (text: string): string =>
  text.startsWith('"') ? text.replace(QUOTED, "$1") : text

/** A text in lower case, without the quotes that it has as JSON. */
const valueAt = (attributes: JsonObject, name: string): string | undefined => {
  const text = textAt(attributes, name)
  return text === undefined || text.length > VALUE_LENGTH_MAX
    ? undefined
    : unquoted(text).toLowerCase()
}

const isLike = (value: string, pattern: string): boolean => {
  if (pattern.startsWith("*")) return value.endsWith(pattern.slice(1))
  return pattern.endsWith("*") ? value.startsWith(pattern.slice(0, -1)) : value === pattern
}

const isPresent = (attributes: JsonObject, name: string): boolean =>
  Object.hasOwn(attributes, name) && attributes[name] !== null

/** True if something holds of a span, whose name is given in lower case. */
type Check = (attributes: JsonObject, name: string) => boolean

const checkOf = (attribute: string, wanted: Conditions[string]): Check => {
  if (wanted === ANY) return (attributes) => isPresent(attributes, attribute)
  const patterns = typeof wanted === "string" ? [wanted] : wanted
  const isWanted = (value: string) => patterns.some((pattern) => isLike(value, pattern))
  if (attribute === SPAN_NAME) return (_, name) => isWanted(name)
  return (attributes) => {
    const value = valueAt(attributes, attribute)
    return value !== undefined && isWanted(value)
  }
}

const checkAll = (conditions: Conditions): Check => {
  const checks = Object.entries(conditions).map(([attribute, wanted]) => checkOf(attribute, wanted))
  return (attributes, name) => checks.every((check) => check(attributes, name))
}

/** What the rows say of a type, in their order. */
const typeSteps: ReadonlyArray<(attributes: JsonObject, name: string) => string | undefined> =
  conventions.flatMap(({ rows = [], types = {} }) => [
    ...rows.map(([when, type]) => {
      const check = checkAll(when)
      return (attributes: JsonObject, name: string) => (check(attributes, name) ? type : undefined)
    }),
    ...Object.entries(types).map(([attribute, byValue]) => {
      const typeOf = new Map(Object.entries(byValue))
      return (attributes: JsonObject) => {
        const value = valueAt(attributes, attribute)
        return value === undefined ? undefined : typeOf.get(value)
      }
    })
  ])

const presences = conventions.flatMap(({ present = {} }) => Object.entries(present))

const nameSteps = conventions.flatMap(({ names = [] }) =>
  names.map(([when, attribute]) => ({ check: checkAll(when), attribute }))
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
  const lower = name.toLowerCase()
  for (const step of typeSteps) {
    const type = step(attributes, lower)
    if (type !== undefined) return type
  }
  // An operation that no row is about may be anything: a picture, a voice, a list of threads.
  if (textAt(attributes, OPERATION) !== undefined) return DEFAULT_TYPE
  return presences.find(([attribute]) => isPresent(attributes, attribute))?.[1] ?? DEFAULT_TYPE
}

/** The name of a span for people: that of the tool or function where its own says the kind only. */
export const spanNameOf = (name: string, attributes: JsonObject): string => {
  const lower = name.toLowerCase()
  for (const { attribute, check } of nameSteps) {
    const found = check(attributes, lower) ? textAt(attributes, attribute) : undefined
    if (found !== undefined && isText(found, TRACE_NAME_LENGTH_MAX)) return found
  }
  return name
}

/** By the attributes of a span: a field after the other looks into the same texts. */
const jsonTexts = new WeakMap<JsonObject, JsonTexts>()

const jsonTextsOf = (attributes: JsonObject): JsonTexts => {
  const texts = jsonTexts.get(attributes) ?? new JsonTexts(JSON_TEXT_MAX)
  jsonTexts.set(attributes, texts)
  return texts
}

/** A member of an attribute's value, which may be the JSON text of an object. */
const memberOf = (
  attributes: JsonObject,
  attribute: string,
  members: ReadonlyArray<string>
): unknown => {
  const value = attributes[attribute]
  if (members.length === 0) return value
  let found: unknown =
    typeof value === "string" ? jsonTextsOf(attributes).structureOf(value) : value
  for (const member of members) {
    if (!isObject(found) || !Object.hasOwn(found, member)) return undefined
    found = found[member]
  }
  return found
}

/** A place in attributes, and of which spans it says something. */
interface Place {
  readonly attribute: string
  readonly members: ReadonlyArray<string>
  readonly check: Check | undefined
}

const placesOf = (field: FieldName): ReadonlyArray<Place> =>
  conventions.flatMap(({ fields, when }) => {
    const check = when && checkAll(when)
    return (fields?.[field] ?? []).map((path) => {
      const [attribute, ...members] = typeof path === "string" ? [path] : path
      return { attribute, members, check }
    })
  })

/** Finds a field of a span: the first value of the right kind that the table has for it. */
const finderOf = <A>(field: FieldName, read: (value: unknown) => A | undefined) => {
  const places = placesOf(field)
  return (attributes: JsonObject, name: string): A | undefined => {
    for (const { attribute, check, members } of places) {
      if (!Object.hasOwn(attributes, attribute)) continue
      if (check !== undefined && !check(attributes, name)) continue
      const found = read(memberOf(attributes, attribute, members))
      if (found !== undefined) return found
    }
    return undefined
  }
}

const textOf = (value: unknown): string | undefined => {
  if (typeof value === "number") return String(value)
  if (typeof value !== "string") return undefined
  const text = unquoted(value)
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

const finders = {
  model: finderOf("model", textOf),
  input_tokens: finderOf("inputTokens", countOf),
  output_tokens: finderOf("outputTokens", countOf),
  finish_reasons: finderOf("finishReasons", textsOf),
  session_id: finderOf("sessionId", textOf),
  user_id: finderOf("userId", textOf),
  cost: finderOf("cost", amountOf)
}

/** What the table says of a span. */
export const saidOfSpan = (attributes: JsonObject, name = ""): SpanSummary => {
  const lower = name.toLowerCase()
  return defined({
    model: finders.model(attributes, lower),
    input_tokens: finders.input_tokens(attributes, lower),
    output_tokens: finders.output_tokens(attributes, lower),
    finish_reasons: finders.finish_reasons(attributes, lower),
    session_id: finders.session_id(attributes, lower),
    user_id: finders.user_id(attributes, lower),
    cost: finders.cost(attributes, lower)
  })
}

/** What OpenTelemetry calls a service without a name. */
export const UNKNOWN_SERVICE = "unknown_service"

const clientIdOf = (id: unknown): string | undefined =>
  typeof id === "string" && isClientId(id) ? id : undefined

const agentId = finderOf("agentId", clientIdOf)
const agentName = finderOf("agentName", (name) =>
  typeof name === "string" && name !== "" && isText(name, TRACE_NAME_LENGTH_MAX) ? name : undefined
)

/** The id of the agent at work: the span's own word for it, else the service's name. */
export const agentIdOf = (attributes: JsonObject, resource: JsonObject): string =>
  agentId(attributes, "") ?? clientIdOf(resource["service.name"]) ?? UNKNOWN_SERVICE

/** Its name for people, if the attributes have one. */
export const agentNameOf = (attributes: JsonObject): string | undefined => agentName(attributes, "")

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
/** What a type neither begins nor ends with. */
const TYPE_MARKS = new Set([".", "_", "-"])
/** The type of an event whose name has nothing that a type could be made of. */
export const DEFAULT_EVENT_TYPE = "event"

/**
 * The name of a span event as a trace event's type: lower case, everything but ASCII letters,
 * digits, dots, `_` and `-` written as `_`. A name that is such a type already stays as it is.
 */
export const eventTypeOf = (name: string): string => {
  const words = name
    .slice(0, TRACE_NAME_LENGTH_MAX)
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, "_")
    .replaceAll(/\.{2,}/g, ".")
  const isMark = (at: number): boolean => TYPE_MARKS.has(words[at]!)
  // By hand: a regular expression starts anew at each mark of a long run.
  let [from, to] = [0, words.length]
  while (from < to && isMark(from)) from++
  while (from < to && isMark(to - 1)) to--
  return words.slice(from, Math.min(to, from + EVENT_TYPE_LENGTH_MAX)) || DEFAULT_EVENT_TYPE
}

const spanKinds = ["UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"]

/** The kind of a span as metadata says it; a number that has no name yet stays one. */
export const kindOf = (kind: number): JsonValue | undefined =>
  kind === 0 ? undefined : (spanKinds[kind] ?? kind)

/** The side of a call that a span of this kind is on. */
export const sideOf = (kind: number): Side | undefined => {
  const name = spanKinds[kind]
  return name === "CLIENT" || name === "SERVER" ? name : undefined
}

const statusCodes = ["UNSET", "OK", "ERROR"]

/** The status as metadata says it; nothing if that is what an unset one says. */
export const statusOf = (code: number, message: string): JsonObject | undefined =>
  code === STATUS_UNSET && message === ""
    ? undefined
    : { code: statusCodes[code] ?? code, ...(message === "" ? {} : { message }) }
