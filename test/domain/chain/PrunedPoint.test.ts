/** A pruned point proves the end of what was removed, and nothing that was changed does. */
import { hash as digest } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { openNote, signerOf } from "../../../src/domain/chain/Checkpoint.ts"
import { Frontier } from "../../../src/domain/chain/MerkleTree.ts"
import { openPoint, type PrunedPoint } from "../../../src/domain/chain/PrunedPoint.ts"
import { genuinePoint } from "../../support/PrunedPoints.ts"
import { runs } from "../../support/Runs.ts"

const SERVICE = "audit.example"
const signer = signerOf(SERVICE, Buffer.alloc(32, 7))

const hashesOf = (count: number): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, index) => digest("sha256", `event ${index}`, "hex"))

const signedOf = ({ note }: PrunedPoint) => {
  const opened = openNote(note, [signer.vkey])
  if ("refusal" in opened) throw new Error(opened.message)
  return opened.checkpoint
}

const pointOf = (size: number) => genuinePoint(signer, SERVICE, "acme", hashesOf(size), size)

const size = fc.integer({ min: 1, max: 600 })

describe("a pruned point", () => {
  it("gives back the end of what was removed, and a tree that grows to the same roots", () => {
    fc.assert(
      fc.property(size, fc.nat(40), (removed, left) => {
        const point = pointOf(removed)
        const end = openPoint(point, signedOf(point))
        if (typeof end === "string") throw new Error(end)
        const hashes = hashesOf(removed + left)
        assert.strictEqual(end.headHash, hashes[removed - 1])
        const whole = Frontier.empty()
        for (const hash of hashes) whole.append(hash)
        const rest = end.frontier.clone()
        for (const hash of hashes.slice(removed)) rest.append(hash)
        assert.deepStrictEqual(rest.root(), whole.root())
      }),
      { numRuns: runs(50) }
    )
  })

  it("proves nothing once its size, its head, its root, its tree or its note is another one's", () => {
    fc.assert(
      fc.property(size, size, (one, two) => {
        fc.pre(one !== two)
        const point = pointOf(one)
        const other = pointOf(two)
        const members = ["size", "head_hash", "root_hash", "frontier", "note"] as const
        for (const member of members) {
          const forged = { ...point, [member]: other[member] }
          const opened = openPoint(forged, signedOf(forged))
          assert.isString(opened, member)
        }
      }),
      { numRuns: runs(50) }
    )
  })

  it("proves nothing with bytes of its tree or its proof changed", () => {
    const point = pointOf(300)
    const flipped = (hash: string) => `${hash.startsWith("0") ? "1" : "0"}${hash.slice(1)}`
    const proofs = point.head_proof.map((hash, index) =>
      point.head_proof.with(index, flipped(hash))
    )
    for (const head_proof of [[], ...proofs]) {
      assert.isString(openPoint({ ...point, head_proof }, signedOf(point)))
    }
    for (const frontier of ["", "300:", "300:AAAA", point.frontier.replace("300:", "301:")]) {
      assert.isString(openPoint({ ...point, frontier }, signedOf(point)))
    }
  })
})
