/** The record of `alk.checkpoints`: a signed statement of what one of a tenant's chains is at one size. */
import { Schema } from "effect"
import { chains } from "../domain/chain/Chains.ts"
import type { CheckpointRecord } from "../domain/chain/Checkpoint.ts"
import { CHECKPOINT_TYPE } from "../domain/records/CloudEvent.ts"
import { exampleCheckpoint } from "./ExampleCheckpoint.ts"
import { form, sequence, sha256, tenant, text, time } from "./Forms.ts"
import { exactly, type RecordContract } from "./RecordContract.ts"

const Value = exactly<CheckpointRecord>()(
  Schema.Struct({
    tenant_id: tenant("Whose chain it is."),
    chain: Schema.optionalKey(
      Schema.Literals(chains).annotate({
        description: "Of which of the tenant's chains: of the events if absent."
      })
    ),
    tree_size: sequence("Events, or trace facts, that the tree covers, from the first."),
    root_hash: sha256("RFC 9162 root over their hashes."),
    created_at: time("When it was signed; not covered by the signature."),
    key_id: form(/^[0-9a-f]{8}$/u, "Which key signed."),
    note: text("The checkpoint itself: a C2SP tlog-checkpoint as signed note, Ed25519.")
  }).annotate({ examples: [exampleCheckpoint] })
)

/** A checkpoint within another record. */
export const CheckpointValue = Value.annotate({ identifier: "Checkpoint" })

export const checkpointRecord: RecordContract = {
  name: "checkpoint",
  topic: "checkpoints",
  title: "Checkpoint",
  description:
    "The size and the Merkle root of one of a tenant's two chains, signed. A kept checkpoint shows "
    + "later whether the chain before it was rewritten. Only `note` is signed; the rest repeats it.",
  key: tenant("The tenant_id."),
  headers: Schema.Struct({
    ce_specversion: Schema.Literal("1.0"),
    ce_type: Schema.Literal(CHECKPOINT_TYPE),
    ce_source: text("`<service name>/<tenant_id>/checkpoints`, or `…/traces/checkpoints`"),
    ce_id: text("`<tree_size>-<key_id>`; with `-<next key_id>` where the note names the next key"),
    ce_time: time("created_at"),
    "content-type": Schema.Literal("application/json")
  }),
  value: Value
}
