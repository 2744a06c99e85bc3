/**
 * One checkpoint as the contracts show it: over the example event, signed with a key that signs
 * nothing else.
 */
import { makeCheckpoint, signerOf } from "../domain/chain/Checkpoint.ts"
import { Frontier } from "../domain/chain/MerkleTree.ts"
import { exampleEvent } from "./ExampleEvent.ts"

/** 32 times the byte 7: everybody may know it. */
const exampleSigner = signerOf("alk", Buffer.alloc(32, 7))

const tree = Frontier.empty()
tree.append(exampleEvent.hash)

export const exampleCheckpoint = makeCheckpoint(
  exampleSigner,
  "alk",
  exampleEvent.tenant_id,
  tree,
  "2026-11-21T12:00:10.000000Z"
)
