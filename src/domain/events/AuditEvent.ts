/**
 * The audit event: what a client may send, what is stored and shown, and the limits on both. The
 * schemas describe the contract; the hot path checks the same rules by hand in `Prepare`, and a
 * property test keeps the two together.
 */
import { Schema } from "effect"
import { hex16, sha256 } from "../Forms.ts"
import { CLIENT_ID_FORM, ID_LENGTH_MAX, PARTY_ID_FORM, PARTY_ID_LENGTH_MAX } from "../IdForms.ts"
import { NESTING_MAX } from "../json/Json.ts"
import { parseTimestamp } from "../Timestamp.ts"
import { actorTypes, outcomes } from "./EventEnums.ts"

export { NESTING_MAX } from "../json/Json.ts"
export { actorTypes, outcomes } from "./EventEnums.ts"

/** Bytes of an event as sent, in RFC 8785 form. */
export const EVENT_BYTES_MAX = 64 * 1024
/** Bytes of `metadata` in RFC 8785 form that stay in the event; the largest members of more leave it. */
export const METADATA_BYTES_MAX = 32 * 1024
/** Bytes of `metadata` in RFC 8785 form as sent. */
export const METADATA_SENT_BYTES_MAX = 1_048_576
/** Characters of `action`. */
export const ACTION_LENGTH_MAX = 128
/** Characters of `actor.email`: 64 before the @ and 255 after it (RFC 5321, section 4.5.3.1). */
export const EMAIL_LENGTH_MAX = 320
/** Characters of `resource.name`. */
export const NAME_LENGTH_MAX = 1_024

/** Actions that start so are the service's own. */
export const RESERVED_ACTION_PREFIX = "alk."

/** Dotted names, `document.read`; their length is limited apart from their form. */
export const ACTION_FORM = /^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)+$/u
/** Characters of an action that may have any name. */
export const ANY_ACTION_LENGTH_MAX = 256
/** Any printable name: whole Unicode characters, no control characters, not only space. */
export const ANY_ACTION_FORM =
  /^(?=.*\S)[^\u0000-\u001f\u007f-\u009f\u2028\u2029\ud800-\udfff]{1,256}$/u
/** Any text without unpaired surrogates and U+0000. */
const TEXT_FORM = /^[^\u0000\ud800-\udfff]*$/u

/** True for at most `lengthMax` whole Unicode characters without U+0000. */
export const isText = (text: string, lengthMax: number): boolean => {
  // A character takes one or two UTF-16 units, so only lengths in between need counting.
  if (text.length > 2 * lengthMax || !TEXT_FORM.test(text)) return false
  return text.length <= lengthMax || Array.from(text).length <= lengthMax
}

export const ActorType = Schema.Literals(actorTypes).annotate({
  description: "Who acted: a person, an agent on its own, or a system."
})
export type ActorType = typeof ActorType.Type

export const Outcome = Schema.Literals(outcomes).annotate({
  description: "success: it was done. failure: it was refused. error: it went wrong."
})
export type Outcome = typeof Outcome.Type

const idOf = (form: RegExp, lengthMax: number) => (description: string, example: string) =>
  Schema.String.check(
    Schema.isPattern(form, {
      expected: `1 to ${lengthMax} characters, no control characters`,
      // Said in the part of regular expressions that every language shares.
      toJsonSchema: () => ({
        minLength: 1,
        maxLength: lengthMax,
        pattern: "^[^\\x00-\\x1f\\x7f-\\x9f]*$"
      })
    })
  ).annotate({ description, examples: [example] })

const Id = idOf(CLIENT_ID_FORM, ID_LENGTH_MAX)
const PartyId = idOf(PARTY_ID_FORM, PARTY_ID_LENGTH_MAX)

const Text = (lengthMax: number, description: string, example: string) =>
  Schema.String.check(
    Schema.makeFilter((text: string) => isText(text, lengthMax), {
      expected: `at most ${lengthMax} characters`,
      toJsonSchema: () => ({ maxLength: lengthMax })
    })
  ).annotate({ description, examples: [example] })

const TimestampInput = Schema.String.check(
  Schema.makeFilter((text: string) => parseTimestamp(text) !== undefined, {
    expected: "an RFC 3339 date-time of the years 1970 to 2261",
    toJsonSchema: () => ({ format: "date-time" })
  })
).annotate({
  description:
    "When it happened, RFC 3339; an offset is converted to UTC, more than six fraction digits "
    + "are cut. Without it, the time of acceptance.",
  examples: ["2026-11-21T10:00:01.5+01:00"]
})

/** A point in time as it is stored and shown. */
const StoredTime = (description: string, example: string) =>
  Schema.String.check(
    Schema.isPattern(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/u, {
      expected: "YYYY-MM-DDTHH:MM:SS.ffffffZ"
    })
  ).annotate({ description, format: "date-time", examples: [example] })

const ActionInput = Schema.String.check(
  Schema.isPattern(ACTION_FORM, { expected: "dotted names, as in document.read" }),
  Schema.isMaxLength(ACTION_LENGTH_MAX),
  Schema.makeFilter((action: string) => !action.startsWith(RESERVED_ACTION_PREFIX), {
    expected: `no action that starts with ${RESERVED_ACTION_PREFIX}`,
    toJsonSchema: () => ({ not: { pattern: "^alk\\." } })
  })
).annotate({
  description:
    "What was done, as noun.verb: two or more segments of ASCII letters, digits, _ and -, joined "
    + `by dots; with \`actions=any\`, any 1 to ${ANY_ACTION_LENGTH_MAX} printable characters. Actions `
    + `that start with ${RESERVED_ACTION_PREFIX} are the service's own.`,
  examples: ["document.read"]
})

// How long an action may be is configurable, so its length is no part of the contract.
const StoredAction = Schema.String.check(
  Schema.isPattern(/^[^\u0000-\u001f\u007f-\u009f\ud800-\udfff]+$/u, {
    expected: "printable characters",
    toJsonSchema: () => ({ minLength: 1, pattern: "^[^\\x00-\\x1f\\x7f-\\x9f]*$" })
  })
).annotate({
  description:
    "What was done, as noun.verb unless any name was taken (`actions=any`). Actions that start with "
    + `${RESERVED_ACTION_PREFIX} are the service's own.`,
  examples: ["document.read"]
})

const actorId = PartyId("Who acted.", "user_1")
const actorEmail = Text(
  EMAIL_LENGTH_MAX,
  "The actor's e-mail address; can be erased.",
  "ann@example.com"
)
const resourceId = PartyId("What it was done to.", "doc_1")
const resourceType = Id("The kind of thing it was done to.", "document")
const resourceName = Text(NAME_LENGTH_MAX, "Its name for people; can be erased.", "Annual report")

/** A field that may be absent; `null` means the same. */
const optional = <S extends Schema.Constraint>(schema: S) =>
  Schema.optionalKey(Schema.NullOr(schema))

const MetadataInput = Schema.JsonObject.annotate({
  description:
    `Anything else, as a JSON object of at most ${METADATA_SENT_BYTES_MAX} bytes and ${NESTING_MAX} `
    + `levels; can be erased. Of more than ${METADATA_BYTES_MAX} bytes the largest members are kept `
    + "apart, and a reference replaces each (PayloadReference). Numbers that a double can't hold exactly are refused: send them as "
    + "strings.",
  examples: [{ ip: "192.0.2.1" }]
})

export const ActorInput = Schema.Struct({
  id: actorId,
  type: ActorType,
  email: optional(actorEmail)
}).annotate({ identifier: "ActorInput" })

export const BatchActorInput = Schema.Struct({
  ...ActorInput.fields,
  type: optional(ActorType).annotateKey({
    description: "Without it: human if the actor has an email, else system."
  })
}).annotate({ identifier: "BatchActorInput" })

export const ResourceInput = Schema.Struct({
  id: resourceId,
  type: resourceType,
  name: optional(resourceName)
}).annotate({ identifier: "ResourceInput" })

/** One event as `POST /v1/events` takes it. Fields that it doesn't name are not stored. */
export const AuditEventInput = Schema.Struct({
  id: optional(
    Id(
      "Names the event. Sending the same event under the same id again adds nothing; without it "
        + "the service makes a UUIDv7.",
      "evt-1"
    )
  ),
  timestamp: optional(TimestampInput),
  actor: ActorInput,
  action: ActionInput,
  resource: ResourceInput,
  outcome: Outcome,
  metadata: optional(MetadataInput)
}).annotate({ identifier: "AuditEventInput", description: "An audit event as it is sent." })
export type AuditEventInput = typeof AuditEventInput.Type

/** One event of a batch, where the actor's type and the outcome have defaults. */
export const AuditEventBatchItem = Schema.Struct({
  ...AuditEventInput.fields,
  actor: BatchActorInput,
  outcome: optional(Outcome).annotateKey({ description: "Without it: success." })
}).annotate({ identifier: "AuditEventBatchItem", description: "An audit event of a batch." })
export type AuditEventBatchItem = typeof AuditEventBatchItem.Type

export const Actor = Schema.Struct({
  id: actorId,
  type: ActorType,
  email: Schema.optionalKey(actorEmail)
}).annotate({ identifier: "Actor" })
export type Actor = typeof Actor.Type

export const Resource = Schema.Struct({
  id: resourceId,
  type: resourceType,
  name: Schema.optionalKey(resourceName)
}).annotate({ identifier: "Resource" })
export type Resource = typeof Resource.Type

/** A stored event, exactly as the API, the stream and the topic show it. */
export const AuditEvent = Schema.Struct({
  id: Id("Names the event within the tenant.", "evt-1"),
  timestamp: StoredTime("When it happened, UTC.", "2026-11-21T10:00:01.000001Z"),
  actor: Actor,
  action: StoredAction,
  resource: Resource,
  outcome: Outcome,
  metadata: Schema.optionalKey(
    Schema.JsonObject.annotate({
      description:
        "Anything else, as it was sent, but for large members that are kept apart: GET "
        + "/api/v1/payloads/{sha256} has what the `$ref` in their place names."
    })
  ),
  tenant_id: Schema.String.annotate({ description: "Whose chain it is in.", examples: ["acme"] }),
  sequence_number: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)).annotate({
    description: "Place in the tenant's chain, from 1 without gaps.",
    format: "int64",
    examples: [1]
  }),
  created_at: StoredTime(
    "When it was chained, UTC; never decreases.",
    "2026-11-21T12:00:00.000000Z"
  ),
  prev_hash: sha256("Hash of the event before it in the tenant's chain, 64 zeros for the first."),
  details_salt: Schema.optionalKey(
    hex16("Salt of details_hash; gone once the details are erased.")
  ),
  details_hash: Schema.optionalKey(
    sha256("SHA-256 over salt and details (actor.email, metadata, resource.name), if it has any.")
  ),
  content_hash: sha256("SHA-256 over everything else that was sent and details_hash."),
  hash: sha256("SHA-256 over content_hash, prev_hash, tenant, sequence and created_at."),
  erased_at: Schema.optionalKey(
    StoredTime("When the details were erased, UTC.", "2026-11-22T08:00:00.000000Z")
  )
}).annotate({ identifier: "AuditEvent", description: "An audit event as it is stored." })
export type AuditEvent = typeof AuditEvent.Type
