/** Both encodings of OTLP/HTTP: what they take, what they keep exact, what they refuse whole. */

import { toBinary } from "@bufbuild/protobuf"
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire"
import { assert, describe, it } from "vitest"
import { finish } from "../../../../src/domain/Slices.ts"
import {
  type Decoded,
  decodeJson,
  decodeProtobuf,
  MESSAGES_MAX
} from "../../../../src/services/ingest/otlp/Decode.ts"
import { ScopeSpansSchema } from "../../../../src/services/ingest/otlp/gen/opentelemetry/proto/trace/v1/trace_pb.js"
import {
  attribute,
  exportOf,
  fromJsonText,
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
      message: `"${name}": this member is not read, and ${list} is not there; send ${list}`
    })
  })

  it("takes nothing at all for an export of nothing", () => {
    assert.deepStrictEqual(fromJsonText("{}").resourceSpans, [])
    assert.deepStrictEqual(fromJsonText('{"resourceSpans":null}').resourceSpans, [])
  })

  it("refuses what is no JSON, saying where", () => {
    assert.deepStrictEqual(problem(json('{"resourceSpans":[}')), {
      code: "invalid_json",
      message: "not valid JSON: a value is expected at line 1, column 19"
    })
    assert.strictEqual(problem(json("")).code, "invalid_json")
    const bytes = Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xff]), Buffer.from('"}')])
    assert.match(problem(finish(decodeJson(bytes))).message, /UTF-8/)
  })

  it("refuses a key that stands twice", () => {
    const once = JSON.stringify(exportOf([span()]))
    const text = once.replace('"name":"chat"', '"name":"a","name":"b"')
    assert.deepStrictEqual(problem(json(text)), {
      code: "invalid_json",
      message: "a key is given more than once in its object; send it once"
    })
  })

  it("refuses values of the wrong type, naming the field", () => {
    const { code, message } = problem(json(JSON.stringify(exportOf([span({ name: 5 })]))))
    assert.strictEqual(code, "invalid_request")
    assert.include(message, "Span.name")
    assert.strictEqual(problem(json("[]")).code, "invalid_request")
    assert.strictEqual(problem(json("null")).code, "invalid_request")
  })

  it("survives nesting of any depth", () => {
    const levels = 500_000
    const text = `{"x":${"[".repeat(levels)}${"]".repeat(levels)}}`
    assert.match(problem(json(text)).message, /nests deeper/)
    assert.strictEqual(problem(json("[".repeat(500))).code, "invalid_json")
  })

  it("refuses more messages than fit in memory", () => {
    const events = `[${"{},".repeat(MESSAGES_MAX)}{}]`
    const text = JSON.stringify(exportOf([span({ events: "@" })])).replace('"@"', events)
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
    assert.deepStrictEqual(decoded, { request: fromJsonText(exportOf([span()])) })
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

  it("refuses text that is no UTF-8", () => {
    const bytes = Buffer.from(toProtobuf(exportOf([span({ name: "chat" })])))
    bytes[bytes.indexOf("chat")] = 0xff
    assert.strictEqual(problem(finish(decodeProtobuf(bytes))).code, "invalid_request")
  })

  it("refuses more messages than fit in memory without making them", () => {
    const events = Buffer.alloc(2 * (MESSAGES_MAX + 1), Buffer.from([(11 << 3) | 2, 0]))
    const bomb = wrapped(1, wrapped(2, wrapped(2, events)))
    assert.strictEqual(problem(finish(decodeProtobuf(bomb))).code, "payload_too_large")
  })

  it("survives values inside values of any depth", () => {
    let value: Uint8Array = new Uint8Array()
    for (let level = 0; level < 5_000; level++) value = wrapped(5, wrapped(1, value))
    const pair = Buffer.concat([wrapped(1, Buffer.from("a")), wrapped(2, value)])
    const bytes = wrapped(1, wrapped(2, wrapped(2, wrapped(9, pair))))
    assert.match(problem(finish(decodeProtobuf(bytes))).message, /nests deeper/)
  })
})
