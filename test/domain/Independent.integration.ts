/** The second implementation, which shares no code with this one, on vectors and on our events. */
import { readdirSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { GENESIS_HASH } from "../../src/domain/chain/Chains.ts"
import { appendSuffix, linkHash } from "../../src/domain/events/HashChain.ts"
import { prepareItem } from "../../src/services/ingest/Prepare.ts"
import { runIndependent, vectorsPath } from "../support/Independent.ts"
import { TRACE_VECTORS } from "../support/IndependentTrace.ts"

const items = [
  {},
  { metadata: {} },
  { id: 'evt "2" \\ é 😀', timestamp: "2026-11-21T11:00:00.1234567+01:00" },
  { actor: { id: "a", email: "é@例え.jp" }, resource: { id: "r", type: "t", name: "\t\u2028" } },
  { metadata: JSON.parse('{"b":[1.0,1e21,1e-7,-0,5e-324],"10":1,"9":2}') },
  { metadata: JSON.parse('{"b":1,"__proto__":{"a":null}}') },
  { outcome: "failure", metadata: { "€": 1, "😀": 2, דּ: 3, "\r": "\u007f\u0001" } }
]

/** A chain of these items, made by the writer's own code. */
const chainOf = (tenantId: string): ReadonlyArray<string> => {
  let prevHash = GENESIS_HASH
  return items.map((item, index) => {
    const full = { actor: { id: "a" }, action: "a.b", resource: { id: "r", type: "t" }, ...item }
    const acceptedAt = "2026-11-21T10:00:00.000000Z"
    const prepared = prepareItem(full, { index, mode: "batch", tenantId, acceptedAt, secret: "s" })
    assert("ok" in prepared)
    const { body, contentHash, detailsHash, detailsSalt } = prepared.ok
    const sequenceNumber = index + 1
    const link = { tenantId, sequenceNumber, createdAt: acceptedAt, contentHash, prevHash }
    const hash = linkHash(link)
    prevHash = hash
    const details = detailsSalt === undefined ? {} : { detailsSalt, detailsHash: detailsHash! }
    return body + appendSuffix({ ...link, ...details, hash })
  })
}

const check = (lines: ReadonlyArray<string>, ...flags: ReadonlyArray<string>) =>
  runIndependent(["check", "-", ...flags], lines.map((line) => `${line}\n`).join(""))

describe("the independent implementation", () => {
  it("reproduces every file of vectors", () => {
    // Two are other programs': alk_trace.py's, and the offline verifiers'.
    const others = [TRACE_VECTORS, "key-line.json"]
    const names = readdirSync(vectorsPath("")).filter((name) => !others.includes(name))
    assert.isAbove(names.length, 4)
    const { output, status } = runIndependent(["vectors", ...names.map(vectorsPath)])
    assert.strictEqual(status, 0, output)
  })

  it("finds our chains intact, two tenants interleaved, and in their stored bytes", () => {
    const [first, second] = [chainOf("acme"), chainOf("other")]
    const { output, status } = check(
      first.flatMap((line, index) => [line, second[index]!]),
      "--exact"
    )
    assert.strictEqual(status, 0, output)
    assert.include(output, `intact: ${2 * items.length} events`)
    assert.include(output, `tenant acme length ${items.length} head`)
  })

  it("finds what was changed, and where", () => {
    const lines = chainOf("acme")
    const changed = lines.with(6, lines[6]!.replace("failure", "success"))
    const { output, status } = check(changed)
    assert.strictEqual(status, 1)
    assert.include(output, "tenant acme sequence 7 content_mismatch")
  })

  it("finds an event that is missing", () => {
    const { output, status } = check(chainOf("acme").toSpliced(2, 1))
    assert.strictEqual(status, 1)
    assert.include(output, "sequence 3 sequence_gap")
  })

  it("takes a part of a chain only when told to", () => {
    const part = chainOf("acme").slice(2)
    assert.strictEqual(check(part).status, 1)
    assert.strictEqual(check(part, "--partial").status, 0)
  })

  it("finds other bytes for the same event only when told to", () => {
    const spaced = chainOf("acme").map((line) => JSON.stringify(JSON.parse(line), null, 1))
    const lines = spaced.map((text) => text.replaceAll(/\n\s*/g, ""))
    assert.strictEqual(check(lines).status, 0)
    assert.strictEqual(check(lines, "--exact").status, 1)
  })

  it.each(['{"a":1,"a":2}', "nonsense", '{"id":1}'])("can't read %s", (line) => {
    assert.strictEqual(check([line]).status, 2)
  })
})
