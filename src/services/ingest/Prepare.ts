/**
 * From one item of a request to an event that only lacks its place in the chain: checked by hand,
 * canonical, hashed. Every refusal names the field and what to send instead. The item has been read
 * by StrictJson before.
 */
import { hash } from "node:crypto"
import {
  ACTION_FORM,
  ACTION_LENGTH_MAX,
  ANY_ACTION_FORM,
  ANY_ACTION_LENGTH_MAX,
  EMAIL_LENGTH_MAX,
  EVENT_BYTES_MAX,
  isText,
  METADATA_BYTES_MAX,
  METADATA_SENT_BYTES_MAX,
  NAME_LENGTH_MAX,
  RESERVED_ACTION_PREFIX
} from "../../domain/events/AuditEvent.ts"
import {
  bodyText,
  type CanonicalFields,
  contentHash,
  coreText,
  detailsHash,
  detailsText
} from "../../domain/events/HashChain.ts"
import { derivedUuid, isClientId, isPartyId, randomHex, uuidv7 } from "../../domain/Identifiers.ts"
import { ID_LENGTH_MAX, PARTY_ID_LENGTH_MAX } from "../../domain/IdForms.ts"
import {
  canonicalInSteps,
  flat,
  NotCanonicalizable,
  quote
} from "../../domain/json/CanonicalJson.ts"
import { type Fields, isObject, type JsonObject, parseJson } from "../../domain/json/Json.ts"
import { isLonger } from "../../domain/json/TextSize.ts"
import { unknownField } from "../../domain/NearestName.ts"
import { dedupKeyOf } from "../../domain/records/Command.ts"
import type { PreparedEvent } from "../../domain/records/EventBatch.ts"
import { finish, type Sliced } from "../../domain/Slices.ts"
import { currentTime, parseTimestamp } from "../../domain/Timestamp.ts"
import type { PreparedPayload } from "../../domain/traces/Payload.ts"
import { type ByteBudget, OffloadedValues, withoutLargeMembers } from "./LargeValues.ts"

export interface PrepareLimits {
  /** Bytes of the item as sent, in RFC 8785 form. */
  readonly eventBytesMax: number
  /** Bytes of `metadata` in RFC 8785 form that stay in the event. */
  readonly metadataBytesMax: number
  /** Characters of `action`. */
  readonly actionLengthMax: number
}

export const defaultPrepareLimits: PrepareLimits = {
  eventBytesMax: EVENT_BYTES_MAX,
  metadataBytesMax: METADATA_BYTES_MAX,
  actionLengthMax: ACTION_LENGTH_MAX
}

export interface PrepareOptions {
  /** Place in the request, from 0. */
  readonly index: number
  /** `batch` fills in `actor.type` and `outcome` where they are missing, `single` requires them. */
  readonly mode: "single" | "batch"
  readonly tenantId: string
  /** Canonical microsecond form; the timestamp of an event without one. */
  readonly acceptedAt: string
  /** Keeps fingerprints from being computed by others. */
  readonly secret: string
  /** What makes the request repeatable; generated ids are derived from it and the index. */
  readonly idempotencyKey?: string
  /** The service's own event: only these may have an action that starts with `alk.`. */
  readonly isOwn?: true
  /** Actions may have any printable name. */
  readonly anyAction?: boolean
  readonly limits?: PrepareLimits
  /** What is left for values of the request; without it, metadata has to stay in the event. */
  readonly room?: ByteBudget
}

export type PrepareErrorCode =
  | "missing_field"
  | "invalid_value"
  | "invalid_action"
  | "invalid_timestamp"
  | "unstorable_value"
  | "metadata_too_large"
  | "payload_too_large"
  | "event_too_large"

export interface PrepareError {
  readonly code: PrepareErrorCode
  /** Begins with the path of the field. */
  readonly message: string
}

export type Prepared =
  | {
      readonly ok: PreparedEvent
      /** Paths of unknown fields, which are not stored; WARNINGS_MAX at most. */
      readonly warnings: ReadonlyArray<string>
      readonly apart?: MetadataApart
    }
  | { readonly error: PrepareError }

/** What of metadata is stored apart. */
export interface MetadataApart {
  /** Paths of what has left. */
  readonly fields: ReadonlyArray<string>
  readonly payloads: ReadonlyArray<PreparedPayload>
}

/** Warnings of one event; further unknown fields are not named. */
export const WARNINGS_MAX = 20
/** Characters of an unknown field's path that a warning repeats. */
export const WARNING_LENGTH_MAX = 128

/**
 * Hex digits of a fingerprint, 16 bytes: of what is stored of an item, however it was written. A time of
 * acceptance is no part of it: a retry has another one.
 */
export const FINGERPRINT_LENGTH = 32

/** Thrown where a field is refused, caught where the item is prepared. */
export class Refusal extends Error {
  readonly code: PrepareErrorCode

  constructor(code: PrepareErrorCode, message: string) {
    super(message)
    this.code = code
  }
}

export const refuse = (code: PrepareErrorCode, path: string, reason: string): never => {
  throw new Refusal(code, `${path}: ${reason}`)
}

/** The member's value; null is absent. */
export const memberOf = (object: Fields, name: string): unknown => object[name] ?? undefined

const requireObject = (item: Fields, name: string, example: string): Fields => {
  const value = memberOf(item, name)
  if (value === undefined) return refuse("missing_field", name, `required; send ${example}`)
  return isObject(value) ? value : refuse("invalid_value", name, `must be an object, ${example}`)
}

/** What an id may be. */
interface IdForm {
  readonly lengthMax: number
  readonly isOne: (text: string) => boolean
}

const clientId: IdForm = { lengthMax: ID_LENGTH_MAX, isOne: isClientId }
const partyId: IdForm = { lengthMax: PARTY_ID_LENGTH_MAX, isOne: isPartyId }

const described = ({ lengthMax }: IdForm): string =>
  `a string of 1 to ${lengthMax} characters without control characters`

export const checkId = (value: unknown, path: string, form = clientId): string =>
  typeof value === "string" && form.isOne(value)
    ? value
    : refuse("invalid_value", path, `must be ${described(form)}`)

export const requireId = (object: Fields, name: string, path: string, form = clientId): string => {
  const value = memberOf(object, name)
  return value === undefined
    ? refuse("missing_field", path, `required; send ${described(form)}`)
    : checkId(value, path, form)
}

export const optionalText = (
  object: Fields,
  name: string,
  path: string,
  lengthMax: number
): string | undefined => {
  const value = memberOf(object, name)
  if (value === undefined) return undefined
  if (typeof value === "string" && isText(value, lengthMax)) return value
  return refuse("invalid_value", path, `must be a string of at most ${lengthMax} characters`)
}

const ACTOR_TYPES = ["human", "agent", "system"]
const OUTCOMES = ["success", "failure", "error"]

/** One of the values; `fallback` where it is missing, refused where there is no fallback. */
export const oneOf = (
  value: unknown,
  path: string,
  values: ReadonlyArray<string>,
  fallback: string | undefined
): string => {
  if (value === undefined) {
    return fallback ?? refuse("missing_field", path, `required; send one of ${values.join(", ")}`)
  }
  return typeof value === "string" && values.includes(value)
    ? value
    : refuse("invalid_value", path, `must be one of ${values.join(", ")}`)
}

/** What is wrong with an action of any name. */
const ofAnyName = (value: unknown): string | undefined =>
  typeof value === "string"
  // Before the form is tried: a character takes one or two UTF-16 units.
  && value.length <= 2 * ANY_ACTION_LENGTH_MAX
  && ANY_ACTION_FORM.test(value)
    ? undefined
    : `must be a string of 1 to ${ANY_ACTION_LENGTH_MAX} printable characters`

/** What is wrong with an action of the form noun.verb. */
const ofDottedName = (value: unknown, lengthMax: number): string | undefined =>
  typeof value === "string" && value.length <= lengthMax && ACTION_FORM.test(value)
    ? undefined
    : "must be two or more segments of ASCII letters, digits, _ and - joined by dots, like "
      + `document.read, at most ${lengthMax} characters; actions=any takes any printable name`

const checkAction = (value: unknown, options: PrepareOptions, lengthMax: number): string => {
  if (value === undefined) {
    return refuse("missing_field", "action", "required; send a name like document.read")
  }
  const problem = options.anyAction === true ? ofAnyName(value) : ofDottedName(value, lengthMax)
  if (typeof value !== "string" || problem !== undefined) {
    return refuse("invalid_action", "action", problem ?? "must be a string")
  }
  return options.isOwn !== true && value.startsWith(RESERVED_ACTION_PREFIX)
    ? refuse("invalid_action", "action", "names that start with alk. are reserved; choose another")
    : value
}

/** A time as it was sent, in canonical form. */
export const instantOf = (item: Fields, name: string): string | undefined => {
  const value = memberOf(item, name)
  if (value === undefined) return undefined
  return (
    (typeof value === "string" ? parseTimestamp(value) : undefined)
    ?? refuse(
      "invalid_timestamp",
      name,
      "must be an existing RFC 3339 date-time of the years 1970 to 2261, "
        + "like 2026-01-31T12:00:00.123456Z"
    )
  )
}

/** RFC 8785 text of an object of bounded size. */
export function* objectText(
  item: Fields,
  name: "metadata" | "payload",
  bytesMax: number
): Sliced<string | undefined> {
  const value = memberOf(item, name)
  if (value === undefined) return undefined
  if (!isObject(value)) return refuse("invalid_value", name, "must be an object")
  const text = yield* canonicalInSteps(value as JsonObject)
  return isLonger(text, bytesMax)
    ? refuse(`${name}_too_large`, name, tooLarge(text, bytesMax))
    : text
}

interface CheckedMetadata {
  /** As it is stored. */
  readonly text: string | undefined
  /** As it was sent. */
  readonly whole: string | undefined
  readonly apart?: MetadataApart
}

const NO_ROOM = "its large members have no room in this request; send it in another one"

/** The metadata, whose largest members leave it where there is no room for all of them. */
function* checkMetadata(
  item: Fields,
  { metadataBytesMax }: PrepareLimits,
  room: ByteBudget | undefined
): Sliced<CheckedMetadata> {
  const sentMax = room === undefined ? 0 : METADATA_SENT_BYTES_MAX
  const whole = yield* objectText(item, "metadata", Math.max(metadataBytesMax, sentMax))
  if (whole === undefined || !isLonger(whole, metadataBytesMax)) return { text: whole, whole }
  const values = new OffloadedValues(room)
  const metadata = item["metadata"] as JsonObject
  const cut = yield* withoutLargeMembers(metadata, whole, metadataBytesMax, values)
  if (cut === undefined) {
    return refuse("metadata_too_large", "metadata", tooLarge(whole, metadataBytesMax))
  }
  if (values.truncated > 0) return refuse("metadata_too_large", "metadata", NO_ROOM)
  const fields = cut.moved?.map((name) => shownPath(`metadata.${name}`)) ?? ["metadata"]
  const payloads = (yield* values.payloads()) ?? []
  return { text: cut.text, whole, apart: { fields, payloads } }
}

export const tooLarge = (text: string, bytesMax: number): string =>
  `${Buffer.byteLength(text)} bytes in canonical form; send at most ${bytesMax}`

const ITEM_FIELDS = ["id", "timestamp", "actor", "action", "resource", "outcome", "metadata"]
const ACTOR_FIELDS = ["id", "type", "email"]
const RESOURCE_FIELDS = ["id", "type", "name"]

export const shownPath = (path: string): string =>
  path.length > WARNING_LENGTH_MAX ? `${path.slice(0, WARNING_LENGTH_MAX)}…` : path

/** Refuse a member that is not known, with the name that was probably meant. */
export const refuseUnknown = (object: Fields, known: ReadonlyArray<string>, what: string): void => {
  for (const key in object) {
    if (known.includes(key)) continue
    refuse("invalid_value", shownPath(key === "" ? '""' : key), unknownField(key, known, what))
  }
}

const addWarnings = (
  warnings: Array<string>,
  object: Fields,
  known: ReadonlyArray<string>,
  prefix: string
): void => {
  for (const key in object) {
    if (known.includes(key)) continue
    if (warnings.length === WARNINGS_MAX) return
    warnings.push(shownPath(prefix + key))
  }
}

/** A checked item: the parts as sent, and the texts that are stored. */
interface Checked {
  readonly item: Fields
  readonly actor: Fields
  readonly resource: Fields
  readonly texts: CanonicalFields
  readonly id: string
  readonly metadata: CheckedMetadata
  readonly warnings: ReadonlyArray<string>
}

/** What every id of a repeatable request is derived from; the index in the request comes last. */
export const idParts = (tenantId: string, idempotencyKey: string): ReadonlyArray<string> => [
  "alk-event",
  tenantId,
  idempotencyKey
]

const generatedId = ({ idempotencyKey, index, tenantId }: PrepareOptions): string =>
  idempotencyKey === undefined
    ? uuidv7()
    : derivedUuid(...idParts(tenantId, idempotencyKey), String(index))

const quoteIfPresent = (text: string | undefined): string | undefined =>
  text === undefined ? undefined : quote(text)

function* check(item: Fields, options: PrepareOptions, limits: PrepareLimits): Sliced<Checked> {
  const isBatch = options.mode === "batch"
  const given = memberOf(item, "id")
  const id = given === undefined ? generatedId(options) : checkId(given, "id")
  const timestamp = instantOf(item, "timestamp") ?? options.acceptedAt
  const actor = requireObject(item, "actor", '{"id": …, "type": …}')
  const actorId = requireId(actor, "id", "actor.id", partyId)
  const email = optionalText(actor, "email", "actor.email", EMAIL_LENGTH_MAX)
  const defaultType = email === undefined ? "system" : "human"
  const actorType = oneOf(
    memberOf(actor, "type"),
    "actor.type",
    ACTOR_TYPES,
    isBatch ? defaultType : undefined
  )
  const action = checkAction(memberOf(item, "action"), options, limits.actionLengthMax)
  const resource = requireObject(item, "resource", '{"id": …, "type": …}')
  const resourceId = requireId(resource, "id", "resource.id", partyId)
  const resourceType = requireId(resource, "type", "resource.type")
  const name = optionalText(resource, "name", "resource.name", NAME_LENGTH_MAX)
  const outcome = oneOf(
    memberOf(item, "outcome"),
    "outcome",
    OUTCOMES,
    isBatch ? "success" : undefined
  )
  const metadata = yield* checkMetadata(item, limits, options.room)
  const warnings: Array<string> = []
  addWarnings(warnings, item, ITEM_FIELDS, "")
  addWarnings(warnings, actor, ACTOR_FIELDS, "actor.")
  addWarnings(warnings, resource, RESOURCE_FIELDS, "resource.")
  return {
    item,
    actor,
    resource,
    texts: {
      id: quote(id),
      timestamp: `"${timestamp}"`,
      actorId: quote(actorId),
      actorType: `"${actorType}"`,
      actorEmail: quoteIfPresent(email),
      action: quote(action),
      resourceId: quote(resourceId),
      resourceType: quote(resourceType),
      resourceName: quoteIfPresent(name),
      outcome: `"${outcome}"`,
      metadata: metadata.text
    },
    id,
    metadata,
    warnings
  }
}

/** A member as it was sent, if it was: the stored text may be a default. Null was not sent. */
const sentMember = (object: Fields, name: string, text: string | undefined): string =>
  memberOf(object, name) === undefined ? "" : `,"${name}":${text}`

/** The members that are not null. */
export const withoutNulls = (object: Fields): Fields =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null))

/**
 * RFC 8785 text of the item as it was sent, without what is null and so absent, and without what has left
 * its metadata: what its size is. Put together from the texts that are there already; unknown fields have
 * none, so they take the long way.
 */
function* sentText({ actor, item, metadata, resource, texts, warnings }: Checked): Sliced<string> {
  if (warnings.length > 0) {
    const parts = { actor: withoutNulls(actor), resource: withoutNulls(resource) }
    const left = metadata.apart === undefined ? {} : { metadata: parseJson(metadata.text!) }
    return yield* canonicalInSteps({ ...withoutNulls(item), ...parts, ...left } as JsonObject)
  }
  const actorMembers =
    sentMember(actor, "email", texts.actorEmail)
    + sentMember(actor, "id", texts.actorId)
    + sentMember(actor, "type", texts.actorType)
  const resourceMembers =
    sentMember(resource, "id", texts.resourceId)
    + sentMember(resource, "name", texts.resourceName)
    + sentMember(resource, "type", texts.resourceType)
  const { timestamp } = item
  return (
    `{"action":${texts.action},"actor":{${actorMembers.slice(1)}}`
    + sentMember(item, "id", texts.id)
    + sentMember(item, "metadata", texts.metadata)
    + sentMember(item, "outcome", texts.outcome)
    + `,"resource":{${resourceMembers.slice(1)}}`
    + sentMember(item, "timestamp", typeof timestamp === "string" ? quote(timestamp) : undefined)
    + "}"
  )
}

type Writable<A> = { -readonly [K in keyof A]: A[K] }

function* preparedOf(
  checked: Checked,
  options: PrepareOptions,
  limits: PrepareLimits
): Sliced<Prepared> {
  const { id, item, metadata, texts, warnings } = checked
  const { index, secret, tenantId } = options
  const sent = yield* sentText(checked)
  if (isLonger(sent, limits.eventBytesMax)) {
    refuse("event_too_large", "event", tooLarge(sent, limits.eventBytesMax))
  }
  const details = detailsText(texts)
  const salt = details === undefined ? undefined : randomHex()
  const hashOfDetails =
    details === undefined || salt === undefined ? undefined : detailsHash(salt, details)
  const prepared: Writable<PreparedEvent> = {
    index,
    id,
    body: flat(bodyText(texts)),
    contentHash: contentHash(coreText(texts, hashOfDetails))
  }
  if (salt !== undefined && hashOfDetails !== undefined) {
    prepared.detailsSalt = salt
    prepared.detailsHash = hashOfDetails
  }
  if (memberOf(item, "id") !== undefined) {
    prepared.dedupKey = dedupKeyOf(tenantId, id)
    const isTimed = memberOf(item, "timestamp") !== undefined
    const { apart, whole } = metadata
    const timestamp = isTimed ? texts.timestamp : '""'
    const same =
      isTimed && apart === undefined
        ? prepared.body
        : bodyText({ ...texts, timestamp, metadata: whole })
    prepared.fingerprint = hash("sha256", secret + same, "hex").slice(0, FINGERPRINT_LENGTH)
  }
  const { apart } = metadata
  return { ok: prepared, warnings, ...(apart === undefined ? {} : { apart }) }
}

/** What was thrown while an item was prepared, as its error; `what` names the item. */
export const prepareError = (error: unknown, what: string): { readonly error: PrepareError } => {
  if (error instanceof Refusal) return { error: { code: error.code, message: error.message } }
  if (!(error instanceof NotCanonicalizable)) throw error
  return { error: { code: "unstorable_value", message: `${what}: ${error.message}` } }
}

/**
 * Check one item and make it ready for the sequencer. The first thing that is wrong is the error;
 * what is not wrong but not stored either is a warning.
 */
export function* prepareInSteps(value: unknown, options: PrepareOptions): Sliced<Prepared> {
  const limits = options.limits ?? defaultPrepareLimits
  try {
    if (!isObject(value)) return refuse("invalid_value", "event", "must be a JSON object")
    return yield* preparedOf(yield* check(value, options, limits), options, limits)
  } catch (error) {
    return prepareError(error, "event")
  }
}

/** The same at once. */
export const prepareItem = (value: unknown, options: PrepareOptions): Prepared =>
  finish(prepareInSteps(value, options))

/** An event of the service's own. Throws a plain error if it is not valid. */
export const prepareOwnEvent = (
  event: Readonly<Record<string, unknown>>,
  options: Omit<PrepareOptions, "mode" | "acceptedAt">
): PreparedEvent => {
  const prepared = prepareItem(
    { ...event, outcome: "success" },
    { ...options, mode: "single", acceptedAt: currentTime() }
  )
  if ("error" in prepared) throw new Error(`an own event is invalid: ${prepared.error.message}`)
  return prepared.ok
}
