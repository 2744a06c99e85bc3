/** That one signed tree only added to another: so of every true proof, and of nothing changed. */
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { proveConsistency } from "../../src/console/proof/ConsistencyProof.ts"
import { nodeOf } from "../../src/console/proof/EventProof.ts"
import { makeCheckpoint } from "../../src/domain/chain/Checkpoint.ts"
import { Frontier } from "../../src/domain/chain/MerkleTree.ts"
import { rootsOfProof } from "../../src/domain/chain/TreeShape.ts"
import { checkpointSigner } from "../support/Signer.ts"
import { consistencyOf, hash, keysOf, rootOf } from "./MerkleRules.ts"

const SIZE_MAX = 130
const eventHashes = Array.from({ length: SIZE_MAX }, (_, index) => hash(Buffer.from(`${index}`)))
const leaves = eventHashes.map((one) => hash(Buffer.of(0), one))
const hex = (one: Buffer): string => one.toString("hex")
const rootAt = (size: number): string => hex(rootOf(leaves.slice(0, size)))
const proofOf = (first: number, second: number): ReadonlyArray<string> =>
  consistencyOf(first, leaves.slice(0, second)).map(hex)

const sizes = fc
  .tuple(fc.integer({ min: 1, max: SIZE_MAX }), fc.integer({ min: 1, max: SIZE_MAX }))
  .map(([one, other]) => [Math.min(one, other), Math.max(one, other)] as const)

const flip = (text: string): string => `${text.startsWith("0") ? "1" : "0"}${text.slice(1)}`

const rootsOf = (
  [first, second]: readonly [number, number],
  firstRoot: string,
  proof: ReadonlyArray<string>
) => rootsOfProof({ first, second, firstRoot, proof }, nodeOf)

describe("rootsOf", () => {
  it("leads every true proof to both roots", () => {
    fc.assert(
      fc.property(sizes, ([first, second]) => {
        const roots = rootsOf([first, second], rootAt(first), proofOf(first, second))
        assert.deepStrictEqual(roots, { first: rootAt(first), second: rootAt(second) })
      })
    )
  })

  it("leads no proof with a changed hash to both", () => {
    fc.assert(
      fc.property(sizes, fc.nat(), ([first, second], place) => {
        fc.pre(first < second)
        const proof = proofOf(first, second)
        const changed = proof.with(place % proof.length, flip(proof[place % proof.length]!))
        const roots = rootsOf([first, second], rootAt(first), changed)
        assert.notDeepEqual(roots, { first: rootAt(first), second: rootAt(second) })
      })
    )
  })

  it("takes no proof that is too short or too long", () => {
    fc.assert(
      fc.property(sizes, ([first, second]) => {
        const proof = proofOf(first, second)
        const longer = rootsOf([first, second], rootAt(first), [...proof, rootAt(1)])
        assert.isUndefined(longer)
        if (proof.length === 0) return
        assert.isUndefined(rootsOf([first, second], rootAt(first), proof.slice(0, -1)))
      })
    )
  })

  it("takes no older tree that is larger", () => {
    assert.isUndefined(rootsOf([3, 2], rootAt(3), []))
    assert.isUndefined(rootsOf([0, 2], rootAt(1), proofOf(1, 2)))
  })
})

const checkpointOf = (size: number) => {
  const frontier = Frontier.empty()
  for (const one of eventHashes.slice(0, size)) frontier.append(hex(one))
  const { serviceName, signer } = checkpointSigner
  return makeCheckpoint(signer, serviceName, "acme", frontier, "2026-01-31T12:00:00.000000Z")
}

const consistency = (first: number, second: number) => ({
  tenant_id: "acme",
  first: checkpointOf(first),
  second: checkpointOf(second),
  proof: proofOf(first, second)
})

describe("proveConsistency", () => {
  it("is true of two checkpoints that published keys have signed", async () => {
    const proven = await proveConsistency("acme", consistency(3, 7), keysOf("root"))
    assert.deepStrictEqual(
      proven.steps.filter(({ isTrue }) => !isTrue),
      []
    )
    assert.isTrue(proven.isTrue)
  })

  it("names what does not hold", async () => {
    const other = { ...consistency(3, 7), first: checkpointOf(4) }
    const falseOf = async (...given: Parameters<typeof proveConsistency>) =>
      (await proveConsistency(...given)).steps
        .filter(({ isTrue }) => !isTrue)
        .map(({ name }) => name)
    assert.include(await falseOf("acme", other, keysOf("root")), "path to the older root")
    const unsigned = await falseOf("acme", consistency(3, 7), keysOf("unendorsed"))
    assert.deepStrictEqual(unsigned, ["older: signature", "newer: signature"])
    const ofTraces = await falseOf("acme/traces", consistency(3, 7), keysOf("root"))
    assert.deepStrictEqual(ofTraces, ["older: signed log", "newer: signed log"])
  })
})
