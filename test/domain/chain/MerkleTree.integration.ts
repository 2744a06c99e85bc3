/** Roots and proofs against the independent implementation, and everything that must be refused. */
import { hash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import {
  consistencyParts,
  EMPTY_ROOT,
  Frontier,
  FrontierUnreadable,
  hashesOf,
  inclusionParts,
  leafHash,
  type NodeSource,
  nodeHash,
  rootPart,
  verifyConsistency,
  verifyInclusion
} from "../../../src/domain/chain/MerkleTree.ts"
import { askIndependentTree } from "../../support/IndependentTree.ts"
import { SEED } from "../../support/Seed.ts"

const LEAVES_MAX = 700

const eventHashes = (count: number) =>
  Array.from({ length: count }, (_, index) => hash("sha256", `${SEED} ${index}`, "hex"))

const frontierOf = (hashes: ReadonlyArray<string>): Frontier => {
  const frontier = Frontier.empty()
  for (const one of hashes) frontier.append(one)
  return frontier
}

/** Complete subtrees by their definition. */
const nodesOf = (hashes: ReadonlyArray<string>): NodeSource => {
  const node = (level: number, index: number): Buffer =>
    level === 0
      ? leafHash(hashes[index]!)
      : nodeHash(node(level - 1, 2 * index), node(level - 1, 2 * index + 1))
  return node
}

const hexOf = (hashes: ReadonlyArray<Buffer>) => hashes.map((one) => one.toString("hex"))

/** Size, then two numbers within it. */
const places = fc
  .integer({ min: 1, max: LEAVES_MAX })
  .chain((size) =>
    fc.tuple(
      fc.constant(size),
      fc.integer({ min: 0, max: size - 1 }),
      fc.integer({ min: 1, max: size })
    )
  )

describe("a Merkle tree", () => {
  const hashes = eventHashes(LEAVES_MAX)
  const node = nodesOf(hashes)
  const rootOf = (size: number) => frontierOf(hashes.slice(0, size)).root()

  it("has the roots and proofs that RFC 9162 defines, whatever its size", () => {
    const powers = [1, 2, 3, 4, 5, 7, 8, 9, 255, 256, 257, 511, 512, 513]
    const sampled = fc.sample(places, { numRuns: 250 })
    const cases = [
      ...powers.flatMap((size) => [0, size - 1].map((index) => [size, index, 1] as const)),
      ...sampled
    ]
    const sizes = [0, ...cases.map(([size]) => size)]
    const inclusion = cases.map(([size, index]) => [index, size] as const)
    const consistency = cases.map(([size, , first]) => [first, size] as const)
    const expected = askIndependentTree({ hashes, sizes, inclusion, consistency })
    assert.strictEqual(expected.inclusion.length, cases.length)
    for (const [at, size] of sizes.entries()) {
      const root = rootOf(size).toString("hex")
      assert.strictEqual(root, expected.roots[at], `seed ${SEED} size ${size}`)
      if (size > 0) {
        assert.deepStrictEqual(hexOf(hashesOf([rootPart(size)], node)), [root], `size ${size}`)
      }
    }
    for (const [at, [index, size]] of inclusion.entries()) {
      assert.deepStrictEqual(
        hexOf(hashesOf(inclusionParts(index, size), node)),
        expected.inclusion[at],
        `seed ${SEED} leaf ${index} of ${size}`
      )
    }
    for (const [at, [first, second]] of consistency.entries()) {
      assert.deepStrictEqual(
        hexOf(hashesOf(consistencyParts(first, second), node)),
        expected.consistency[at],
        `seed ${SEED} ${first} to ${second}`
      )
    }
  })

  it("verifies every proof of every small tree", () => {
    for (let size = 1; size <= 40; size++) {
      const root = rootOf(size)
      for (let index = 0; index < size; index++) {
        const proof = hashesOf(inclusionParts(index, size), node)
        assert.isTrue(verifyInclusion({ leaf: node(0, index), index, size, root, proof }))
      }
      for (let first = 0; first <= size; first++) {
        const proof = hashesOf(consistencyParts(first, size), node)
        const claim = { first, firstRoot: rootOf(first), second: size, secondRoot: root, proof }
        assert.isTrue(verifyConsistency(claim), `${first} to ${size}`)
      }
    }
  })

  it("has the shape of a proof at sizes that no test can fill", () => {
    const large = 2 ** 49 - 1
    const parts = inclusionParts(large - 1, large)
    assert.strictEqual(parts.length, 48)
    assert.deepStrictEqual(parts[0], [{ level: 1, index: 2 ** 48 - 2 }])
    assert.deepStrictEqual(parts.at(-1), [{ level: 48, index: 0 }])
    assert.strictEqual(rootPart(large).length, 49)
    assert.deepStrictEqual(consistencyParts(2 ** 48, large)[0]![0], { level: 47, index: 2 })
  })

  it("refuses an inclusion proof with anything changed in it", () => {
    fc.assert(
      fc.property(places, ([size, index, other]) => {
        const root = rootOf(size)
        const proof = hashesOf(inclusionParts(index, size), node)
        const leaf = node(0, index)
        const claim = { leaf, index, size, root, proof }
        assert.isTrue(verifyInclusion(claim))
        const flip = (bytes: Buffer, at: number) => {
          const copy = Buffer.from(bytes)
          copy[at % copy.length]! ^= 1 << (at % 8)
          return copy
        }
        const refused = [
          { ...claim, leaf: flip(leaf, index) },
          { ...claim, root: flip(root, size) },
          { ...claim, index: -1 },
          { ...claim, index: size },
          { ...claim, index: index + 0.5 },
          { ...claim, size: index },
          { ...claim, size: 0 },
          { ...claim, size: Number.NaN },
          { ...claim, proof: [...proof, root] },
          { ...claim, proof: [leaf, ...proof] },
          // Higher than the tree is.
          { ...claim, proof: [...proof, leaf], root: nodeHash(leaf, root) },
          { ...claim, proof: [...proof, leaf], root: nodeHash(root, leaf) },
          { ...claim, root: root.subarray(1) },
          { ...claim, leaf: Buffer.concat([leaf, leaf]) },
          ...proof.map((one, at) => ({ ...claim, proof: proof.with(at, flip(one, at)) })),
          ...proof.map((_, at) => ({ ...claim, proof: proof.toSpliced(at, 1) })),
          ...proof.map((one, at) => ({ ...claim, proof: proof.with(at, one.subarray(0, 31)) })),
          ...(other - 1 === index ? [] : [{ ...claim, index: other - 1 }])
        ]
        for (const wrong of refused) assert.isFalse(verifyInclusion(wrong))
      }),
      { numRuns: 100 }
    )
  })

  it("refuses a consistency proof with anything changed in it", () => {
    fc.assert(
      fc.property(places, ([second, , first]) => {
        const [firstRoot, secondRoot] = [rootOf(first), rootOf(second)]
        const proof = hashesOf(consistencyParts(first, second), node)
        const claim = { first, firstRoot, second, secondRoot, proof }
        assert.isTrue(verifyConsistency(claim))
        const flip = (bytes: Buffer) =>
          Buffer.from(bytes.map((byte, at) => (at === 7 ? byte ^ 4 : byte)))
        const refused = [
          { ...claim, firstRoot: flip(firstRoot) },
          { ...claim, secondRoot: flip(secondRoot) },
          { ...claim, first: second + 1 },
          { ...claim, first: -1 },
          { ...claim, second: first - 1 },
          { ...claim, proof: [...proof, firstRoot] },
          {
            ...claim,
            firstRoot: nodeHash(firstRoot, firstRoot),
            secondRoot: nodeHash(firstRoot, secondRoot),
            proof: [...proof, firstRoot]
          },
          ...proof.map((one, at) => ({ ...claim, proof: proof.with(at, flip(one)) })),
          ...proof.map((_, at) => ({ ...claim, proof: proof.toSpliced(at, 1) }))
        ]
        for (const wrong of refused) assert.isFalse(verifyConsistency(wrong))
      }),
      { numRuns: 100 }
    )
  })

  it("refuses two trees of one size that differ, and a first tree that is not empty", () => {
    const [root, other] = [rootOf(5), rootOf(6)]
    const same = { first: 5, firstRoot: root, second: 5, secondRoot: root, proof: [] }
    assert.isTrue(verifyConsistency(same))
    assert.isFalse(verifyConsistency({ ...same, secondRoot: other }))
    assert.isFalse(verifyConsistency({ ...same, proof: [root] }))
    const empty = { first: 0, firstRoot: EMPTY_ROOT, second: 5, secondRoot: root, proof: [] }
    assert.isTrue(verifyConsistency(empty))
    assert.isFalse(verifyConsistency({ ...empty, firstRoot: root }))
    assert.isFalse(verifyConsistency({ ...empty, second: 0 }))
  })

  it("refuses a rewritten history, wherever it was rewritten", () => {
    fc.assert(
      fc.property(places, ([second, index, first]) => {
        fc.pre(index < first)
        const forged = hashes.with(index, hash("sha256", "forged", "hex"))
        const proof = hashesOf(consistencyParts(first, second), nodesOf(forged))
        const secondRoot = frontierOf(forged.slice(0, second)).root()
        const claim = { first, firstRoot: rootOf(first), second, secondRoot, proof }
        assert.isFalse(verifyConsistency(claim))
      }),
      { numRuns: 100 }
    )
  })

  it("asks for no leaf or size that there is not", () => {
    for (const [index, size] of [
      [0, 0],
      [3, 3],
      [-1, 3],
      [0.5, 3],
      [0, 2 ** 53]
    ] as const) {
      assert.throws(() => inclusionParts(index, size), RangeError)
    }
    for (const [first, second] of [
      [4, 3],
      [-1, 3],
      [1, 1.5]
    ] as const) {
      assert.throws(() => consistencyParts(first, second), RangeError)
    }
    assert.throws(() => rootPart(-1), RangeError)
  })
})

describe("a frontier", () => {
  it("goes on after being written and read at any size, a copy going its own way", () => {
    const hashes = eventHashes(130)
    let frontier = Frontier.empty()
    assert.isTrue(frontier.root().equals(EMPTY_ROOT))
    for (const [index, one] of hashes.entries()) {
      const copy = frontier.clone()
      const text = frontier.encode()
      frontier = Frontier.decode(text)
      assert.strictEqual(frontier.encode(), text)
      frontier.append(one)
      copy.append("f".repeat(64))
      assert.strictEqual(frontier.size, index + 1)
      assert.strictEqual(copy.size, index + 1)
      assert.isFalse(copy.root().equals(frontier.root()))
      assert.isTrue(frontier.root().equals(frontierOf(hashes.slice(0, index + 1)).root()))
    }
  })

  it("adds nothing that is not a hash", () => {
    const frontier = frontierOf(eventHashes(3))
    const before = frontier.encode()
    const [short, long] = ["f".repeat(63), "f".repeat(65)]
    for (const text of ["", short, long, "g".repeat(64), `${"f".repeat(62)}zz`]) {
      assert.throws(() => frontier.append(text), RangeError)
    }
    assert.strictEqual(frontier.encode(), before)
    assert.throws(() => nodeHash(Buffer.alloc(31), Buffer.alloc(32)), RangeError)
    assert.throws(() => nodeHash(Buffer.alloc(32), Buffer.alloc(33)), RangeError)
  })

  it("reads only what it writes", () => {
    const text = frontierOf(eventHashes(6)).encode()
    assert.strictEqual(Frontier.decode(text).size, 6)
    assert.strictEqual(Frontier.decode("0:").size, 0)
    const base64 = text.slice(2)
    const refused = [
      "",
      ":",
      "0",
      "1:",
      "0:AAAA",
      `7:${base64}`,
      `06:${base64}`,
      `6:${base64}=`,
      `6: ${base64}`,
      `6:${base64.slice(4)}`,
      `-6:${base64}`,
      `6.0:${base64}`,
      "9007199254740992:",
      text.replaceAll("+", "-").replaceAll("/", "_").replace("6:", "6:-"),
      `${text}\n`
    ]
    for (const one of refused) assert.throws(() => Frontier.decode(one), FrontierUnreadable)
  })
})
