/**
 * POST /v1/logs and /v1/metrics: the answer to an export of what is not kept says so in a success,
 * which exporters don't repeat. The answers are read by the deserializers of OpenTelemetry's own exporters.
 */
import { gzipSync } from "node:zlib"
import { create, fromBinary, fromJson, type JsonValue, toBinary } from "@bufbuild/protobuf"
import {
  JsonLogsSerializer,
  JsonMetricsSerializer,
  ProtobufLogsSerializer,
  ProtobufMetricsSerializer
} from "@opentelemetry/otlp-transformer"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { StatusSchema } from "../../src/services/ingest/otlp/gen/google/rpc/status_pb.js"
import { ExportLogsServiceRequestSchema } from "../../src/services/ingest/otlp/gen/opentelemetry/proto/collector/logs/v1/logs_service_pb.js"
import { ExportMetricsServiceRequestSchema } from "../../src/services/ingest/otlp/gen/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.js"
import { OTHER_KEY, READ_KEY, World, WRITE_KEY } from "./support/Doubles.ts"
import { type Answer, type Call, TestApi } from "./support/TestApi.ts"

const JSON_TYPE = "application/json"
const PROTOBUF = "application/x-protobuf"

const time = "1763700000000000000"
const exemplar = { traceId: "5b8efff798038103d269b633813fc60c", spanId: "eee19b7ec3c1b174" }
const point = { timeUnixNano: time, asInt: "1", exemplars: [{ ...exemplar, asDouble: 0.5 }] }

const logs = {
  resourceLogs: [
    {
      resource: { attributes: [{ key: "service.name", value: { stringValue: "tests" } }] },
      scopeLogs: [
        { logRecords: [{ timeUnixNano: time, ...exemplar }, { body: { intValue: "7" } }] },
        { logRecords: [{ severityNumber: 9 }] },
        {}
      ]
    }
  ]
}

/** One metric of each kind, and one without data: 7 points. */
const metrics = {
  resourceMetrics: [
    {
      scopeMetrics: [
        {
          metrics: [
            { name: "gauge", gauge: { dataPoints: [point, point] } },
            { name: "sum", sum: { dataPoints: [point] } },
            { name: "empty" }
          ]
        },
        {
          metrics: [
            {
              name: "histogram",
              histogram: {
                dataPoints: [{ bucketCounts: ["1", "2"], explicitBounds: [0.5] }, { count: "1" }]
              }
            },
            {
              name: "exponential",
              exponentialHistogram: { dataPoints: [{ positive: { bucketCounts: ["1", "0"] } }] }
            },
            { name: "summary", summary: { dataPoints: [{ count: "3", sum: 1.5 }] } }
          ]
        }
      ]
    }
  ]
}

interface Signal {
  readonly path: string
  readonly body: Record<string, any>
  readonly schema: typeof ExportLogsServiceRequestSchema | typeof ExportMetricsServiceRequestSchema
  readonly message: string
  readonly rejected: number
  readonly rejectedOf: (type: string, bytes: Uint8Array) => readonly [number, string] | undefined
}

const part = (count: number | undefined, message: string | undefined) =>
  [Number(count), message ?? ""] as const

const signals: ReadonlyArray<Signal> = [
  {
    path: "/v1/logs",
    body: logs,
    schema: ExportLogsServiceRequestSchema,
    message: "ExportLogsServiceRequest",
    rejected: 3,
    rejectedOf: (type, bytes) => {
      const reader = type === PROTOBUF ? ProtobufLogsSerializer : JsonLogsSerializer
      const { partialSuccess } = reader.deserializeResponse(bytes)
      return partialSuccess && part(partialSuccess.rejectedLogRecords, partialSuccess.errorMessage)
    }
  },
  {
    path: "/v1/metrics",
    body: metrics,
    schema: ExportMetricsServiceRequestSchema,
    message: "ExportMetricsServiceRequest",
    rejected: 7,
    rejectedOf: (type, bytes) => {
      const reader = type === PROTOBUF ? ProtobufMetricsSerializer : JsonMetricsSerializer
      const { partialSuccess } = reader.deserializeResponse(bytes)
      return partialSuccess && part(partialSuccess.rejectedDataPoints, partialSuccess.errorMessage)
    }
  }
]

for (const { body, message, path, rejected, rejectedOf, schema } of signals) {
  describe(`POST ${path}`, () => {
    let world: World
    let api: TestApi
    beforeEach(async () => {
      world = new World()
      api = await TestApi.start({}, world)
    })
    afterEach(async () => {
      assert.isEmpty(world.commands)
      await api.stop()
    })

    const post = (type: string, raw: string | Uint8Array, call: Call = {}) =>
      api.call(path, {
        key: WRITE_KEY,
        ...call,
        raw: typeof raw === "string" ? raw : Buffer.from(raw),
        headers: { "content-type": type, ...call.headers }
      })
    /** Ids are hex in JSON only, so they are left out of the binary form. */
    const encoded = (type: string, value: object): string | Uint8Array => {
      const text = JSON.stringify(value)
      if (type === JSON_TYPE) return text
      const plain = JSON.parse(text, (key, member) =>
        key === "traceId" || key === "spanId" ? "" : member
      ) as JsonValue
      return toBinary(
        schema,
        fromJson(schema as typeof ExportLogsServiceRequestSchema, plain) as never
      )
    }

    for (const type of [JSON_TYPE, PROTOBUF]) {
      it(`refuses every item in a success, and says where to send spans (${type})`, async () => {
        for (const [raw, headers] of [
          [encoded(type, body), {}],
          [gzipSync(encoded(type, body)), { "content-encoding": "gzip" }]
        ] as const) {
          const answer = await post(type, raw, { headers })
          assert.strictEqual(answer.status, 200, answer.text)
          assert.strictEqual(answer.headers["content-type"], type)
          const [count, text] = rejectedOf(type, answer.bytes)!
          assert.strictEqual(count, rejected)
          assert.match(text, /keeps traces.*export spans to \/v1\/traces/)
        }
      })

      it(`answers an empty export without a partial success (${type})`, async () => {
        const [member] = Object.keys(body)
        for (const empty of [{}, { [member!]: [] }, { [member!]: [{}] }]) {
          const answer = await post(type, encoded(type, empty))
          assert.deepStrictEqual([answer.status, answer.text], [200, type === PROTOBUF ? "" : "{}"])
        }
        assert.strictEqual((await post(PROTOBUF, "")).status, 200)
      })
    }

    it("takes no items out of the tenant's quota", async () => {
      await api.stop()
      api = await TestApi.start({ eventsPerSecondMax: 1 }, world)
      for (let times = 0; times < 3; times++) {
        assert.strictEqual((await post(JSON_TYPE, encoded(JSON_TYPE, body))).status, 200)
      }
    })

    const refusedAs = (answer: Answer, status: number, code: string, text?: RegExp) => {
      assert.strictEqual(answer.status, status, answer.text)
      assert.strictEqual(answer.headers["content-type"], JSON_TYPE)
      assert.strictEqual(answer.body.error.code, code)
      assert.strictEqual(answer.body.details[0].reason, code.toUpperCase())
      if (text !== undefined) assert.match(answer.body.message, text)
    }
    const binaryRefusal = (answer: Answer, status: number) => {
      assert.strictEqual(answer.status, status, answer.text)
      assert.strictEqual(answer.headers["content-type"], PROTOBUF)
      return fromBinary(StatusSchema, answer.bytes).message
    }

    it("refuses what it can't read, as /v1/traces does", async () => {
      const [member] = Object.keys(body)
      refusedAs(await post(JSON_TYPE, `{"${member}":[`), 400, "invalid_json")
      refusedAs(await post(JSON_TYPE, `{"${member}":[],"${member}":[]}`), 400, "invalid_json")
      refusedAs(await post(JSON_TYPE, "[]"), 400, "invalid_request", new RegExp(`no ${message}`))
      refusedAs(await post(JSON_TYPE, `{"${member}":7}`), 400, "invalid_request")
      refusedAs(await post(JSON_TYPE, ""), 400, "invalid_json")
      const broken = await post(PROTOBUF, Buffer.from([0x0a, 0x7f]))
      assert.match(binaryRefusal(broken, 400), new RegExp(`no ${message}`))
      refusedAs(await post("text/plain", "{}"), 415, "unsupported_media_type")
      const snappy = await post(PROTOBUF, "x", { headers: { "content-encoding": "snappy" } })
      assert.match(binaryRefusal(snappy, 415), /Content-Encoding/)
    })

    it("refuses bodies over the limit, and those that would take too much memory", async () => {
      const bomb = gzipSync(Buffer.alloc(1_048_577))
      const headers = { "content-encoding": "gzip" }
      refusedAs(await post(JSON_TYPE, bomb, { headers }), 413, "payload_too_large")
      await api.stop()
      const limits = { bodyBytesMax: 16_777_216, bodyBudgetBytes: 134_217_728 }
      const other = { eventBytesMax: 65_536, metadataBytesMax: 512, payloadBytesMax: 512 }
      api = await TestApi.start({ limits: { ...limits, ...other, actionLengthMax: 128 } }, world)
      const [member] = Object.keys(body)
      const many = `{"${member}":[${"{},".repeat(1_000_000)}{}]}`
      refusedAs(await post(JSON_TYPE, gzipSync(many), { headers }), 413, "payload_too_large")
    })

    it("refuses who may not write, and other methods", async () => {
      const without = await api.call(path, { json: {} })
      refusedAs(without, 401, "unauthenticated")
      assert.strictEqual(without.headers["www-authenticate"], "Bearer")
      refusedAs(await post(JSON_TYPE, "{}", { key: READ_KEY }), 403, "insufficient_scope")
      assert.strictEqual((await post(JSON_TYPE, "{}", { key: OTHER_KEY })).status, 200)
      const got = await api.call(path, { key: WRITE_KEY })
      assert.deepStrictEqual([got.status, got.headers["allow"]], [405, "POST"])
    })
  })
}

describe("a histogram", () => {
  it("is refused if its buckets would take too much memory, in either encoding", async () => {
    const world = new World()
    const limits = {
      bodyBytesMax: 16_777_216,
      bodyBudgetBytes: 134_217_728,
      eventBytesMax: 65_536,
      metadataBytesMax: 512,
      payloadBytesMax: 512,
      actionLengthMax: 128
    }
    const api = await TestApi.start({ limits }, world)
    const buckets = 5_000_000
    const message = create(ExportMetricsServiceRequestSchema, {
      resourceMetrics: [
        {
          scopeMetrics: [
            {
              metrics: [
                {
                  name: "m",
                  data: {
                    case: "exponentialHistogram",
                    value: {
                      dataPoints: [
                        { positive: { bucketCounts: Array.from({ length: buckets }, () => 0n) } }
                      ]
                    }
                  }
                }
              ]
            }
          ]
        }
      ]
    })
    const numbers = `[${"0,".repeat(buckets)}0]`
    const text =
      '{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"exponentialHistogram":{"dataPoints":'
      + `[{"positive":{"bucketCounts":${numbers}}}]}}]}]}]}`
    for (const [type, raw] of [
      [PROTOBUF, Buffer.from(toBinary(ExportMetricsServiceRequestSchema, message))],
      [JSON_TYPE, text]
    ] as const) {
      const { status } = await api.call("/v1/metrics", {
        key: WRITE_KEY,
        raw: gzipSync(raw),
        headers: { "content-type": type, "content-encoding": "gzip" }
      })
      assert.strictEqual(status, 413, type)
    }
    await api.stop()
  })
})
