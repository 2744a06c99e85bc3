/** What a witness refuses of keys that were replaced: the rule of verifiers, by the notes it can have. */
import { assert, describe, it } from "vitest"
import { signerRefusal } from "../../src/cli/WitnessedKeys.ts"
import type { Client } from "../../src/client/Client.ts"
import {
  makeCheckpoint,
  openNote,
  type Signer,
  signerOf
} from "../../src/domain/chain/Checkpoint.ts"
import { endorse, handOver, keyLine } from "../../src/domain/chain/KeyLine.ts"
import { Frontier } from "../../src/domain/chain/MerkleTree.ts"

const T = "2026-11-22T00:00:00.000000Z"
const [old, next] = [5, 6].map((byte) => signerOf("alk", Buffer.alloc(32, byte))) as [
  Signer,
  Signer
]
const line = keyLine({
  keys: [{ vkey: old.vkey }, { vkey: next.vkey, endorsement: endorse(old, next.vkey, T) }],
  pinned: [old.vkey],
  believesRoots: false
})

const treeOf = (size: number): Frontier => {
  const tree = Frontier.empty()
  for (let leaf = 1; leaf <= size; leaf++) tree.append(String(leaf).padStart(64, "0"))
  return tree
}
const signed = (signer: Signer, size: number) =>
  makeCheckpoint(signer, "alk", "acme", treeOf(size), T)
const handedOver = handOver(old, "alk", "acme", treeOf(3), T, next.vkey)

type Checkpoint = ReturnType<typeof signed>

/** The refusal of the newest checkpoint; the service lists others, the largest first. */
const refusalOf = async (
  newest: Checkpoint,
  listed: ReadonlyArray<Checkpoint>,
  last?: Checkpoint
): Promise<string | undefined> => {
  const opened = openNote(newest.note, [old.vkey, next.vkey])
  assert(!("refusal" in opened))
  const request = async (_: string, { query }: any) => {
    const below = listed.filter(({ tree_size }) => tree_size < (query.before_size ?? Infinity))
    return { checkpoints: below.slice(0, query.limit) }
  }
  const client = { request } as unknown as Pick<Client, "request">
  return signerRefusal(client, { chain: "events", line, last }, newest.note, opened.checkpoint)
}

describe("the newest checkpoint, for a witness", () => {
  it("may be signed by a replaced key up to where it handed the tree over", async () => {
    assert.isUndefined(await refusalOf(signed(next, 5), []))
    assert.isUndefined(await refusalOf(handedOver, [handedOver]))
    assert.isUndefined(await refusalOf(signed(old, 3), [signed(next, 5), handedOver]))
  })

  it("may be signed by a replaced key until it hands the tree over", async () => {
    assert.isUndefined(await refusalOf(signed(old, 5), [signed(old, 5), signed(old, 4)]))
    assert.isUndefined(await refusalOf(signed(old, 5), [], signed(old, 4)))
  })

  it("is refused where a replaced key has signed it after that", async () => {
    const after = /was replaced by .* when the tree had 3 leaves, not 5/
    assert.match((await refusalOf(signed(old, 5), [signed(old, 5), handedOver]))!, after)
    assert.match((await refusalOf(signed(old, 5), [], handedOver))!, after)
  })

  it("is refused where another note shows that the next key signs the tree already", async () => {
    const never = /was replaced by .* and never signed this tree/
    assert.match((await refusalOf(signed(old, 5), [signed(next, 4)]))!, never)
    assert.match((await refusalOf(signed(old, 5), [], signed(next, 4)))!, never)
  })

  it("is refused where the hand-over is pages away", async () => {
    const many = Array.from({ length: 250 }, (_, at) => signed(old, 300 - at))
    assert.match((await refusalOf(many[0]!, [...many, handedOver]))!, /3 leaves, not 300/)
  })
})
