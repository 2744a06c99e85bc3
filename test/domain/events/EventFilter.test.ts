/** What a filter means: every condition on its own, and the order in which a path is resolved. */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import type { AuditEvent } from "../../../src/domain/events/AuditEvent.ts"
import { type EventFilter, emptyFilter, matcherOf } from "../../../src/domain/events/EventFilter.ts"
import { FilteredEvent } from "../../../src/domain/events/FilteredEvent.ts"
import {
  METADATA_PATH_SEGMENTS_MAX,
  metadataPathCandidates
} from "../../../src/domain/events/MetadataPath.ts"
import { searchText } from "../../../src/domain/events/SearchText.ts"
import type { JsonObject } from "../../../src/domain/json/Json.ts"
import { matches } from "../../support/Matches.ts"

const event: AuditEvent = {
  id: "evt-1",
  timestamp: "2026-11-21T10:00:00.000001Z",
  actor: { id: "User_1", type: "human", email: "Ann@Example.com" },
  action: "document.share.link",
  resource: { id: "doc_1", type: "Document", name: "Straße ΟΔΟΣ" },
  outcome: "success",
  metadata: { ip: "192.0.2.1", Tags: ["Red", ["Hidden", { deep: "Treasure" }]], n: 7 },
  tenant_id: "acme",
  sequence_number: 5,
  created_at: "2026-11-21T12:00:00.000000Z",
  prev_hash: "0".repeat(64),
  content_hash: "0".repeat(64),
  hash: "0".repeat(64)
}

const withMetadata = (metadata: unknown): AuditEvent => ({
  ...event,
  metadata: metadata as JsonObject
})

const holds = (filter: Partial<EventFilter>, of: AuditEvent = event): boolean =>
  matches({ ...emptyFilter, ...filter }, of)

const hasMetadata = (metadata: unknown, path: string, value: string): boolean =>
  holds({ metadata: [{ path, value }] }, withMetadata(metadata))

describe("matches", () => {
  it("lets everything through without conditions", () => assert.isTrue(holds({})))

  it.each<[Partial<EventFilter>, Partial<EventFilter>]>([
    [{ id: "evt-1" }, { id: "EVT-1" }],
    [{ actorId: "User_1" }, { actorId: "user_1" }],
    [{ actorType: "human" }, { actorType: "agent" }],
    [{ action: "document.share.link" }, { action: "document.share" }],
    [{ actionPrefix: "document." }, { actionPrefix: "documents." }],
    [{ actionPrefix: "document.share." }, { actionPrefix: "document.share.link." }],
    [{ resourceId: "doc_1" }, { resourceId: "doc_" }],
    [{ resourceType: "Document" }, { resourceType: "document" }],
    [{ outcome: "success" }, { outcome: "failure" }],
    [{ from: "2026-11-21T10:00:00.000001Z" }, { from: "2026-11-21T10:00:00.000002Z" }],
    [{ to: "2026-11-21T10:00:00.000001Z" }, { to: "2026-11-21T10:00:00.000000Z" }],
    [{ fromSequence: 5 }, { fromSequence: 6 }],
    [{ toSequence: 5 }, { toSequence: 4 }],
    [{ q: "ANN@example" }, { q: "bob" }],
    [{ metadata: [{ path: "n", value: "7" }] }, { metadata: [{ path: "n", value: "8" }] }]
  ])("tells %j from %j", (yes, no) => {
    assert.isTrue(holds(yes))
    assert.isFalse(holds(no))
  })

  it("wants every condition to hold", () => {
    const all: Partial<EventFilter> = {
      actorId: "User_1",
      actionPrefix: "document.",
      q: "red",
      metadata: [
        { path: "n", value: "7" },
        { path: "Tags", value: "Red" }
      ]
    }
    assert.isTrue(holds(all))
    assert.isFalse(holds({ ...all, actorId: "other" }))
    assert.isFalse(holds({ ...all, q: "green" }))
    assert.isFalse(
      holds({
        ...all,
        metadata: [
          { path: "n", value: "7" },
          { path: "Tags", value: "red" }
        ]
      })
    )
  })

  it("finds nothing in an event whose details were erased", () => {
    const { metadata: _, ...rest } = event
    assert.isFalse(holds({ q: "192.0.2.1" }, rest))
    assert.isFalse(holds({ metadata: [{ path: "ip", value: "192.0.2.1" }] }, rest))
  })
})

describe("metadata conditions", () => {
  it.each([
    [{ a: "x" }, "x", true],
    [{ a: "x" }, "X", false],
    [{ a: "" }, "", true],
    [{ a: 1 }, "1", true],
    [{ a: 1 }, "1.0", false],
    [{ a: 1e21 }, "1e+21", true],
    [{ a: 0.000001 }, "0.000001", true],
    [{ a: -0 }, "0", true],
    [{ a: "1" }, "1", true],
    [{ a: true }, "true", true],
    [{ a: false }, "true", false],
    [{ a: null }, "null", true],
    [{ a: "null" }, "null", true],
    [{ a: {} }, "{}", false],
    [{ a: { b: "x" } }, "x", false],
    [{ a: [] }, "", false],
    [{ a: ["x", 2, true, null] }, "x", true],
    [{ a: ["x", 2, true, null] }, "2", true],
    [{ a: ["x", 2, true, null] }, "true", true],
    [{ a: ["x", 2, true, null] }, "null", true],
    [{ a: [["x"]] }, "x", true],
    [{ a: [{ b: "x" }] }, "x", false],
    [{ b: "x" }, "x", false]
  ])("in %j, a=%s: %s", (metadata, value, expected) => {
    assert.strictEqual(hasMetadata(metadata, "a", value), expected)
  })

  it("finds an element of nested arrays, but nothing of the objects in them", () => {
    const metadata = { a: [["x", [1, [null]]], { b: "y" }, []] }
    for (const value of ["x", "1", "null"]) assert.isTrue(hasMetadata(metadata, "a", value), value)
    for (const value of ["y", "b", "[]", "[1,[null]]", "{}"]) {
      assert.isFalse(hasMetadata(metadata, "a", value), value)
    }
  })

  it("walks objects, not arrays", () => {
    assert.isTrue(hasMetadata({ a: { b: { c: "x" } } }, "a.b.c", "x"))
    assert.isFalse(hasMetadata({ a: [{ b: "x" }] }, "a.b", "x"))
    assert.isFalse(hasMetadata({ a: ["x"] }, "a.0", "x"))
    assert.isFalse(hasMetadata({ a: "x" }, "a.length", "1"))
  })

  it("sees own keys only, whatever they are called", () => {
    assert.isFalse(hasMetadata({}, "constructor.name", "Object"))
    assert.isFalse(hasMetadata({}, "__proto__", "null"))
    assert.isFalse(hasMetadata({}, "toString", "{}"))
    assert.isTrue(hasMetadata(JSON.parse('{"__proto__":{"a":1}}'), "__proto__.a", "1"))
    assert.isTrue(hasMetadata({ "": { "": "x" } }, ".", "x"))
  })

  it("tries the longest key first, and the first that exists decides", () => {
    assert.isTrue(hasMetadata({ "a.b": "x", a: { b: "y" } }, "a.b", "x"))
    assert.isFalse(hasMetadata({ "a.b": "x", a: { b: "y" } }, "a.b", "y"))
    assert.isTrue(hasMetadata({ "a.b": { d: 1 }, a: { b: { c: "y" } } }, "a.b.c", "y"))
    assert.isTrue(hasMetadata({ a: { "b.c": "x", b: { c: "y" } } }, "a.b.c", "x"))
    assert.isFalse(hasMetadata({ "a.b": null, a: { b: "y" } }, "a.b", "y"))
  })
})

describe("metadataPathCandidates", () => {
  it("lists the ways to cut a path, longest key first", () => {
    assert.deepStrictEqual(metadataPathCandidates("a"), [["a"]])
    assert.deepStrictEqual(metadataPathCandidates("a.b.c"), [
      ["a.b.c"],
      ["a.b", "c"],
      ["a", "b.c"],
      ["a", "b", "c"]
    ])
  })

  it("has each way once, up to the limit of segments and none beyond", () => {
    for (let segments = 1; segments <= METADATA_PATH_SEGMENTS_MAX; segments++) {
      const path = Array.from({ length: segments }, (_, index) => `k${index}`).join(".")
      const found = metadataPathCandidates(path)
      assert.strictEqual(found.length, 2 ** (segments - 1))
      assert.strictEqual(new Set(found.map((keys) => JSON.stringify(keys))).size, found.length)
      for (const keys of found) assert.strictEqual(keys.join("."), path)
    }
    assert.deepStrictEqual(metadataPathCandidates("a.b.c.d.e.f.g"), [])
  })
})

describe("q", () => {
  it.each([
    "document.SHARE",
    "user_1",
    "ann@example.COM",
    "DOC_1",
    "document",
    "STRA",
    "straße",
    "192.0",
    "red",
    "hidden",
    "treasure"
  ])("finds %s", (q) => assert.isTrue(holds({ q })))

  it.each(["tags", "deep", "evt-1", "success", "human", "acme", "7", "strasse", "linkuser", "\0"])(
    "does not find %s, which is a key, another field, a number, or no text at all",
    (q) => assert.isFalse(holds({ q }))
  )

  it("folds case as the store does: with toLowerCase on both sides", () => {
    for (const q of ["οδος", "ΟΔΟΣ", "οδοσ", "ΔΟΣ", "ς", "σ", "Σ"]) assert.isTrue(holds({ q }), q)
    const inside = { ...event, resource: { ...event.resource, name: "ΜΟΣΧΑ" } }
    for (const q of ["ΜΟΣ", "μος", "μοσ"]) assert.isTrue(holds({ q }, inside), q)
  })

  it("finds every searchable text, in any case, and nothing across two of them", () => {
    const text = fc.string({ minLength: 1, maxLength: 6 }).filter((one) => !one.includes("\0"))
    fc.assert(
      fc.property(text, text, text, fc.boolean(), (name, value, q, upper) => {
        const searched = withMetadata({ key: [value] })
        const named = { ...searched, resource: { ...event.resource, name } }
        for (const part of [name, value]) {
          assert.isTrue(holds({ q: upper ? part.toUpperCase() : part }, named))
        }
        const texts = [
          event.action,
          event.actor.id,
          event.actor.email!,
          event.resource.id,
          event.resource.type,
          name,
          value
        ]
        const expected = texts.some((one) => one.toLowerCase().includes(q.toLowerCase()))
        assert.strictEqual(holds({ q }, named), expected)
      })
    )
  })

  it("searches texts that are joined by U+0000", () => {
    assert.deepStrictEqual(
      new Set(searchText(event).split("\0")),
      new Set([
        "document.share.link",
        "user_1",
        "ann@example.com",
        "doc_1",
        "document",
        "straße οδοσ",
        "192.0.2.1",
        "red",
        "hidden",
        "treasure"
      ])
    )
  })
})

describe("a filter of many conditions", () => {
  /** Metadata that counts how often its values are read. */
  const counted = (values: JsonObject) => {
    let reads = 0
    const metadata = {}
    for (const [key, value] of Object.entries(values)) {
      const get = () => {
        reads += 1
        return value
      }
      Object.defineProperty(metadata, key, { enumerable: true, get })
    }
    return { of: new FilteredEvent(withMetadata(metadata)), reads: () => reads }
  }
  const either = (condition: (n: number) => string) =>
    Array.from({ length: 60 }, (_, n) => condition(n)).join(" OR ")

  it.each([
    ["texts that are searched for", either((n) => `"nowhere ${n}"`)],
    ["elements of a list", either((n) => `metadata.l:nothing${n}`)]
  ])("reads metadata once, for %s, however many such filters ask", (_, where) => {
    const { of, reads } = counted({ l: ["a", ["b"]] })
    for (const q of ["one", "two", "three"]) {
      assert.isFalse(matcherOf({ ...emptyFilter, where: `(${where}) AND NOT "${q}"` })(of))
    }
    assert.isAtMost(reads(), 2)
  })
})

describe("a path through lists", () => {
  const metadata = {
    tags: [{ k: "env", v: "prod" }, [{ v: ["a", 5] }], "loose", { k: "none" }],
    deep: { list: [{ in: [{ n: 1 }, { n: 2 }] }] },
    "key[].v": "whole",
    object: { v: "prod" }
  }
  it.each([
    ["metadata.tags[].v:prod", true],
    ["metadata.tags[].v:a metadata.tags[].v>4", true],
    ["metadata.tags[].v:pr* metadata.tags[]:loose", true],
    ["metadata.tags[].v!=prod", false],
    ["metadata.tags[].k:prod", false],
    ["metadata.tags[].none:*", false],
    ["metadata.deep.list[].in[].n:2 metadata.deep.list[].in[].n>=2", true],
    ["metadata.key[].v:whole", true],
    ["metadata.object[].v:prod", false],
    ["metadata.tags.v:prod", false]
  ])("%s is %s", (where, holds) => {
    const of = new FilteredEvent(withMetadata(metadata))
    assert.strictEqual(matcherOf({ ...emptyFilter, where })(of), holds)
  })
})
