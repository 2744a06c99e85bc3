/**
 * The chain: the vectors and broken chains that others computed, what a change of any field does,
 * and that nothing which is shown escapes the hashes.
 */
import { createHash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { GENESIS_HASH } from "../../../src/domain/chain/Chains.ts"
import { AuditEvent } from "../../../src/domain/events/AuditEvent.ts"
import {
  appendSuffix,
  type CanonicalFields,
  contentHash,
  coreText,
  detailsHash,
  detailsText,
  eraseEvent,
  faultOf,
  linkHash,
  recompute,
  SCHEME
} from "../../../src/domain/events/HashChain.ts"
import { canonicalize } from "../../../src/domain/json/CanonicalJson.ts"
import type { JsonObject, JsonValue } from "../../../src/domain/json/Json.ts"
import { prepareItem } from "../../../src/services/ingest/Prepare.ts"
import { readVectors } from "../../support/Independent.ts"
import { runs } from "../../support/Runs.ts"

const vectors = readVectors("alk-chain-v1.json") as {
  readonly scheme: string
  readonly tenant_id: string
  readonly chain: ReadonlyArray<{
    readonly event: AuditEvent
    readonly details_jcs: string | null
    readonly core_jcs: string
  }>
  readonly broken: ReadonlyArray<{
    readonly reason: string
    readonly at_sequence: number
    readonly events: ReadonlyArray<AuditEvent>
  }>
}

const cases = readVectors("chain-cases.json") as {
  readonly stored_chains: ReadonlyArray<{
    readonly name: string
    readonly lines: ReadonlyArray<string>
    readonly break?: { readonly at_sequence: number; readonly reason: string }
    readonly reformatted_lines?: ReadonlyArray<number>
  }>
}

const ERASED = "alk.event.erased"

const recomputed = (stored: string) => {
  const found = recompute(stored)
  assert(found !== undefined, stored)
  return found
}

interface Found {
  readonly at_sequence: number
  readonly reason: string
}

/** The first break of a whole chain, or undefined. Lines that are `known` may be spelled anyhow. */
const firstBreak = (
  lines: ReadonlyArray<string>,
  known: ReadonlySet<string>
): Found | undefined => {
  const events = lines.map(recomputed)
  const erased = new Set(
    events
      .filter(({ event }) => event.action === ERASED)
      .map(({ event }) => event.metadata?.["sequence_number"])
  )
  let head = { sequence: 0, hash: GENESIS_HASH }
  for (const [index, one] of events.entries()) {
    const { hash, sequence_number: sequence } = one.event
    const expected = head.sequence + 1
    if (sequence > expected) return { at_sequence: expected, reason: "sequence_gap" }
    if (sequence < expected) return { at_sequence: sequence, reason: "duplicate_sequence" }
    const fault = faultOf(one, head.hash, erased.has(sequence))
    if (fault !== undefined) return { at_sequence: sequence, reason: fault.reason }
    if (!one.exact && !known.has(lines[index]!)) {
      return { at_sequence: sequence, reason: "content_mismatch" }
    }
    head = { sequence, hash }
  }
  return undefined
}

const stringify = (event: unknown): string => JSON.stringify(event)

describe("the vectors of alk-chain-v1", () => {
  it("are of this scheme", () => assert.strictEqual(vectors.scheme, SCHEME))

  it.each(vectors.chain)("reproduces $event.id", ({ core_jcs, details_jcs, event }) => {
    const found = recomputed(stringify(event))
    assert.strictEqual(found.detailsHash, event.details_hash)
    assert.strictEqual(found.contentHash, event.content_hash)
    assert.strictEqual(found.hash, event.hash)
    assert.strictEqual(stringify(found.event), stringify(event))
    assert.strictEqual(contentHash(core_jcs), event.content_hash)
    if (details_jcs !== null) {
      assert.strictEqual(detailsHash(event.details_salt!, details_jcs), event.details_hash)
    }
  })

  it("holds as a whole", () => {
    const lines = vectors.chain.map(({ event }) => stringify(event))
    assert.isUndefined(firstBreak(lines, new Set(lines)))
  })

  it.each(vectors.broken)("finds $reason at $at_sequence", ({ at_sequence, events, reason }) => {
    const lines = events.map(stringify)
    assert.deepStrictEqual(firstBreak(lines, new Set(lines)), { at_sequence, reason })
  })
})

describe("the stored chains", () => {
  it.each(cases.stored_chains)("$name", (chain) => {
    const reformatted = chain.lines.flatMap((line, index) =>
      recomputed(line).exact ? [] : [index]
    )
    assert.deepStrictEqual(reformatted, [...(chain.reformatted_lines ?? [])])
    const tolerated = new Set(chain.break === undefined ? chain.lines : [])
    assert.deepStrictEqual(firstBreak(chain.lines, tolerated), chain.break)
  })
})

const sentText = fc
  .string({ unit: "grapheme", maxLength: 12 })
  .filter((text) => !text.includes("\0"))
const sentId = fc.string({ unit: "grapheme-ascii", minLength: 1, maxLength: 8 })

const optional = <A>(value: fc.Arbitrary<A>) => fc.option(value, { nil: undefined })

/** A stored event, made by the writer's own code from what a client may send. */
const storedEvent = fc
  .record({
    id: optional(sentId),
    email: optional(sentText),
    name: optional(sentText),
    metadata: optional(fc.dictionary(sentText, fc.jsonValue({ maxDepth: 2 }))),
    sequenceNumber: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER })
  })
  .map(({ email, id, metadata, name, sequenceNumber }) => {
    const item = JSON.parse(
      stringify({
        id,
        timestamp: "2026-11-21T10:00:01Z",
        actor: { id: "user_1", type: "human", email },
        action: "document.read",
        resource: { id: "doc_1", type: "document", name },
        outcome: "success",
        metadata
      })
    )
    const options = {
      index: 0,
      mode: "single",
      tenantId: "acme",
      acceptedAt: "2026-11-21T10:00:02.000000Z",
      secret: "secret"
    } as const
    const prepared = prepareItem(item, options)
    assert("ok" in prepared)
    const { body, contentHash, detailsHash, detailsSalt } = prepared.ok
    const createdAt = "2026-11-21T10:00:03.000000Z"
    const prevHash = "a".repeat(64)
    const link = { tenantId: "acme", sequenceNumber, createdAt, contentHash, prevHash }
    const hash = linkHash(link)
    const details = detailsSalt === undefined ? {} : { detailsSalt, detailsHash: detailsHash! }
    return body + appendSuffix({ ...link, ...details, hash })
  })

/** The event as the contract describes it, its details hashed the slow way. */
const hashesOf = (event: AuditEvent) => {
  const sha256 = (text: string) => createHash("sha256").update(text, "utf8").digest("hex")
  const { email } = event.actor
  const { name } = event.resource
  const details = {
    ...(email === undefined ? {} : { actor_email: email }),
    ...(event.metadata === undefined ? {} : { metadata: event.metadata as JsonObject }),
    ...(name === undefined ? {} : { resource_name: name })
  }
  const hasDetails = Object.keys(details).length > 0
  const details_hash = hasDetails
    ? sha256(`${event.details_salt}\n${canonicalize(details as JsonValue)}`)
    : undefined
  const core = {
    action: event.action,
    actor: { id: event.actor.id, type: event.actor.type },
    ...(details_hash === undefined ? {} : { details_hash }),
    id: event.id,
    outcome: event.outcome,
    resource: { id: event.resource.id, type: event.resource.type },
    timestamp: event.timestamp
  }
  const content_hash = sha256(canonicalize(core))
  const link = [SCHEME, event.tenant_id, event.sequence_number, event.created_at, content_hash]
  const hash = sha256([...link, event.prev_hash].join("\n"))
  return { details_hash, content_hash, hash }
}

/** The same object with another value, or without one, at a path. */
const replaced = (event: AuditEvent, path: ReadonlyArray<string>, value: unknown): unknown => {
  const copy = structuredClone(event) as Record<string, unknown>
  const holder = path.slice(0, -1).reduce((object, key) => object[key] as typeof copy, copy)
  if (value === undefined) delete holder[path.at(-1)!]
  else holder[path.at(-1)!] = value
  return copy
}

const full = vectors.chain.find(({ event }) => event.id === "evt-6")!.event
const plain = vectors.chain[0]!.event

/** Every place of a stored event that an answer shows, from the schema. */
const shownPaths = Object.keys(AuditEvent.fields).flatMap((name) =>
  name === "actor"
    ? [
        ["actor", "id"],
        ["actor", "type"],
        ["actor", "email"]
      ]
    : name === "resource"
      ? [
          ["resource", "id"],
          ["resource", "type"],
          ["resource", "name"]
        ]
      : [[name]]
)

describe("recompute", () => {
  it("computes what the description says, from the stored text alone", () => {
    fc.assert(
      fc.property(storedEvent, (stored) => {
        const { contentHash, detailsHash, event, exact, hash } = recomputed(stored)
        const expected = hashesOf(event)
        assert.isTrue(exact, stored)
        assert.strictEqual(detailsHash, expected.details_hash)
        assert.strictEqual(contentHash, expected.content_hash)
        assert.strictEqual(hash, expected.hash)
        assert.strictEqual(event.details_hash, detailsHash)
        assert.strictEqual(event.content_hash, contentHash)
        assert.strictEqual(event.hash, hash)
        assert.isUndefined(faultOf(recomputed(stored), event.prev_hash, false))
      })
    )
  })

  it("notices every other byte: the text is exact no more, or a hash differs", () => {
    const other = fc.constantFrom("", " ", "0", "x", '"')
    fc.assert(
      fc.property(storedEvent, fc.nat(), other, (stored, place, put) => {
        const at = place % stored.length
        const changed = stored.slice(0, at) + put + stored.slice(at + 1)
        fc.pre(changed !== stored)
        const found = recompute(changed)
        if (found === undefined || !found.exact) return
        assert.isDefined(faultOf(found, "a".repeat(64), false), changed)
      }),
      { numRuns: runs(500) }
    )
  })

  it.each(shownPaths.map((path) => [path.join("."), path] as const))(
    "covers %s: another value, its removal and its addition are found",
    (name, path) => {
      for (const event of [full, plain]) {
        const before = path.reduce<unknown>((object, key) => (object as never)[key], event)
        const text = name === "metadata" ? { x: 1 } : "f".repeat(32)
        const another = typeof before === "number" ? before + 1 : text
        for (const value of before === undefined ? [another] : [another, undefined]) {
          const found = recompute(stringify(replaced(event, path, value)))
          if (found === undefined) continue
          assert.isDefined(faultOf(found, event.prev_hash, false), `${name} = ${value}`)
        }
      }
    }
  )

  it("takes the event in another spelling, and says so", () => {
    for (const { event } of vectors.chain) {
      const found = recomputed(JSON.stringify(event, null, 2))
      assert.isFalse(found.exact)
      assert.isUndefined(faultOf(found, event.prev_hash, false))
    }
  })

  const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`

  it.each([
    ["nothing", ""],
    ["null", "null"],
    ["an array", "[]"],
    ["an empty object", "{}"],
    ["cut off", stringify(plain).slice(0, -1)],
    ["no actor", stringify({ ...plain, actor: null })],
    ["an id that is no text", stringify({ ...plain, actor: { id: 1, type: "human" } })],
    ["metadata that is no object", stringify({ ...plain, metadata: [] })],
    ["a sequence number in quotes", stringify({ ...plain, sequence_number: "1" })],
    ["a salt that is no text", stringify({ ...full, details_salt: 5 })],
    ["half a surrogate pair", stringify({ ...full, metadata: { a: "\ud800" } })],
    ["100,000 levels", `${stringify(plain).slice(0, -1)},"metadata":{"a":${deep}}}`]
  ])("is undefined for what is no stored event: %s", (_, text) => {
    assert.isUndefined(recompute(text))
  })

  it("does not take the last of two members for the first", () => {
    const twice = stringify(plain).replace('"outcome":"success"', '"outcome":"failure",$&')
    const { event, exact } = recomputed(twice)
    assert.strictEqual(event.outcome, "success")
    assert.isFalse(exact)
  })
})

describe("faultOf", () => {
  const erased = stringify({
    ...(replaced(full, ["metadata"], undefined) as AuditEvent),
    actor: { id: full.actor.id, type: full.actor.type },
    resource: { id: full.resource.id, type: full.resource.type },
    details_salt: undefined,
    erased_at: "2026-12-01T00:00:00.000000Z"
  })

  it("lets details be gone only under an erasure", () => {
    assert.isUndefined(faultOf(recomputed(erased), full.prev_hash, true))
    const fault = faultOf(recomputed(erased), full.prev_hash, false)
    assert.strictEqual(fault?.reason, "content_mismatch")
  })

  it("still covers what is left of an erased event", () => {
    for (const path of [["action"], ["actor", "id"], ["details_hash"], ["timestamp"]]) {
      const found = recomputed(stringify(replaced(JSON.parse(erased), path, "other")))
      assert.strictEqual(faultOf(found, full.prev_hash, true)?.reason, "content_mismatch")
    }
  })

  it("names what it expected and what it found", () => {
    const other = recomputed(stringify({ ...plain, outcome: "failure" }))
    const fault = faultOf(other, GENESIS_HASH, false)
    assert.deepStrictEqual(fault, {
      reason: "content_mismatch",
      expected: `content_hash ${plain.content_hash}`,
      actual: `content_hash ${other.contentHash}`
    })
  })

  it("does not ask for the hash before when that is not known", () => {
    const found = recomputed(stringify(full))
    assert.isUndefined(faultOf(found, undefined, false))
    assert.strictEqual(faultOf(found, GENESIS_HASH, false)?.reason, "prev_hash_mismatch")
  })
})

describe("eraseEvent", () => {
  const ERASED_AT = "2026-11-22T08:00:00.000000Z"
  const chains = cases.stored_chains.filter((chain) => chain.break === undefined)
  const events = [
    ...vectors.chain.map(({ event }) => event),
    ...chains.flatMap(({ lines }) => lines.map((line) => JSON.parse(line) as AuditEvent))
  ]

  it("leaves nothing of the details, and every hash as it is", () => {
    for (const event of events) {
      const erased = eraseEvent(event, ERASED_AT)
      const {
        actor,
        details_salt: _salt,
        erased_at: _at,
        metadata: _metadata,
        resource,
        ...kept
      } = event
      assert.deepStrictEqual(JSON.parse(erased), {
        ...kept,
        actor: { id: actor.id, type: actor.type },
        resource: { id: resource.id, type: resource.type },
        erased_at: ERASED_AT
      })
      const found = recomputed(erased)
      assert.isTrue(found.exact, erased)
      assert.isUndefined(faultOf(found, event.prev_hash, true))
      assert.strictEqual(found.hash, event.hash)
    }
  })

  it("holds only if the chain says so, and only with all of the details gone", () => {
    for (const event of events) {
      const erased = JSON.parse(eraseEvent(event, ERASED_AT)) as AuditEvent
      assert.strictEqual(
        faultOf(recomputed(JSON.stringify(erased)), undefined, false)?.reason,
        "content_mismatch"
      )
      for (const more of [
        { metadata: { note: "left" } },
        { details_salt: "0".repeat(32) },
        { actor: { ...erased.actor, email: "left@example.com" } },
        { resource: { ...erased.resource, name: "left" } }
      ]) {
        const found = recomputed(JSON.stringify({ ...erased, ...more }))
        assert.strictEqual(
          faultOf(found, undefined, true)?.reason,
          "content_mismatch",
          JSON.stringify(more)
        )
      }
    }
  })

  it("changes nothing when it is done again but the time that it is told", () => {
    for (const event of events) {
      const once = eraseEvent(event, ERASED_AT)
      assert.strictEqual(eraseEvent(JSON.parse(once) as AuditEvent, ERASED_AT), once)
    }
  })
})

describe("detailsText and coreText", () => {
  const texts = (present: ReadonlyArray<boolean>): CanonicalFields => ({
    id: '"i"',
    timestamp: '"t"',
    actorId: '"a"',
    actorType: '"human"',
    actorEmail: present[0] === true ? '"e"' : undefined,
    action: '"x.y"',
    resourceId: '"r"',
    resourceType: '"d"',
    resourceName: present[1] === true ? '""' : undefined,
    outcome: '"success"',
    metadata: present[2] === true ? "{}" : undefined
  })

  it("are canonical, with each member that was sent, even an empty one", () => {
    fc.assert(
      fc.property(fc.tuple(fc.boolean(), fc.boolean(), fc.boolean()), (present) => {
        const details = detailsText(texts(present))
        assert.strictEqual(details === undefined, !present.some(Boolean))
        if (details === undefined) return
        assert.strictEqual(canonicalize(JSON.parse(details)), details)
        assert.strictEqual(Object.keys(JSON.parse(details)).length, present.filter(Boolean).length)
      })
    )
    for (const hash of [undefined, "f".repeat(64)]) {
      const core = coreText(texts([true, true, true]), hash)
      assert.strictEqual(canonicalize(JSON.parse(core)), core)
    }
  })
})
