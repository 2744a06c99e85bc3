/**
 * Bodies that are small for what they ask for: many items, lines, levels, members, fields or digits
 * in few bytes. Each is as large as a body may be, and most are sent in a coding.
 */
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf"
import { ExportTraceServiceRequestSchema } from "../../../src/services/ingest/otlp/gen/opentelemetry/proto/collector/trace/v1/trace_service_pb.js"
import type { SpanSchema } from "../../../src/services/ingest/otlp/gen/opentelemetry/proto/trace/v1/trace_pb.js"
import { READ_KEY, WRITE_KEY } from "./Doubles.ts"
import type { Call } from "./TestApi.ts"

export interface HostileBody {
  readonly path: string
  readonly contentType: string
  readonly body: Buffer
}

const JSON_TYPE = "application/json"
const NDJSON = "application/x-ndjson"
const PROTOBUF = "application/x-protobuf"
const VERIFY = "/v1/verify"

/** `part` again and again between a head and a tail, so that all is `bytes` long at most. */
const filled = (bytes: number, part: string, head = "", tail = ""): Buffer => {
  const times = Math.floor((bytes - head.length - tail.length) / part.length)
  return Buffer.from(head + part.repeat(times) + tail)
}

/** A list of numbered parts between a head and a tail. */
const numbered = (
  bytes: number,
  part: (index: number) => string,
  head: string,
  tail: string
): Buffer => {
  const parts: Array<string> = []
  let length = head.length + tail.length
  for (let index = 0; ; index++) {
    const next = part(index)
    length += next.length + 1
    if (length > bytes) break
    parts.push(next)
  }
  return Buffer.from(head + parts.join(",") + tail)
}

const varint = (value: number): ReadonlyArray<number> =>
  value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >>> 7)]

/** A field of protobuf with a length. */
export const field = (number: number, content: Buffer): Buffer =>
  Buffer.concat([Buffer.from([(number << 3) | 2, ...varint(content.length)]), content])

/** An object of so many keys, each with an escape, in no order. */
const escapedKeys = (keys: number): string => {
  const members = Array.from({ length: keys }, (_, at) => `"\\u0061${(at * 7_919) % keys}":1`)
  return `{${members.join(",")}}`
}

const events = (bytes: number, part: string) =>
  filled(bytes, part, '{"events":[', `${part.slice(0, -1)}]}`)
const event = (metadata: string): [string, string] => [
  '{"events":[{"action":"a.b","actor":{"id":"a","type":"user"},"resource":{"id":"r","type":"t"},'
    + `"metadata":${metadata.slice(0, 1)}`,
  `${metadata.slice(1)}}]}`
]

const nested = (bytes: number): Buffer => {
  let value: Buffer = Buffer.alloc(0)
  // The length of each level stands before it, so that it grows from the inside.
  for (let level = 0; level < 2_000; level++) value = field(5, field(1, value))
  const span = field(2, field(9, Buffer.concat([field(1, Buffer.from("k")), field(2, value)])))
  return field(1, Buffer.concat([field(2, span), Buffer.alloc(Math.min(0, bytes))]))
}

/** An export of spans of so many attributes each. */
const spansOfAttributes = (spans: number, attributes: number): Buffer => {
  const [from, to] = [
    '"startTimeUnixNano":"1763700000000000000"',
    '"endTimeUnixNano":"1763700001000000000"'
  ]
  const list = Array.from(
    { length: attributes },
    (_, index) => `{"key":"${index.toString(36)}","value":{}}`
  )
  const parts = Array.from({ length: spans }, (_, index) => {
    const ids = `"traceId":"${"ab".repeat(16)}","spanId":"${String(index + 1).padStart(16, "0")}"`
    return `{${ids},"name":"n",${from},${to},"attributes":[${list.join(",")}]}`
  })
  return Buffer.from(`{"resourceSpans":[{"scopeSpans":[{"spans":[${parts.join(",")}]}]}]}`)
}

const IDENTITY = { traceId: Buffer.alloc(16, 1), spanId: Buffer.alloc(8, 2) }
const NANOS = 1_763_700_000_000_000_000n

/** An export of one span with these members, in protobuf: there any character takes one byte. */
const spanOf = (members: MessageInitShape<typeof SpanSchema>): Buffer => {
  const span = {
    ...IDENTITY,
    name: "n",
    startTimeUnixNano: NANOS,
    endTimeUnixNano: NANOS,
    ...members
  }
  const message = create(ExportTraceServiceRequestSchema, {
    resourceSpans: [{ scopeSpans: [{ spans: [span] }] }]
  })
  return Buffer.from(toBinary(ExportTraceServiceRequestSchema, message))
}

/** An export of one span with an attribute whose text are these bytes. */
const spanOfBytes = (text: Buffer): Buffer => {
  const value = field(2, field(1, text))
  const attribute = field(9, Buffer.concat([field(1, Buffer.from("a")), value]))
  const span = spanOf({})
  // The members of the message come last: they are taken out of the three lists around them.
  const members = span.subarray(6)
  return field(1, field(2, field(2, Buffer.concat([members, attribute]))))
}

type Texts = ReadonlyArray<readonly [key: string, text: string]>

const spanOfTexts = (texts: Texts): Buffer =>
  spanOf({
    attributes: texts.map(([key, value]) => ({
      key,
      value: { value: { case: "stringValue", value } }
    }))
  })

/** So many texts, named and made by their index. */
const texts = (count: number, text: (index: number) => readonly [string, string]): Texts =>
  Array.from({ length: count }, (_, index) => text(index))

/** Where the table of frameworks has members of JSON texts. */
const LOOKED_INTO = [
  "langfuse.observation.usage_details",
  "langfuse.observation.cost_details",
  "mlflow.chat.tokenUsage",
  "mlflow.llm.cost",
  "genkit:output",
  "response_data"
]

const manyKeys = (keys: number): string =>
  `{${Array.from({ length: keys }, (_, index) => `"${index.toString(36)}":1`).join(",")}}`

/** A kept event with this in its metadata. */
const keptEvent = (metadata: string): string => {
  const [time, hash] = ["2026-03-01T09:30:00.000000Z", "0".repeat(64)]
  const event = {
    sequence_number: 1,
    id: "e",
    timestamp: time,
    action: "a.b",
    outcome: "success",
    tenant_id: "acme",
    created_at: time,
    prev_hash: hash,
    content_hash: hash,
    hash,
    actor: { id: "a", type: "user" },
    resource: { id: "r", type: "t" }
  }
  return `${JSON.stringify(event).slice(0, -1)},"metadata":${metadata}}`
}

/** By name. */
export const hostileBodies = (bytes: number): Readonly<Record<string, HostileBody>> => {
  const batch = (body: Buffer) => ({ path: "/v1/events/batch", contentType: JSON_TYPE, body })
  const lines = (body: Buffer) => ({ path: "/v1/events/batch", contentType: NDJSON, body })
  const single = (body: Buffer) => ({ path: "/v1/events", contentType: JSON_TYPE, body })
  const traces = (body: Buffer) => ({ path: "/v1/traces", contentType: JSON_TYPE, body })
  const binary = (body: Buffer) => ({ path: "/v1/traces", contentType: PROTOBUF, body })
  const logs = (body: Buffer) => ({ path: "/v1/logs", contentType: JSON_TYPE, body })
  const kept = (body: Buffer) => ({ path: VERIFY, contentType: JSON_TYPE, body })
  const operations = (body: Buffer) => ({
    path: "/api/v1/traces/batch",
    contentType: JSON_TYPE,
    body
  })
  const [head, tail] = event("{}")
  const [listHead, listTail] = event("[]")
  const [textHead, textTail] = event('""')
  const members = texts(3_000, (index) => [`k${index}`, "v".repeat(200)])
  return {
    "line feeds": lines(filled(bytes, "\n")),
    "line feeds and spaces": lines(filled(bytes, " \n")),
    "lines of {}": lines(filled(bytes, "{}\n")),
    "lines of one bracket": lines(filled(bytes, "[\n")),
    "a line of brackets": lines(filled(bytes, "[")),
    "1,000 lines of 16 KB": lines(filled(bytes, `${"[1,".repeat(5_500)}1\n`)),
    "1,000 lines of members": lines(filled(bytes, `{${'"a":{},'.repeat(2_090)}"b":1}\n`)),
    "items without members": batch(events(bytes, "{},")),
    "items, the last one cut": batch(filled(bytes, "{},", '{"events":[')),
    "items that are numbers": batch(events(bytes, "1,")),
    "items beside the array": batch(filled(bytes, "{},", '{"other":[', '1],"events":[{}]}')),
    "1,000 items of 16 KB": batch(
      filled(bytes, `{"metadata":{"a":[${"[],".repeat(5_560)}1]}},`, '{"events":[', "{}]}")
    ),
    brackets: batch(filled(bytes, "[")),
    "brackets in the array": batch(filled(bytes, "[", '{"events":[{"metadata":')),
    braces: batch(filled(bytes, '{"":')),
    "pairs of brackets": batch(filled(bytes, "[],", "[", "1]")),
    "brackets and their ends": single(
      Buffer.concat([Buffer.alloc(bytes / 2, "["), Buffer.alloc(bytes / 2, "]")])
    ),
    "one object of many keys": single(
      numbered(bytes, (index) => `"${index.toString(36)}":1`, "{", "}")
    ),
    "as many keys as an item may have": single(
      numbered(60_000 * 11, (index) => `"${index.toString(36)}":1`, "{", "}")
    ),
    "as many escaped keys as an item may have": batch(
      numbered(60_000 * 17, (index) => `"\\u0061${index.toString(36)}":1`, head, tail)
    ),
    "an event of as many escaped keys as one may have": single(
      Buffer.from(
        '{"action":"a.b","outcome":"success","actor":{"id":"a","type":"human"},'
          + `"resource":{"id":"r","type":"t"},"metadata":${escapedKeys(60_000)}}`
      )
    ),
    "one key again and again": single(filled(bytes, '"a":1,', "{", '"a":1}')),
    "metadata of many keys": batch(
      numbered(bytes, (index) => `"${index.toString(36)}":1`, head, tail)
    ),
    "metadata of many texts": batch(filled(bytes, '"",', listHead, `""${listTail}`)),
    "metadata of one text": batch(filled(bytes, "a", textHead, textTail)),
    "metadata of escapes": batch(filled(bytes, "\\u0061", textHead, textTail)),
    "escaped keys": batch(
      numbered(bytes, (index) => `"\\u0061${index.toString(36)}":1`, head, tail)
    ),
    "a long number": single(filled(bytes, "1")),
    "a long fraction": single(filled(bytes, "0", "[0.", "1]")),
    "many long numbers": batch(filled(bytes, "12345678901234567890,", listHead, `1${listTail}`)),
    "a long exponent": single(filled(bytes, "0", "[1e", "]")),
    "quotes that never end": batch(filled(bytes, '\\"', '{"events":["')),
    "one text": single(filled(bytes, "a", '"', '"')),
    spaces: single(filled(bytes, " ")),
    commas: batch(filled(bytes, ",")),
    quotes: batch(filled(bytes, '"')),
    "operations without members": operations(filled(bytes, "{},", '{"operations":[', "{}]}")),
    "an operation of many keys": operations(
      Buffer.from(
        '{"operations":[{"op":"execution.start","agent_id":"a","metadata":'
          + `${manyKeys(40_000)}}]}`
      )
    ),
    "an operation of quotes, and members": operations(
      Buffer.from(
        '{"operations":[{"op":"execution.start","agent_id":"a","metadata":{"q":"'
          + `${'\\"'.repeat(bytes / 4)}",${manyKeys(3_000).slice(1)}}]}`
      )
    ),
    "an execution of as many escaped keys as one may have": {
      path: "/api/v1/executions",
      contentType: JSON_TYPE,
      body: Buffer.from(`{"agent_id":"a","metadata":{"a":${escapedKeys(60_000)}}}`)
    },
    "OTLP: brackets": traces(filled(bytes, "[")),
    "OTLP: braces": traces(filled(bytes, '{"a":')),
    "OTLP: resources without members": traces(filled(bytes, "{},", '{"resourceSpans":[', "{}]}")),
    "OTLP: unknown numbers": traces(filled(bytes, "1,", '{"a":[', "1]}")),
    "OTLP: long numbers": traces(filled(bytes, "12345678901234567,", '{"a":[', "1]}")),
    "OTLP: many keys": traces(numbered(bytes, (index) => `"${index.toString(36)}":1`, "{", "}")),
    "OTLP: a long number": traces(filled(bytes, "1", '{"a":', "}")),
    "OTLP: a time of many digits": traces(
      filled(
        bytes,
        "1",
        '{"resourceSpans":[{"scopeSpans":[{"spans":[{"startTimeUnixNano":"',
        '"}]}]}]}'
      )
    ),
    "OTLP: a number of many digits": traces(
      filled(
        bytes,
        "1",
        '{"resourceSpans":[{"scopeSpans":[{"spans":[{"startTimeUnixNano":',
        "}]}]}]}"
      )
    ),
    "OTLP: base64": traces(
      filled(
        bytes,
        "A",
        '{"resourceSpans":[{"resource":{"attributes":[{"key":"a","value":{"bytesValue":"',
        '"}}]}}]}'
      )
    ),
    "OTLP: attributes": traces(
      filled(
        bytes,
        '{"key":"a","value":{"intValue":1}},',
        '{"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":[',
        "{}]}]}]}]}"
      )
    ),
    "OTLP: as many attributes as spans may have": traces(spansOfAttributes(24, 19_000)),
    "OTLP: attributes of long names": binary(
      spanOfTexts(texts(18_000, (index) => ["k".repeat(400) + index, "v".repeat(300)]))
    ),
    "OTLP: attributes to be repaired": binary(
      spanOfTexts(texts(18_000, (index) => ["k\0".repeat(100) + index, "\0\x01".repeat(200)]))
    ),
    "OTLP: a text to be repaired": binary(spanOfTexts([["a", "\0x".repeat(bytes / 2 - 100)]])),
    "OTLP: a text that is no UTF-8": binary(
      spanOfBytes(Buffer.alloc(bytes - 200, Buffer.from([0xff, 0x61, 0xc3])))
    ),
    "OTLP: a text of control characters": binary(spanOfTexts([["a", "\x01".repeat(bytes - 200)]])),
    "OTLP: a text of control characters, and members": binary(
      spanOfTexts([["a", "\x01".repeat(bytes - 700_000)], ...members])
    ),
    "OTLP: texts of control characters, and members": binary(
      spanOfTexts([
        ...texts(150, (index) => [`t${index}`, `${index}${"\x01".repeat(100_000)}`]),
        ...members
      ])
    ),
    "OTLP: JSON texts that are looked into": binary(
      spanOfTexts(LOOKED_INTO.map((name) => [name, manyKeys(85_000)]))
    ),
    "OTLP: the name of an event of marks": binary(
      spanOf({ events: [{ timeUnixNano: NANOS, name: `a${"-".repeat(bytes - 200)}b` }] })
    ),
    "OTLP: the name of a span, and its message": binary(
      spanOf({
        name: "\x01".repeat(bytes / 2 - 200),
        status: { code: 2, message: "\x01".repeat(bytes / 2 - 200) }
      })
    ),
    "OTLP: a long scope of many logs": logs(
      Buffer.from(
        `{"resourceLogs":[{"scopeLogs":[{"scope":{"name":"${"s".repeat(bytes / 2)}"},"logRecords":[`
          + `${Array(20)
            .fill(
              `{"traceId":"${"ab".repeat(16)}","spanId":"${"cd".repeat(8)}","eventName":"gen_ai.choice"}`
            )
            .join(",")}]}]}]}`
      )
    ),
    "OTLP: attributes of a resource": traces(
      filled(bytes, "{},", '{"resourceSpans":[{"resource":{"attributes":[', "{}]}}]}")
    ),
    "OTLP: escaped keys": traces(
      numbered(bytes, (index) => `"\\u0061${index.toString(36)}":1`, "{", "}")
    ),
    "OTLP: logs without members": logs(filled(bytes, "{},", '{"resourceLogs":[', "{}]}")),
    "OTLP: empty resources": binary(Buffer.from("\x0a\x00".repeat(bytes / 2), "latin1")),
    "OTLP: unknown fields": binary(Buffer.from("\x78\x00".repeat(bytes / 2), "latin1")),
    "OTLP: unknown groups": binary(Buffer.from("\x7b".repeat(bytes), "latin1")),
    "OTLP: a scalar again and again": binary(
      field(1, Buffer.from("\x1a\x00".repeat(bytes / 2 - 8), "latin1"))
    ),
    "OTLP: empty spans": binary(
      field(1, field(2, Buffer.from("\x12\x00".repeat(bytes / 2 - 16), "latin1")))
    ),
    "OTLP: empty attributes": binary(
      field(1, field(2, field(2, Buffer.from("\x4a\x00".repeat(bytes / 2 - 24), "latin1"))))
    ),
    "OTLP: values in values": binary(nested(bytes)),
    "OTLP: zeros": binary(Buffer.alloc(bytes)),
    "kept events without members": kept(events(bytes, "{},")),
    "kept events of brackets": kept(filled(bytes, "[", '{"events":[')),
    "a kept event of many keys": kept(Buffer.from(`{"events":[${keptEvent(manyKeys(250_000))}]}`)),
    "kept events of as many keys as one may have": kept(
      Buffer.from(
        `{"events":[${Array(4)
          .fill(keptEvent(manyKeys(65_000)))
          .join(",")}]}`
      )
    ),
    "a kept event of as many escaped keys as one may have": kept(
      Buffer.from(`{"events":[${keptEvent(escapedKeys(60_000))}]}`)
    ),
    "a kept receipt of many keys": kept(Buffer.from(`{"receipt":${manyKeys(65_000)}}`))
  }
}

/** A body as it is sent. */
export const callOf = ({ body, contentType, path }: HostileBody): Call => ({
  key: path === VERIFY ? READ_KEY : WRITE_KEY,
  raw: body,
  headers: { "content-type": contentType }
})
