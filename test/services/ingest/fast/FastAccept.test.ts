/** The fast path of accept makes what StrictJson and Prepare make, byte for byte, or nothing. */

import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { BATCH_ITEMS_MAX } from "../../../../src/domain/records/Command.ts"
import { eventsOf } from "../../../../src/domain/records/EventBatch.ts"
import { finish } from "../../../../src/domain/Slices.ts"
import { FastAccept, type RequestForm } from "../../../../src/services/ingest/fast/FastAccept.ts"
import { prepareRequest } from "../../../../src/services/ingest/fast/PrepareRequest.ts"
import { defaultPrepareLimits } from "../../../../src/services/ingest/Prepare.ts"
import { jsonText, number } from "../../../support/JsonTexts.ts"
import { runs } from "../../../support/Runs.ts"
import { SEED } from "../../../support/Seed.ts"
import { accept, compare, fuzz, optionsFor } from "./Agreement.ts"
import { HostileEvents } from "./HostileEvents.ts"

/** The largest request that the module reads. */
const REQUEST_BYTES_MAX = 8 * 1_048_576
/** What the memory of the module has at most. */
const MEMORY_BYTES_MAX = 24 * 1_048_576

const event = (more: object = {}) => ({
  actor: { id: "user_1", type: "human", email: "u@example.com" },
  action: "document.read",
  resource: { id: "doc_1", type: "document", name: "Report — 日本" },
  outcome: "success",
  timestamp: "2026-11-21T10:00:00.5Z",
  ...more
})

const batchOf = (items: ReadonlyArray<unknown>): Buffer =>
  Buffer.from(JSON.stringify({ events: items }))

const linesOf = (items: ReadonlyArray<unknown>): Buffer =>
  Buffer.from(items.map((item) => JSON.stringify(item)).join("\n"))

/** Fail unless the fast path does all `count` items of the request, as the slow one would. */
const isDone = (body: Buffer, form: RequestForm, count: number): void => {
  assert.deepStrictEqual(compare(body, form), { done: count, events: count })
}

/** True if the request as a whole is left to the slow path. */
const isLeft = (body: Buffer, form: RequestForm): boolean => {
  compare(body, form)
  return finish(prepareRequest(accept, body, form, optionsFor(form))) === undefined
}

describe("the fast path of accept", () => {
  it("agrees with the slow one on hostile events", { timeout: 300_000 }, () => {
    const { done, events } = fuzz(SEED, 50_000)
    // Else the comparison would be about too little.
    assert.isAbove(events, 20_000, `seed ${SEED}`)
    assert.isAbove(done, events / 2, `seed ${SEED}`)
  })

  it("agrees with the slow one on every spelling of JSON", () => {
    const item = (metadata: string) =>
      JSON.stringify(event()).slice(0, -1) + `,"metadata":${metadata}}`
    fc.assert(
      fc.property(fc.array(jsonText, { minLength: 1, maxLength: 3 }), (texts) => {
        compare(Buffer.from(`{"events":[${texts.map(item).join(",")}]}`), "batch")
        compare(Buffer.from(`{"events":[${texts.join(",")}]}`), "batch")
      }),
      { numRuns: runs(20_000) }
    )
  })

  it("agrees with the slow one on every number", () => {
    fc.assert(
      fc.property(number, (text) => {
        const item = `${JSON.stringify(event()).slice(0, -1)},"metadata":{"n":[${text}]}}`
        compare(Buffer.from(item), "single")
      }),
      { numRuns: runs(20_000) }
    )
  })

  it("does plain events of every form, and those with defaults in batches", () => {
    const items = [event(), event({ id: "a\u00a0b", metadata: { b: [1, { z: null, a: "\n" }] } })]
    isDone(batchOf(items), "batch", 2)
    isDone(linesOf(items), "lines", 2)
    isDone(Buffer.from(JSON.stringify(items[1])), "single", 1)
    const short = { actor: { id: "a" }, action: "a.b", resource: { id: "a", type: "t" } }
    const mailed = { ...short, actor: { id: "a", email: "" } }
    isDone(batchOf(Array.from({ length: BATCH_ITEMS_MAX }, () => short)), "batch", BATCH_ITEMS_MAX)
    isDone(linesOf([mailed, short]), "lines", 2)
    assert.isTrue(isLeft(Buffer.from(JSON.stringify(short)), "single"))
  })

  it("does every number of items, whatever the groups that they are hashed in", () => {
    for (const count of [1, 2, 3, 4, 5, 7, 255, 256, 257, 511, 999, 1_000]) {
      isDone(
        batchOf(Array.from({ length: count }, (_, id) => event({ id: `e${id}` }))),
        "batch",
        count
      )
    }
  })

  it("hashes texts of every length", () => {
    const items = Array.from({ length: 400 }, (_, length) =>
      event({ metadata: { a: "x".repeat(length) } })
    )
    isDone(batchOf(items), "batch", items.length)
    isDone(batchOf(items.map((item, id) => ({ ...item, id: `e${id}` }))), "batch", items.length)
  })

  it("derives the ids of a repeatable request, whatever their index", () => {
    const key = { method: "POST", path: "/v1/events/batch", key: "é".repeat(100) }
    const body = batchOf(
      Array.from({ length: 1_000 }, (_, at) => event(at % 3 ? {} : { id: `${at}` }))
    )
    const share = compare(body, "batch", { idempotency: key })
    assert.deepStrictEqual(share, { done: 1_000, events: 1_000 })
    const tooLong = { ...key, key: "k".repeat(3_000) }
    assert.strictEqual(compare(body, "batch", { idempotency: tooLong }).done, 0)
  })

  it("does an array without the object around it", () => {
    const plain = JSON.stringify(event({ id: "x" }))
    isDone(Buffer.from(` [${plain} , ${plain}]\n`), "batch", 2)
  })

  it("leaves single items to the slow path and keeps the order of the request", () => {
    const items = Array.from({ length: 50 }, (_, index) =>
      index % 7 === 0 ? event({ unknown: index }) : index % 11 === 0 ? {} : event()
    )
    for (const [form, body] of [
      ["batch", batchOf(items)],
      ["lines", linesOf(items)]
    ] as const) {
      const share = compare(body, form)
      assert.deepStrictEqual(share, { done: 38, events: 46 })
      const { items: all } = finish(prepareRequest(accept, body, form, optionsFor(form)))!
      const indexes = eventsOf(all.events).map(({ index }) => index)
      assert.deepStrictEqual(
        indexes,
        indexes.toSorted((one, other) => one - other)
      )
    }
  })

  it("leaves a request as a whole that is not of the plain form", () => {
    const plain = JSON.stringify(event())
    const texts = [
      "",
      "{}",
      "[]",
      `[${plain}]x`,
      `[${plain},]`,
      `[${plain}}`,
      '{"events":[]}',
      '{"events":{}}',
      `{"events":[${plain}],"more":1}`,
      `{"more":1,"events":[${plain}]}`,
      `{"events":[${plain}],"events":[${plain}]}`,
      `{"event\\u0073":[${plain}]}`,
      `{"events":[${plain},]}`,
      `{"events":[${plain}}`,
      `{"events":[${plain}]`,
      `{"events":[${plain}]}x`,
      `{"events":[${plain}]}\0`,
      `\ufeff{"events":[${plain}]}`,
      `{"events":[${plain},1]}`,
      `{"events":[${plain},{"a":]}]}`,
      `{"events":[${plain},{"a":"]}`,
      JSON.stringify({ events: Array.from({ length: BATCH_ITEMS_MAX + 1 }, () => ({})) })
    ]
    for (const text of texts) assert.isTrue(isLeft(Buffer.from(text), "batch"), text.slice(0, 200))
    const many = linesOf(Array.from({ length: BATCH_ITEMS_MAX + 1 }, () => event()))
    assert.isTrue(isLeft(many, "lines"))
    assert.isTrue(isLeft(Buffer.from("\n \n\r\n"), "lines"))
  })

  it("takes no member for another one", () => {
    const text = JSON.stringify(event({ metadata: {}, id: "x" }))
    for (const name of ["actor", "action", "resource", "outcome", "metadata", "timestamp", "id"]) {
      for (let at = 0; at < name.length; at++) {
        const other = name.slice(0, at) + "~" + name.slice(at + 1)
        const body = Buffer.from(text.replace(`"${name}"`, `"${other}"`))
        assert.strictEqual(
          compare(Buffer.concat([Buffer.from('{"events":['), body, Buffer.from("]}")]), "batch")
            .done,
          0,
          other
        )
      }
    }
    const split = text.replace('"actor":{"id":"user_1",', '"actor":{"id":"user_1"},"actor":{')
    assert.isTrue(isLeft(Buffer.from(split), "single"))
  })

  it("keeps to the limits that are configured", () => {
    const limits = { eventBytesMax: 400, metadataBytesMax: 50, actionLengthMax: 13 }
    for (let length = 0; length < 200; length++) {
      const given = event({ metadata: { a: "x".repeat(length) } })
      compare(batchOf([given, event({ action: `a.${"b".repeat(length % 20)}` })]), "batch", {
        limits
      })
    }
  })
})

describe("the memory of the fast path", () => {
  const samples: ReadonlyArray<readonly [RequestForm, Buffer]> = [
    [
      "batch",
      batchOf([event({ metadata: { n: 1.25, t: [true, false, null] } }), event({ id: "é😀" })])
    ],
    ["lines", linesOf([event({ metadata: { s: "\u0001é😀" } }), event()])],
    ["single", Buffer.from(JSON.stringify(event({ metadata: { a: { b: "\\" } } })))]
  ]

  it("is read up to the end of the request only, wherever it is cut", () => {
    for (const [form, body] of samples) {
      // What an earlier request left after the end would complete this one.
      for (let end = 0; end <= body.length; end++) {
        compare(body, form)
        compare(body.subarray(0, end), form)
        compare(body.subarray(end), form)
      }
    }
  })

  it("takes bytes that are not UTF-8 at no place", () => {
    for (const [form, body] of samples) {
      for (let at = 0; at < body.length; at++) {
        for (const bytes of [
          [0xff],
          [0xc3],
          [0xe2, 0x82],
          [0xf0, 0x9f, 0x98],
          [0xed, 0xa0, 0x80]
        ]) {
          const broken = Buffer.concat([
            body.subarray(0, at),
            Buffer.from(bytes),
            body.subarray(at)
          ])
          assert.isUndefined(finish(prepareRequest(accept, broken, form, optionsFor(form))))
        }
      }
    }
  })

  it("has room for texts of every length around what vectors and limits count", () => {
    const lengths = [
      0, 1, 14, 15, 16, 17, 31, 32, 33, 255, 256, 257, 319, 320, 321, 1_023, 1_024, 1_025
    ]
    for (const length of lengths) {
      const text = "x".repeat(length)
      compare(batchOf([event({ id: text }), event({ actor: { id: "a", email: text } })]), "batch")
      compare(batchOf([event({ resource: { id: text, type: text, name: text } })]), "batch")
    }
    for (let length = 15_900; length < 16_500; length += 3) {
      compare(
        batchOf([event({ metadata: { b: "\u0001".repeat(9), a: "x".repeat(length) } })]),
        "batch"
      )
    }
  })

  it("has room for the largest items, and grows no further than it says", {
    timeout: 300_000
  }, () => {
    const fast = new FastAccept()
    const item = (bytes: number) =>
      event({ id: '\\"', metadata: { z: 1, a: '\u0001"'.repeat(bytes / 8) } })
    const sizes = [60, 200, 8_000, 16_100, 16_384, 32_000, defaultPrepareLimits.metadataBytesMax]
    for (const bytes of sizes) {
      const body = batchOf(Array.from({ length: 1_000 }, () => item(bytes)))
      const result = finish(prepareRequest(fast, body, "batch", optionsFor("batch")))
      assert.strictEqual(result === undefined, body.length > REQUEST_BYTES_MAX)
      assert.isAtMost(fast.memoryBytes, MEMORY_BYTES_MAX)
    }
    const full = Buffer.alloc(REQUEST_BYTES_MAX, " ")
    batchOf([event(), { ...event(), metadata: { a: "x".repeat(20_000) } }]).copy(full)
    assert.strictEqual(
      finish(prepareRequest(fast, full, "batch", optionsFor("batch")))?.items.events.count,
      2
    )
    assert.isUndefined(
      finish(
        prepareRequest(fast, Buffer.concat([full, Buffer.from(" ")]), "batch", optionsFor("batch"))
      )
    )
    assert.isAtMost(fast.memoryBytes, MEMORY_BYTES_MAX)
  })

  it("gives no bytes of one request to another", () => {
    const first = finish(prepareRequest(accept, batchOf([event()]), "batch", optionsFor("batch")))!
    const before = JSON.stringify(eventsOf(first.items.events))
    compare(batchOf(Array.from({ length: 100 }, () => event({ metadata: { other: 1 } }))), "batch")
    assert.strictEqual(JSON.stringify(eventsOf(first.items.events)), before)
  })

  it("makes ids and salts of random bytes that are used once", () => {
    const seen = new Set<string>()
    for (let run = 0; run < 20; run++) {
      const body = batchOf(Array.from({ length: 100 }, () => event()))
      const { items } = finish(prepareRequest(accept, body, "batch", optionsFor("batch")))!
      for (const { detailsSalt, id } of eventsOf(items.events)) {
        // The random bits of the id: without time and version.
        seen.add(id.slice(15)).add(detailsSalt!).add(detailsSalt!.slice(0, 16))
      }
    }
    assert.strictEqual(seen.size, 20 * 100 * 3)
  })

  it("keeps requests of damaged bytes apart from the program", () => {
    const events = new HostileEvents(1)
    for (const [form, body] of samples) {
      for (let run = 0; run < 500; run++) {
        compare(Buffer.from(events.damaged(events.damaged(body.toString()))), form)
      }
    }
  })
})
