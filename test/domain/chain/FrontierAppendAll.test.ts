/** A tree that takes leaves many at a time is the tree that takes them one by one. */
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { Frontier } from "../../../src/domain/chain/MerkleTree.ts"
import { sha256Hex } from "../../../src/domain/Identifiers.ts"

const hashes = Array.from({ length: 300 }, (_, index) => sha256Hex(`event ${index}`))

const bytesOf = (some: ReadonlyArray<string>): Buffer => Buffer.from(some.join(""), "hex")

const oneByOne = (count: number): Frontier => {
  const frontier = Frontier.empty()
  for (const hash of hashes.slice(0, count)) frontier.append(hash)
  return frontier
}

describe("a frontier that takes many leaves at a time", () => {
  it("is the one that takes them one by one, for every size before and after", () => {
    for (let before = 0; before <= 40; before++) {
      for (let count = 0; count <= 40; count++) {
        const frontier = oneByOne(before)
        frontier.appendAll(bytesOf(hashes.slice(before, before + count)))
        assert.strictEqual(frontier.encode(), oneByOne(before + count).encode())
      }
    }
  })

  it("is the same however the leaves are cut", () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 70 }), { maxLength: 8 }), (cuts) => {
        const frontier = Frontier.empty()
        let at = 0
        for (const cut of cuts) {
          const some = hashes.slice(at, at + cut)
          if (cut === 1 && some.length === 1) frontier.append(some[0]!)
          else frontier.appendAll(bytesOf(some))
          at += some.length
        }
        assert.strictEqual(frontier.size, at)
        assert.deepStrictEqual(frontier.root(), oneByOne(at).root())
      })
    )
  })

  it("leaves the hashes, and the frontier that it was cloned from, as they were", () => {
    const before = oneByOne(7)
    const encoded = before.encode()
    const bytes = bytesOf(hashes.slice(7, 20))
    const copy = Buffer.from(bytes)
    before.clone().appendAll(bytes)
    assert.strictEqual(before.encode(), encoded)
    assert.deepStrictEqual(bytes, copy)
  })

  it("refuses what is no whole number of hashes, and adds nothing", () => {
    const frontier = oneByOne(3)
    assert.throws(() => frontier.appendAll(Buffer.alloc(33)), RangeError)
    assert.strictEqual(frontier.encode(), oneByOne(3).encode())
  })
})
