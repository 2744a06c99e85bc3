/** Both encodings of OTLP/HTTP: what they take, what they keep exact, what they refuse whole. */

import { toBinary } from "@bufbuild/protobuf"
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire"
import { assert, describe, it } from "vitest"
import { finish } from "../../../../src/domain/Slices.ts"
import { decodeJson, decodeProtobuf } from "../../../../src/services/ingest/otlp/Decode.ts"
import {
  ScopeSpansSchema,
  SpanSchema
} from "../../../../src/services/ingest/otlp/gen/opentelemetry/proto/trace/v1/trace_pb.js"
import {
  type Decoded,
  MESSAGES_MAX,
  type ReadRequest
} from "../../../../src/services/ingest/otlp/Reading.ts"
import {
  attribute,
  exportOf,
  fromJsonText,
  type Json,
  preparedRead,
  readJson,
  readProtobuf,
  repairsOf,
  span,
  throughProtobuf,
  toProtobuf
} from "./support/Exports.ts"

const first = (body: object | string) =>
  fromJsonText(body).resourceSpans[0]!.scopeSpans[0]!.spans[0]!

const problem = (decoded: Decoded) => {
  if (!("problem" in decoded)) throw new Error("not refused")
  return decoded.problem
}

const json = (text: string) => finish(decodeJson(Buffer.from(text)))

/** A message with one length-delimited field around other bytes. */
const wrapped = (field: number, content: Uint8Array): Uint8Array =>
  new BinaryWriter().tag(field, WireType.LengthDelimited).bytes(content).finish()

describe("OTLP in JSON", () => {
  it("reads ids as hex in either case", () => {
    const { parentSpanId, spanId, traceId } = first(
      exportOf([
        span({ traceId: "5B8EFFF798038103D269B633813FC60C", parentSpanId: "EEE19B7EC3C1B173" })
      ])
    )
    assert.strictEqual(Buffer.from(traceId).toString("hex"), "5b8efff798038103d269b633813fc60c")
    assert.strictEqual(Buffer.from(spanId).toString("hex"), "eee19b7ec3c1b174")
    assert.strictEqual(Buffer.from(parentSpanId).toString("hex"), "eee19b7ec3c1b173")
  })

  it("reads the ids of links too, and leaves values alone that look like ids", () => {
    const { attributes, links } = first(
      exportOf([
        span({
          links: [{ traceId: "0".repeat(31) + "1", spanId: "00000000000000ff" }],
          attributes: [attribute("traceId", { stringValue: "abcd" })]
        })
      ])
    )
    assert.strictEqual(Buffer.from(links[0]!.spanId).toString("hex"), "00000000000000ff")
    assert.deepStrictEqual(attributes[0]!.value!.value, { case: "stringValue", value: "abcd" })
  })

  it("takes 64-bit integers as strings and as numbers, and rounds neither", () => {
    const digits = "1763700000123456789"
    for (const value of [`"${digits}"`, digits]) {
      const text = JSON.stringify(exportOf([span({ startTimeUnixNano: "@" })]))
      assert.strictEqual(first(text.replace('"@"', value)).startTimeUnixNano, BigInt(digits))
    }
    const negative = '{"intValue":-9007199254740993}'
    const text = JSON.stringify(exportOf([span({ attributes: [attribute("n", { "@": 0 })] })]))
    assert.deepStrictEqual(first(text.replace('{"@":0}', negative)).attributes[0]!.value!.value, {
      case: "intValue",
      value: -9007199254740993n
    })
  })

  it("takes enums as numbers and as names", () => {
    for (const [kind, code] of [
      [3, 2],
      ["SPAN_KIND_CLIENT", "STATUS_CODE_ERROR"]
    ]) {
      const { kind: read, status } = first(exportOf([span({ kind, status: { code } })]))
      assert.deepStrictEqual([read, status!.code], [3, 2] as Array<number>)
    }
  })

  it("ignores fields that it does not know", () => {
    const body = exportOf([span({ colour: { of: ["the", { span: 1 }] } })])
    assert.strictEqual(first({ ...body, more: true }).name, "chat")
  })

  it("reads scopes by the names that they had before OTLP 0.15, too", () => {
    const names = [
      ["instrumentationLibrarySpans", "instrumentationLibrary"],
      ["instrumentation_library_spans", "instrumentation_library"]
    ] as const
    const today = exportOf([span()])
    for (const [list, scope] of names) {
      const old = JSON.stringify(today).replace("scopeSpans", list).replace("scope", scope)
      assert.deepStrictEqual(fromJsonText(old), fromJsonText(today))
    }
    const [{ scopeSpans }] = today["resourceSpans"]
    const both = { resourceSpans: [{ scopeSpans, instrumentationLibrarySpans: scopeSpans }] }
    assert.lengthOf(fromJsonText(both).resourceSpans[0]!.scopeSpans, 2)
  })

  it.each([
    ["spans", { spans: [span()] }, "resourceSpans"],
    ["resourceSpan", { resourceSpan: exportOf([span()])["resourceSpans"] }, "resourceSpans"],
    ["librarySpans", { resourceSpans: [{ librarySpans: [] }] }, "scopeSpans"],
    ["span", { resourceSpans: [{ scopeSpans: [{ scope: {}, span: [span()] }] }] }, "spans"]
  ])("refuses %s in the place of what it reads", (name, body, list) => {
    assert.deepStrictEqual(problem(json(JSON.stringify(body))), {
      code: "invalid_request",
      message:
        `"${name}": this member is not read, and ${list} is not there; send ${list}, as in `
        + '{"resourceSpans":[{"scopeSpans":[{"spans":[…]}]}]}'
    })
  })

  it("takes nothing at all for an export of nothing", () => {
    assert.deepStrictEqual(fromJsonText("{}").resourceSpans, [])
    assert.deepStrictEqual(fromJsonText('{"resourceSpans":null}').resourceSpans, [])
    const empty = '{"resourceSpans":[],"resourceLogs":[],"resourceMetrics":null}'
    assert.deepStrictEqual(fromJsonText(empty).resourceSpans, [])
  })

  it("refuses what is no JSON, saying where", () => {
    assert.deepStrictEqual(problem(json('{"resourceSpans":[}')), {
      code: "invalid_json",
      message: "not valid JSON: a value is expected at line 1, column 19"
    })
    assert.strictEqual(problem(json("")).code, "invalid_json")
    const bytes = Buffer.from('\ufeff{"resourceSpans":[]}', "utf16le")
    assert.match(problem(finish(decodeJson(bytes))).message, /UTF-8/)
  })

  it("refuses a key that stands twice beside what is read element by element", () => {
    const text = '{"resourceSpans":[],"resourceSpans":[]}'
    assert.deepStrictEqual(problem(json(text)), {
      code: "invalid_json",
      message: "a key is given more than once in its object; send it once"
    })
  })

  it.each([
    [
      "[]",
      /^no ExportTraceServiceRequest, but a list: lists of records and Zipkin's JSON are not read; send/
    ],
    [
      "null",
      /^no ExportTraceServiceRequest, and no object; send an object with resourceSpans in the form/
    ],
    ['{"resourceSpans":{}}', /^"resourceSpans": must be a list$/],
    ['{"resourceSpans":[{"scopeSpans":[{"spans":5}]}]}', /^"spans": must be a list$/],
    ['{"resourceSpans":[5]}', /no ResourceSpans, and no object; send an object with scopeSpans$/],
    ['{"resourceLogs":[]}', /^"resourceLogs": these are log records: send them to \/v1\/logs$/],
    ['{"resource_metrics":[]}', /these are metrics: send them to \/v1\/metrics$/],
    ['{"resourceSpans":[],"x":1,"resourceLogs":[{}]}', /^"resourceLogs": these are log records/],
    ['{"traceId":"0","spanId":"0"}', /^"traceId": this member is not read.*as in \{"resourceSpans"/]
  ])("refuses %s, and says what to send", (text, message) => {
    const { code, message: said } = problem(json(text))
    assert.strictEqual(code, "invalid_request")
    assert.match(said, message)
  })

  it("survives nesting of any depth", () => {
    const levels = 500_000
    const text = `{"x":${"[".repeat(levels)}${"]".repeat(levels)}}`
    assert.match(problem(json(text)).message, /nests deeper/)
    assert.strictEqual(problem(json("[".repeat(500))).code, "invalid_json")
  })

  it("refuses more messages than fit in memory", () => {
    const events = `[${"{},".repeat(30_000)}{}]`
    const spans = Array.from({ length: 1 + MESSAGES_MAX / 30_000 }, () => span({ events: "@" }))
    const text = JSON.stringify(exportOf(spans)).replaceAll('"@"', events)
    assert.strictEqual(problem(json(text)).code, "payload_too_large")
  })
})

describe("OTLP in protobuf", () => {
  it("reads the same message as JSON", () => {
    const body = exportOf([span({ attributes: [attribute("n", { intValue: "7" })] })])
    assert.deepStrictEqual(throughProtobuf(body), fromJsonText(body))
  })

  it("ignores fields that it does not know", () => {
    const extra = new BinaryWriter().tag(99, WireType.Varint).uint32(7).finish()
    const decoded = finish(decodeProtobuf(Buffer.concat([toProtobuf(exportOf([span()])), extra])))
    assert("request" in decoded)
    assert.deepStrictEqual(decoded.request, fromJsonText(exportOf([span()])))
  })

  it("reads scopes by the number that their list had before OTLP 0.15, too", () => {
    const { scopeSpans } = fromJsonText(exportOf([span()])).resourceSpans[0]!
    const old = wrapped(1, wrapped(1_000, toBinary(ScopeSpansSchema, scopeSpans[0]!)))
    const decoded = finish(decodeProtobuf(old))
    assert("request" in decoded)
    assert.deepStrictEqual(decoded.request.resourceSpans[0]!.scopeSpans, scopeSpans)
  })

  it("takes no bytes for an export of nothing", () => {
    const decoded = finish(decodeProtobuf(new Uint8Array()))
    assert.isTrue("request" in decoded && decoded.request.resourceSpans.length === 0)
  })

  it("refuses bytes that are no message, whatever was cut off", () => {
    const attributes = [attribute("a", { stringValue: "b" })]
    const bytes = toProtobuf(exportOf([span({ attributes })]))
    for (let length = 1; length < bytes.length; length++) {
      assert.strictEqual(
        problem(finish(decodeProtobuf(bytes.subarray(0, length)))).code,
        "invalid_request"
      )
    }
    assert.strictEqual(
      problem(finish(decodeProtobuf(Buffer.from("no protobuf")))).code,
      "invalid_request"
    )
  })

  it("refuses more messages than fit in memory without making them", () => {
    const events = Buffer.alloc(2 * 30_000, Buffer.from([(11 << 3) | 2, 0]))
    const spans = Array.from({ length: 1 + MESSAGES_MAX / 30_000 }, () => wrapped(2, events))
    const bomb = wrapped(1, wrapped(2, Buffer.concat(spans)))
    assert.strictEqual(problem(finish(decodeProtobuf(bomb))).code, "payload_too_large")
  })

  it("survives values inside values of any depth", () => {
    let value: Uint8Array = new Uint8Array()
    for (let level = 0; level < 5_000; level++) value = wrapped(5, wrapped(1, value))
    const pair = Buffer.concat([wrapped(1, Buffer.from("a")), wrapped(2, value)])
    const bytes = wrapped(1, wrapped(2, wrapped(2, wrapped(9, pair))))
    assert.match(refusedAlone(readProtobuf(bytes)), /nests deeper/)
  })
})

/** Why the one span of an export is refused. */
const refusedAlone = (read: ReadRequest): string => {
  const { commands, refused } = preparedRead(read)
  assert.isEmpty(commands)
  assert.lengthOf(refused, 1)
  return refused[0]!.message
}

describe("a record that can't be read", () => {
  const third = "span number 3 of the request: can't be read: "
  const [first, second, last] = ["1", "2", "4"].map((digit) => span({ spanId: digit.repeat(16) }))

  it.each([
    ["a time", { startTimeUnixNano: {} }, /start_time_unix_nano/],
    ["attributes", { attributes: 5 }, /attributes/],
    ["a name", { name: 5 }, /Span.name/],
    ["a value", { attributes: [attribute("a", { intValue: 1.5 })] }, /int_value/],
    ["an id", { traceId: 5 }, /trace_id/],
    ["nothing", null, /Span/],
    ["too much", { events: Array.from({ length: 100_000 }, () => ({})) }, /80000 values/]
  ])("in JSON costs no other: %s", (_name, changes, reason) => {
    const bad = changes === null ? null : span(changes)
    const read = readJson(exportOf([first!, second!, bad as Json, last!]))
    const { commands, refused } = preparedRead(read)
    assert.lengthOf(commands.flat(), 3)
    assert.strictEqual(refused[0]?.index, 2)
    assert.isTrue(refused[0]?.message.startsWith(third), refused[0]?.message)
    assert.match(refused[0]!.message, reason)
  })

  it("in JSON may give a key twice", () => {
    const text = JSON.stringify(exportOf([first!, second!, span(), last!]))
    const twice = text.replace('"spanId":"eee', '"spanId":"1","spanId":"eee')
    const { commands, refused } = preparedRead(readJson(twice))
    assert.lengthOf(commands.flat(), 3)
    assert.include(refused[0]!.message, `${third}a key is given more than once`)
  })

  it("in protobuf costs no other, wherever it is cut or what it is changed into", () => {
    const { scopeSpans } = fromJsonText(exportOf([first!, second!, last!])).resourceSpans[0]!
    const [one, two, four] = scopeSpans[0]!.spans.map((each) => toBinary(SpanSchema, each))
    const bad = Buffer.from(two!)
    for (let at = 0; at < bad.length; at++) {
      for (const broken of [bad.subarray(0, at), bad.with(at, 0xff), bad.with(at, 0x0b)]) {
        const spans = [one!, two!, broken, four!].map((bytes) => wrapped(2, bytes))
        const read = readProtobuf(wrapped(1, wrapped(2, Buffer.concat(spans))))
        const { commands, refused } = preparedRead(read)
        assert.strictEqual(commands.flat().length + refused.length, 4)
        assert.includeMembers(
          commands.flat().map(({ index }) => index),
          [0, 1, 3]
        )
      }
    }
  })

  it("as a resource or scope is kept as it was sent, with its spans", () => {
    const body = exportOf([first!], { attributes: 5 })
    const [operation] = preparedRead(readJson(body)).commands.flat()
    const { metadata } = JSON.parse(operation!.details.text)
    assert.strictEqual(metadata.resource.as_sent, '{"resource":{"attributes":5}}')
    assert.match(metadata.resource.error, /attributes from JSON: expected Array/)
    assert.deepStrictEqual(
      repairsOf(operation!).map(({ code, path }) => [code, path]),
      [["unreadable_origin", "resource"]]
    )
    const attributes = [
      attribute("service.name", { stringValue: "desk" }),
      attribute("process.pid", { intValue: "x" })
    ]
    const [named] = preparedRead(readJson(exportOf([first!], { attributes }))).commands.flat()
    assert.strictEqual(named!.agentId, "desk")
    const { resource } = JSON.parse(named!.details.text).metadata
    assert.deepStrictEqual(resource.attributes, { "service.name": "desk" })
    assert.include(resource.as_sent, '{"key":"process.pid","value":{"intValue":"x"}}')
    const bytes = wrapped(1, Buffer.from([0xff]))
    const spans = wrapped(
      2,
      toBinary(
        SpanSchema,
        fromJsonText(exportOf([first!])).resourceSpans[0]!.scopeSpans[0]!.spans[0]!
      )
    )
    const read = readProtobuf(wrapped(1, wrapped(2, Buffer.concat([bytes, spans]))))
    const [other] = preparedRead(read).commands.flat()
    assert.strictEqual(
      JSON.parse(other!.details.text).metadata.scope.as_sent,
      Buffer.from(bytes).toString("base64")
    )
  })

  it("refuses the request where nothing in it can be read", () => {
    const bytes = wrapped(1, wrapped(1, Buffer.from([0xff])))
    assert.strictEqual(problem(finish(decodeProtobuf(bytes))).code, "invalid_request")
    const text = '{"resourceSpans":[{"resource":5}]}'
    assert.strictEqual(problem(json(text)).code, "invalid_request")
  })
})

describe("names of enums", () => {
  it("are known in any case, with their prefix or without", () => {
    for (const [kind, code] of [
      ["CLIENT", "ERROR"],
      ["span_kind_client", "Error"],
      ["3", "2"]
    ]) {
      const { kind: read, status } = first(exportOf([span({ kind, status: { code } })]))
      assert.deepStrictEqual([read, status!.code], [3, 2] as Array<number>)
    }
  })

  it("that do not exist are kept as they were sent", () => {
    const changes = { kind: "PROXY", status: { code: "MAYBE" } }
    const [operation] = preparedRead(readJson(exportOf([span(changes)]))).commands.flat()
    assert.deepStrictEqual(repairsOf(operation!), [
      { code: "unknown_name", path: "kind", sent: "PROXY" },
      { code: "unknown_name", path: "status.code", sent: "MAYBE" }
    ])
  })
})
