/** The JSON files of an evidence pack as schemas; `schema/` in a pack is made from them. */
import { Schema } from "effect"
import { AuditEvent } from "../../domain/events/AuditEvent.ts"
import { SCHEME } from "../../domain/events/HashChain.ts"
import { natural, sequence, sha256, time } from "../../domain/Forms.ts"
import { StoredFact } from "../../domain/traces/TraceFact.ts"
import { TenantReport, VerifyReport } from "../../verify/VerifyReport.ts"
import { exportFormats } from "../ExportScope.ts"

const count = natural("Lines of the file.")
const place = sequence("Place in the chain.")
const { bounds, head } = VerifyReport.fields

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
  bounds,
  filter: Schema.NullOr(
    Schema.Record(Schema.String, Schema.String).annotate({
      description: "What the events satisfy besides the bounds, named as in the API."
    })
  ),
  first_sequence_number: Schema.NullOr(place),
  last_sequence_number: Schema.NullOr(place),
  head,
  first_trace_sequence_number: Schema.NullOr(place),
  last_trace_sequence_number: Schema.NullOr(place),
  trace_head: Schema.NullOr(
    Schema.Struct({ sequence_number: place, hash: sha256("Of the last trace fact.") })
  ),
  to_trace_sequence: Schema.NullOr(place).annotate({
    description: "Where the facts of the pack end, if their chain grew while it was made."
  }),
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
  { name: "verification", title: "verification.json", schema: TenantReport, isOpen: true }
]
