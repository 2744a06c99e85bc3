/**
 * What verification takes and shows beyond the report. The schemas of evidence that clients kept
 * are what reads it.
 */
import { Schema } from "effect"
import { HttpApiSchema } from "effect/http-api"
import { exampleEvent } from "../../contracts/ExampleEvent.ts"
import { parseTimestamp } from "../../domain/Timestamp.ts"
import { member, mustBe, optionalInput } from "../contract/Bodies.ts"
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
/** Characters of a checkpoint that a client kept; ours have some hundreds. */
export const KEPT_NOTE_LENGTH_MAX = 65_536

const optional = Schema.optionalKey
const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

export const Inclusion = Schema.Struct({
  valid: Schema.Boolean.annotate({ description: "The proof leads to the signed root." }),
  tree_size: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)),
  leaf_index: Count.annotate({ description: "`sequence_number` - 1." }),
  root_hash: Hash,
  proof: Schema.Array(Hash).annotate({ description: "Siblings from the leaf upwards (RFC 9162)." }),
  checkpoint: Schema.String.annotate({ description: "The signed note that has the root." })
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
  of: Count.annotate({ description: "The last sequence of the range." }),
  hash: optional(Hash).annotateKey({
    description: "Recomputed hash of `up_to_sequence`: where a later check can resume."
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

const Text = member("a string", Schema.String)

export const KeptSequence = mustBe("an integer from 1 on", Sequence)

export const KeptHash = Text.check(
  Schema.isPattern(/^[0-9a-f]{64}$/u, { expected: "64 lower-case hex digits" })
).annotate({ description: "SHA-256, 64 lower-case hex digits." })

const KeptTime = Text.check(
  Schema.makeFilter((text: string) => parseTimestamp(text) === text, {
    expected: "a time as answers show it, YYYY-MM-DDTHH:MM:SS.ffffffZ",
    toJsonSchema: () => ({ pattern: "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{6}Z$" })
  })
).annotate({ format: "date-time" })

/** At most as many items as a request may hold. */
export const keptList = <S extends Schema.Constraint>(item: S, itemsMin: number) => {
  const expected = `an array of ${itemsMin} to ${KEPT_EVENTS_MAX} items`
  return member(
    expected,
    Schema.Array(item).check(
      Schema.isMinLength(itemsMin, { expected }),
      Schema.isMaxLength(KEPT_EVENTS_MAX, { expected })
    )
  )
}

/** A stored event as far as it can be compared: anything else in it is a break, not a bad request. */
export const KeptEvent = Schema.Struct({
  sequence_number: KeptSequence,
  id: Text,
  timestamp: KeptTime,
  action: Text,
  outcome: Text,
  tenant_id: Text,
  created_at: KeptTime,
  prev_hash: KeptHash,
  content_hash: KeptHash,
  hash: KeptHash,
  actor: member("an object", Schema.Struct({ id: Text, type: Text, email: optional(Text) })),
  resource: member("an object", Schema.Struct({ id: Text, type: Text, name: optional(Text) })),
  metadata: optional(Schema.Record(Schema.String, Schema.Unknown)),
  details_salt: optional(Schema.String),
  details_hash: optional(Schema.String),
  erased_at: optional(KeptTime)
}).annotate({
  identifier: "KeptEvent",
  description: "An AuditEvent as it was shown: what was changed in it is a break."
})

export const KeptEvents = Schema.Struct({
  events: keptList(KeptEvent, 1).annotateKey({
    description: "Events as an answer, the stream or the topic once showed them."
  })
}).annotate({ identifier: "KeptEvents" })

const Indexed = Schema.Struct({
  index: mustBe("an integer from 0 on", Count)
})

/** What of a receipt is read: anything else in it is compared, whatever it is. */
export const ReceiptEvidence = Schema.Struct({
  status: mustBe(
    '"committed": no other one says anything of the chain',
    Schema.Literal("committed")
  ),
  ids: keptList(Schema.String, 0),
  duplicates: optionalInput(keptList(Indexed, 0)),
  errors: optionalInput(keptList(Indexed, 0))
})

const KeptReceipt = Schema.Struct({
  receipt: Schema.Struct({
    ...Receipt.fields,
    receipt_id: optional(Receipt.fields.receipt_id),
    ids: ReceiptEvidence.fields.ids.annotateKey({
      description: "Ids of the accepted items, as the receipt has them."
    }),
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
