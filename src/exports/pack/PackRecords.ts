/** The JSON files of an evidence pack as schemas; `schema/` in a pack is made from them. */
import { Schema } from "effect"
import { SCHEME } from "../../domain/chain/HashChain.ts"
import { AuditEvent } from "../../domain/events/AuditEvent.ts"
import { natural, sequence, sha256, time } from "../../domain/Forms.ts"
import { StoredFact, TRACE_SCHEME } from "../../domain/traces/TraceFact.ts"
import { exportFormats } from "../ExportScope.ts"

const count = natural("Lines of the file.")
const place = sequence("Place in the chain.")
const asked = Schema.NullOr(natural("As it was asked for."))
const bound = time("RFC 3339, UTC, microseconds.")

const Bounds = Schema.Struct({ from: bound, to: bound, from_sequence: asked, to_sequence: asked })

const Head = Schema.Struct({
  sequence_number: place,
  hash: sha256("Of the last event."),
  created_at: time("When that was chained.")
})

/** One file of the pack. */
export const PackFile = Schema.Struct({
  name: Schema.String,
  bytes: natural("Its size."),
  sha256: sha256("Over its bytes.")
})
export type PackFile = typeof PackFile.Type

/** Lines of each file that has one thing per line. */
export const PackCounts = Schema.Struct({
  events: count,
  links: count,
  erasures: count,
  executions: count,
  spans: count,
  facts: count,
  trace_links: count
})
export type PackCounts = typeof PackCounts.Type

/** `manifest.json`. */
export const Manifest = Schema.Struct({
  format: Schema.Literal(exportFormats.pack),
  generated_at: time("When the pack was made."),
  service: Schema.String,
  scheme: Schema.Literal(SCHEME),
  tenant_id: Schema.String,
  bounds: Bounds,
  filter: Schema.NullOr(
    Schema.Record(Schema.String, Schema.String).annotate({
      description: "What the events satisfy beside the bounds, in the words of the API."
    })
  ),
  first_sequence_number: Schema.NullOr(place),
  last_sequence_number: Schema.NullOr(place),
  head: Schema.NullOr(Head),
  first_trace_sequence_number: Schema.NullOr(place),
  last_trace_sequence_number: Schema.NullOr(place),
  trace_head: Schema.NullOr(
    Schema.Struct({ sequence_number: place, hash: sha256("Of the last trace fact.") })
  ),
  tree_signer: Schema.NullOr(Schema.String).annotate({
    description: "The key that signs the tenant's trees now, as C2SP writes it."
  }),
  counts: PackCounts,
  files: Schema.Array(PackFile)
})
export type Manifest = typeof Manifest.Type

/** A line of `links.ndjson`. */
export const ChainLink = Schema.Struct({
  sequence_number: place,
  created_at: time("When it was chained."),
  content_hash: sha256("Over the content."),
  prev_hash: sha256("hash of the one before; 64 zeros for the first."),
  hash: sha256("Over the content and the place in the chain.")
})

const Break = Schema.Struct({
  sequence_number: place,
  event_id: Schema.NullOr(Schema.String),
  reason: Schema.Literals([
    "content_mismatch",
    "hash_mismatch",
    "prev_hash_mismatch",
    "sequence_gap",
    "duplicate_sequence",
    "tail_missing",
    "checkpoint_mismatch"
  ]),
  expected: Schema.String,
  actual: Schema.String
}).annotate({ identifier: "Break" })

const breaks = Schema.Array(Break).annotate({ description: "The first 100." })
const total = natural("Of all.")

/** `verification.json`: what the service found, with more members than a reader needs. */
export const Verification = Schema.Struct({
  valid: Schema.Boolean,
  status: Schema.Literals(["valid", "broken", "incomplete", "empty"]).annotate({
    description: "An empty range is valid, an incomplete one is not."
  }),
  tenant_id: Schema.String,
  scheme: Schema.Literal(SCHEME),
  bounds: Bounds,
  events_checked: natural("The whole span that covers the bounds."),
  events_in_bounds: natural("Those of them within the bounds."),
  first_sequence_number: Schema.NullOr(place),
  last_sequence_number: Schema.NullOr(place),
  head: Schema.NullOr(Head),
  erased_events: natural("Events without their details."),
  assurance: Schema.Literals(["self_attested", "signed", "timestamped"]),
  breaks,
  breaks_total: total,
  verified_at: time("When it was checked."),
  duration_ms: Schema.Finite,
  traces: Schema.optionalKey(
    Schema.Struct({
      valid: Schema.Boolean,
      scheme: Schema.Literal(TRACE_SCHEME),
      breaks,
      breaks_total: total
    })
  ).annotateKey({
    description:
      "The same members for the chain of trace facts, alk-trace-v1; valid is true only if both "
      + "chains hold."
  })
}).annotate({ description: "A finished check, whatever it found." })

/** A schema in the pack. */
export interface PackSchema {
  readonly name: string
  readonly title: string
  readonly schema: Schema.Constraint
  /** Whether objects may have members that the schema does not name. */
  readonly isOpen?: boolean
}

/** In the order of their files. */
export const packSchemas: ReadonlyArray<PackSchema> = [
  {
    name: "audit-event",
    title: "A line of events.ndjson and erasures.ndjson",
    schema: AuditEvent
  },
  { name: "chain-link", title: "A line of links.ndjson", schema: ChainLink },
  { name: "manifest", title: "manifest.json", schema: Manifest },
  { name: "trace-fact", title: "A line of facts.ndjson", schema: StoredFact },
  { name: "verification", title: "verification.json", schema: Verification, isOpen: true }
]
