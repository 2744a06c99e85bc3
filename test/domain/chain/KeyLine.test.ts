/** Which key may sign what: the published cases, and laws that hold for every line of keys. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import {
  makeCheckpoint,
  openNote,
  type Signer,
  signerOf
} from "../../../src/domain/chain/Checkpoint.ts"
import {
  endorse,
  handOver,
  handOversIn,
  keyLine,
  openEndorsement
} from "../../../src/domain/chain/KeyLine.ts"
import { isTrusted, type LineKey, refusalOf } from "../../../src/domain/chain/KeyStandings.ts"
import { Frontier } from "../../../src/domain/chain/MerkleTree.ts"
import { readVectors } from "../../support/Independent.ts"
import {
  KEY_LINE_VECTORS,
  type KeyLineVectors,
  keyLineVectors
} from "../../support/KeyLineVectors.ts"

const vectors = readVectors(KEY_LINE_VECTORS) as KeyLineVectors
const T = "2026-11-22T00:00:00.000000Z"
const keys = Array.from({ length: 6 }, (_, index) => signerOf("alk", Buffer.alloc(32, index + 20)))
const [a, b] = keys as [Signer, Signer]

const treeOf = (size: number): Frontier => {
  const tree = Frontier.empty()
  for (let leaf = 1; leaf <= size; leaf++) tree.append(String(leaf).padStart(64, "0"))
  return tree
}

describe("the published cases", () => {
  it("are those of the file", () => {
    assert.deepStrictEqual(vectors, JSON.parse(JSON.stringify(keyLineVectors)))
  })

  for (const one of vectors.cases) {
    it(one.name, () => {
      const line = keyLine({
        keys: one.keys,
        pinned: one.pinned,
        believesRoots: one.believes_roots
      })
      assert.deepStrictEqual(
        line.map(({ endorsedBy, retiredAt, trusted, vkey }) => ({
          vkey,
          trusted,
          endorsed_by: endorsedBy ?? null,
          retired_at: retiredAt ?? null
        })),
        one.standings
      )
      const tree = {
        origin: vectors.origin,
        handOversBy: handOversIn(one.hand_overs),
        ...(one.signer === null ? {} : { signer: one.signer })
      }
      for (const { allowed, note, root_hash, tree_size, vkey } of one.checkpoints) {
        assert.isTrue("checkpoint" in openNote(note, [vkey]))
        const refusal = refusalOf(line, tree, {
          vkey,
          treeSize: tree_size,
          rootHash: root_hash
        })
        assert.strictEqual(refusal === undefined, allowed, `${vkey} ${tree_size}: ${refusal}`)
      }
    })
  }
})

describe("a statement", () => {
  const note = endorse(a, b.vkey, T)

  it("says which key follows and when", () => {
    assert.deepStrictEqual(openEndorsement(note, a.vkey), {
      serviceName: "alk",
      keyId: a.keyId,
      nextVkey: b.vkey,
      time: T
    })
    assert.strictEqual(
      note.split("\n\n")[0],
      `alk-key-endorsement-v1\nalk\n${a.keyId}\n${b.vkey}\n${T}`
    )
  })

  it("counts only as its key has signed it", () => {
    fc.assert(
      fc.property(fc.nat(note.length - 1), fc.constantFrom("A", "0", "\n", "z"), (at, put) => {
        const changed = note.slice(0, at) + put + note.slice(at + 1)
        if (changed !== note) assert.isUndefined(openEndorsement(changed, a.vkey))
      })
    )
    assert.isUndefined(openEndorsement(note, b.vkey))
  })

  it("is no checkpoint, and a checkpoint no statement", () => {
    assert.isTrue("refusal" in openNote(note, [a.vkey]))
    const checkpoint = handOver(a, "alk", "acme", treeOf(2), T, b.vkey)
    assert.isUndefined(openEndorsement(checkpoint.note, a.vkey))
  })
})

describe("a line of keys", () => {
  /** For each key: the index of the key that endorses it, -1 without. */
  const lines = fc.array(fc.integer({ min: -1, max: keys.length - 1 }), {
    minLength: keys.length,
    maxLength: keys.length
  })
  const keysOf = (endorsers: ReadonlyArray<number>): ReadonlyArray<LineKey> =>
    endorsers.map((endorser, index) => {
      const { vkey } = keys[index]!
      if (index === 0) return { vkey, root: true }
      return endorser < 0 ? { vkey } : { vkey, endorsement: endorse(keys[endorser]!, vkey, T) }
    })

  it("is a chain from the root, whatever endorses what", () => {
    fc.assert(
      fc.property(lines, (endorsers) => {
        const line = keyLine({ keys: keysOf(endorsers), pinned: [], believesRoots: true })
        const successors = line.flatMap(({ next }) => (next === undefined ? [] : [next]))
        assert.strictEqual(new Set(successors).size, successors.length)
        const chain = [line[0]!]
        for (let last = chain[0]; last?.next !== undefined; last = chain.at(-1)) {
          chain.push(line.find(({ vkey }) => vkey === last!.next)!)
        }
        assert.sameMembers(
          line.filter(isTrusted).map(({ vkey }) => vkey),
          chain.map(({ vkey }) => vkey)
        )
      })
    )
  })

  it("lets a retired key sign no tree larger than what it handed over", () => {
    const line = keyLine({
      keys: [
        { vkey: a.vkey, root: true },
        { vkey: b.vkey, endorsement: endorse(a, b.vkey, T) }
      ],
      pinned: [],
      believesRoots: true
    })
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 1, max: 40 }),
        (last, size) => {
          const { note } = handOver(a, "alk", "acme", treeOf(last), T, b.vkey)
          const tree = { origin: "alk/acme", handOversBy: handOversIn([note]) }
          const made = makeCheckpoint(a, "alk", "acme", treeOf(size), T)
          const signed = { vkey: a.vkey, treeSize: size, rootHash: made.root_hash }
          assert.strictEqual(refusalOf(line, tree, signed) === undefined, size <= last)
          assert.isUndefined(refusalOf(line, tree, { ...signed, vkey: b.vkey }))
        }
      )
    )
  })
})
