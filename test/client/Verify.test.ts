/** Events and chains recomputed from the published vectors, and every way in which a chain breaks. */
import { readFileSync } from "node:fs"
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { ChainVerifier, verifyEvent } from "../../src/client/index.ts"
import { runs } from "../support/Runs.ts"

const vectorsOf = (name: string) => JSON.parse(readFileSync(`schemas/vectors/${name}.json`, "utf8"))

const events = vectorsOf("alk-chain-v1") as {
  readonly chain: ReadonlyArray<{ readonly event: Record<string, any> }>
  readonly broken: ReadonlyArray<Record<string, any>>
}
const facts = vectorsOf("alk-trace-v1") as {
  readonly chain: ReadonlyArray<{ readonly stored: string }>
  readonly erased: ReadonlyArray<string>
  readonly broken: ReadonlyArray<{
    readonly name: string
    readonly at_sequence: number
    readonly stored: ReadonlyArray<string>
  }>
}
const cases = vectorsOf("chain-cases") as {
  readonly stored_chains: ReadonlyArray<{
    readonly name: string
    readonly lines: ReadonlyArray<string>
    readonly break?: { readonly at_sequence: number; readonly reason: string }
  }>
}

/** Reasons of the client that the published cases have one name for. */
const reasons: Readonly<Record<string, ReadonlyArray<string>>> = {
  content_mismatch: ["content_mismatch", "details_mismatch", "unhashed_member", "erased"]
}

const lines = events.chain.map(({ event }) => JSON.stringify(event))
const stored = facts.chain.map(({ stored }) => stored)

const firstBreakOf = async (records: ReadonlyArray<string | object>, options = {}) => {
  const verifier = new ChainVerifier(options)
  for (const record of records) await verifier.add(record)
  return verifier.firstBreak
}

/** The same record with another value at a path, such as `actor.id`. */
const changed = (line: string, path: string, value: unknown): string => {
  const record = JSON.parse(line)
  const names = path.split(".")
  const last = names.pop()!
  let holder = record
  for (const name of names) holder = holder[name]
  holder[last] = value
  return JSON.stringify(record)
}

describe("verifyEvent", () => {
  it("finds every event and fact of the vectors whole", async () => {
    for (const line of [...lines, ...stored]) {
      assert.deepStrictEqual(await verifyEvent(line), { valid: true, isErased: false })
      assert.isTrue((await verifyEvent(JSON.parse(line))).valid)
      assert.isTrue((await verifyEvent(new TextEncoder().encode(line))).valid)
    }
  })

  it("finds a change of any member that is hashed, and a member that no hash covers", async () => {
    const [line = ""] = lines
    for (const path of ["id", "timestamp", "actor.id", "actor.type", "action", "outcome"]) {
      const found = await verifyEvent(changed(line, path, "x"))
      assert.strictEqual(found.valid ? "valid" : found.reason, "content_mismatch", path)
    }
    for (const [path, reason] of [
      ["tenant_id", "hash_mismatch"],
      ["created_at", "hash_mismatch"],
      ["metadata", "details_mismatch"],
      ["actor.note", "unhashed_member"],
      ["note", "unhashed_member"]
    ] as const) {
      const found = await verifyEvent(changed(line, path, path === "metadata" ? {} : "x"))
      assert.strictEqual(found.valid ? "valid" : found.reason, reason, path)
    }
  })

  it("knows an erased event, and says what is none", async () => {
    const withDetails = events.chain.find(({ event }) => event["actor"].email !== undefined)!.event
    const { email: _, ...actor } = withDetails["actor"]
    const { details_salt: __, ...rest } = withDetails
    const erased = { ...rest, actor, erased_at: "2026-12-01T00:00:00.000000Z" }
    assert.deepStrictEqual(await verifyEvent(erased), { valid: true, isErased: true })
    for (const text of ["", "[]", "{}", '{"tenant_id":1}', changed(lines[0]!, "actor", 5)]) {
      const found = await verifyEvent(text)
      assert.strictEqual(found.valid ? "valid" : found.reason, "not_a_record", text)
    }
  })
})

describe("the verifier of chains", () => {
  it("follows both chains of a tenant, mixed", async () => {
    const verifier = new ChainVerifier()
    for (const record of [...lines, ...stored]) assert.isUndefined(await verifier.add(record))
    assert.strictEqual(verifier.records, lines.length + stored.length)
    assert.deepStrictEqual(
      verifier.heads.map(({ scheme, sequence }) => ({ scheme, sequence })),
      [
        { scheme: "alk-chain-v1", sequence: lines.length },
        { scheme: "alk-trace-v1", sequence: stored.length }
      ]
    )
    assert.strictEqual(verifier.heads[0]?.hash, events.chain.at(-1)?.event["hash"])
  })

  it.each(cases.stored_chains.map((one) => [one.name, one] as const))(
    "agrees with the published case: %s",
    async (_, { break: expected, lines: chain }) => {
      const verifier = new ChainVerifier()
      for (const line of chain) await verifier.add(line)
      if (expected?.reason === "duplicate_sequence") {
        // Consumers see records again; that the log has none twice, their offsets say.
        assert.deepStrictEqual([verifier.firstBreak, verifier.repeated], [undefined, 1])
        return
      }
      const [unexplained] = verifier.unexplainedErasures
      const found = verifier.firstBreak ?? (unexplained && { ...unexplained, reason: "erased" })
      assert.strictEqual(found?.sequence, expected?.at_sequence)
      if (expected !== undefined) {
        assert.include(reasons[expected.reason] ?? [expected.reason], found?.reason)
      }
    }
  )

  // Numbers within an execution are for those who read it whole: `GET /api/v1/executions/{id}/verify`.
  const ofChain = facts.broken.filter(({ name }) => name !== "a number left out, hashes made anew")

  it.each(ofChain.map((one) => [one.name, one] as const))(
    "finds the published fault of facts: %s",
    async (name, { at_sequence, stored: chain }) => {
      const verifier = new ChainVerifier()
      for (const line of chain) await verifier.add(line)
      const { firstBreak, repeated, unexplainedErasures } = verifier
      if (name === "a fact that is there twice") return assert.strictEqual(repeated, 1)
      if (firstBreak?.reason === "sequence_gap") {
        return assert.strictEqual(firstBreak.actual, `sequence ${at_sequence}`)
      }
      assert.strictEqual((firstBreak ?? unexplainedErasures[0])?.sequence, at_sequence)
    }
  )

  it("takes the erased facts of the vectors", async () => {
    const verifier = new ChainVerifier()
    for (const line of facts.erased) assert.isUndefined(await verifier.add(line))
    assert.strictEqual(verifier.records, facts.erased.length)
    assert.deepStrictEqual(verifier.unexplainedErasures, [])
  })

  it("finds a record that is left out, changed, or put in, at its place", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: lines.length - 1 }),
        fc.constantFrom("leave out", "change", "swap hashes", "cut the start"),
        async (at, how) => {
          const line = lines[at]!
          if (how === "leave out" && at < lines.length - 1) {
            const first = await firstBreakOf(lines.filter((_, index) => index !== at))
            assert.strictEqual(first?.reason, "sequence_gap")
            assert.deepStrictEqual(
              [first?.sequence, first?.expected, first?.actual],
              [at + 1, `sequence ${at + 1}`, `sequence ${at + 2}`]
            )
          } else if (how === "change") {
            const first = await firstBreakOf(lines.with(at, changed(line, "action", "a.b")))
            assert.deepStrictEqual([first?.sequence, first?.reason], [at + 1, "content_mismatch"])
            assert.strictEqual(first?.expected, JSON.parse(line).content_hash)
          } else if (how === "swap hashes") {
            const first = await firstBreakOf(
              lines.with(at, changed(line, "prev_hash", "f".repeat(64)))
            )
            assert.deepStrictEqual([first?.sequence, first?.reason], [at + 1, "prev_hash_mismatch"])
            assert.strictEqual(first?.actual, "f".repeat(64))
          } else if (at > 0) {
            const first = await firstBreakOf(lines.slice(at))
            assert.deepStrictEqual([first?.sequence, first?.reason], [1, "sequence_gap"])
            assert.isUndefined(await firstBreakOf(lines.slice(at), { start: "anywhere" }))
          }
        }
      ),
      { numRuns: runs(200) }
    )
  })

  it("goes on from a head that was kept, and takes records again that it has seen", async () => {
    const before = new ChainVerifier()
    for (const line of lines.slice(0, 2)) await before.add(line)
    const after = new ChainVerifier({ heads: before.heads })
    for (const line of lines.slice(1)) assert.isUndefined(await after.add(line))
    assert.strictEqual(after.repeated, 1)
    const other = changed(lines[1]!, "hash", "a".repeat(64))
    const found = await new ChainVerifier({ heads: before.heads }).add(other)
    assert.deepStrictEqual(
      [found?.reason, found?.expected],
      ["other_record", before.heads[0]?.hash]
    )
  })

  it("checks in the order of the calls, even if nobody waits for them", async () => {
    const verifier = new ChainVerifier()
    const found = await Promise.all([...lines, ...lines].map((line) => verifier.add(line)))
    assert.isTrue(found.every((one) => one === undefined))
    assert.strictEqual(verifier.repeated, lines.length)
  })

  it("names erased records of which no record says so", async () => {
    const at = events.chain.findIndex(({ event }) => event["details_hash"] !== undefined)
    const { event } = events.chain[at]!
    const { email: _, ...actor } = event["actor"]
    const { name: __, ...resource } = event["resource"]
    const { details_salt: ___, metadata: ____, ...rest } = event
    const verifier = new ChainVerifier()
    for (const line of lines.with(
      at,
      JSON.stringify({ ...rest, actor, resource, erased_at: event["created_at"] })
    )) {
      assert.isUndefined(await verifier.add(line))
    }
    assert.deepStrictEqual(verifier.unexplainedErasures, [
      { scheme: "alk-chain-v1", tenant: "acme", sequence: at + 1 }
    ])
  })
})
