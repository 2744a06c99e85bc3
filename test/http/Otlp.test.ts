/**
 * POST /v1/traces over the doubles: both encodings and what is answered in them, real exporters
 * included. What spans become is tested with the mapping, what is stored with the whole service.
 */
import { gzipSync } from "node:zlib"
import { createRegistry, fromBinary, fromJson, toBinary } from "@bufbuild/protobuf"
import { anyUnpack } from "@bufbuild/protobuf/wkt"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import type { Command, ItemError } from "../../src/domain/records/Command.ts"
import type { Receipt } from "../../src/domain/records/Receipt.ts"
import { currentTime } from "../../src/domain/Timestamp.ts"
import type { RecordOtlpSpan, TraceResult } from "../../src/domain/traces/TraceOperation.ts"
import { REFUSALS_NAMED_MAX } from "../../src/http/otlp/OtlpHandlers.ts"
import { CommandLogBusy, CommandTooLarge } from "../../src/services/commands/CommandLog.ts"
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema
} from "../../src/services/ingest/otlp/gen/google/rpc/error_details_pb.js"
import { StatusSchema } from "../../src/services/ingest/otlp/gen/google/rpc/status_pb.js"
import { ExportLogsServiceRequestSchema } from "../../src/services/ingest/otlp/gen/opentelemetry/proto/collector/logs/v1/logs_service_pb.js"
import {
  ExportTraceServiceRequestSchema,
  ExportTraceServiceResponseSchema
} from "../../src/services/ingest/otlp/gen/opentelemetry/proto/collector/trace/v1/trace_service_pb.js"
import { PIECE_MESSAGES_MAX } from "../../src/services/ingest/otlp/Reading.ts"
import {
  attribute,
  exportOf,
  type Json,
  operationsOf,
  plain,
  span,
  TRACE,
  toProtobuf
} from "../services/ingest/otlp/support/Exports.ts"
import { deliver, exporterTo, recordAgentRun } from "../support/OtlpAgentRun.ts"
import { OTHER_KEY, READ_KEY, World, WRITE_KEY } from "./support/Doubles.ts"
import { type Answer, type Call, TestApi } from "./support/TestApi.ts"

const TRACES = "/v1/traces"
const JSON_TYPE = "application/json"
const PROTOBUF = "application/x-protobuf"

/** A sequencer that takes every span, unless the test says otherwise. */
class SpanWorld extends World {
  readonly recorded: Array<RecordOtlpSpan> = []
  /** What it says against an operation. */
  judge: (operation: RecordOtlpSpan) => Omit<ItemError, "index"> | undefined = () => undefined
  fails = false
  /** What it says to be repaired of each. */
  repairs: TraceResult["repairs"]

  override decide(command: Command): void {
    if (command.kind !== "trace") return super.decide(command)
    const operations = command.traces as ReadonlyArray<RecordOtlpSpan>
    const errors = operations.flatMap((operation) => {
      const error = this.judge(operation)
      return error === undefined ? [] : [{ index: operation.index, ...error }]
    })
    this.recorded.push(...operations)
    const receipt: Receipt = {
      receipt_id: command.receiptId,
      tenant_id: command.tenantId,
      status: this.fails ? "failed" : "committed",
      accepted: operations.length - errors.length,
      rejected: errors.length,
      ids: [],
      errors,
      results: operations.map(({ executionId, index, op }) => ({
        index,
        op,
        outcome: "created",
        execution_id: executionId,
        ...(this.repairs === undefined ? {} : { repairs: this.repairs })
      })),
      received_at: command.receivedAt,
      committed_at: currentTime(),
      ...(this.fails ? { error: { code: "step_failed", message: "it did not work" } } : {}),
      command_offset: 0,
      events_next: 0
    }
    this.settle(command.attempt, { kind: "outcome", receipt, receiptOffset: 0 })
  }
}

/** The parts of an answer in either encoding. */
const rejection = ({ body, bytes, headers }: Answer): readonly [bigint, string] | undefined => {
  if (headers["content-type"] === JSON_TYPE) {
    const partial = body.partialSuccess
    return partial && [BigInt(partial.rejectedSpans ?? 0), partial.errorMessage]
  }
  assert.strictEqual(headers["content-type"], PROTOBUF)
  const { partialSuccess: partial } = fromBinary(ExportTraceServiceResponseSchema, bytes)
  return partial && [partial.rejectedSpans, partial.errorMessage]
}

/** Six events of 80,000 bytes in 200 values each; a span may refer to 1,000. */
const largeEvents = Array.from({ length: 6 }, (_, at) => ({
  timeUnixNano: "1763719200000000000",
  name: "e",
  attributes: Array.from({ length: 200 }, (_, n) =>
    attribute(`a${n}`, { stringValue: `${at} ${n} `.padEnd(400, "x") })
  )
}))

describe("POST /v1/traces", () => {
  let world: SpanWorld
  let api: TestApi
  beforeEach(async () => {
    world = new SpanWorld()
    api = await TestApi.start({}, world)
  })
  afterEach(() => api.stop())

  const post = (type: string, raw: string | Uint8Array, call: Call = {}) =>
    api.call(TRACES, {
      key: WRITE_KEY,
      ...call,
      raw: typeof raw === "string" ? raw : Buffer.from(raw),
      headers: { "content-type": type, ...call.headers }
    })
  const encoded = (type: string, body: Json): string | Uint8Array =>
    type === PROTOBUF ? toProtobuf(body) : JSON.stringify(body)
  const send = (type: string, body: Json, call: Call = {}) => post(type, encoded(type, body), call)

  for (const type of [JSON_TYPE, PROTOBUF]) {
    describe(`with ${type}`, () => {
      it("answers an accepted export with an empty message", async () => {
        const body = exportOf([span(), span({ spanId: "00000000000000aa" })])
        const answer = await send(type, body)
        assert.strictEqual(answer.status, 200, answer.text)
        assert.strictEqual(answer.text, type === PROTOBUF ? "" : "{}")
        assert.isUndefined(rejection(answer))
        assert.deepStrictEqual(world.recorded.map(plain), operationsOf(body).map(plain))
        assert.strictEqual(world.commands[0]!.kind, "trace")
        assert.strictEqual(world.commands[0]!.tenantId, "acme")
      })

      it("answers an export of nothing without writing anything", async () => {
        for (const raw of [encoded(type, {}), encoded(type, exportOf([]))]) {
          const answer = await post(type, raw)
          assert.deepStrictEqual([answer.status, rejection(answer)], [200, undefined])
        }
        assert.isEmpty(world.commands)
      })

      it("says what was refused, by itself and by the sequencer, and takes the rest", async () => {
        const bad = span({
          spanId: "00000000000000bb",
          startTimeUnixNano: "0",
          endTimeUnixNano: "0"
        })
        const cycle = span({ spanId: "00000000000000cc", name: "cycle" })
        world.judge = ({ details }) =>
          details.text.includes('"name":"cycle"')
            ? { code: "cycle_detected", message: "parent_span_id: closes a cycle" }
            : undefined
        const answer = await send(type, exportOf([bad, span(), cycle]))
        assert.strictEqual(answer.status, 200)
        const [rejected, message] = rejection(answer)!
        assert.strictEqual(rejected, 2n)
        assert.strictEqual(
          message,
          `span 00000000000000bb of trace ${TRACE}: start_time_unix_nano: missing; send `
            + `nanoseconds since 1970; span 00000000000000cc of trace ${TRACE}: parent_span_id: `
            + "closes a cycle"
        )
        assert.deepStrictEqual(
          world.recorded.map(({ index }) => index),
          [1, 2]
        )
      })

      it("refuses every span and writes nothing, and still answers 200", async () => {
        const spans = Array.from({ length: REFUSALS_NAMED_MAX + 3 }, () => span({ spanId: "" }))
        const answer = await send(type, exportOf(spans))
        assert.strictEqual(answer.status, 200)
        const [rejected, message] = rejection(answer)!
        assert.strictEqual(rejected, BigInt(spans.length))
        assert.match(message, /; and 3 more spans$/)
        assert.isEmpty(world.commands)
      })

      it("cuts a large export into commands, in order", async () => {
        const spans = Array.from({ length: 2_500 }, (_, n) =>
          span({ spanId: (n + 1).toString(16).padStart(16, "0") })
        )
        const answer = await send(type, exportOf(spans))
        assert.strictEqual(answer.status, 200, answer.text)
        const sizes = world.commands.map(({ traces }) => traces!.length)
        assert.deepStrictEqual(sizes, [1_000, 1_000, 500])
        assert.deepStrictEqual(
          world.recorded.map(({ index }) => index),
          spans.map((_, index) => index)
        )
      })

      it("undoes gzip", async () => {
        const raw = gzipSync(encoded(type, exportOf([span()])))
        const answer = await post(type, raw, { headers: { "content-encoding": "gzip" } })
        assert.strictEqual(answer.status, 200)
        assert.strictEqual(world.recorded.length, 1)
      })

      it("keeps a span with more metadata than it has room for, and says nothing of it", async () => {
        const value = { stringValue: "x".repeat(40_000) }
        const answer = await send(type, exportOf([span({ attributes: [attribute("a", value)] })]))
        assert.strictEqual(rejection(answer), undefined)
        const [{ details, payloads }] = world.recorded as [RecordOtlpSpan]
        const { a } = JSON.parse(details.text).metadata.attributes
        assert.deepStrictEqual([a.bytes, a.preview], [40_000, "x".repeat(2_048)])
        assert.strictEqual(a.$ref, `sha256:${payloads![0]!.sha256}`)
      })

      it("warns of values that there is no room for", async () => {
        const answer = await send(type, exportOf([span({ events: largeEvents })]))
        const [refused, message] = rejection(answer)!
        assert.strictEqual(Number(refused), 0)
        assert.match(message, /200 values are too large; the beginning, size and SHA-256 are kept/)
        const [{ events: kept, payloads }] = world.recorded as [RecordOtlpSpan]
        assert.strictEqual(payloads!.length, 1_000)
        const { a0 } = JSON.parse(kept[5]!.details!.text).payload.attributes
        assert.deepInclude(a0, { bytes: 400, truncated: true })
      })
    })
  }

  it("names what the sequencer has repaired, which it counts itself", async () => {
    world.repairs = ["other_content"]
    const [rejected, message] = rejection(await send(JSON_TYPE, exportOf([span()])))!
    assert.strictEqual(rejected, 0n)
    assert.include(message, "span eee19b7ec3c1b174 of trace")
    assert.include(message, "repaired: span: other_content: The span was sent again")
  })

  it("counts repairs by their code, and values that are cut, and warns of each once a minute", async () => {
    const counted = async () => {
      const { text } = await api.call("/metrics")
      const lines = text.matchAll(
        /^alk_(repairs|otlp_values_cut|otlp_values_apart)_total(\S*) (\d+)$/gm
      )
      return new Map(
        [...lines].map(([, name, labels, value]) => [`${name}${labels}`, Number(value)])
      )
    }
    // The counters belong to the process, which has run other tests before.
    const before = await counted()
    const nested = Array.from({ length: 80 }).reduce(
      (value: Json) => ({ arrayValue: { values: [value] } }),
      { stringValue: "x" }
    )
    const bad = span({
      name: "x".repeat(1_025),
      attributes: [
        attribute("a", { stringValue: "\u0000" }),
        attribute("b", { stringValue: "\u0000" }),
        attribute("c", { stringValue: "1" }),
        attribute("c", { stringValue: "2" }),
        attribute("d", nested)
      ],
      links: [{ traceId: TRACE, spanId: "eee19b7ec3c1b174" }],
      events: [{ name: "e" }],
      status: { code: 3 },
      endTimeUnixNano: "1"
    })
    const large = span({ spanId: "00000000000000aa", events: largeEvents })
    const answer = await send(PROTOBUF, exportOf([bad, large]))
    assert.strictEqual(answer.status, 200)
    const [rejected, message] = rejection(answer)!
    assert.strictEqual(rejected, 0n)
    assert.include(message, 'attributes["a"]: broken_text: A text holds U+0000')
    await send(PROTOBUF, exportOf([bad]))
    const after = await counted()
    const grown = [...after].map(([name, value]) => [name, value - (before.get(name) ?? 0)])
    const codes = {
      broken_text: 2,
      deep_value: 1,
      end_before_start: 1,
      event_time: 1,
      link_to_itself: 1,
      long_name: 1,
      repeated_key: 1,
      unknown_status: 1
    }
    assert.deepInclude(Object.fromEntries(grown), {
      otlp_values_cut: 200,
      otlp_values_apart: 1_000,
      ...Object.fromEntries(
        Object.entries(codes).map(([code, count]) => [`repairs{code="${code}"}`, 2 * count])
      )
    })
    const warnings = api.logs.filter(({ level }) => level === "Warn")
    assert.deepStrictEqual(
      warnings.map(({ message: said }) => said).filter((said) => !said.includes("repaired")),
      ["values of spans were too large: of each the beginning is kept"]
    )
    const warned = warnings.filter(({ message: said }) => said.includes("repaired"))
    assert.deepStrictEqual(
      Object.fromEntries(
        warned.map(({ annotations }) => [annotations["code"], annotations["count"]])
      ),
      codes
    )
    assert.lengthOf(warned, Object.keys(codes).length)
  })

  it("judges a span of several operations once", async () => {
    world.judge = () => ({ code: "cycle_detected", message: "parent_span_id: closes a cycle" })
    const event = { timeUnixNano: "1763719200000000000", name: "e" }
    const events = Array.from({ length: 2_500 }, () => event)
    const [rejected] = rejection(await send(PROTOBUF, exportOf([span({ events }), span()])))!
    assert.strictEqual(world.recorded.length, 4)
    assert.strictEqual(rejected, 2n)
  })

  it("says of log records in protobuf where they are taken", async () => {
    const logs = {
      resourceLogs: [
        { scopeLogs: [{ logRecords: [{ timeUnixNano: "1", body: { stringValue: "x" } }] }] }
      ]
    }
    const bytes = toBinary(
      ExportLogsServiceRequestSchema,
      fromJson(ExportLogsServiceRequestSchema, logs)
    )
    const [rejected, message] = rejection(await post(PROTOBUF, bytes))!
    assert.strictEqual(rejected, 1n)
    assert.match(message, /^no span has a trace_id; log records are sent to \/v1\/logs/)
  })

  it("says nothing of log records where a span was too much to be read", async () => {
    const values = Array.from({ length: PIECE_MESSAGES_MAX }, () => ({ intValue: "1" }))
    const attributes = [{ key: "many", value: { arrayValue: { values } } }]
    const base64 = (hex: string) => Buffer.from(hex, "hex").toString("base64")
    const ids = { traceId: base64(TRACE), spanId: base64("eee19b7ec3c1b174") }
    const schema = ExportTraceServiceRequestSchema
    const bytes = toBinary(schema, fromJson(schema, exportOf([span({ ...ids, attributes })])))
    for (const answer of [
      await post(PROTOBUF, bytes),
      await send(JSON_TYPE, exportOf([span({ attributes })]))
    ]) {
      const [rejected, message] = rejection(answer)!
      assert.strictEqual(rejected, 1n)
      assert.match(message, /^span number 1 of the request: can't be read: .* holds more than/)
    }
  })

  const targetOf = (key: string) => ({ url: api.url, grpcUrl: "", key })

  it("reads the same from both encodings of a real exporter", async () => {
    const run = await recordAgentRun("agent-1")
    for (const encoding of ["json", "protobuf"] as const) {
      await deliver(exporterTo(targetOf(WRITE_KEY), encoding), run.spans)
    }
    await deliver(exporterTo(targetOf(WRITE_KEY), "protobuf", true), run.spans)
    const count = run.spans.length
    const [json, binary, compressed] = [0, 1, 2].map((n) =>
      world.recorded.slice(n * count, (n + 1) * count).map(plain)
    )
    assert.strictEqual(json!.length, count)
    assert.deepStrictEqual(binary, json)
    assert.deepStrictEqual(compressed, json)
    const ids = new Map(json!.map(({ details, spanId }) => [details.name, spanId]))
    for (const expected of run.expected) {
      const operation = json!.find(({ details }) => details.name === expected.name)!
      assert.deepInclude(operation, {
        spanType: expected.type,
        status: expected.status,
        startedAt: expected.startedAt,
        endedAt: expected.endedAt,
        causedBy: expected.causes.map((name) => ids.get(name))
      })
      assert.strictEqual(operation["parentSpanId"], expected.parent && ids.get(expected.parent))
      assert.strictEqual(operation["endDetails"]?.error, expected.error)
      assert.deepStrictEqual(
        operation["events"].map(({ eventType, timestamp }: Json) => [eventType, timestamp]),
        expected.events
      )
    }
  })

  it("gives spans, events and executions the same ids whenever they come again", async () => {
    const run = await recordAgentRun("agent-1")
    const exporter = exporterTo(targetOf(WRITE_KEY), "protobuf")
    await deliver(exporter, run.spans)
    const first = world.recorded.splice(0)
    for (const one of run.spans.toReversed()) await deliver(exporter, [one])
    const idsOf = (operations: ReadonlyArray<RecordOtlpSpan>) =>
      operations.flatMap(({ events, executionId, spanId }) => [
        executionId,
        spanId,
        ...events.map(({ eventId }) => eventId)
      ])
    assert.sameMembers(idsOf(world.recorded), idsOf(first))
    await deliver(exporterTo(targetOf(OTHER_KEY), "protobuf"), run.spans)
    const others = idsOf(world.recorded.slice(first.length))
    assert.isEmpty(idsOf(first).filter((id) => others.includes(id)))
  })

  describe("refuses", () => {
    const status = (answer: Answer, code: number, expected: string): Json => {
      assert.strictEqual(answer.status, code, answer.text)
      assert.strictEqual(answer.headers["content-type"], JSON_TYPE)
      assert.strictEqual(answer.headers["x-request-id"], answer.body.error.request_id)
      assert.strictEqual(answer.body.error.code, expected)
      assert.strictEqual(answer.body.error.message, answer.body.message)
      assert.strictEqual(answer.body.details[0].reason, expected.toUpperCase())
      return answer.body
    }
    const binary = (answer: Answer, code: number) => {
      assert.strictEqual(answer.status, code, answer.text)
      assert.strictEqual(answer.headers["content-type"], PROTOBUF)
      assert.strictEqual(Number(answer.headers["content-length"]), answer.bytes.length)
      const registry = createRegistry(ErrorInfoSchema, BadRequestSchema, RetryInfoSchema)
      const { code: rpcCode, details, message } = fromBinary(StatusSchema, answer.bytes)
      return { rpcCode, message, details: details.map((detail) => anyUnpack(detail, registry)) }
    }

    it("a body that can't be read, with a google.rpc.Status in its encoding", async () => {
      const text = await post(JSON_TYPE, '{"resourceSpans":[')
      const { code, details } = status(text, 400, "invalid_json")
      assert.strictEqual(code, 3)
      assert.strictEqual(details[1]["@type"], "type.googleapis.com/google.rpc.BadRequest")
      const bytes = binary(await post(PROTOBUF, Buffer.from([0x0a, 0x7f])), 400)
      assert.strictEqual(bytes.rpcCode, 3)
      assert.match(bytes.message, /no ExportTraceServiceRequest/)
      assert.deepInclude(bytes.details[0] as Json, { reason: "INVALID_REQUEST", domain: "alk" })
      assert.strictEqual(bytes.details[1]!.$typeName, "google.rpc.BadRequest")
    })

    it("who has no key, and whose key may not write", async () => {
      const without = await api.call(TRACES, { json: {} })
      assert.strictEqual(status(without, 401, "unauthenticated")["code"], 16)
      assert.strictEqual(without.headers["www-authenticate"], "Bearer")
      const reading = await send(PROTOBUF, exportOf([span()]), { key: READ_KEY })
      assert.strictEqual(binary(reading, 403).rpcCode, 7)
      assert.isEmpty(world.commands)
    })

    it("other media types and codings", async () => {
      status(await post("text/plain", "{}"), 415, "unsupported_media_type")
      const coded = await post(PROTOBUF, "x", { headers: { "content-encoding": "snappy" } })
      assert.match(binary(coded, 415).message, /Content-Encoding/)
    })

    it("bodies over the limit, compressed or not, and too many spans", async () => {
      const limit = 1_048_576
      const large = JSON.stringify(exportOf([span({ name: "x".repeat(limit) })]))
      assert.strictEqual(status(await post(JSON_TYPE, large), 413, "payload_too_large")["code"], 8)
      const bomb = gzipSync(Buffer.alloc(limit + 1))
      const compressed = await post(PROTOBUF, bomb, { headers: { "content-encoding": "gzip" } })
      assert.strictEqual(binary(compressed, 413).rpcCode, 8)
      const many = `{"resourceSpans":[{"scopeSpans":[{"spans":[${"{},".repeat(20_000)}{}]}]}]}`
      status(await post(JSON_TYPE, many), 413, "payload_too_large")
      assert.isEmpty(world.commands)
    })

    it("to call that a success which is not visible, and what it can't tell", async () => {
      const body = exportOf([span()])
      const cases: ReadonlyArray<readonly [string, () => void]> = [
        ["busy", () => (world.refuse = new CommandLogBusy({ message: "", maybeWritten: false }))],
        ["failed", () => (world.fails = true)],
        ["unjudged", () => (world.judge = () => ({ code: "unavailable", message: "not loaded" }))]
      ]
      for (const [name, prepare] of cases) {
        world.refuse = undefined
        world.fails = false
        prepare()
        const text = await send(JSON_TYPE, body)
        assert.strictEqual(status(text, 503, "unavailable")["code"], 14, name)
        const bytes = await send(PROTOBUF, body)
        const { details } = binary(bytes, 503)
        assert.strictEqual(details[1]!.$typeName, "google.rpc.RetryInfo", name)
        for (const { headers } of [text, bytes]) assert.strictEqual(headers["retry-after"], "1")
      }
    })

    it("what the log can't take in one record", async () => {
      world.refuse = new CommandTooLarge({ bytes: 2, limit: 1 })
      status(await send(JSON_TYPE, exportOf([span()])), 413, "payload_too_large")
    })

    it("other methods, saying which it has", async () => {
      const answer = await api.call(TRACES, { key: WRITE_KEY })
      assert.strictEqual(answer.status, 405)
      assert.strictEqual(answer.headers["allow"], "POST")
    })
  })

  it("asks for the same again when the wait is over", async () => {
    world.invisible = true
    const [answer] = await Promise.all([send(JSON_TYPE, exportOf([span()])), world.waitIsOver(1)])
    assert.strictEqual(answer.status, 503, answer.text)
    assert.include(answer.body.error.message, "send the same again")
    world.invisible = false
    assert.strictEqual((await send(JSON_TYPE, exportOf([span()]))).status, 200)
  })

  // More than a slow machine has forgiven by the next export.
  const many = Array.from({ length: 900 }, (_, n) => n)
  it.each([
    ["spans", many.map((n) => span({ spanId: (n + 1).toString(16).padStart(16, "0") }))],
    ["the events of a span", [span({ events: many.map((n) => ({ name: `event-${n}` })) })]]
  ])("counts %s against the tenant's quota", async (_, spans) => {
    await api.stop()
    api = await TestApi.start({ eventsPerSecondMax: 2 }, world)
    assert.strictEqual((await send(PROTOBUF, exportOf(spans))).status, 200)
    const limited = await send(JSON_TYPE, exportOf(spans))
    assert.strictEqual(limited.status, 429)
    assert.strictEqual(limited.body.error.code, "rate_limited")
    assert.isDefined(limited.headers["retry-after"])
  })
})

describe("POST /v1/logs", () => {
  const record = (more: Json): Json => ({
    timeUnixNano: "1763700000500000000",
    traceId: TRACE,
    spanId: "eee19b7ec3c1b174",
    ...more
  })
  const logsOf = (logRecords: ReadonlyArray<Json>) => ({
    resourceLogs: [{ scopeLogs: [{ logRecords }] }]
  })

  it("writes events of models, and refuses the rest with where it is to be sent", async () => {
    const world = new SpanWorld()
    const api = await TestApi.start({}, world)
    const body = logsOf([
      record({ body: { stringValue: "started" } }),
      record({ eventName: "gen_ai.user.message", body: { stringValue: "hello" } }),
      record({ eventName: "gen_ai.choice", spanId: "00" }),
      record({ eventName: "gen_ai.choice", spanId: "0000000000000001" })
    ])
    world.judge = ({ index }) =>
      index === 3 ? { code: "too_many_spans", message: "no room" } : undefined
    const answer = await api.call("/v1/logs", { key: WRITE_KEY, json: body })
    assert.strictEqual(answer.status, 200, answer.text)
    const { errorMessage, rejectedLogRecords } = answer.body.partialSuccess
    assert.strictEqual(rejectedLogRecords, "3")
    assert.match(errorMessage, /log record number 3 of the request: span_id: must be 8 bytes/)
    assert.match(errorMessage, /log record number 4 of the request: no room/)
    assert.match(errorMessage, /log records that were not stored: 1; .*\/v1\/traces/)
    assert.deepStrictEqual(
      world.recorded.map(({ index, op }) => [op as string, index]),
      [
        ["otlp.events", 1],
        ["otlp.events", 3]
      ]
    )
    await api.stop()
  })

  it("is a plain success where everything is kept", async () => {
    const world = new SpanWorld()
    const api = await TestApi.start({}, world)
    const json = logsOf([record({ eventName: "gen_ai.client.inference.operation.details" })])
    const answer = await api.call("/v1/logs", { key: WRITE_KEY, json })
    assert.deepStrictEqual([answer.status, answer.text], [200, "{}"])
    await api.stop()
  })
})
