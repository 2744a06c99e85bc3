/** Log records that are events of models: what they become, and which are none. */
import { fromJson } from "@bufbuild/protobuf"
import { assert, describe, it } from "vitest"
import { sha256Hex } from "../../../../src/domain/Identifiers.ts"
import { finish } from "../../../../src/domain/Slices.ts"
import { ExportLogsServiceRequestSchema } from "../../../../src/services/ingest/otlp/gen/opentelemetry/proto/collector/logs/v1/logs_service_pb.js"
import { logsDecoders } from "../../../../src/services/ingest/otlp/OtherSignals.ts"
import { type PreparedLogs, prepareLogs } from "../../../../src/services/ingest/otlp/PrepareLogs.ts"
import {
  executionIdOf,
  spanIdOf,
  syntheticRootIdOf
} from "../../../../src/services/ingest/otlp/SpanIds.ts"
import {
  defaultSpanLimits,
  type SpanLimits
} from "../../../../src/services/ingest/otlp/SpanParts.ts"
import { attribute, type Json, plain, TENANT, TRACE } from "./support/Exports.ts"

const SPAN = "eee19b7ec3c1b174"
const base64 = (hex: string): string => Buffer.from(hex, "hex").toString("base64")

const record = (more: Json = {}): Json => ({
  timeUnixNano: "1763700000500000999",
  traceId: base64(TRACE),
  spanId: base64(SPAN),
  eventName: "gen_ai.user.message",
  ...more
})

const exportOf = (...logRecords: ReadonlyArray<Json>): Json => ({
  resourceLogs: [
    {
      resource: { attributes: [attribute("service.name", { stringValue: "desk" })] },
      scopeLogs: [{ scope: { name: "opentelemetry.instrumentation.openai" }, logRecords }]
    }
  ]
})

const prepared = (body: Json, limits?: SpanLimits): PreparedLogs => {
  const request = fromJson(ExportLogsServiceRequestSchema, body as never)
  const result = finish(prepareLogs(request, TENANT, limits))
  if ("tooLarge" in result) throw new Error(result.tooLarge)
  return result
}

const operations = (body: Json) =>
  prepared(body)
    .commands.flat()
    .map((operation) => plain(operation as never) as Json)

describe("a log record of a model", () => {
  it("becomes an event of the span that it names, with everything that it says", () => {
    const body = {
      kvlistValue: { values: [attribute("content", { stringValue: "Where is my parcel?" })] }
    }
    const attributes = [attribute("gen_ai.provider.name", { stringValue: "openai" })]
    const [operation] = operations(exportOf(record({ attributes, body, severityNumber: 9 })))
    assert.deepStrictEqual(operation, {
      op: "otlp.events",
      index: 0,
      executionId: executionIdOf(TENANT, TRACE),
      syntheticRootId: syntheticRootIdOf(TENANT, TRACE),
      spanId: spanIdOf(TENANT, TRACE, SPAN),
      startedAt: "2025-11-21T04:40:00.500000Z",
      agentId: "desk",
      details: undefined,
      endDetails: undefined,
      executionDetails: {
        metadata: {
          mapping: "alk-otlp-3",
          trace_id: TRACE,
          resource: { attributes: { "service.name": "desk" } }
        }
      },
      events: [
        {
          eventId: operation!["events"][0].eventId,
          eventType: "gen_ai.user.message",
          timestamp: "2025-11-21T04:40:00.500000Z",
          details: {
            payload: {
              attributes: { "gen_ai.provider.name": "openai" },
              body: { content: "Where is my parcel?" },
              scope: { name: "opentelemetry.instrumentation.openai" },
              severity_number: 9
            }
          }
        }
      ]
    })
  })

  it("is the same event when it comes again, and another one when anything differs", () => {
    const idOf = (more: Json) => operations(exportOf(record(more)))[0]!["events"][0].eventId
    assert.strictEqual(idOf({}), idOf({}))
    const [first, second] = operations(exportOf(record(), record()))
    assert.strictEqual(first!["events"][0].eventId, second!["events"][0].eventId)
    const ids = [
      {},
      { body: { stringValue: "x" } },
      { timeUnixNano: "1763700000500000998" },
      { spanId: base64("0000000000000001") },
      { eventName: "gen_ai.choice" }
    ].map(idOf)
    assert.strictEqual(new Set(ids).size, ids.length)
  })

  it("may have its name in an attribute, and its time where it was observed", () => {
    const named = record({
      eventName: "",
      timeUnixNano: "0",
      observedTimeUnixNano: "1763700000000000000",
      attributes: [attribute("event.name", { stringValue: "gen_ai.choice" })]
    })
    const [event] = operations(exportOf(named))[0]!["events"]
    assert.deepInclude(event, {
      eventType: "gen_ai.choice",
      timestamp: "2025-11-21T04:40:00.000000Z"
    })
  })

  it("is refused without a usable trace, span or time, and costs no other", () => {
    const { commands, others, refused } = prepared(
      exportOf(
        record({ traceId: "" }),
        record({ spanId: base64("0".repeat(16)) }),
        record({ timeUnixNano: "0" }),
        record()
      )
    )
    assert.strictEqual(commands.flat().length, 1)
    assert.strictEqual(others, 0)
    assert.deepStrictEqual(
      refused.map(({ index }) => index),
      [0, 1, 2]
    )
    assert.match(refused[0]!.message, /^log record number 1 of the request: trace_id: must be 16/)
    assert.match(refused[2]!.message, /time_unix_nano: missing/)
  })

  it("is none by another name: it is counted", () => {
    const names = ["", "app.started", "claude_code.user_prompt", "xgen_ai.choice"]
    const { commands, others, refused } = prepared(
      exportOf(...names.map((eventName) => record({ eventName })))
    )
    assert.deepStrictEqual([commands.length, others, refused.length], [0, names.length, 0])
  })

  it("names the calls of tools that it tells of, however large it is", () => {
    const calls = {
      arrayValue: { values: [{ kvlistValue: { values: [attribute("id", { stringValue: "c" })] } }] }
    }
    const message = {
      kvlistValue: {
        values: [
          attribute("tool_calls", calls),
          attribute("content", { stringValue: "x".repeat(100_000) })
        ]
      }
    }
    const body = { kvlistValue: { values: [attribute("message", message)] } }
    const told = (eventName: string) => {
      const [operation] = prepared(exportOf(record({ body, eventName }))).commands.flat()
      return JSON.parse(operation!.events[0]!.details!.text).payload.tool_calls
    }
    assert.deepStrictEqual(told("gen_ai.choice"), ["c"])
    assert.isUndefined(told("gen_ai.assistant.message"))
  })

  it("has large texts stored apart from it", () => {
    const body = { stringValue: "x".repeat(100_000) }
    const { apart, commands } = prepared(exportOf(record({ body })))
    const [operation] = commands.flat()
    assert.strictEqual(apart, 1)
    assert.strictEqual(operation?.payloads?.length, 1)
    assert.isBelow(operation!.events[0]!.details!.text.length, 10_000)
  })

  it("is repaired as a span is, and its payload says so", () => {
    const broken = record({
      eventName: "gen_ai.choice",
      attributes: [
        attribute("k", { stringValue: "a" }),
        attribute("k", { stringValue: "b\u0000" })
      ],
      body: { stringValue: "c\u0000" }
    })
    const { commands, refused, repaired } = prepared(exportOf(broken, record()))
    const [payload, other] = commands
      .flat()
      .map(({ events: [event] }) => JSON.parse(event!.details!.text).payload)
    assert.deepInclude(payload, {
      attributes: { k: "b\ufffd" },
      body: "c\ufffd",
      repairs: [
        { code: "repeated_key", path: 'attributes["k"]' },
        { code: "broken_text", path: 'attributes["k"]', sha256: sha256Hex("b\u0000") },
        { code: "broken_text", path: "body", sha256: sha256Hex("c\u0000") }
      ]
    })
    assert.notProperty(other, "repairs")
    assert.deepStrictEqual(refused, [])
    assert.lengthOf(repaired, 1)
    assert.match(repaired[0]!.message, /^log record number 1 of the request: repaired: attributes/)
    assert.deepStrictEqual(
      [...repaired[0]!.counts],
      [
        ["repeated_key", 1],
        ["broken_text", 2]
      ]
    )
  })

  it("is refused by itself where it can't be read", () => {
    const hex = { traceId: TRACE, spanId: SPAN }
    const body = exportOf(record({ ...hex, attributes: "none" }), record(hex))
    const decoded = finish(logsDecoders.json(Buffer.from(JSON.stringify(body))))
    if ("problem" in decoded) throw new Error(decoded.problem.message)
    const { flaws, request } = decoded
    const found = finish(prepareLogs(request, TENANT, defaultSpanLimits, flaws)) as PreparedLogs
    assert.deepStrictEqual(
      found.commands.flat().map(({ index }) => index),
      [1]
    )
    assert.strictEqual(found.others, 0)
    assert.match(found.refused[0]!.message, /^log record number 1 of the request: can't be read: /)
  })
})
