/**
 * What verification takes and shows beyond the report, as the OpenAPI document shows it.
 * Documentation of shapes only.
 */
import { Schema } from "effect"
import { HttpApiSchema } from "effect/http-api"
import { exampleEvent } from "../../contracts/ExampleEvent.ts"
import {
  EventVerifyReport as EventReport,
  Hash,
  Receipt,
  Sequence,
  VerifyReport
} from "../contract/ContractSchemas.ts"
import { NDJSON_TYPE } from "../messages/MediaTypes.ts"

/** Events that one request may bring along. */
export const KEPT_EVENTS_MAX = 1_000
/** Characters of a checkpoint that somebody kept; ours have some hundreds. */
export const KEPT_NOTE_LENGTH_MAX = 65_536

const optional = Schema.optionalKey
const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

export const Inclusion = Schema.Struct({
  valid: Schema.Boolean.annotate({ description: "The proof leads to the signed root." }),
  tree_size: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)),
  leaf_index: Count.annotate({ description: "`sequence_number` - 1." }),
  root_hash: Hash,
  proof: Schema.Array(Hash).annotate({ description: "Siblings from the leaf upwards (RFC 9162)." }),
  checkpoint: Schema.String.annotate({ description: "The signed note that the root stands in." })
}).annotate({ identifier: "EventInclusion" })

export const EventVerifyReport = Schema.Struct({
  ...EventReport.fields,
  inclusion: optional(Inclusion).annotateKey({
    description: "Only once a signed checkpoint covers the event."
  })
}).annotate({ identifier: "EventVerifyReport" })

/** One line of a long check, before the report. */
export const VerifyProgressLine = Schema.Struct({
  events_checked: Count,
  up_to_sequence: Sequence,
  of: Count.annotate({ description: "The last sequence of the span." }),
  hash: optional(Hash).annotateKey({
    description: "Recomputed hash of `up_to_sequence`: an anchor for whoever resumes behind it."
  }),
  breaks_total: Count
}).annotate({ identifier: "VerifyProgress" })

/** Progress about once a second, the report as the last line. */
export const VerifyLines = Schema.Union([VerifyProgressLine, VerifyReport])
  .annotate({
    description:
      "One line of progress about every second; the schema is that of one line. The last line is "
      + "the VerifyReport."
  })
  .pipe(HttpApiSchema.asJson({ contentType: NDJSON_TYPE }))

const KeptTime = Schema.String.check(
  Schema.isPattern(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/u)
).annotate({ format: "date-time" })

/** A stored event as far as it can be compared: anything else in it is a break, not a bad request. */
const KeptEvent = Schema.Struct({
  id: Schema.String,
  timestamp: KeptTime,
  actor: Schema.Struct({
    id: Schema.String,
    type: Schema.String,
    email: optional(Schema.String)
  }),
  action: Schema.String,
  resource: Schema.Struct({
    id: Schema.String,
    type: Schema.String,
    name: optional(Schema.String)
  }),
  outcome: Schema.String,
  metadata: optional(Schema.Record(Schema.String, Schema.Unknown)),
  tenant_id: Schema.String,
  sequence_number: Sequence,
  created_at: KeptTime,
  prev_hash: Hash,
  details_salt: optional(Schema.String),
  details_hash: optional(Schema.String),
  content_hash: Hash,
  hash: Hash,
  erased_at: optional(KeptTime)
}).annotate({
  identifier: "KeptEvent",
  description: "An AuditEvent as it was shown: what was changed in it is a break."
})

const KeptEvents = Schema.Struct({
  events: Schema.Array(KeptEvent)
    .check(Schema.isMinLength(1), Schema.isMaxLength(KEPT_EVENTS_MAX))
    .annotateKey({ description: "Events as an answer, the stream or the topic once showed them." })
}).annotate({ identifier: "KeptEvents" })

const KeptReceipt = Schema.Struct({
  receipt: Schema.Struct({
    ...Receipt.fields,
    receipt_id: optional(Receipt.fields.receipt_id),
    ids: Schema.Array(Schema.String)
      .check(Schema.isMaxLength(KEPT_EVENTS_MAX))
      .annotateKey({ description: "Ids of the accepted items, as the receipt has them." }),
    status: Schema.Literal("committed")
  }).annotateKey({ description: "A committed receipt." })
}).annotate({ identifier: "KeptReceipt" })

const KeptCheckpoint = Schema.Struct({
  checkpoint: Schema.String.annotateKey({
    description: "A signed note, as `GET /v1/chain/checkpoints/latest` once gave it."
  })
}).annotate({ identifier: "KeptCheckpoint" })

/** Exactly one of the members. */
export const KeptInput = Schema.Union([KeptEvents, KeptReceipt, KeptCheckpoint]).annotate({
  identifier: "KeptInput",
  description: "Exactly one of `events`, `receipt` and `checkpoint`.",
  examples: [{ events: [exampleEvent] }]
})
