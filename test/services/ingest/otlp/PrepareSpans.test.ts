/** From spans to operations: ids, times, links, events, limits, and what is refused and why. */

import { createHash } from "node:crypto"
import fc from "fast-check"
import { assert, describe, it, vi } from "vitest"
import { sha256Hex } from "../../../../src/domain/Identifiers.ts"
import { NESTING_MAX } from "../../../../src/domain/json/Json.ts"
import { finish } from "../../../../src/domain/Slices.ts"
import {
  factDetailsHash,
  recomputeFact,
  storeFact
} from "../../../../src/domain/traces/FactText.ts"
import { hintsOf } from "../../../../src/domain/traces/GraphHints.ts"
import { REPAIRS_NAMED_MAX, type Repair } from "../../../../src/domain/traces/Repairs.ts"
import { summaryOf } from "../../../../src/domain/traces/SpanSummary.ts"
import {
  decodeOperation,
  encodeOperation,
  type RecordOtlpSpan
} from "../../../../src/domain/traces/TraceOperation.ts"
import { SPANS_PER_COMMAND_MAX } from "../../../../src/services/ingest/otlp/Prepared.ts"
import { prepareSpans, SPANS_MAX } from "../../../../src/services/ingest/otlp/PrepareSpans.ts"
import {
  executionIdOf,
  spanIdOf,
  syntheticRootIdOf
} from "../../../../src/services/ingest/otlp/SpanIds.ts"
import { COMMAND_CHARACTERS_MAX } from "../../../../src/services/ingest/otlp/SpanParts.ts"
import { ERROR_BYTES_MAX } from "../../../../src/services/ingest/PrepareTrace.ts"
import {
  attribute,
  END,
  example,
  exportOf,
  fromJsonText,
  type Json,
  operationsOf,
  plain,
  prepared,
  preparedRead,
  readJson,
  readProtobuf,
  refusalOf,
  START,
  span,
  TENANT,
  TRACE,
  throughProtobuf,
  toProtobuf
} from "./support/Exports.ts"

const limits = { metadataBytesMax: 32_768, payloadBytesMax: 65_536 }
const one = (changes: Json = {}, resource: Json = {}): Json =>
  plain(operationsOf(exportOf([span(changes)], resource))[0]!)
const id = (n: number): string => n.toString(16).padStart(16, "0")
const text = (key: string, value: string): Json => attribute(key, { stringValue: value })
const nested = (levels: number): Json =>
  levels === 0 ? { stringValue: "x" } : { arrayValue: { values: [nested(levels - 1)] } }

describe("a span", () => {
  it("becomes an operation that says everything of it", () => {
    const event = { timeUnixNano: "1763700000500000999", name: "Note", droppedAttributesCount: 2 }
    const operation = one(
      {
        parentSpanId: id(1),
        kind: 3,
        traceState: "vendor=1",
        attributes: [text("gen_ai.operation.name", "chat"), text("my.own", "kept")],
        droppedAttributesCount: 1,
        droppedEventsCount: 2,
        droppedLinksCount: 3,
        events: [event],
        links: [
          { traceId: TRACE, spanId: id(2) },
          { traceId: TRACE, spanId: id(2) },
          { traceId: "ab".repeat(16), spanId: id(3), attributes: [text("why", "retry")] }
        ],
        status: { code: 2, message: "no answer" }
      },
      { attributes: [text("service.name", "desk")] }
    )
    const derived = (spanId: string) => spanIdOf(TENANT, TRACE, spanId)
    assert.deepStrictEqual(operation, {
      op: "otlp.span",
      index: 0,
      side: "CLIENT",
      executionId: executionIdOf(TENANT, TRACE),
      syntheticRootId: syntheticRootIdOf(TENANT, TRACE),
      spanId: derived("eee19b7ec3c1b174"),
      parentSpanId: derived(id(1)),
      causedBy: [derived(id(2))],
      spanType: "LLM_CALL",
      startedAt: "2025-11-21T04:40:00.000000Z",
      endedAt: "2025-11-21T04:40:01.000000Z",
      status: "FAILED",
      details: {
        name: "chat",
        metadata: {
          mapping: "alk-otlp-3",
          trace_id: TRACE,
          span_id: "eee19b7ec3c1b174",
          parent_span_id: id(1),
          attributes: { "gen_ai.operation.name": "chat", "my.own": "kept" },
          dropped_attributes_count: 1,
          dropped_events_count: 2,
          dropped_links_count: 3,
          kind: "CLIENT",
          links: [{ trace_id: "ab".repeat(16), span_id: id(3), attributes: { why: "retry" } }],
          resource: { attributes: { "service.name": "desk" } },
          scope: { name: "tests" },
          status: { code: "ERROR", message: "no answer" },
          trace_state: "vendor=1"
        }
      },
      endDetails: { error: "no answer" },
      agentId: "desk",
      executionDetails: {
        metadata: {
          mapping: "alk-otlp-3",
          trace_id: TRACE,
          resource: { attributes: { "service.name": "desk" } }
        }
      },
      events: [
        {
          eventId: operation["events"][0].eventId,
          eventType: "note",
          timestamp: "2025-11-21T04:40:00.500000Z",
          details: { payload: { name: "Note", dropped_attributes_count: 2 } }
        }
      ]
    })
  })

  it("survives the way through the log, and its details hash to what they claim", () => {
    const events = [{ timeUnixNano: START, name: "e", attributes: [text("a", "é")] }]
    const failed = span({ events, status: { code: 2, message: "m" } })
    const [operation] = operationsOf(exportOf([failed]))
    assert.deepStrictEqual(decodeOperation(encodeOperation(operation!)), operation)
    const { details, endDetails, executionDetails } = operation!
    const payload = operation!.events[0]!.details
    for (const one of [details, endDetails!, executionDetails!, payload!]) {
      assert.strictEqual(factDetailsHash(one.salt, one.text), one.hash)
    }
  })

  it("is stored as a fact that can be recomputed, whatever its attributes are", () => {
    const attributes = [attribute("n", { doubleValue: 1e21 }), text("__proto__", "p")]
    const operation = operationsOf(exportOf([span({ attributes })]))[0]!
    const core = {
      type: "span.started" as const,
      execution_id: operation.executionId,
      fact_number: 1,
      span_id: operation.spanId,
      caused_by_span_ids: operation.causedBy,
      span_type: operation.spanType,
      started_at: operation.startedAt,
      started_at_given: true
    }
    const place = {
      tenantId: TENANT,
      chainSequence: 1,
      createdAt: operation.startedAt,
      prevHash: "0".repeat(64)
    }
    const { body, hash } = storeFact(core, operation.details, place)
    const recomputed = recomputeFact(body)!
    assert.isTrue(recomputed.exact)
    assert.strictEqual(recomputed.hash, hash)
  })

  it("is running as long as it has no end, whatever its status says", () => {
    const operation = one({ endTimeUnixNano: undefined, status: { code: 2, message: "m" } })
    assert.isUndefined(operation["endedAt"])
    assert.isUndefined(operation["endDetails"])
  })

  it("has no parent if that is empty or zero", () => {
    for (const parentSpanId of [undefined, "", id(0)]) {
      assert.isUndefined(one({ parentSpanId })["parentSpanId"])
    }
  })

  it("keeps its start and end to the microsecond, cut", () => {
    const { endedAt, startedAt } = one({
      startTimeUnixNano: "1763700000123456999",
      endTimeUnixNano: "1763700000123457000"
    })
    assert.deepStrictEqual(
      [startedAt, endedAt],
      ["2025-11-21T04:40:00.123456Z", "2025-11-21T04:40:00.123457Z"]
    )
  })

  it("has ids of its tenant alone", () => {
    const [mine, theirs] = [TENANT, "globex"].map(
      (tenant) => prepared(fromJsonText(exportOf([span()])), limits, tenant).commands[0]![0]!
    )
    for (const name of ["executionId", "spanId", "syntheticRootId"] as const) {
      assert.notStrictEqual(mine![name], theirs![name])
    }
  })
})

/** A span that is repaired, and what is said of that. */
const repaired = (changes: Json) => {
  const read = prepared(fromJsonText(exportOf([span(changes)])))
  assert.isEmpty(read.refused)
  assert.lengthOf(read.repaired, 1)
  const operation = plain(read.commands.flat()[0]!) as Json
  const { metadata, name, repairs } = operation["details"]
  const codes = (repairs as ReadonlyArray<Repair>).map(({ code, path }) => `${path} ${code}`)
  return { message: read.repaired[0]!.message, operation, metadata, name, repairs, codes }
}

describe("values", () => {
  const values = (attributes: ReadonlyArray<Json>): Json =>
    one({ attributes })["details"].metadata.attributes

  it("become JSON that says the same", () => {
    const given: ReadonlyArray<readonly [Json | undefined, unknown]> = [
      [{ stringValue: "ü\u2028\n" }, "ü\u2028\n"],
      [{ boolValue: false }, false],
      [{ intValue: "9007199254740991" }, 9_007_199_254_740_991],
      [{ intValue: "9007199254740992" }, "9007199254740992"],
      [{ intValue: "-9223372036854775808" }, "-9223372036854775808"],
      [{ doubleValue: 0.1 }, 0.1],
      [{ doubleValue: "NaN" }, "NaN"],
      [{ doubleValue: "-Infinity" }, "-Infinity"],
      [{ doubleValue: "Infinity" }, "Infinity"],
      [{ bytesValue: "AP8=" }, "AP8="],
      [{ arrayValue: { values: [{ intValue: 1 }, {}, { stringValue: "" }] } }, [1, null, ""]],
      [{ kvlistValue: { values: [text("a", "b")] } }, { a: "b" }],
      [{}, null],
      [undefined, null]
    ]
    const attributes = given.map(([value], index) =>
      value === undefined ? { key: String(index) } : attribute(String(index), value)
    )
    assert.deepStrictEqual(
      values(attributes),
      Object.fromEntries(given.map(([, expected], index) => [String(index), expected]))
    )
  })

  it("may have every key once", () => {
    const keys = ["", "__proto__", "constructor", "a.b", "ключ", "a\nb"]
    const found = values(keys.map((key) => text(key, `v${key}`)))
    assert.sameMembers(Object.keys(found), keys)
    const twice = repaired({ attributes: [text("k", "1"), text("l", "3"), text("k", "2")] })
    assert.deepStrictEqual(twice.metadata.attributes, { k: "2", l: "3" })
    assert.deepStrictEqual(twice.codes, ['attributes["k"] repeated_key'])
    const key = "l".repeat(4_097)
    const long = repaired({ attributes: [text("k", "1"), text(key, "2")] })
    const short = `${"l".repeat(256)}…${sha256Hex(key)}`
    assert.deepStrictEqual(long.metadata.attributes, { k: "1", [short]: { key, value: "2" } })
    assert.deepStrictEqual(long.codes, [`attributes["${"l".repeat(64)}…"] long_key`])
  })

  it("nest as deep as in any metadata, counted from there, and deeper as JSON text", () => {
    const deep = (levels: number) => [attribute("deep", nested(levels)), text("b", "c")]
    const inner = (value: any): unknown => (Array.isArray(value) ? inner(value[0]) : value)
    const fits = NESTING_MAX - 2
    assert.strictEqual(inner(values(deep(fits))["deep"]), "x")
    const { codes, metadata } = repaired({ attributes: deep(fits + 3) })
    assert.strictEqual(metadata.attributes.b, "c")
    assert.strictEqual(inner(metadata.attributes.deep), '[[["x"]]]')
    assert.deepStrictEqual(codes, [`attributes["deep"]${"[0]".repeat(fits)} deep_value`])
    const event = (levels: number) => ({
      events: [{ timeUnixNano: START, name: "e", attributes: [attribute("d", nested(levels))] }]
    })
    assert.isDefined(one(event(fits)))
    assert.match(
      repaired(event(fits + 1)).codes[0]!,
      /^events\[0\].attributes\["d"\].* deep_value$/
    )
  })

  it("are the same in both encodings", () => {
    const leaf = fc.oneof(
      fc.string({ unit: "grapheme" }).map((stringValue) => ({ stringValue })),
      fc.boolean().map((boolValue) => ({ boolValue })),
      fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((n) => ({ intValue: String(n) })),
      fc.double({ noNaN: true, noDefaultInfinity: true }).map((doubleValue) => ({ doubleValue })),
      fc.constantFrom("NaN", "Infinity", "-Infinity").map((doubleValue) => ({ doubleValue })),
      fc.uint8Array().map((bytes) => ({ bytesValue: Buffer.from(bytes).toString("base64") })),
      fc.constant({})
    )
    const { pair } = fc.letrec<{ value: Json; pair: Json }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        leaf,
        fc.array(tie("value"), { maxLength: 4 }).map((values) => ({ arrayValue: { values } })),
        fc
          .uniqueArray(tie("pair"), { maxLength: 4, selector: ({ key }) => key })
          .map((values) => ({ kvlistValue: { values } }))
      ),
      pair: fc.record({ key: fc.string({ unit: "grapheme" }), value: tie("value") })
    }))
    const pairs = fc.uniqueArray(pair, { maxLength: 6, selector: ({ key }) => key })
    const micros = fc.bigInt({ min: 1n, max: 9_000_000_000_000_000_000n }).map(String)
    const events = fc.array(
      fc.record({ timeUnixNano: micros, name: fc.string({ unit: "grapheme" }), attributes: pairs }),
      { maxLength: 3 }
    )
    fc.assert(
      fc.property(pairs, events, pairs, micros, (attributes, events, resource, nanos) => {
        const times = { startTimeUnixNano: nanos, endTimeUnixNano: nanos }
        const changes = { attributes, events, ...times }
        const body = exportOf([span(changes)], { attributes: resource })
        const [json, binary] = [fromJsonText(body), throughProtobuf(body)].map((received) =>
          prepared(received)
        )
        assert.deepStrictEqual(json!.refused, binary!.refused)
        assert.deepStrictEqual(json!.commands.flat().map(plain), binary!.commands.flat().map(plain))
      }),
      { numRuns: 200 }
    )
  })
})

describe("links", () => {
  it("to spans of the trace are causes, each once, and need no metadata", () => {
    const links = [1, 2, 1].map((n) => ({ traceId: TRACE, spanId: id(n) }))
    const { causedBy, details } = one({ links })
    assert.deepStrictEqual(
      causedBy,
      [1, 2].map((n) => spanIdOf(TENANT, TRACE, id(n)))
    )
    assert.notProperty(details.metadata, "links")
  })

  it("to anything else are kept in metadata, and those that say more as well", () => {
    const links = [
      { traceId: "cd".repeat(16), spanId: id(1) },
      { traceId: TRACE, spanId: id(0) },
      { traceId: "", spanId: "" },
      { traceId: TRACE, spanId: id(2), traceState: "a=b" }
    ]
    const { causedBy, details } = one({ links })
    assert.deepStrictEqual(causedBy, [spanIdOf(TENANT, TRACE, id(2))])
    assert.deepStrictEqual(details.metadata.links, [
      { trace_id: "cd".repeat(16), span_id: id(1) },
      { trace_id: TRACE, span_id: id(0) },
      { trace_id: "", span_id: "" },
      { trace_id: TRACE, span_id: id(2), trace_state: "a=b" }
    ])
  })
})

describe("events", () => {
  const event = (changes: Json = {}): Json => ({ timeUnixNano: START, name: "e", ...changes })
  const ids = (events: ReadonlyArray<Json>, changes: Json = {}): ReadonlyArray<string> =>
    one({ events, ...changes })["events"].map(({ eventId }: Json) => eventId)

  it("keep their ids when the span is sent again, with more events or with fewer", () => {
    const all = [event(), event({ name: "f" }), event({ attributes: [text("a", "1")] })]
    const known = ids(all)
    assert.deepStrictEqual(ids(all, { name: "renamed", endTimeUnixNano: undefined }), known)
    assert.deepStrictEqual(ids(all.slice(0, 2)), known.slice(0, 2))
    assert.deepStrictEqual(ids(all.slice(1)), known.slice(1))
  })

  it("are told apart by time to the nanosecond, name, attributes, and else by their order", () => {
    const all = [
      event(),
      event(),
      event({ timeUnixNano: "1763700000000000001" }),
      event({ name: "E" }),
      event({ attributes: [text("a", "1")] })
    ]
    assert.strictEqual(new Set(ids(all)).size, all.length)
    assert.notStrictEqual(ids([event()])[0], ids([event()], { spanId: id(7) })[0])
  })
})

describe("what can't be stored", () => {
  it("refuses the span by its ids, and names the field", () => {
    const label = `span eee19b7ec3c1b174 of trace ${TRACE}: `
    const cases: ReadonlyArray<readonly [Json, string]> = [
      [{ startTimeUnixNano: "0", endTimeUnixNano: "0" }, "start_time_unix_nano: missing"],
      [
        { startTimeUnixNano: "9300000000000000000", endTimeUnixNano: "0" },
        "start_time_unix_nano: must be before the year 2262"
      ],
      [{ parentSpanId: "eee19b7ec3c1b174" }, "parent_span_id: the span is its own parent"]
    ]
    for (const [changes, reason] of cases) {
      const message = refusalOf(changes)
      assert.isTrue(message.startsWith(label + reason), message)
    }
  })

  const other = { traceId: TRACE, spanId: id(1) }
  const own = { traceId: TRACE, spanId: "eee19b7ec3c1b174" }
  const event = { timeUnixNano: START, name: "e" }
  const broken = "a\u0000b\ud83d"
  const sha256 = createHash("sha256")
    .update(Buffer.from([0x61, 0x00, 0x62, 0xed, 0xa0, 0xbd]))
    .digest("hex")

  /** What is changed, the repairs, and what is in the metadata. */
  const cases: ReadonlyArray<readonly [Json, ReadonlyArray<Json>, Json]> = [
    [
      { attributes: [text("a", broken), attribute("l", { arrayValue: { values: [] } })] },
      [{ code: "broken_text", path: 'attributes["a"]', sha256 }],
      { attributes: { a: "a\ufffdb\ufffd", l: [] } }
    ],
    [
      { attributes: [text("\u0000", "a"), text("b", "c")], droppedAttributesCount: 2 },
      [{ code: "broken_text", path: 'attributes["\\u0000"]', sha256: sha256Hex("\u0000") }],
      { dropped_attributes_count: 2, attributes: { "\ufffd": "a", b: "c" } }
    ],
    [
      { traceState: broken },
      [{ code: "broken_text", path: "trace_state", sha256 }],
      { trace_state: "a\ufffdb\ufffd" }
    ],
    [
      { status: { code: 2, message: broken } },
      [{ code: "broken_text", path: "status.message", sha256 }],
      { status: { code: "ERROR", message: "a\ufffdb\ufffd" } }
    ],
    [{ status: { code: 3 } }, [{ code: "unknown_status", path: "status.code", sent: "3" }], {}],
    [
      { links: [own, other] },
      [{ code: "link_to_itself", path: "links[0]" }],
      { links: [{ trace_id: TRACE, span_id: own.spanId }] }
    ],
    [
      { links: Array.from({ length: 257 }, (_, n) => ({ ...other, spanId: id(n + 1) })) },
      [{ code: "many_links", path: "links[256]", sent: "257" }],
      { links: [{ trace_id: TRACE, span_id: id(257) }] }
    ],
    [{ events: [{ name: "e" }] }, [{ code: "event_time", path: "events[0].time_unix_nano" }], {}],
    [
      { events: [{ ...event, timeUnixNano: "9300000000000000000" }] },
      [{ code: "event_time", path: "events[0].time_unix_nano", sent: "9300000000000000000" }],
      {}
    ],
    [
      { events: [{ ...event, name: broken }, event], droppedEventsCount: 4 },
      [{ code: "broken_text", path: "events[0].name", sha256 }],
      { dropped_events_count: 4 }
    ],
    [
      { events: [{ ...event, attributes: [text("k", "1"), text("k", "2")] }] },
      [{ code: "repeated_key", path: 'events[0].attributes["k"]' }],
      {}
    ],
    [
      { links: [{ ...other, attributes: [text("k", "1"), text("k", "2")] }] },
      [{ code: "repeated_key", path: 'links[0].attributes["k"]' }],
      { links: [{ trace_id: TRACE, span_id: other.spanId, attributes: { k: "2" } }] }
    ],
    [
      { endTimeUnixNano: "9300000000000000000" },
      [{ code: "impossible_time", path: "end_time_unix_nano", sent: "9300000000000000000" }],
      {}
    ],
    [
      { parentSpanId: "ab" },
      [{ code: "unreadable_parent", path: "parent_span_id", sent: "ab" }],
      {}
    ],
    [
      { parentSpanId: "parent-1" },
      [{ code: "unreadable_parent", path: "parent_span_id", sent: "parent-1" }],
      {}
    ],
    [
      { startTimeUnixNano: "1763700002000000000" },
      [{ code: "end_before_start", path: "end_time_unix_nano", sent: END }],
      {}
    ]
  ]
  for (const [changes, repairs, members] of cases) {
    it(`is repaired: ${repairs.map(({ code, path }) => `${code} of ${path}`)}`, () => {
      const found = repaired(changes)
      assert.deepStrictEqual(found.repairs, repairs)
      assert.deepInclude(found.metadata, members)
      const label = `span eee19b7ec3c1b174 of trace ${TRACE}: repaired: ${repairs[0]!["path"]}: `
      assert.isTrue(found.message.startsWith(label + repairs[0]!["code"]), found.message)
    })
  }

  it("is told from bytes that are no UTF-8, whose hash is of the bytes", () => {
    const body = exportOf([span({ attributes: [text("a", "cut @@@@@")] })])
    const bytes = Buffer.from(toProtobuf(body))
    bytes.set([0xf0, 0x9f, 0x98], bytes.indexOf("@@@@@"))
    const [operation] = preparedRead(readProtobuf(bytes)).commands.flat()
    const sent = Buffer.from("cut @@@@@")
    sent.set([0xf0, 0x9f, 0x98], 4)
    const found = plain(operation!).details
    assert.strictEqual(found.metadata.attributes.a, "cut \ufffd@@")
    assert.deepStrictEqual(found.repairs, [
      {
        code: "broken_text",
        path: 'attributes["a"]',
        sha256: createHash("sha256").update(sent).digest("hex")
      }
    ])
    const json = Buffer.from(JSON.stringify(body))
    json.set([0xf0, 0x9f, 0x98], json.indexOf("@@@@@"))
    const [same] = preparedRead(readJson(json)).commands.flat()
    assert.deepStrictEqual(plain(same!).details, found)
  })

  it("is named up to a number, and counted by code beyond", () => {
    const attributes = Array.from({ length: 25 }, (_, n) => text(`a${n}`, "\u0000"))
    const { message, repairs } = repaired({ attributes, status: { code: 3 } })
    assert.lengthOf(repairs, REPAIRS_NAMED_MAX + 2)
    assert.deepStrictEqual(repairs.slice(REPAIRS_NAMED_MAX), [
      { code: "broken_text", path: 'attributes["a20"]', count: 5 },
      { code: "unknown_status", path: "status.code", count: 1 }
    ])
    assert.include(message, 'attributes["a4"]: broken_text')
    assert.notInclude(message, 'attributes["a5"]')
    assert.match(message, /and 21 more$/)
  })

  it("has a name and times all the same", () => {
    const long = repaired({ name: "é".repeat(1_025) })
    assert.deepStrictEqual(long.codes, ["name long_name"])
    assert.strictEqual(long.name, "é".repeat(1_024))
    assert.strictEqual(long.metadata.name, "é".repeat(1_025))
    const huge = repaired({ name: "z".repeat(70_000) })
    assert.strictEqual(huge.metadata.name.bytes, 70_000)
    assert.strictEqual(repaired({ name: "a\u0000b" }).name, "a\ufffdb")
    const backwards = repaired({ startTimeUnixNano: "1763700002000000000" })
    assert.strictEqual(backwards.operation["startedAt"], "2025-11-21T04:40:02.000000Z")
    assert.strictEqual(backwards.operation["endedAt"], backwards.operation["startedAt"])
    const endless = repaired({ startTimeUnixNano: "0" })
    assert.deepStrictEqual(endless.codes, ["start_time_unix_nano missing_start"])
    assert.strictEqual(endless.operation["endedAt"], endless.operation["startedAt"])
  })

  it("makes a link that is no edge of what is no id, and keeps what was sent", () => {
    const links = [{ traceId: TRACE, spanId: "not hex" }]
    const { causedBy, details } = one({ links })
    assert.isEmpty(causedBy)
    assert.deepStrictEqual(details.metadata.links, [{ trace_id: TRACE, span_id: "not hex" }])
  })

  it("refuses a span without usable ids by its place", () => {
    const wrong = [
      { traceId: "" },
      { traceId: "0".repeat(32) },
      { traceId: TRACE.slice(2) },
      { traceId: "not hex" },
      { spanId: "" },
      { spanId: id(0) },
      { spanId: `${id(1)}00` }
    ]
    for (const changes of wrong) {
      const message = refusalOf(changes)
      assert.match(message, /^span number 1 of the request: (trace|span)_id: must be (16|8) bytes/)
    }
  })

  it("refers to values of metadata, payloads and errors over their limits, to the byte", () => {
    const small = { metadataBytesMax: 2_000, payloadBytesMax: 1_000 }
    const size = (value: string): number => {
      const operation = one({ attributes: [text("a", value)] })
      return Buffer.byteLength(JSON.stringify(operation["details"].metadata))
    }
    const fits = "é".repeat((2_000 - size("")) >> 1) + (size("") % 2 === 0 ? "" : "x")
    assert.strictEqual(size(fits), 2_000)
    const attributesOf = (value: string) => {
      const export_ = exportOf([span({ attributes: [text("a", value)] })])
      const { apart, commands, cut, refused } = prepared(fromJsonText(export_), small)
      assert.deepStrictEqual([refused, cut], [[], []])
      const { metadata } = JSON.parse(commands[0]![0]!.details.text)
      return { a: metadata.attributes.a, apart }
    }
    assert.deepStrictEqual(attributesOf(fits), { a: fits, apart: 0 })
    const over = `${fits}x`
    const { a, apart } = attributesOf(over)
    const sha256 = createHash("sha256").update(over).digest("hex")
    const { preview, ...rest } = a
    const bytes = Buffer.byteLength(over)
    assert.deepStrictEqual(rest, { $ref: `sha256:${sha256}`, bytes })
    assert.isTrue(preview === undefined || over.startsWith(preview))
    assert.strictEqual(apart, 1)
    const events = (length: number) => [
      { timeUnixNano: START, name: "e", attributes: [text("a", "x".repeat(length))] }
    ]
    const wrapping = Buffer.byteLength('{"attributes":{"a":""}}')
    const payload = (length: number) =>
      JSON.parse(
        operationsOf(exportOf([span({ events: events(length) })]), small)[0]!.events[0]!.details!
          .text
      ).payload.attributes.a
    assert.strictEqual(payload(1_000 - wrapping).length, 1_000 - wrapping)
    assert.strictEqual(payload(1_001 - wrapping).bytes, 1_001 - wrapping)
    const message = "no ".repeat(30_000)
    const failed = exportOf([span({ status: { code: 2, message } })])
    const { error } = JSON.parse(operationsOf(failed)[0]!.endDetails!.text)
    assert.isAbove(message.length, ERROR_BYTES_MAX)
    assert.deepStrictEqual([error.bytes, error.preview], [90_000, message.slice(0, 2_048)])
  })

  it("refers to attributes as a whole where their names alone are too many", () => {
    const attributes = Array.from({ length: 5_000 }, (_, n) => text(`name ${n}`, "x"))
    const [{ details, payloads }] = operationsOf(exportOf([span({ attributes })])) as [
      RecordOtlpSpan
    ]
    const { metadata } = JSON.parse(details.text)
    assert.strictEqual(metadata.attributes.$ref, `sha256:${payloads![0]!.sha256}`)
    assert.strictEqual(metadata.attributes.media_type, "application/json")
    const small = { metadataBytesMax: 100, payloadBytesMax: 100 }
    const over = refusalOf({ attributes }, small)
    assert.match(over, /metadata: [0-9]+ bytes in canonical form; send at most 100/)
  })

  it("is repaired in a resource and a scope once, and named in each of their spans", () => {
    const good = exportOf([span()]).resourceSpans[0]
    const bad = exportOf([span({ spanId: id(1) }), span({ spanId: id(2), status: { code: 3 } })], {
      attributes: [text("a", "\u0000"), text("b", "c")]
    }).resourceSpans[0]
    bad.scopeSpans[0].scope.attributes = [text("a", "1"), text("a", "2")]
    const result = prepared(fromJsonText({ resourceSpans: [good, bad] }))
    assert.isEmpty(result.refused)
    assert.deepStrictEqual(
      result.repaired.map(({ counts }) => [...counts]),
      [[["broken_text", 1]], [["repeated_key", 1]], [["unknown_status", 1]]]
    )
    assert.match(
      result.repaired[0]!.message,
      /^resource number 2 of the request: repaired: resource.attributes\["a"\]: broken_text: /
    )
    const found = result.commands.flat().map((operation) => plain(operation).details)
    const resource = { attributes: { a: "\ufffd", b: "c" } }
    assert.deepStrictEqual(
      found.map(({ metadata }) => metadata.resource),
      [undefined, resource, resource]
    )
    const shared = ['scope.attributes["a"]', 'resource.attributes["a"]']
    assert.deepStrictEqual(
      found.map(({ repairs }) => repairs?.map(({ path }: Repair) => path)),
      [undefined, shared, ["status.code", ...shared]]
    )
  })
})

describe("an export", () => {
  const many = (count: number, changes: Json = {}) =>
    Array.from({ length: count }, (_, n) => span({ spanId: id(n + 1), ...changes }))

  it("says what its execution is with the first span of a trace and with each root", () => {
    const other = "ab".repeat(16)
    const spans = [
      span({ spanId: id(1), startTimeUnixNano: "0", endTimeUnixNano: "0" }),
      span({ spanId: id(2), parentSpanId: id(9) }),
      span({ spanId: id(3), parentSpanId: id(9) }),
      span({ traceId: other, spanId: id(4), parentSpanId: id(9) }),
      span({ spanId: id(9), name: "root", attributes: [text("gen_ai.agent.name", "Planner")] })
    ]
    const operations = operationsOf(exportOf(spans)).map(plain)
    assert.deepStrictEqual(
      operations.map(({ executionDetails }) => executionDetails !== undefined),
      [true, false, true, true]
    )
    assert.deepInclude(operations[3]!["executionDetails"], { agent_name: "Planner" })
    assert.strictEqual(operations[3]!["executionDetails"].metadata.name, "root")
  })

  it("says it again with each span that starts before those so far", () => {
    const starts = [3, 5, 2, 4, 1].map((second, at) =>
      span({
        spanId: id(at + 1),
        parentSpanId: id(9),
        startTimeUnixNano: String(BigInt(START) + BigInt(second) * 1_000n)
      })
    )
    assert.deepStrictEqual(
      operationsOf(exportOf(starts)).map(({ executionDetails }) => executionDetails !== undefined),
      [true, false, true, false, true]
    )
  })

  it("has parents of other processes, where the flags say so", () => {
    const flags = [0, 0x100, 0x200, 0x300, 0x301]
    const spans = flags.map((one, at) =>
      span({ spanId: id(at + 1), parentSpanId: id(9), flags: one })
    )
    assert.deepStrictEqual(
      operationsOf(exportOf(spans)).map(({ parentIsRemote = false }) => parentIsRemote),
      [false, false, false, true, true]
    )
  })

  it("is cut into commands of so many spans, in order", () => {
    const { commands } = prepared(fromJsonText(exportOf(many(2 * SPANS_PER_COMMAND_MAX + 1))))
    assert.deepStrictEqual(
      commands.map(({ length }) => length),
      [1_000, 1_000, 1]
    )
    assert.deepStrictEqual(
      commands.flat().map(({ index }) => index),
      Array.from({ length: 2_001 }, (_, index) => index)
    )
  })

  it("is cut into commands that the log takes, however large the spans are", () => {
    const spans = many(400).map((one, at) => ({
      ...one,
      attributes: [text("a", `${at}${"x".repeat(30_000)}`), text("b", "y".repeat(30_000))]
    }))
    const { commands } = prepared(fromJsonText(exportOf(spans)))
    assert.isAbove(commands.length, 1)
    for (const command of commands) {
      const characters = command.reduce((sum, one) => sum + JSON.stringify(one).length, 0)
      assert.isAtMost(characters, COMMAND_CHARACTERS_MAX)
      // What all of them have is there once.
      const values = command.flatMap(({ payloads = [] }) => payloads)
      assert.strictEqual(
        values.filter(({ chunks }) => chunks !== undefined).length,
        command.length + 1
      )
      assert.strictEqual(values.length, 2 * command.length)
    }
    assert.strictEqual(commands.flat().length, 400)
  })

  it("keeps what its large values say of the graph", () => {
    const messages = (part: object) =>
      JSON.stringify([{ role: "assistant", parts: [{ text: "x".repeat(20_000) }, part] }])
    const { metadata } = one({
      attributes: [
        text("gen_ai.output.messages", messages({ type: "tool_call", id: "call_2" })),
        text("gen_ai.input.messages", messages({ type: "tool_call_response", id: "call_1" })),
        text(
          "metadata",
          JSON.stringify({ langgraph_step: 2, langgraph_node: "n", x: "y".repeat(9_000) })
        )
      ]
    })["details"]
    assert.property(metadata.attributes["gen_ai.output.messages"], "$ref")
    assert.property(metadata.attributes.metadata, "$ref")
    const { answered, asked, langGraph } = hintsOf({ metadata })
    assert.deepStrictEqual([[...asked], [...answered]], [["call_2"], ["call_1"]])
    assert.deepStrictEqual(langGraph, { step: 2, node: "n", triggers: [] })
  })

  it("keeps all events of a span, in as many operations as they need", () => {
    const attributes = Array.from({ length: 60 }, (_, n) => text(`a${n}`, "x".repeat(1_000)))
    const large = Array.from({ length: 80 }, (_, n) => ({
      timeUnixNano: START,
      name: `e${n}`,
      attributes
    }))
    const small = Array.from({ length: 2_500 }, () => ({ timeUnixNano: START, name: "e" }))
    for (const events of [large, small]) {
      const { commands, repaired, refused } = prepared(fromJsonText(exportOf([span({ events })])))
      const parts = commands.flat()
      assert.deepStrictEqual([repaired, refused], [[], []])
      const types = parts.flatMap((part) => part.events.map(({ eventType }) => eventType))
      assert.deepStrictEqual(
        types,
        events.map(({ name }) => name)
      )
      const ids = parts.flatMap((part) => part.events.map(({ eventId }) => eventId))
      assert.strictEqual(new Set(ids).size, events.length)
      assert.isAbove(parts.length, 1)
      for (const { events: _, payloads: _p, ...rest } of parts) {
        const { events: _e, payloads: _q, ...first } = parts[0]!
        assert.deepStrictEqual(rest, first)
      }
      for (const command of commands) {
        const characters = command.reduce((sum, each) => sum + JSON.stringify(each).length, 0)
        assert.isAtMost(characters, 1.2 * COMMAND_CHARACTERS_MAX)
      }
    }
  })

  it("keeps what the summary of a span is made of, where its attributes have no room", () => {
    const messages = Array.from({ length: 400 }, (_, n) => [
      text(`gen_ai.prompt.${n}.content`, `message ${n} `.padEnd(120, "x")),
      text(`gen_ai.prompt.${n}.role`, "user")
    ]).flat()
    const attributes = [
      ...messages,
      text("gen_ai.operation.name", "chat"),
      text("gen_ai.request.model", "gpt-5"),
      attribute("gen_ai.usage.input_tokens", { intValue: "812" }),
      attribute("gen_ai.usage.output_tokens", { intValue: "9" }),
      text("session.id", "s-1")
    ]
    const { details, spanType } = one({ attributes })
    assert.property(details.metadata.attributes, "$ref")
    assert.strictEqual(spanType, "LLM_CALL")
    assert.deepStrictEqual(summaryOf(details), {
      model: "gpt-5",
      input_tokens: 812,
      output_tokens: 9,
      session_id: "s-1"
    })
  })

  /** Characters of JSON that are written while an export is prepared. */
  const written = (body: Json) => {
    const received = fromJsonText(body)
    const stringify = vi.spyOn(JSON, "stringify")
    try {
      const result = finish(prepareSpans(received, TENANT))
      const characters = stringify.mock.results.reduce((sum, { value }) => sum + value.length, 0)
      return { characters, result }
    } finally {
      stringify.mockRestore()
    }
  }
  const filled = (count: number, length: number) =>
    Array.from({ length: count }, (_, n) => text(`a${n}`, "x".repeat(length)))

  it("is refused as a whole with too many spans, or too much of a resource repeated", () => {
    const spans = finish(prepareSpans(fromJsonText(exportOf(many(SPANS_MAX + 1))), TENANT))
    assert.deepStrictEqual(spans, { tooLarge: "20001 spans; send at most 20000 at once" })
    const resource = { attributes: filled(80, 100) }
    const { characters, result } = written(exportOf(many(4_000), resource))
    assert.deepStrictEqual(result, {
      tooLarge:
        "the spans, each with its resource and scope, take over 67108864 characters; send fewer "
        + "spans at once"
    })
    // Of the spans nothing was made.
    assert.isBelow(characters, 100_000)
  })

  it("is written in the time of its parts, however many spans share a resource and a scope", () => {
    const attributes = filled(3_000, 100)
    const large = { resource: { attributes }, scope: { name: "s", attributes } }
    const body = (origins: ReadonlyArray<Json>, count: number): Json => ({
      resourceSpans: origins.map(({ resource, scope }) => ({
        resource,
        scopeSpans: [{ scope, spans: many(count) }]
      }))
    })
    const parts = written(body([large], 1)).characters + written(body([{}], 400)).characters
    const shared = written(body([large], 400))
    assert.isBelow(shared.characters, 2 * parts)
    assert.notProperty(shared.result, "tooLarge")
  })

  it("has a large resource and scope by reference, in each span and in its execution", () => {
    const attributes = filled(300, 100)
    const body = exportOf([span({ attributes: filled(70, 100) })], { attributes })
    const [resourceSpans] = body["resourceSpans"]
    resourceSpans.scopeSpans[0].scope.attributes = attributes
    const [operation] = operationsOf(body)
    const { details, executionDetails, payloads = [] } = plain(operation!)
    const { metadata } = details
    assert.isAtMost(Buffer.byteLength(operation!.details.text), limits.metadataBytesMax)
    assert.lengthOf(Object.keys(metadata.attributes), 70)
    assert.deepStrictEqual(executionDetails.metadata.resource, metadata.resource)
    assert.sameMembers(
      payloads.map(({ sha256 }: Json) => `sha256:${sha256}`),
      [metadata.resource.$ref, metadata.scope.$ref]
    )
  })

  it("gives the same operations however its spans are grouped and ordered", () => {
    const spans = many(6, { parentSpanId: id(99) })
    const whole = operationsOf(exportOf(spans)).map(plain)
    const reference = new Map(whole.map((operation) => [operation["spanId"], operation]))
    fc.assert(
      fc.property(fc.shuffledSubarray(spans, { minLength: 6 }), fc.nat(6), (shuffled, cut) => {
        const parts = [shuffled.slice(0, cut), shuffled.slice(cut)]
        for (const operation of parts.flatMap((part) => operationsOf(exportOf(part)).map(plain))) {
          const { executionDetails: _e, index: _i, ...rest } = operation
          const { executionDetails: _f, index: _j, ...known } = reference.get(operation["spanId"])!
          assert.deepStrictEqual(rest, known)
        }
      }),
      { numRuns: 30 }
    )
  })
})

/** Name, type, status, causes, event types. */
type Row = readonly [string, string, string, number, ReadonlyArray<string>]

interface Golden {
  readonly agent: string
  readonly rows: ReadonlyArray<Row>
}

const golden: Readonly<Record<string, Golden>> = {
  genai: {
    agent: "asst_5j66UpCpwteGg4YSxUnt7lPY",
    rows: [
      ["invoke_agent Travel Planner", "AGENT", "COMPLETED", 0, []],
      ["plan", "PLANNING", "COMPLETED", 0, []],
      ["chat gpt-4o", "LLM_CALL", "COMPLETED", 0, ["gen_ai.client.inference.operation.details"]],
      ["execute_tool get_weather", "TOOL_CALL", "COMPLETED", 1, []],
      ["execute_tool book_hotel", "TOOL_CALL", "FAILED", 1, ["exception"]],
      ["retrieval travel-guides", "RETRIEVAL", "COMPLETED", 0, []],
      ["search_memory traveller", "MEMORY", "COMPLETED", 0, []],
      ["embeddings text-embedding-3-small", "EMBEDDING", "COMPLETED", 0, []]
    ]
  },
  "genai-1.36": {
    agent: "support-bot",
    rows: [
      [
        "chat gpt-4",
        "LLM_CALL",
        "COMPLETED",
        0,
        ["gen_ai.system.message", "gen_ai.user.message", "gen_ai.choice"]
      ],
      ["GET", "CUSTOM", "COMPLETED", 0, []]
    ]
  },
  openinference: {
    agent: "rag",
    rows: [
      ["RunnableSequence", "WORKFLOW", "COMPLETED", 0, []],
      ["retriever", "RETRIEVAL", "COMPLETED", 0, []],
      ["reranker", "RERANK", "COMPLETED", 0, []],
      ["embedding", "EMBEDDING", "COMPLETED", 0, []],
      ["llm", "LLM_CALL", "COMPLETED", 0, []],
      ["tool", "TOOL_CALL", "COMPLETED", 0, []],
      ["guardrail", "GUARDRAIL", "COMPLETED", 0, []],
      ["evaluator", "EVALUATION", "COMPLETED", 0, []],
      ["prompt", "PROMPT", "COMPLETED", 0, []],
      ["unknown", "CUSTOM", "COMPLETED", 0, []],
      ["AgentExecutor", "AGENT", "CANCELLED", 0, ["exception"]]
    ]
  },
  openllmetry: {
    agent: "joke-service",
    rows: [
      ["joke_creation.workflow", "WORKFLOW", "COMPLETED", 0, []],
      ["history_jokes.tool", "TOOL_CALL", "COMPLETED", 0, []],
      ["translate.agent", "AGENT", "COMPLETED", 0, []],
      ["signature.task", "WORKFLOW", "COMPLETED", 0, []],
      ["openai.chat", "LLM_CALL", "COMPLETED", 0, []],
      ["cohere.rerank", "RERANK", "COMPLETED", 0, []],
      ["bedrock", "LLM_CALL", "COMPLETED", 0, []],
      ["Ask a human!", "HUMAN_APPROVAL", "COMPLETED", 0, ["decision_made"]],
      ["tools/call get-weather", "TOOL_CALL", "COMPLETED", 0, []]
    ]
  }
}

describe("what exporters send", () => {
  for (const [name, { agent, rows }] of Object.entries(golden)) {
    it(`is understood as it is meant: ${name}`, () => {
      const body = example(name)
      const operations = operationsOf(body)
      assert.deepStrictEqual(
        operations.map(
          ({ causedBy, details, events, spanType, status }): Row => [
            JSON.parse(details.text).name,
            spanType,
            status,
            causedBy.length,
            events.map(({ eventType }) => eventType)
          ]
        ),
        rows
      )
      assert.strictEqual(operations[0]!.agentId, agent)
      assert.deepStrictEqual(
        prepared(throughProtobuf(body)).commands.flat().map(plain),
        operations.map(plain)
      )
    })

    it(`loses no attribute: ${name}`, () => {
      const spans = JSON.parse(example(name)).resourceSpans[0].scopeSpans[0].spans as Array<Json>
      operationsOf(example(name)).forEach(({ details, events }, index) => {
        const { metadata } = JSON.parse(details.text)
        const sent = spans[index]!
        assert.sameMembers(
          Object.keys(metadata.attributes ?? {}),
          sent["attributes"].map(({ key }: Json) => key)
        )
        events.forEach(({ details: payload }, at) =>
          assert.sameMembers(
            Object.keys(JSON.parse(payload?.text ?? "{}").payload?.attributes ?? {}),
            sent["events"][at].attributes.map(({ key }: Json) => key)
          )
        )
      })
    })
  }
})
