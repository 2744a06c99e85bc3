/**
 * From one request on a trace to an operation that the sequencer can decide on: checked by hand,
 * ids made or derived, details canonical and hashed. Every refusal names the field. The item has
 * been read by StrictJson before.
 */
import { hash } from "node:crypto"
import { defined } from "../../domain/Defined.ts"
import { NAME_LENGTH_MAX } from "../../domain/events/AuditEvent.ts"
import { derivedUuid, uuidv7 } from "../../domain/Identifiers.ts"
import { canonicalInSteps, flat, quote } from "../../domain/json/CanonicalJson.ts"
import { type Fields, isObject, type JsonObject } from "../../domain/json/Json.ts"
import type { StrictResult } from "../../domain/json/StrictJson.ts"
import { isLonger } from "../../domain/json/TextSize.ts"
import type { ItemError } from "../../domain/records/Command.ts"
import { EMPTY_BATCH } from "../../domain/records/EventBatch.ts"
import type { Sliced } from "../../domain/Slices.ts"
import { currentTime } from "../../domain/Timestamp.ts"
import {
  type PreparedDetails,
  SPAN_TYPE_FORM,
  SPAN_TYPE_LENGTH_MAX,
  type TerminalStatus,
  terminalStatuses
} from "../../domain/traces/TraceFact.ts"
import {
  type StartSpan,
  type TraceOperation,
  traceEventKeyOf
} from "../../domain/traces/TraceOperation.ts"
import { hashedDetails } from "./HashedDetails.ts"
import { type IdempotencyKey, keyOption, type PreparedItems } from "./Ingest.ts"
import {
  type ByteBudget,
  fitTo,
  fittedError,
  OffloadedValues,
  valuesBudget
} from "./LargeValues.ts"
import {
  checkId,
  FINGERPRINT_LENGTH,
  instantOf,
  memberOf,
  objectText,
  oneOf,
  optionalText,
  type PrepareError,
  prepareError,
  refuse,
  refuseUnknown,
  requireId,
  tooLarge,
  withoutNulls
} from "./Prepare.ts"

/** Characters of `agent_name` and of a span's `name`. */
export const TRACE_NAME_LENGTH_MAX = NAME_LENGTH_MAX
/** Characters of `trigger`. */
export const TRIGGER_LENGTH_MAX = 1_024
/** Spans that one span names as its causes. */
export const CAUSES_MAX = 256
/** Bytes of a span's `error` in RFC 8785 form. */
export const ERROR_BYTES_MAX = 32 * 1_024
/** Bytes of a trace event's `payload` in RFC 8785 form. */
export const PAYLOAD_BYTES_MAX = 64 * 1_024
/** Characters of the `reason` of an erasure. */
export const REASON_LENGTH_MAX = 1_024

export interface TraceLimits {
  /** Bytes of `metadata` in RFC 8785 form. */
  readonly metadataBytesMax: number
  /** Bytes of `payload` in RFC 8785 form. */
  readonly payloadBytesMax: number
  /** Bytes of an operation as sent, metadata, payload and error aside, in RFC 8785 form. */
  readonly eventBytesMax: number
}

/** The operations that a batch may hold. */
export const batchOperations = [
  "execution.start",
  "execution.end",
  "span.start",
  "span.end",
  "span.event"
] as const
export type OperationName = (typeof batchOperations)[number] | "execution.erase"

export interface PrepareTraceOptions {
  /** Place in the request, from 0. */
  readonly index: number
  readonly tenantId: string
  /** Id of the API key that the request came with. */
  readonly keyId: string
  /** Canonical microsecond form; the time of what was sent without one. */
  readonly acceptedAt: string
  /** Keeps fingerprints from being computed by others. */
  readonly secret: string
  /** What makes the request repeatable; generated ids are derived from it and the index. */
  readonly idempotencyKey?: string
  readonly limits: TraceLimits
  /** For values that leave what they are in; all operations of a request share it. */
  readonly room: ByteBudget
}

export type PreparedTrace = { readonly ok: TraceOperation } | { readonly error: PrepareError }

const ID_FIELDS = { execution: "execution_id", span: "span_id" } as const

/** What each operation may say, its ids aside; an end that was misspelt would be final. */
const knownFields: Readonly<Record<OperationName, ReadonlyArray<string>>> = {
  "execution.start": [
    "id",
    "agent_id",
    "agent_name",
    "trigger",
    "metadata",
    "idempotency_key",
    "started_at"
  ],
  "execution.end": ["status", "ended_at", "metadata"],
  "execution.erase": ["reason"],
  "span.start": [
    "id",
    "parent_span_id",
    "caused_by_span_ids",
    "span_type",
    "name",
    "started_at",
    "metadata",
    "idempotency_key"
  ],
  "span.end": ["status", "ended_at", "error", "metadata"],
  "span.event": ["id", "event_type", "timestamp", "payload"]
}

/** Which id an operation on something that exists already names. */
const targetOf: Readonly<Partial<Record<OperationName, keyof typeof ID_FIELDS>>> = {
  "execution.end": "execution",
  "execution.erase": "execution",
  "span.start": "execution",
  "span.end": "span",
  "span.event": "span"
}

/** Members whose size has a limit of its own. */
const sizedFields = ["metadata", "payload", "error"]

const optionalId = (item: Fields, name: string): string | undefined => {
  const value = memberOf(item, name)
  return value === undefined ? undefined : checkId(value, name)
}

const requireText = (item: Fields, name: string, lengthMax: number): string => {
  const text = optionalText(item, name, name, lengthMax)
  return text === undefined || text === ""
    ? refuse("missing_field", name, `required; send a string of 1 to ${lengthMax} characters`)
    : text
}

const statusOf = (item: Fields): TerminalStatus =>
  oneOf(memberOf(item, "status"), "status", terminalStatuses, "COMPLETED") as TerminalStatus

const spanTypeOf = (item: Fields): string => {
  const value = memberOf(item, "span_type")
  const form = `a name like TOOL_CALL: capital letters, digits and _, at most ${SPAN_TYPE_LENGTH_MAX}`
  if (value === undefined) return refuse("missing_field", "span_type", `required; send ${form}`)
  const isName =
    typeof value === "string" && value.length <= SPAN_TYPE_LENGTH_MAX && SPAN_TYPE_FORM.test(value)
  return isName ? value : refuse("invalid_value", "span_type", `must be ${form}`)
}

const causesOf = (item: Fields): ReadonlyArray<string> => {
  const name = "caused_by_span_ids"
  const value = memberOf(item, name)
  if (value === undefined) return []
  if (!Array.isArray(value)) return refuse("invalid_value", name, "must be an array of span ids")
  if (value.length > CAUSES_MAX) {
    return refuse("invalid_value", name, `has ${value.length} ids; send at most ${CAUSES_MAX}`)
  }
  const causes = new Set<string>()
  for (const [at, cause] of value.entries()) {
    const path = `${name}[${at}]`
    const id = checkId(cause, path)
    if (causes.has(id)) refuse("invalid_value", path, "is in the list already; send it once")
    causes.add(id)
  }
  return [...causes]
}

/** An object as RFC 8785 text, what it has no room for put apart. */
function* roomyText(
  item: Fields,
  name: "metadata" | "payload",
  bytesMax: number,
  apart: OffloadedValues
): Sliced<string | undefined> {
  const value = memberOf(item, name)
  const text = isObject(value) ? yield* fitTo(value as JsonObject, bytesMax, apart) : undefined
  return text ?? (yield* objectText(item, name, bytesMax))
}

const metadataOf = (
  item: Fields,
  { limits }: PrepareTraceOptions,
  apart: OffloadedValues
): Sliced<string | undefined> => roomyText(item, "metadata", limits.metadataBytesMax, apart)

function* errorOf(item: Fields, apart: OffloadedValues): Sliced<string | undefined> {
  const value = memberOf(item, "error")
  if (value === undefined) return undefined
  if (typeof value !== "string" && !isObject(value)) {
    return refuse("invalid_value", "error", "must be a string or an object")
  }
  return yield* fittedError(value as string | JsonObject, ERROR_BYTES_MAX, apart)
}

/** The values that an operation refers to, as its member. */
function* payloadsMember(apart: OffloadedValues): Sliced<Pick<StartSpan, "payloads">> {
  return defined({ payloads: yield* apart.payloads() })
}

/** RFC 8785 texts of details by name; undefined was not sent. */
type DetailTexts = Readonly<Record<string, string | undefined>>

/** The details that were sent; `members` in the order of RFC 8785. */
export const prepareDetails = (members: DetailTexts): PreparedDetails | undefined => {
  let text = ""
  for (const name in members) {
    const member = members[name]
    if (member !== undefined) text += `${text === "" ? "{" : ","}"${name}":${member}`
  }
  return text === "" ? undefined : hashedDetails(flat(`${text}}`))
}

const optionalDetails = (members: DetailTexts): { readonly details?: PreparedDetails } => {
  const details = prepareDetails(members)
  return details === undefined ? {} : { details }
}

const quoteIfSent = (text: string | undefined): string | undefined =>
  text === undefined ? undefined : quote(text)

/** 32 hex digits that only requests for the same thing share: what was sent, and for whom. */
function* fingerprintOf(item: Fields, ids: Fields, secret: string): Sliced<string> {
  const { op: _op, ...sent } = item
  const text = yield* canonicalInSteps({ ...withoutNulls(sent), ...ids } as JsonObject)
  return hash("sha256", secret + text, "hex").slice(0, FINGERPRINT_LENGTH)
}

/** An id that was made for this request. */
interface MadeId {
  readonly id: string
  /** Nothing can exist under it. */
  readonly fresh: boolean
}

/** The id that is known, or one made for the request: a retry of it makes the same. */
const madeId = (kind: string, known: string | undefined, options: PrepareTraceOptions): MadeId => {
  const { idempotencyKey, index, tenantId } = options
  if (known !== undefined) return { id: known, fresh: false }
  return idempotencyKey === undefined
    ? { id: uuidv7(), fresh: true }
    : {
        id: derivedUuid(`alk-${kind}-of-request`, tenantId, idempotencyKey, String(index)),
        fresh: false
      }
}

/** The id of the execution that an agent started under an idempotency key, on every process. */
export const executionIdOf = (tenantId: string, agentId: string, key: string): string =>
  derivedUuid("alk-execution", tenantId, agentId, key)

export const rootSpanIdOf = (tenantId: string, executionId: string): string =>
  derivedUuid("alk-root-span", tenantId, executionId)

function* startExecution(item: Fields, options: PrepareTraceOptions): Sliced<TraceOperation> {
  const { index, tenantId } = options
  const agentId = requireId(item, "agent_id", "agent_id")
  const key = optionalId(item, "idempotency_key")
  const clientId = optionalId(item, "id")
  if (clientId !== undefined && key !== undefined) {
    refuse(
      "invalid_value",
      "id",
      "can't be sent with idempotency_key, from which the id is derived"
    )
  }
  const known = key === undefined ? clientId : executionIdOf(tenantId, agentId, key)
  const { fresh, id } = madeId("execution", known, options)
  const agentName = optionalText(item, "agent_name", "agent_name", TRACE_NAME_LENGTH_MAX)
  const trigger = optionalText(item, "trigger", "trigger", TRIGGER_LENGTH_MAX)
  const apart = new OffloadedValues(options.room)
  const metadata = yield* metadataOf(item, options, apart)
  const times = startTimes(item, options)
  return {
    op: "execution.start",
    index,
    executionId: id,
    fresh,
    agentId,
    rootSpanId: rootSpanIdOf(tenantId, id),
    ...times,
    ...optionalDetails({
      agent_name: quoteIfSent(agentName),
      metadata,
      trigger: quoteIfSent(trigger)
    }),
    ...(yield* payloadsMember(apart)),
    rootDetails: hashedDetails(`{"name":${quote(agentName ?? agentId)}}`)
  }
}

/** A time as it was sent, or that of the request. */
const givenTime = (item: Fields, name: string, { acceptedAt }: PrepareTraceOptions) => {
  const sent = instantOf(item, name)
  return { at: sent ?? acceptedAt, isGiven: sent !== undefined }
}

/** What the ends of executions and of spans have in common. */
const endOf = (item: Fields, options: PrepareTraceOptions) => {
  const status = statusOf(item)
  const { at, isGiven } = givenTime(item, "ended_at", options)
  return { index: options.index, status, endedAt: at, endedAtGiven: isGiven }
}

const startTimes = (item: Fields, options: PrepareTraceOptions) => {
  const { at, isGiven } = givenTime(item, "started_at", options)
  return { startedAt: at, startedAtGiven: isGiven }
}

function* startSpan(
  item: Fields,
  executionId: string,
  options: PrepareTraceOptions
): Sliced<TraceOperation> {
  const { index, tenantId } = options
  const clientId = optionalId(item, "id")
  const key = optionalId(item, "idempotency_key")
  const parentSpanId = optionalId(item, "parent_span_id")
  const causedBy = causesOf(item)
  const spanType = spanTypeOf(item)
  const name = requireText(item, "name", TRACE_NAME_LENGTH_MAX)
  const times = startTimes(item, options)
  const apart = new OffloadedValues(options.room)
  const metadata = yield* metadataOf(item, options, apart)
  const known =
    clientId
    ?? (key === undefined ? undefined : derivedUuid("alk-span", tenantId, executionId, key))
  const { fresh, id } = madeId("span", known, options)
  return {
    op: "span.start",
    index,
    executionId,
    spanId: id,
    fresh,
    ...(parentSpanId === undefined ? {} : { parentSpanId }),
    causedBy,
    spanType,
    ...times,
    details: prepareDetails({ metadata, name: quote(name) })!,
    ...(yield* payloadsMember(apart))
  }
}

function* endExecution(
  item: Fields,
  executionId: string,
  options: PrepareTraceOptions
): Sliced<TraceOperation> {
  const apart = new OffloadedValues(options.room)
  return {
    op: "execution.end",
    executionId,
    ...endOf(item, options),
    ...optionalDetails({ metadata: yield* metadataOf(item, options, apart) }),
    ...(yield* payloadsMember(apart))
  }
}

function* endSpan(
  item: Fields,
  spanId: string,
  options: PrepareTraceOptions
): Sliced<TraceOperation> {
  const apart = new OffloadedValues(options.room)
  return {
    op: "span.end",
    spanId,
    ...endOf(item, options),
    ...optionalDetails({
      error: yield* errorOf(item, apart),
      metadata: yield* metadataOf(item, options, apart)
    }),
    ...(yield* payloadsMember(apart))
  }
}

function* addEvent(
  item: Fields,
  spanId: string,
  options: PrepareTraceOptions
): Sliced<TraceOperation> {
  const { acceptedAt, index, limits, secret, tenantId } = options
  const clientId = optionalId(item, "id")
  const eventType = requireId(item, "event_type", "event_type")
  const timestamp = instantOf(item, "timestamp")
  const apart = new OffloadedValues(options.room)
  const payload = yield* roomyText(item, "payload", limits.payloadBytesMax, apart)
  return {
    op: "span.event",
    index,
    spanId,
    eventId: madeId("trace-event", clientId, options).id,
    eventType,
    timestamp: timestamp ?? acceptedAt,
    ...optionalDetails({ payload }),
    ...(yield* payloadsMember(apart)),
    ...(clientId === undefined
      ? {}
      : {
          dedupKey: traceEventKeyOf(tenantId, clientId),
          fingerprint: yield* fingerprintOf(item, { span_id: spanId }, secret)
        })
  }
}

function* prepare(
  op: OperationName,
  item: Fields,
  target: string,
  options: PrepareTraceOptions
): Sliced<TraceOperation> {
  const { index, keyId } = options
  switch (op) {
    case "execution.start":
      return yield* startExecution(item, options)
    case "execution.end":
      return yield* endExecution(item, target, options)
    case "execution.erase": {
      const reason = requireText(item, "reason", REASON_LENGTH_MAX)
      return { op, index, executionId: target, reason, erasedBy: keyId }
    }
    case "span.start":
      return yield* startSpan(item, target, options)
    case "span.end":
      return yield* endSpan(item, target, options)
    case "span.event":
      return yield* addEvent(item, target, options)
  }
}

/** What has no limit of its own may not add up to more than an event may have. */
function* refuseOversized(item: Fields, { limits }: PrepareTraceOptions): Sliced<void> {
  const rest = Object.fromEntries(
    Object.entries(item).filter(([name]) => !sizedFields.includes(name))
  )
  const text = yield* canonicalInSteps(rest as JsonObject)
  if (isLonger(text, limits.eventBytesMax)) {
    refuse("event_too_large", "operation", tooLarge(text, limits.eventBytesMax))
  }
}

const operationName = (item: Fields): OperationName =>
  oneOf(memberOf(item, "op"), "op", batchOperations, undefined) as OperationName

/** Where the id of what an operation is about comes from. */
export type Target =
  /** From the path, and so does the operation. */
  | { readonly op: OperationName; readonly id: string | undefined }
  /** From the item itself, as in a batch. */
  | undefined

/**
 * Check one operation and make it ready for the sequencer. The first thing that is wrong is the
 * error, unknown fields before all others.
 */
export function* prepareOperation(
  value: unknown,
  target: Target,
  options: PrepareTraceOptions
): Sliced<PreparedTrace> {
  try {
    if (!isObject(value)) return refuse("invalid_value", "operation", "must be a JSON object")
    const op = target?.op ?? operationName(value)
    const kind = targetOf[op]
    const idField = target === undefined && kind !== undefined ? ID_FIELDS[kind] : undefined
    const own = target === undefined ? ["op", ...(idField === undefined ? [] : [idField])] : []
    refuseUnknown(value, [...own, ...knownFields[op]], op)
    const id = target?.id ?? (idField === undefined ? "" : requireId(value, idField, idField))
    const ok = yield* prepare(op, value, id, options)
    if (ok.op === "span.start" && ok.causedBy.length > 0) yield* refuseOversized(value, options)
    return { ok }
  } catch (error) {
    return prepareError(error, "operation")
  }
}

/** What the operations of one request have in common. */
export interface PrepareTracesOptions
  extends Omit<PrepareTraceOptions, "index" | "acceptedAt" | "idempotencyKey" | "room"> {
  readonly target: Target
  readonly idempotency: IdempotencyKey | undefined
}

/** Operations of a request after validation. */
export type PreparedTraces = PreparedItems & { readonly traces: ReadonlyArray<TraceOperation> }

/** Validate operations in order. Never fails: what is wrong with one is an error of that one. */
export function* prepareTraces(
  items: ReadonlyArray<StrictResult>,
  { idempotency, target, ...common }: PrepareTracesOptions
): Sliced<PreparedTraces> {
  const traces: Array<TraceOperation> = []
  const errors: Array<ItemError> = []
  const options = {
    ...common,
    acceptedAt: currentTime(),
    room: valuesBudget(),
    ...keyOption(idempotency)
  }
  for (const [index, item] of items.entries()) {
    yield
    if ("problem" in item) {
      errors.push({ index, code: item.problem.code, message: item.problem.message })
      continue
    }
    const prepared = yield* prepareOperation(item.value, target, { ...options, index })
    if ("error" in prepared) {
      errors.push({ index, code: prepared.error.code, message: prepared.error.message })
      continue
    }
    traces.push(prepared.ok)
  }
  return { events: EMPTY_BATCH, errors, warnings: [], traces }
}
