/**
 * Requests and answers of the audit API as the OpenAPI document shows them. What is stored is a
 * schema of the domain, here with an example or without what is not shown.
 */
import { Schema, Struct } from "effect"
import { exampleEvent } from "../../contracts/ExampleEvent.ts"
import { AuditEvent, AuditEventBatchItem, AuditEventInput } from "../../domain/events/AuditEvent.ts"
import * as Command from "../../domain/records/Command.ts"
import * as Stored from "../../domain/records/Receipt.ts"
import * as Registry from "../../domain/registry/RegistryEntry.ts"
import {
  Break,
  Head,
  Scheme,
  Sequence,
  TenantReport,
  Timestamp
} from "../../verify/VerifyReport.ts"
import { SUPPORTED_YEARS } from "../messages/QueryParameters.ts"
import { integerInput, mustBe, optionalInput, textInput } from "./Bodies.ts"

/** Characters of a tenant's name or of a label at most. */
const LABEL_LENGTH_MAX = 256

const text = (description: string) => Schema.String.annotate({ description })
const optional = Schema.optionalKey

export { AskedSequence, Sequence, Timestamp } from "../../verify/VerifyReport.ts"

/** A time as it is sent. */
export const TimeInput = Schema.String.check(
  Schema.isPattern(new RegExp(SUPPORTED_YEARS, "u"))
).annotate({
  description: "RFC 3339, of the years 1970 to 2261; kept to the microsecond.",
  format: "date-time"
})

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** A SHA-256 in words of its own. The document shows patterns with the flag `u` only. */
export const hashOf = (description: string) =>
  Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/u)).annotate({ description })

export const Hash = hashOf("SHA-256, 64 lower-case hex digits.")

/** The domain's stored event, with an example whose hashes are true. */
export const StoredEvent = AuditEvent.annotate({ examples: [exampleEvent] })

export const Warning = Command.ItemWarning.annotate({ identifier: "Warning" })

/** The answer to one event: stored, and what was sent but is no part of an event. */
export const CreatedEvent = Schema.Struct({
  ...AuditEvent.fields,
  warnings: optional(Schema.Array(Warning))
}).annotate({
  identifier: "CreatedAuditEvent",
  description: "An audit event as it is stored.",
  examples: [exampleEvent]
})

/** The domain's event as it is sent alone, with an example. */
export const EventInput = AuditEventInput.annotate({
  examples: [
    {
      actor: { id: "user_42", type: "human", email: "ada@example.com" },
      action: "document.viewed",
      resource: { id: "doc_7", type: "document", name: "Plan" },
      outcome: "success",
      metadata: { ip: "203.0.113.9" }
    }
  ]
})

const batchEvents = Schema.Array(AuditEventBatchItem).check(
  Schema.isMinLength(1),
  Schema.isMaxLength(Command.BATCH_ITEMS_MAX)
)

export const BatchArray = batchEvents.annotate({
  identifier: "BatchArray",
  description: "The events of a batch without the object around them, as log shippers send them."
})

export const BatchInput = Schema.Struct({ events: batchEvents }).annotate({
  identifier: "BatchInput",
  examples: [
    {
      events: [
        {
          id: "evt_1",
          actor: { id: "user_42", email: "ada@example.com" },
          action: "document.viewed",
          resource: { id: "doc_7", type: "document" }
        }
      ]
    }
  ]
})

/** What every list says of its page. */
export const pageFields = {
  total: Count.annotate({ description: "Entries in all, exact." }),
  page: Count,
  page_size: Count
}

export const EventList = Schema.Struct({
  events: Schema.Array(StoredEvent).annotate({ description: "Empty if `fields` are given." }),
  rows: optional(
    Schema.Array(Schema.Record(Schema.String, Schema.Json)).annotate({
      description: "With `fields` alone: these of each event, null where it lacks one."
    })
  ),
  total: Count.annotate({ description: "Events that match the filter, exact." }),
  page: Count,
  page_size: Count
}).annotate({
  identifier: "EventListResponse",
  description: "One page of events.",
  examples: [
    { events: [exampleEvent], total: 1, page: 1, page_size: 50 },
    {
      events: [],
      rows: [{ id: "evt_1", "metadata.amount": 12.5 }],
      total: 1,
      page: 1,
      page_size: 50
    }
  ]
})

export const exampleReceiptId = "rcp_019aa6c3f2a07c3e9b0f4a5d6e7f80910a1b2c3d4e5f60718293"
const { created_at, hash } = exampleEvent
const exampleHead = { sequence_number: 1, hash, created_at }

const ItemErrorCode = Schema.Literals([
  "missing_field",
  "invalid_value",
  "invalid_action",
  "invalid_timestamp",
  "unstorable_value",
  "metadata_too_large",
  "event_too_large",
  "invalid_json",
  "id_conflict"
])

export const ItemError = Command.ItemError.mapFields(
  Struct.assign({ code: ItemErrorCode })
).annotate({
  identifier: "ItemError"
})

export const Duplicate = Stored.Duplicate.annotate({
  identifier: "Duplicate",
  description: "An item whose id and content are stored already, and where."
})

const ReceiptId = text("Names the request: `GET /v1/receipts/{id}`.")

const counts = {
  ...Struct.pick(Stored.Receipt.fields, ["accepted", "rejected", "ids"]),
  errors: Schema.Array(ItemError)
}

export const BatchAccepted = Schema.Struct({
  receipt_id: ReceiptId,
  status: Schema.Literal("pending"),
  ...counts,
  warnings: optional(Schema.Array(Warning))
}).annotate({
  identifier: "BatchAccepted",
  description: "Written to the log; counts what passed validation. The receipt is final.",
  examples: [
    {
      receipt_id: exampleReceiptId,
      status: "pending",
      accepted: 1,
      rejected: 1,
      ids: ["evt_1"],
      errors: [
        {
          index: 1,
          code: "missing_field",
          message: 'actor: required; send {"id": …, "type": …}'
        }
      ]
    }
  ]
})

export const BatchResult = Schema.Struct({
  receipt_id: ReceiptId,
  status: Schema.Literal("committed"),
  ...counts,
  warnings: optional(Schema.Array(Warning)),
  duplicates: optional(Schema.Array(Duplicate)),
  first_sequence_number: optional(Sequence),
  last_sequence_number: optional(Sequence)
}).annotate({
  identifier: "BatchResult",
  description:
    "Durable, chained and visible to the list. Without sequence numbers nothing was appended.",
  examples: [
    {
      receipt_id: exampleReceiptId,
      status: "committed",
      accepted: 2,
      rejected: 0,
      ids: ["evt_1", "evt_2"],
      errors: [],
      duplicates: [{ index: 1, sequence_number: 7 }],
      first_sequence_number: 42,
      last_sequence_number: 42
    }
  ]
})

export const EventAccepted = Schema.Struct({
  receipt_id: ReceiptId,
  status: Schema.Literal("pending"),
  id: text("Id of the event, given or made."),
  warnings: optional(Schema.Array(Warning))
}).annotate({
  identifier: "EventAccepted",
  description: "Written to the log.",
  examples: [{ receipt_id: exampleReceiptId, status: "pending", id: "evt_1" }]
})

export const Receipt = Schema.Struct({
  receipt_id: ReceiptId,
  status: Schema.Literals(["pending", "committed", "failed"]),
  ...Struct.map(counts, optional),
  warnings: optional(Schema.Array(Warning)),
  duplicates: optional(Schema.Array(Duplicate)),
  ...Struct.pick(Stored.Receipt.fields, [
    "results",
    "first_sequence_number",
    "last_sequence_number",
    "committed_at",
    "head_hash",
    "error"
  ]),
  received_at: optional(Stored.Receipt.fields.received_at)
}).annotate({
  identifier: "Receipt",
  description:
    "`pending` until the events are durable, chained and visible to `GET /v1/events`; what is "
    + "known only then is absent before. `committed` and `failed` are final.",
  examples: [
    {
      receipt_id: exampleReceiptId,
      status: "committed",
      accepted: 1,
      rejected: 0,
      ids: [exampleEvent.id],
      errors: [],
      first_sequence_number: 1,
      last_sequence_number: 1,
      received_at: "2026-11-21T10:00:01.200000Z",
      committed_at: created_at,
      head_hash: hash
    },
    { receipt_id: exampleReceiptId, status: "pending", received_at: "2026-11-21T10:00:01.200000Z" }
  ]
})

const Amount = Schema.NullOr(Schema.Finite)

const Numbers = Schema.Struct({
  count: Count,
  sum: Amount,
  min: Amount,
  max: Amount,
  p50: Amount,
  p90: Amount,
  p95: Amount,
  p99: Amount
}).annotate({
  identifier: "EventNumbers",
  description:
    "What the numbers at the path of `measure` amount to; null for what no double holds. A percentile "
    + "between two numbers lies between them in proportion, as that of PERCENTILE.INC."
})

const statsGroup = {
  key: Schema.String.annotate({ description: "The value of the first field." }),
  keys: optional(
    Schema.Array(Schema.String).annotate({ description: "By two fields: the value of each." })
  ),
  count: Count,
  numbers: optional(Numbers)
}

export const Stats = Schema.Struct({
  groups: Schema.Array(Schema.Struct(statsGroup)).annotate({
    description:
      "The largest groups, by count. An event with a list in metadata is in the group of each value."
  }),
  other: Count.annotate({ description: "Events in groups beyond `limit`." }),
  buckets: optional(
    Schema.Array(Schema.Struct({ start: Timestamp, ...statsGroup })).annotate({
      description: "Only with `interval`; ascending, without empty ones."
    })
  ),
  missing: Count.annotate({
    description: "Events without a value at a path of metadata that they are grouped by."
  }),
  numbers: optional(Numbers.annotate({ description: "Of all matching events, with `measure`." })),
  total: Count
}).annotate({
  identifier: "EventStats",
  description: "Events counted by their fields.",
  examples: [{ groups: [{ key: "document.read", count: 41 }], other: 1, missing: 0, total: 42 }]
})

const Facet = Schema.Struct({
  field: Schema.String.annotate({ description: "The field, or `metadata.` and the path." }),
  groups: Schema.Array(Schema.Struct({ key: Schema.String, count: Count })).annotate({
    description:
      "The values that most events have, by count. An event with a list in metadata has each value in "
      + "it once. A filter by the value finds so many events."
  }),
  values: Count.annotate({ description: "Different values, those beyond `limit` among them." }),
  missing: Count.annotate({ description: "Events without a value." })
})

export const Facets = Schema.Struct({
  facets: Schema.Array(Facet),
  total: Count
}).annotate({
  identifier: "EventFacets",
  description: "The values that matching events have, field by field.",
  examples: [
    {
      facets: [
        {
          field: "outcome",
          groups: [
            { key: "success", count: 41 },
            { key: "failure", count: 1 }
          ],
          values: 2,
          missing: 0
        }
      ],
      total: 42
    }
  ]
})

export const Chain = Schema.Struct({
  scheme: Scheme,
  tenant_id: Schema.String,
  length: Count,
  genesis_hash: Hash,
  head: Schema.NullOr(Head).annotate({ description: "null while the chain is empty." })
}).annotate({
  identifier: "Chain",
  description: "The tenant's chain as the log has it.",
  examples: [
    {
      scheme: "alk-chain-v1",
      tenant_id: exampleEvent.tenant_id,
      length: 1,
      genesis_hash: exampleEvent.prev_hash,
      head: exampleHead
    }
  ]
})

export const ChainLink = AuditEvent.mapFields(
  Struct.pick(["sequence_number", "created_at", "content_hash", "prev_hash", "hash"])
).annotate({ identifier: "ChainLink", description: "The place of an event in the chain." })

export const VerifyReport = TenantReport.annotate({
  identifier: "VerifyReport",
  description: "A finished check, whatever it found.",
  examples: [
    {
      valid: true,
      status: "valid",
      tenant_id: exampleEvent.tenant_id,
      scheme: "alk-chain-v1",
      bounds: {
        from: "1970-01-01T00:00:00.000000Z",
        to: "2261-12-31T23:59:59.999999Z",
        from_sequence: null,
        to_sequence: null
      },
      events_checked: 1,
      events_in_bounds: 1,
      first_sequence_number: 1,
      last_sequence_number: 1,
      head: exampleHead,
      erased_events: 0,
      assurance: "self_attested",
      breaks: [],
      breaks_total: 0,
      verified_at: "2026-11-21T12:00:00.000000Z",
      duration_ms: 3
    }
  ]
})

export const EventVerifyReport = Schema.Struct({
  valid: Schema.Boolean,
  status: Schema.Literals(["valid", "broken"]),
  tenant_id: Schema.String,
  scheme: Schema.Literal("alk-chain-v1"),
  event_id: Schema.String,
  sequence_number: Sequence,
  content: Schema.Struct({
    valid: Schema.Boolean.annotate({ description: "The stored event hashes to `content_hash`." }),
    content_hash: Hash
  }),
  link: Schema.Struct({
    valid: Schema.Boolean.annotate({
      description: "`hash` recomputes, and `prev_hash` is the hash of the predecessor."
    }),
    prev_hash: Hash,
    hash: Hash,
    predecessor: Schema.NullOr(Schema.Struct({ sequence_number: Sequence, hash: Hash })).annotate({
      description: "null for the first event of the chain."
    })
  }),
  breaks: Schema.Array(Break),
  verified_at: Timestamp
}).annotate({ identifier: "EventVerifyReport" })

/** Seconds that a key lasts at most, if it expires: 10 years with their leap days. */
export const KEY_LASTS_MAX = 3_653 * 86_400

const keyPrefixes = ["alk_live_", "svc_live_"] as const

/** Names for people, of tenants, keys and share links. */
export const label = textInput(LABEL_LENGTH_MAX, `1 to ${LABEL_LENGTH_MAX} characters.`)

export const TenantInput = Schema.Struct({
  id: mustBe(
    "of the form [a-z0-9][a-z0-9_-]{0,62}",
    Schema.String.check(Schema.isPattern(/^[a-z0-9][a-z0-9_-]{0,62}$/u))
  ),
  name: optionalInput(label)
}).annotate({ identifier: "TenantInput", examples: [{ id: "initech", name: "Initech Inc." }] })

export const Tenant = Registry.Tenant

export const TenantList = Schema.Struct({
  tenants: Schema.Array(Tenant),
  ...pageFields
}).annotate({ identifier: "TenantList" })

export const KeyInput = Schema.Struct({
  scopes: mustBe(
    `a list with one or more of ${Registry.scopes.join(", ")}`,
    Schema.Array(Schema.Literals(Registry.scopes)).check(Schema.isMinLength(1))
  ),
  prefix: optionalInput(
    mustBe(`one of ${keyPrefixes.join(", ")}`, Schema.Literals(keyPrefixes))
  ).annotateKey({
    description: "If missing: `alk_live_`."
  }),
  label: optionalInput(label),
  expires_in: optionalInput(integerInput(KEY_LASTS_MAX)).annotateKey({
    description: "Seconds until the key expires; never unless given."
  }),
  expires_at: optionalInput(
    mustBe("an RFC 3339 date-time to come, at most 10 years from now", TimeInput)
  ).annotateKey({ description: "In place of `expires_in`." })
}).annotate({
  identifier: "ApiKeyInput",
  examples: [{ scopes: ["read", "write"], label: "ingest of the web shop", expires_in: 7_776_000 }]
})

export const CreatedKey = Schema.Struct({
  key: text("The key itself: shown once, kept nowhere."),
  ...Struct.omit(Registry.ApiKey.fields, ["hash", "revoked_at"])
}).annotate({ identifier: "CreatedApiKey" })

/** Its hash is not shown. */
export const ApiKey = Schema.Struct({
  ...Struct.omit(Registry.ApiKey.fields, ["hash"]),
  last_used_at: optional(Timestamp).annotateKey({
    description:
      "A use of the key, or of a session that somebody has signed in with it. The last one is at most "
      + "an hour later: a use is written once an hour. Absent: none is known."
  })
}).annotate({ identifier: "ApiKey" })

export const KeyList = Schema.Struct({ keys: Schema.Array(ApiKey), ...pageFields }).annotate({
  identifier: "ApiKeyList"
})
