/**
 * Checkpoints and proofs as the OpenAPI document shows them. Documentation of shapes only; the
 * examples are true: a test verifies them.
 */
import { Schema } from "effect"
import { chains } from "../../domain/chain/Chains.ts"
import type { CheckpointRecord } from "../../domain/chain/Checkpoint.ts"
import { exampleEvent } from "../contract/ContractExample.ts"
import { Hash, hashOf, Sequence, Timestamp } from "../contract/ContractSchemas.ts"

/** The key that the examples are signed with. */
export const exampleVkey = "alk+5ab74ba0+Aes92gqVZpcwlPpbDRIOxV3xeZcgH0aaZQIpeuCRkZvv"

const signedBy = { tenant_id: exampleEvent.tenant_id, key_id: "5ab74ba0" }

/** The checkpoint of the chain that is the example event. */
export const exampleCheckpoint: CheckpointRecord = {
  ...signedBy,
  tree_size: 1,
  root_hash: "67dccfd19774bcfc6ae7e4494a9af32d0dab21353f8251660dd993c0b44b7d6b",
  created_at: "2026-11-21T10:00:02.000000Z",
  note:
    "alk/acme\n1\nZ9zP0Zd0vPxq5+RJSprzLQ2rITU/glFmDdmTwLRLfWs=\n\n— alk WrdLoBSP02oqwTKCV+cC"
    + "M5Dzinm5+i0F986oaCea12AD4egHQkKyVkx3FEWYkaCkoAbhyTiUrL5kelaDKAGnrY0cbww=\n"
}

/** One event later. */
export const laterCheckpoint: CheckpointRecord = {
  ...signedBy,
  tree_size: 2,
  root_hash: "d9e37eca72fb13bdc25091a7e0d6e9071b4bb0b68a1053f2016f52b27814c051",
  created_at: "2026-11-21T10:00:12.000000Z",
  note:
    "alk/acme\n2\n2eN+ynL7E73CUJGn4NbpBxtLsLaKEFPyAW9SsngUwFE=\n\n— alk WrdLoOMnvGerErMiAoob"
    + "UU7ddGuyACMLMSmpFJZLNyzaRljcCi/qSuZMcwDRPR6y+7OKL1F2tDhSmuvlj1GnLrijpws=\n"
}

const secondLeaf = "fdba52da7fcdb1ccc9d1c2aad2c5bea427c075b0e9cc5b5db86efd9d4942b4ed"

/** Of the example event, and of the trees before and after. */
export const exampleInclusion = {
  tenant_id: exampleEvent.tenant_id,
  sequence_number: 1,
  leaf_index: 0,
  event_hash: exampleEvent.hash,
  leaf_hash: exampleCheckpoint.root_hash,
  proof: [secondLeaf],
  checkpoint: laterCheckpoint
}

export const exampleConsistency = {
  tenant_id: exampleEvent.tenant_id,
  first: exampleCheckpoint,
  second: laterCheckpoint,
  proof: [secondLeaf]
}

const ProofHashes = Schema.Array(Hash).annotate({
  description: "In the order of RFC 9162, section 2.1."
})

export const Checkpoint = Schema.Struct({
  tenant_id: Schema.String,
  chain: Schema.optionalKey(Schema.Literals(chains)).annotateKey({
    description: "Of which of the tenant's chains: of the events if absent."
  }),
  tree_size: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)).annotate({
    description: "Events, or trace facts, in the tree, from the first one of the chain on.",
    format: "int64"
  }),
  root_hash: hashOf("RFC 9162 root; the leaf inputs are the 32 bytes of each `hash`."),
  created_at: Timestamp,
  key_id: Schema.String.annotate({
    description: "Which key signed: see `/.well-known/alk-keys.json`."
  }),
  note: Schema.String.annotate({
    description:
      "C2SP signed note (tlog-checkpoint, Ed25519) with size and root: a kept note proves any "
      + "later change of what it covers. It does not cover `created_at`."
  })
}).annotate({ identifier: "Checkpoint", examples: [exampleCheckpoint] })

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
