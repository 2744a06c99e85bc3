/** What the browser recomputes of an event: true of every true proof, and of nothing that was changed. */
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { type EventProof, proveEvent } from "../../src/console/proof/EventProof.ts"
import { makeCheckpoint } from "../../src/domain/chain/Checkpoint.ts"
import { Frontier } from "../../src/domain/chain/MerkleTree.ts"
import type { AuditEvent } from "../../src/domain/events/AuditEvent.ts"
import { hostileItems, TestChain } from "../exports/support/Chains.ts"
import { checkpointSigner } from "../support/Signer.ts"
import { hash, keysOf, pathOf } from "./MerkleRules.ts"

const { serviceName, signer } = checkpointSigner
const keys = keysOf("root")

const proofOf = (chain: TestChain, sequence: number) => {
  const events = chain.bodies.map((_, index) => chain.event(index + 1))
  const leaves = events.map((event) => hash(Buffer.of(0), Buffer.from(event.hash, "hex")))
  const frontier = Frontier.empty()
  for (const { hash: leaf } of events) frontier.append(leaf)
  const event = events[sequence - 1]!
  return {
    event,
    previous: events[sequence - 2],
    proof: {
      tenant_id: chain.tenantId,
      sequence_number: sequence,
      leaf_index: sequence - 1,
      event_hash: event.hash,
      leaf_hash: leaves[sequence - 1]!.toString("hex"),
      proof: pathOf(sequence - 1, leaves).map((one) => one.toString("hex")),
      checkpoint: makeCheckpoint(signer, serviceName, chain.tenantId, frontier, event.created_at)
    }
  }
}

type Proven = ReturnType<typeof proofOf>

const prove = ({ event, previous, proof }: Proven, published = keys): Promise<EventProof> =>
  proveEvent(
    event as Parameters<typeof proveEvent>[0],
    previous as Parameters<typeof proveEvent>[1],
    proof,
    published
  )

const falseSteps = ({ steps }: EventProof) =>
  steps.filter(({ isTrue }) => !isTrue).map(({ name }) => name)

describe("an event in a signed tree", () => {
  it("is proved, wherever it is and however large the tree", async () => {
    for (let length = 1; length <= 20; length++) {
      const chain = new TestChain("acme", length)
      for (let sequence = 1; sequence <= length; sequence++) {
        const proven = proofOf(chain, sequence)
        const { isTrue, levels, root, steps } = await prove(proven)
        assert.isTrue(isTrue, JSON.stringify(steps))
        assert.strictEqual(root, proven.proof.checkpoint.root_hash)
        assert.strictEqual(levels.length, proven.proof.proof.length)
      }
    }
  })

  it("is proved with texts that break whoever does not treat them as text", async () => {
    const chain = new TestChain("a/tenant ü")
    for (const item of hostileItems) chain.add(item)
    chain.add({
      metadata: null,
      actor: { id: "a", type: "agent" },
      resource: { id: "r", type: "t" }
    })
    for (let sequence = 1; sequence <= chain.length; sequence++) {
      const proof = await prove(proofOf(chain, sequence))
      assert.deepStrictEqual(falseSteps(proof), [])
    }
  })

  it("is proved after its details were erased", async () => {
    const chain = new TestChain("acme", 5)
    chain.erase(3)
    const proof = await prove(proofOf(chain, 3))
    assert.isTrue(proof.isTrue)
    assert.notInclude(
      proof.steps.map(({ name }) => name),
      "details"
    )
  })
})

const digit = (text: string, at: number): string =>
  text.slice(0, at) + (text[at] === "0" ? "1" : "0") + text.slice(at + 1)

/** Changes of one thing, and the first step that has to see it. */
const changes: ReadonlyArray<readonly [sees: string, change: (proven: Proven) => Proven]> = [
  ["details", (one) => withEvent(one, { metadata: { other: true } })],
  ["details", (one) => withEvent(one, { actor: { ...one.event.actor, email: "x@example.com" } })],
  ["content", (one) => withEvent(one, { action: "document.deleted" })],
  ["content", (one) => withEvent(one, { outcome: "error" })],
  ["content", (one) => withEvent(one, { timestamp: "2027-01-01T00:00:00.000000Z" })],
  ["link", (one) => withEvent(one, { created_at: "2027-01-01T00:00:00.000000Z" })],
  ["link", (one) => withEvent(one, { tenant_id: "globex" })],
  ["link", (one) => withEvent(one, { hash: digit(one.event.hash, 5) })],
  ["event before", (one) => ({ ...one, previous: undefined })],
  ["path", (one) => withProof(one, { proof: one.proof.proof.slice(1) })],
  ["path", (one) => withProof(one, { proof: [...one.proof.proof, "0".repeat(64)] })],
  ["path", (one) => withProof(one, { proof: one.proof.proof.map((text) => digit(text, 9)) })],
  ["path", (one) => withCheckpoint(one, { root_hash: "0".repeat(64) })],
  ["signed log", (one) => withProof(one, { tenant_id: "globex" })],
  ["signed size", (one) => withNote(one, /\n/, "\n1")],
  ["signed root", (one) => withNote(one, /\n[^\n]([^\n]*\n\n)/, "\nA$1")],
  ["signature", (one) => withNote(one, /.{8}\n$/, "AAAAAAA=\n")]
]

const withEvent = (one: Proven, change: object): Proven => ({
  ...one,
  event: { ...one.event, ...change } as AuditEvent
})
const withProof = (one: Proven, change: Partial<Proven["proof"]>): Proven => ({
  ...one,
  proof: { ...one.proof, ...change }
})
const withCheckpoint = (one: Proven, change: object): Proven =>
  withProof(one, { checkpoint: { ...one.proof.checkpoint, ...change } })
const withNote = (one: Proven, from: RegExp, to: string): Proven =>
  withCheckpoint(one, { note: one.proof.checkpoint.note.replace(from, to) })

describe("what was changed", () => {
  it("is seen by the step that is about it", async () => {
    const sound = proofOf(new TestChain("acme", 13), 7)
    assert.isTrue((await prove(sound)).isTrue)
    for (const [sees, change] of changes) {
      const proof = await prove(change(sound))
      assert.isFalse(proof.isTrue)
      const seen = falseSteps(proof)
      assert.include(seen, sees, String(change))
    }
  })

  it("is seen in a note of another tree, and under a key that nobody vouches for", async () => {
    const chain = new TestChain("acme", 9)
    const [own, other] = [proofOf(chain, 4), proofOf(chain.branch(8), 4)]
    const mixed = withCheckpoint(own, { note: other.proof.checkpoint.note })
    assert.includeMembers(falseSteps(await prove(mixed)), ["signed root", "signed size"])
    const unendorsed = keysOf("unendorsed")
    assert.deepStrictEqual(falseSteps(await prove(own, unendorsed)), ["signature"])
    assert.deepStrictEqual(falseSteps(await prove(own, { ...keys, keys: [] })), ["signature"])
  })

  it("is seen for any sibling of any event", () =>
    fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 2, max: 30 }),
        fc.nat(),
        fc.nat(),
        async (n, which, at) => {
          const sound = proofOf(new TestChain("acme", n), 1 + (which % n))
          const place = at % sound.proof.proof.length
          const siblings = sound.proof.proof.map((text, index) =>
            index === place ? digit(text, at % 64) : text
          )
          assert.isFalse((await prove(withProof(sound, { proof: siblings }))).isTrue)
        }
      ),
      { numRuns: 30 }
    ))
})
