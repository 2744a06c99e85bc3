/**
 * The records of `alk.registry` that say how long the records of a tenant are kept, up to where they
 * were removed, and what is left of a deleted tenant; and the operations on them.
 */
import { Schema } from "effect"
import { PrunedPoint } from "../chain/PrunedPoint.ts"
import { sequence, sha256, tenant, text, time } from "../Forms.ts"

/** A hundred years. */
export const RETENTION_DAYS_MAX = 36_500

const days = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: RETENTION_DAYS_MAX }))

const hold = Schema.Struct({
  reason: text("Why nothing may be removed."),
  by: text("Id of the key that has set it; `admin` for the admin token."),
  since: time("When it was set.")
})

const deletion = Schema.Struct({
  by: text("Id of the key that has asked for it; `admin` for the admin token."),
  requested_at: time("When.")
})

/** How long a tenant's records are kept. */
export const Retention = Schema.Struct({
  tenant_id: tenant("Whose records."),
  days: Schema.optionalKey(
    days.annotate({ description: "Days after which records are removed; absent: never." })
  ),
  hold: Schema.optionalKey(hold).annotateKey({
    description: "A legal hold: nothing of the tenant is removed."
  }),
  deletion: Schema.optionalKey(deletion).annotateKey({
    description: "Somebody has asked for the tenant to be deleted, and nobody has confirmed it yet."
  }),
  changed_at: time("When this was last changed.")
}).annotate({ identifier: "Retention" })
export type Retention = typeof Retention.Type

const chainEnd = Schema.Struct({
  size: sequence("How many records the chain had."),
  head_hash: sha256("`hash` of the last of them."),
  root_hash: sha256("RFC 9162 root over their hashes."),
  note: text("The signed checkpoint that says so, a C2SP signed note.")
}).annotate({ identifier: "DeletedChain" })
export type DeletedChain = typeof chainEnd.Type

/** What is left of a tenant that was deleted. Its id can't be taken again. */
export const Tombstone = Schema.Struct({
  tenant_id: tenant("Which tenant it was."),
  events: Schema.optionalKey(chainEnd).annotateKey({
    description: "The chain of its events; absent if it had none, or until it is known."
  }),
  traces: Schema.optionalKey(chainEnd).annotateKey({
    description: "The same of its trace facts."
  }),
  deleted_at: time("When that was decided."),
  deleted_by: text("Id of the key that has confirmed it; `admin` for the admin token."),
  removed_at: Schema.optionalKey(time("When everything of it was gone; absent until then."))
}).annotate({ identifier: "Tombstone" })
export type Tombstone = typeof Tombstone.Type

const whose = tenant("Whose records.")
const when = time("When.")

/** Members of the union of all operations on the registry. */
export const retentionOperations = [
  Schema.Struct({
    op: Schema.Literal("set_retention"),
    tenant_id: whose,
    days: Schema.optionalKey(days).annotateKey({ description: "Absent: kept for ever." }),
    changed_at: when
  }),
  Schema.Struct({ op: Schema.Literal("hold"), tenant_id: whose, hold }),
  Schema.Struct({ op: Schema.Literal("release_hold"), tenant_id: whose, changed_at: when }),
  Schema.Struct({ op: Schema.Literal("prune"), pruned: PrunedPoint }),
  Schema.Struct({ op: Schema.Literal("note_removed"), pruned: PrunedPoint }),
  Schema.Struct({ op: Schema.Literal("request_deletion"), tenant_id: whose, deletion }),
  Schema.Struct({ op: Schema.Literal("cancel_deletion"), tenant_id: whose, changed_at: when }),
  Schema.Struct({ op: Schema.Literal("delete_tenant"), tombstone: Tombstone }),
  Schema.Struct({ op: Schema.Literal("complete_tombstone"), tombstone: Tombstone })
] as const

const retentionOperation = Schema.Union(retentionOperations)
export type RetentionOperation = typeof retentionOperation.Type

/** Their names, which the types of both lists keep equal. */
const names: Readonly<Record<RetentionOperation["op"], true>> = {
  set_retention: true,
  hold: true,
  release_hold: true,
  prune: true,
  note_removed: true,
  request_deletion: true,
  cancel_deletion: true,
  delete_tenant: true,
  complete_tombstone: true
}

export const isRetentionOperation = (operation: {
  readonly op: string
}): operation is RetentionOperation => Object.hasOwn(names, operation.op)
