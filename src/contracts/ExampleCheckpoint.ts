/**
 * Checkpoints and proofs as the contracts show them: over the example event, and over it and one
 * more. Made by the functions that make the real ones, with a key that signs nothing else.
 */
import { makeCheckpoint, signerOf } from "../domain/chain/Checkpoint.ts"
import { Frontier, leafHash } from "../domain/chain/MerkleTree.ts"
import { sha256Hex } from "../domain/Identifiers.ts"
import { exampleEvent } from "./ExampleEvent.ts"

/** 32 times the byte 7: this key is no secret. */
const exampleSigner = signerOf("alk", Buffer.alloc(32, 7))

/** The key that the examples are signed with. */
export const exampleVkey = exampleSigner.vkey

const tree = Frontier.empty()

const signedAt = (time: string) =>
  makeCheckpoint(exampleSigner, "alk", exampleEvent.tenant_id, tree, time)

tree.append(exampleEvent.hash)

/** Of the chain that is the example event. */
export const exampleCheckpoint = signedAt("2026-11-21T12:00:10.000000Z")

const nextHash = sha256Hex("the event after the example event")
tree.append(nextHash)

/** One event later. */
export const laterCheckpoint = signedAt("2026-11-21T12:00:20.000000Z")

const proof = [leafHash(nextHash).toString("hex")]

/** That the example event is in the later tree. */
export const exampleInclusion = {
  tenant_id: exampleEvent.tenant_id,
  sequence_number: 1,
  leaf_index: 0,
  event_hash: exampleEvent.hash,
  leaf_hash: leafHash(exampleEvent.hash).toString("hex"),
  proof,
  checkpoint: laterCheckpoint
}

/** That the later tree only added to the other. */
export const exampleConsistency = {
  tenant_id: exampleEvent.tenant_id,
  first: exampleCheckpoint,
  second: laterCheckpoint,
  proof
}
