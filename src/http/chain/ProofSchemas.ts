/**
 * Checkpoints and proofs as answers show them, with true examples. A checkpoint is the record of
 * the domain.
 */
import { Schema } from "effect"
import {
  exampleCheckpoint,
  exampleConsistency,
  exampleInclusion,
  laterCheckpoint
} from "../../contracts/ExampleCheckpoint.ts"
import { CheckpointMember } from "../../domain/chain/Checkpoint.ts"
import { Hash, hashOf, Sequence } from "../contract/ContractSchemas.ts"

const ProofHashes = Schema.Array(Hash).annotate({
  description: "In the order of RFC 9162, section 2.1."
})

export const Checkpoint = CheckpointMember.annotate({
  description:
    "A signed checkpoint. A kept `note` proves any later change of what it covers; "
    + "`/.well-known/alk-keys.json` has the keys.",
  examples: [exampleCheckpoint]
})

/** The note of a checkpoint alone. */
export const CheckpointNote = Schema.String.annotate({
  description: "The signed note alone.",
  examples: [exampleCheckpoint.note]
})

export const CheckpointList = Schema.Struct({
  checkpoints: Schema.Array(Checkpoint)
}).annotate({
  identifier: "CheckpointList",
  description: "Largest tree first.",
  examples: [{ checkpoints: [laterCheckpoint, exampleCheckpoint] }]
})

export const InclusionProof = Schema.Struct({
  tenant_id: Schema.String,
  sequence_number: Sequence,
  leaf_index: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)).annotate({
    description: "`sequence_number` - 1.",
    format: "int64"
  }),
  event_hash: hashOf("`hash` of the event or fact, the input of the leaf."),
  leaf_hash: hashOf("SHA-256 of 0x00 and the 32 bytes of `event_hash`."),
  proof: ProofHashes,
  checkpoint: Checkpoint
}).annotate({
  identifier: "InclusionProof",
  description: "That the event, or trace fact, is part of the tree of the checkpoint.",
  examples: [exampleInclusion]
})

export const ConsistencyProof = Schema.Struct({
  tenant_id: Schema.String,
  first: Checkpoint,
  second: Checkpoint,
  proof: ProofHashes
}).annotate({
  identifier: "ConsistencyProof",
  description: "That the second tree only added to the first.",
  examples: [exampleConsistency]
})
