/**
 * From an item to a prepared event: what is refused, with which code and field, what is filled in,
 * what is hashed, and that the schemas of the contract accept the same items.
 */
import { createHash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import jcs from "canonicalize"
import { Schema } from "effect"
import fc from "fast-check"
import {
  AuditEventBatchItem,
  AuditEventInput,
  EVENT_BYTES_MAX,
  METADATA_BYTES_MAX,
  METADATA_SENT_BYTES_MAX,
  NAME_LENGTH_MAX
} from "../../../src/domain/events/AuditEvent.ts"
import { parseStrict } from "../../../src/domain/json/StrictJson.ts"
import { valuesBudget } from "../../../src/services/ingest/LargeValues.ts"
import {
  defaultPrepareLimits,
  type PrepareOptions,
  prepareInSteps,
  prepareItem,
  WARNING_LENGTH_MAX,
  WARNINGS_MAX
} from "../../../src/services/ingest/Prepare.ts"
import { jsonValue } from "../../support/JsonTexts.ts"
import { runs } from "../../support/Runs.ts"

const ACCEPTED_AT = "2026-11-21T10:00:00.123456Z"
const SECRET = "a secret that all processes share"

const options: PrepareOptions = {
  index: 3,
  mode: "single",
  tenantId: "acme",
  acceptedAt: ACCEPTED_AT,
  secret: SECRET
}

const batch: PrepareOptions = { ...options, mode: "batch" }

const LONG_NAME = "x".repeat(NAME_LENGTH_MAX + 1)

const item = {
  actor: { id: "user_1", type: "human" },
  action: "document.read",
  resource: { id: "doc_1", type: "document" },
  outcome: "success"
}

const accepted = (value: unknown, using: PrepareOptions = options) => {
  const prepared = prepareItem(value, using)
  assert("ok" in prepared, JSON.stringify(prepared))
  return { ...prepared.ok, warnings: prepared.warnings, event: JSON.parse(`${prepared.ok.body}}`) }
}

const refused = (value: unknown, using: PrepareOptions = options) => {
  const prepared = prepareItem(value, using)
  assert("error" in prepared, JSON.stringify(prepared))
  return prepared.error
}

const sha256 = (text: string): string => createHash("sha256").update(text, "utf8").digest("hex")

describe("what is stored", () => {
  it("is the event in the order of the vectors, with the time of acceptance and a UUIDv7", () => {
    const { body, event, id, index, warnings } = accepted(item)
    assert.strictEqual(index, 3)
    assert.match(id, /^[0-9a-f-]{14}7/)
    assert.deepStrictEqual(warnings, [])
    assert.strictEqual(
      body,
      `{"id":"${id}","timestamp":"${ACCEPTED_AT}","actor":{"id":"user_1","type":"human"},`
        + '"action":"document.read","resource":{"id":"doc_1","type":"document"},'
        + '"outcome":"success"'
    )
    assert.deepStrictEqual(event, { id, timestamp: ACCEPTED_AT, ...item })
  })

  it("has its times in UTC and its metadata in canonical form", () => {
    const { body } = accepted({
      ...item,
      id: 'evt "1"',
      timestamp: "2026-11-21T11:00:00.1234567+01:00",
      actor: { email: "é@b.example", type: "agent", id: "a" },
      resource: { type: "t", name: "\t", id: "r" },
      metadata: JSON.parse('{"b":1.0,"10":[1e21,-0],"9":{},"__proto__":{"z":1,"y":2}}')
    })
    assert.strictEqual(
      body,
      '{"id":"evt \\"1\\"","timestamp":"2026-11-21T10:00:00.123456Z",'
        + '"actor":{"id":"a","type":"agent","email":"é@b.example"},'
        + '"action":"document.read",'
        + '"resource":{"id":"r","type":"t","name":"\\t"},"outcome":"success",'
        + '"metadata":{"10":[1e+21,0],"9":{},"__proto__":{"y":2,"z":1},"b":1}'
    )
  })

  it("keeps empty texts and empty metadata", () => {
    const { event } = accepted({
      ...item,
      actor: { ...item.actor, email: "" },
      resource: { ...item.resource, name: "" },
      metadata: {}
    })
    assert.strictEqual(event.actor.email, "")
    assert.strictEqual(event.resource.name, "")
    assert.deepStrictEqual(event.metadata, {})
  })

  it("takes null for an optional field as if it were not there", () => {
    const { event, warnings } = accepted({
      ...item,
      id: null,
      timestamp: null,
      metadata: null,
      actor: { ...item.actor, email: null },
      resource: { ...item.resource, name: null }
    })
    assert.deepStrictEqual(Object.keys(event), [
      "id",
      "timestamp",
      "actor",
      "action",
      "resource",
      "outcome"
    ])
    assert.deepStrictEqual(event.actor, item.actor)
    assert.deepStrictEqual(warnings, [])
  })

  it("derives the id from the idempotency key and the place, the same for every attempt", () => {
    const keyed = { ...options, idempotencyKey: "key" }
    const { id } = accepted(item, keyed)
    assert.match(id, /^[0-9a-f-]{14}8/)
    assert.strictEqual(accepted(item, keyed).id, id)
    assert.notStrictEqual(accepted(item, { ...keyed, index: 4 }).id, id)
    assert.notStrictEqual(accepted(item, { ...keyed, tenantId: "other" }).id, id)
    assert.notStrictEqual(accepted(item, { ...keyed, idempotencyKey: "kez" }).id, id)
    assert.strictEqual(accepted({ ...item, id: "mine" }, keyed).id, "mine")
  })
})

describe("a batch item", () => {
  it("has defaults for the actor's type and the outcome", () => {
    const bare = { action: item.action, resource: item.resource }
    const human = accepted({ ...bare, actor: { id: "a", email: "a@b.example" } }, batch).event
    assert.deepInclude(human, { outcome: "success" })
    assert.strictEqual(human.actor.type, "human")
    assert.strictEqual(accepted({ ...bare, actor: { id: "a" } }, batch).event.actor.type, "system")
    const explicit = { ...bare, actor: { id: "a", type: "agent", email: "e" }, outcome: "error" }
    assert.strictEqual(accepted(explicit, batch).event.actor.type, "agent")
    assert.strictEqual(accepted(explicit, batch).event.outcome, "error")
    assert.strictEqual(accepted({ ...explicit, outcome: null }, batch).event.outcome, "success")
  })

  it("still has to be right where it says something", () => {
    assert.strictEqual(refused({ ...item, outcome: "ok" }, batch).code, "invalid_value")
    assert.strictEqual(
      refused({ ...item, actor: { id: "a", type: "robot" } }, batch).code,
      "invalid_value"
    )
  })
})

describe("what is refused", () => {
  const { actor, resource } = item

  it.each<[string, string, unknown]>([
    ["invalid_value", "event", null],
    ["invalid_value", "event", []],
    ["invalid_value", "event", "text"],
    ["invalid_value", "event", 1],
    ["missing_field", "actor", {}],
    ["missing_field", "actor", { ...item, actor: null }],
    ["invalid_value", "actor", { ...item, actor: "user_1" }],
    ["invalid_value", "actor", { ...item, actor: [actor] }],
    ["missing_field", "actor.id", { ...item, actor: { type: "human" } }],
    ["missing_field", "actor.id", { ...item, actor: { ...actor, id: null } }],
    ["invalid_value", "actor.id", { ...item, actor: { ...actor, id: 5 } }],
    ["invalid_value", "actor.id", { ...item, actor: { ...actor, id: "" } }],
    ["missing_field", "actor.type", { ...item, actor: { id: "a" } }],
    ["missing_field", "actor.type", { ...item, actor: { id: "a", type: null } }],
    ["invalid_value", "actor.type", { ...item, actor: { ...actor, type: "Human" } }],
    ["invalid_value", "actor.type", { ...item, actor: { ...actor, type: ["human"] } }],
    ["invalid_value", "actor.email", { ...item, actor: { ...actor, email: 1 } }],
    ["invalid_value", "actor.email", { ...item, actor: { ...actor, email: "x".repeat(321) } }],
    ["missing_field", "action", { ...item, action: undefined }],
    ["missing_field", "action", { ...item, action: null }],
    ["invalid_action", "action", { ...item, action: 5 }],
    ["invalid_action", "action", { ...item, action: "" }],
    ["invalid_action", "action", { ...item, action: "read" }],
    ["invalid_action", "action", { ...item, action: "a..b" }],
    ["invalid_action", "action", { ...item, action: ".a" }],
    ["invalid_action", "action", { ...item, action: "a." }],
    ["invalid_action", "action", { ...item, action: "a.b\n" }],
    ["invalid_action", "action", { ...item, action: "a.é" }],
    ["invalid_action", "action", { ...item, action: "a.b c" }],
    ["invalid_action", "action", { ...item, action: `a.${"b".repeat(127)}` }],
    ["invalid_action", "action", { ...item, action: "alk.event.erased" }],
    ["missing_field", "resource", { ...item, resource: undefined }],
    ["invalid_value", "resource", { ...item, resource: 7 }],
    ["missing_field", "resource.id", { ...item, resource: { type: "t" } }],
    ["invalid_value", "resource.id", { ...item, resource: { id: "a\n", type: "t" } }],
    ["missing_field", "resource.type", { ...item, resource: { id: "r" } }],
    ["invalid_value", "resource.type", { ...item, resource: { id: "r", type: "" } }],
    ["invalid_value", "resource.name", { ...item, resource: { ...resource, name: {} } }],
    ["invalid_value", "resource.name", { ...item, resource: { ...resource, name: LONG_NAME } }],
    ["missing_field", "outcome", { ...item, outcome: undefined }],
    ["missing_field", "outcome", { ...item, outcome: null }],
    ["invalid_value", "outcome", { ...item, outcome: "SUCCESS" }],
    ["invalid_value", "id", { ...item, id: "" }],
    ["invalid_value", "id", { ...item, id: "x".repeat(257) }],
    ["invalid_value", "id", { ...item, id: 1 }],
    ["invalid_timestamp", "timestamp", { ...item, timestamp: "yesterday" }],
    ["invalid_timestamp", "timestamp", { ...item, timestamp: "2026-02-29T00:00:00Z" }],
    ["invalid_timestamp", "timestamp", { ...item, timestamp: 1_763_719_201 }],
    ["invalid_value", "metadata", { ...item, metadata: [] }],
    ["invalid_value", "metadata", { ...item, metadata: "x" }],
    ["unstorable_value", "event", { ...item, metadata: { a: "\ud800" } }]
  ])("%s, naming %s", (code, field, value) => {
    const error = refused(value)
    assert.strictEqual(error.code, code)
    assert.isTrue(error.message.startsWith(`${field}: `), error.message)
  })

  it("is not an action that only looks like the service's own", () => {
    for (const action of ["alkali.add", "ALK.add", "a-_9.Z", "a.b.c.d", `a.${"b".repeat(126)}`]) {
      assert.strictEqual(accepted({ ...item, action }).event.action, action)
    }
  })

  it("is metadata of one byte more than allowed, counted in canonical form", () => {
    const metadata = (bytes: number) => ({ a: "x".repeat(bytes - '{"a":""}'.length) })
    assert.isDefined(accepted({ ...item, metadata: metadata(METADATA_BYTES_MAX) }))
    const error = refused({ ...item, metadata: metadata(METADATA_BYTES_MAX + 1) })
    assert.strictEqual(error.code, "metadata_too_large")
    assert.include(error.message, String(METADATA_BYTES_MAX + 1))
    const wide = { a: "é".repeat(METADATA_BYTES_MAX / 2) }
    assert.strictEqual(refused({ ...item, metadata: wide }).code, "metadata_too_large")
    // Where values may be stored apart, it is more.
    const given = { ...options, room: valuesBudget() }
    assert.isDefined(accepted({ ...item, metadata: metadata(METADATA_SENT_BYTES_MAX) }, given))
    const over = refused({ ...item, metadata: metadata(METADATA_SENT_BYTES_MAX + 1) }, given)
    assert.strictEqual(over.code, "metadata_too_large")
    assert.include(over.message, `send at most ${METADATA_SENT_BYTES_MAX}`)
  })

  it("is metadata whose large members have no room in the request", () => {
    const large = { ...item, metadata: { a: "x".repeat(METADATA_BYTES_MAX) } }
    const room = { left: 40_000 }
    assert.isDefined(accepted(large, { ...options, room }))
    const error = refused(
      { ...large, metadata: { a: "y".repeat(METADATA_BYTES_MAX) } },
      {
        ...options,
        room
      }
    )
    assert.strictEqual(error.code, "metadata_too_large")
    assert.include(error.message, "send it in another one")
  })

  it("is an event of one byte more than allowed, unknown fields counted", () => {
    const sized = (bytes: number) => {
      const empty = { ...item, note: "" }
      return { ...empty, note: "x".repeat(bytes - jcs(empty)!.length) }
    }
    assert.deepStrictEqual(accepted(sized(EVENT_BYTES_MAX)).warnings, ["note"])
    assert.strictEqual(refused(sized(EVENT_BYTES_MAX + 1)).code, "event_too_large")
  })

  it("follows the configured limits", () => {
    const limits = { ...defaultPrepareLimits, metadataBytesMax: 7, actionLengthMax: 5 }
    const small = { ...options, limits }
    const short = { ...item, action: "a.bcd" }
    assert.isDefined(accepted({ ...short, metadata: { a: 1 } }, small))
    assert.strictEqual(refused({ ...short, metadata: { a: 12 } }, small).code, "metadata_too_large")
    assert.strictEqual(refused({ ...item, action: "a.bcde" }, small).code, "invalid_action")
    const tiny = { ...options, limits: { ...limits, actionLengthMax: 99, eventBytesMax: 100 } }
    assert.strictEqual(refused(item, tiny).code, "event_too_large")
    const room = valuesBudget()
    const noRoom = refused({ ...short, metadata: { a: 12 } }, { ...small, room })
    assert.strictEqual(noRoom.code, "metadata_too_large")
  })
})

describe("warnings", () => {
  it("name every unknown field by its path", () => {
    const { event, warnings } = accepted({
      ...item,
      tenant_id: "other",
      sequence_number: 1,
      foo: null,
      actor: { ...item.actor, role: "admin" },
      resource: { ...item.resource, url: "x" },
      metadata: { free: 1 }
    })
    assert.deepStrictEqual(warnings, [
      "tenant_id",
      "sequence_number",
      "foo",
      "actor.role",
      "resource.url"
    ])
    assert.notInclude(JSON.stringify(event), "admin")
    assert.notProperty(event, "tenant_id")
  })

  it("name __proto__ too, which changes nothing", () => {
    const { event, warnings } = accepted(
      JSON.parse(`{"__proto__":{"outcome":"failure"},${JSON.stringify(item).slice(1)}`)
    )
    assert.deepStrictEqual(warnings, ["__proto__"])
    assert.strictEqual(event.outcome, "success")
  })

  it("are bounded in number and length", () => {
    const many = Object.fromEntries(Array.from({ length: 99 }, (_, index) => [`key${index}`, 1]))
    assert.strictEqual(accepted({ ...item, ...many }).warnings.length, WARNINGS_MAX)
    const [warning] = accepted({ ...item, ["k".repeat(9_999)]: 1 }).warnings
    assert.strictEqual(warning, `${"k".repeat(WARNING_LENGTH_MAX)}…`)
  })
})

/** Items that may or may not be right: every field from a pool of good and bad values. */
const oneOf = (...values: ReadonlyArray<unknown>) =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(values[0]) }, fc.constantFrom(...values))

const withoutUndefined = (record: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined))

const anyItem = fc
  .record({
    id: oneOf(undefined, null, "evt-1", "", "\u0085", "😀".repeat(256), "😀".repeat(257), 1),
    timestamp: oneOf(undefined, null, "2026-11-21T10:00:00Z", "2026-11-21t10:00:00.1z", "now", 5),
    actor: fc.oneof(
      {
        weight: 9,
        arbitrary: fc
          .record({
            id: oneOf("u", "", null, undefined, 1),
            type: oneOf("human", "agent", "system", "x", null, undefined),
            email: oneOf(undefined, null, "", "a@b.example", "\n", "x".repeat(321), 1, "\0")
          })
          .map(withoutUndefined)
      },
      oneOf({}, null, undefined, [], "u")
    ),
    action: oneOf("a.b", "a", "alk.b", "alk", "a.b.c", "a b.c", null, undefined, 1),
    resource: fc.oneof(
      {
        weight: 9,
        arbitrary: fc
          .record({
            id: oneOf("r", "", null, undefined),
            type: oneOf("t", "", null, undefined),
            name: oneOf(undefined, null, "", "é".repeat(1024), "x".repeat(1025), false)
          })
          .map(withoutUndefined)
      },
      oneOf({}, null, undefined, 1)
    ),
    outcome: oneOf("success", "failure", "error", "ok", null, undefined),
    metadata: fc.oneof(
      { weight: 3, arbitrary: fc.dictionary(fc.string(), jsonValue, { maxKeys: 2 }) },
      oneOf(undefined, null, {}, [], "x")
    ),
    extra: oneOf(undefined, undefined, 1)
  })
  .map((record) => JSON.parse(JSON.stringify(record)) as Record<string, unknown>)

describe("prepareItem", () => {
  it.each([
    ["single", AuditEventInput],
    ["batch", AuditEventBatchItem]
  ] as const)("accepts in a %s what the schema of the contract accepts", (mode, schema) => {
    const isValid = Schema.is(schema as Schema.Schema<unknown>)
    let valid = 0
    fc.assert(
      fc.property(anyItem, (value) => {
        const isAccepted = "ok" in prepareItem(value, { ...options, mode })
        assert.strictEqual(isAccepted, isValid(value))
        valid += Number(isAccepted)
      }),
      { numRuns: runs(3_000) }
    )
    assert.isAbove(valid, 30)
  })

  it("hashes and fingerprints what it stores", () => {
    fc.assert(
      fc.property(anyItem, (value) => {
        const prepared = prepareItem(value, batch)
        if ("error" in prepared) return
        const { body, contentHash, dedupKey, fingerprint, id } = prepared.ok
        const { detailsHash, detailsSalt } = prepared.ok
        const event = JSON.parse(`${body}}`)
        const details = {
          ...("email" in event.actor ? { actor_email: event.actor.email } : {}),
          ...("metadata" in event ? { metadata: event.metadata } : {}),
          ...("name" in event.resource ? { resource_name: event.resource.name } : {})
        }
        const hasDetails = Object.keys(details).length > 0
        assert.strictEqual(detailsSalt !== undefined, hasDetails)
        assert.strictEqual(
          detailsHash,
          hasDetails ? sha256(`${detailsSalt}\n${jcs(details)}`) : undefined
        )
        const core = {
          action: event.action,
          actor: { id: event.actor.id, type: event.actor.type },
          id,
          outcome: event.outcome,
          resource: { id: event.resource.id, type: event.resource.type },
          timestamp: event.timestamp,
          ...(hasDetails ? { details_hash: detailsHash } : {})
        }
        assert.strictEqual(contentHash, sha256(jcs(core)!))
        const isOwnId = typeof value["id"] === "string"
        const isTimed = typeof value["timestamp"] === "string"
        const untimed = body.replace(/"timestamp":"[^"]*"/, '"timestamp":""')
        assert.strictEqual(
          dedupKey,
          isOwnId ? sha256(`alk-dedup\nacme\n${id}`).slice(0, 32) : undefined
        )
        assert.strictEqual(
          fingerprint,
          isOwnId ? sha256(SECRET + (isTimed ? body : untimed)).slice(0, 32) : undefined
        )
      }),
      { numRuns: runs(2_000) }
    )
  })

  it("fingerprints what is stored, however it was written", () => {
    const first = {
      ...item,
      id: "evt-1",
      timestamp: "2026-11-21T10:00:00Z",
      metadata: { a: "é/", n: 1, list: [0.1] }
    }
    const { fingerprint } = accepted(first, batch)
    const texts = [
      JSON.stringify({ ...first, timestamp: "2026-11-21T10:00:00.000Z" }),
      JSON.stringify({ ...first, timestamp: "2026-11-21t12:00:00.0000009+02:00" }),
      JSON.stringify({ ...first, timestamp: "2026-11-21T10:00:00z" }),
      JSON.stringify({ ...first, unknown: 1, actor: { ...first.actor, email: null, x: {} } }),
      JSON.stringify({ ...first, outcome: null }),
      JSON.stringify(Object.fromEntries(Object.entries(first).reverse())),
      JSON.stringify(first).replace('"n":1,', '"n":1.0e0,').replace("[0.1]", "[1.0E-1]"),
      JSON.stringify(first).replace("é/", "\\u00E9\\/").replace("evt-1", "\\u0065vt-1")
    ]
    for (const text of texts) {
      const read = parseStrict(Buffer.from(text))
      assert("value" in read)
      assert.strictEqual(accepted(read.value, batch).fingerprint, fingerprint, text)
    }
    for (const other of [
      { ...first, timestamp: "2026-11-21T10:00:00.000001Z" },
      { ...first, timestamp: undefined },
      { ...first, outcome: "failure" },
      { ...first, metadata: { ...first.metadata, n: "1" } }
    ]) {
      assert.notStrictEqual(accepted(other, batch).fingerprint, fingerprint)
    }
    const untimed = { ...first, timestamp: undefined }
    const later = { ...batch, acceptedAt: "2027-01-01T00:00:00.000000Z" }
    assert.strictEqual(accepted(untimed, batch).fingerprint, accepted(untimed, later).fingerprint)
  })

  it("takes ids of actors and resources as long as those of other systems", () => {
    const long = "😀".repeat(1_024)
    const { event } = accepted({
      ...item,
      actor: { id: long, type: "human" },
      resource: { id: long, type: "x".repeat(256), name: long }
    })
    assert.deepStrictEqual([event.actor.id, event.resource.id], [long, long])
    for (const [path, wrong] of [
      ["actor.id", { actor: { id: `${long}x`, type: "human" } }],
      ["resource.id", { resource: { id: `${long}x`, type: "t" } }],
      ["resource.type", { resource: { id: "r", type: "x".repeat(257) } }],
      ["id", { id: "x".repeat(257) }]
    ] as const) {
      const limit = path.endsWith(".id") ? "1024" : "256"
      assert.include(
        refused({ ...item, ...wrong }).message,
        `${path}: must be a string of 1 to ${limit}`
      )
    }
  })

  it("takes actions of any printable name where they are wanted, and no others", () => {
    const any = { ...options, anyAction: true }
    const names = [
      "login",
      "Microsoft.Compute/virtualMachines/write",
      'user login: "ok" \\ ü 😀',
      "x".repeat(256),
      "a.b"
    ]
    for (const action of names) {
      assert.strictEqual(accepted({ ...item, action }, any).event.action, action)
      if (action !== "a.b") assert.strictEqual(refused({ ...item, action }).code, "invalid_action")
    }
    for (const action of [
      "",
      " ",
      "a\nb",
      "a\u0085",
      "x".repeat(257),
      "\ud800",
      "alk.b",
      1,
      null
    ]) {
      const { code } = refused({ ...item, action }, any)
      assert.strictEqual(code, action === null ? "missing_field" : "invalid_action", `${action}`)
    }
  })

  it("salts each event anew", () => {
    const salted = { ...item, metadata: {} }
    const salts = Array.from({ length: 1_000 }, () => accepted(salted).detailsSalt)
    assert.strictEqual(new Set(salts).size, 1_000)
    assert.isTrue(salts.every((salt) => /^[0-9a-f]{32}$/.test(salt!)))
  })

  it("writes bodies without tab or line feed, which separate fields on alk.commands", () => {
    const { body } = accepted({
      ...item,
      resource: { ...item.resource, name: "\t\n" },
      metadata: { "\t": "\n" }
    })
    assert.notMatch(body, /[\t\n]/)
  })
})

describe("metadata above the limit", () => {
  it("gives way while it is prepared, however many members it has", () => {
    const names = Array.from({ length: 40_000 }, (_, n) => [`${(n * 7_919) % 40_000}`, "v"])
    const wide = { ...item, metadata: Object.fromEntries(names) }
    const preparing = prepareInSteps(wide, { ...options, room: valuesBudget() })
    let steps = 0
    while (preparing.next().done !== true) steps += 1
    assert.isAtLeast(steps, Math.floor(names.length / 1_024))
  })

  const metadata = { small: "stays", responseObject: { items: ["x".repeat(60_000)] } }
  const large = { ...item, id: "evt-large", metadata }
  const made = (value: object, limit = METADATA_BYTES_MAX) => {
    const limits = { ...defaultPrepareLimits, metadataBytesMax: limit }
    const prepared = prepareItem(value, { ...options, limits, room: valuesBudget() })
    if ("error" in prepared) throw new Error(prepared.error.message)
    return prepared
  }

  it("leaves a reference in the event, which is hashed with it", () => {
    const { apart, ok } = made(large)
    const text = jcs(metadata.responseObject)!
    const { metadata: stored } = JSON.parse(`${ok.body}}`)
    assert.strictEqual(stored.small, "stays")
    assert.deepInclude(stored.responseObject, {
      $ref: `sha256:${sha256(text)}`,
      bytes: text.length,
      media_type: "application/json"
    })
    assert.deepStrictEqual(apart?.fields, ["metadata.responseObject"])
    const details = jcs({ metadata: stored })!
    assert.strictEqual(ok.detailsHash, sha256(`${ok.detailsSalt}\n${details}`))
  })

  it("is compared as a whole with what comes under the same id", () => {
    const { fingerprint } = made(large).ok
    assert.strictEqual(made(large, 65_000).ok.fingerprint, fingerprint)
    const other = { ...large, metadata: { ...metadata, responseObject: "other" } }
    assert.notStrictEqual(made(other).ok.fingerprint, fingerprint)
  })

  it("does not count for the size of the event, whatever else that has", () => {
    assert.deepStrictEqual(made({ ...large, note: "unknown" }).warnings, ["note"])
    const { code } = refused(
      { ...large, note: "x".repeat(EVENT_BYTES_MAX) },
      {
        ...options,
        room: valuesBudget()
      }
    )
    assert.strictEqual(code, "event_too_large")
  })
})
