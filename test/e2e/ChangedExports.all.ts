/**
 * Recorded exports, changed at random, sent to the program in both encodings: none is answered as a
 * failure of the service, each span is listed or named as rejected, and both chains verify afterwards.
 * `TEST_EXPORTS=100000` is how many are sent in each encoding.
 */
import { rmSync } from "node:fs"
import { fromBinary, fromJson, toBinary } from "@bufbuild/protobuf"
import fc from "fast-check"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { finish } from "../../src/domain/Slices.ts"
import { decodeJson, decodeProtobuf } from "../../src/services/ingest/otlp/Decode.ts"
import {
  ExportTraceServiceRequestSchema,
  ExportTraceServiceResponseSchema
} from "../../src/services/ingest/otlp/gen/opentelemetry/proto/collector/trace/v1/trace_service_pb.js"
import type { Decoded } from "../../src/services/ingest/otlp/Reading.ts"
import { broken, changed, type Random, randomOf } from "../services/ingest/otlp/support/Changed.ts"
import { type Json, preparedRead } from "../services/ingest/otlp/support/Exports.ts"
import { Client } from "../support/Client.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { freshFolder, type Started, start, testKey } from "../support/Program.ts"

const EXPORTS = Number(process.env["TEST_EXPORTS"] ?? 2_000)
/** Requests are answered when their spans can be read, so with few the service waits. */
const SENDERS = 48
/** By which the exports are drawn: `npm run test:all` draws another one each time. */
const SEED = fc.readConfigureGlobal().seed ?? 0
const MS_MAX = 120_000 + 20 * EXPORTS
const TENANT = "changed"
const PROTOBUF = "application/x-protobuf"

const folder = freshFolder("changed-exports")
const key = testKey("changedexports")
let running: Started
let client: Client

beforeAll(async () => {
  running = await start({
    ALK_DATA_DIR: folder,
    ALK_BOOTSTRAP_KEYS: `${key}=${TENANT}:read+write`
  })
  client = new Client(running.url, key, true, 5)
})

afterAll(async () => {
  await running?.stop()
  rmSync(folder, { recursive: true, force: true })
})

const prefixOf = (number: number): string => number.toString(16).padStart(8, "0")

/** The export with traces of its own, so that it can be told what became of its spans. */
const withOwnTraces = (body: Json, number: number): Json =>
  JSON.parse(
    JSON.stringify(body).replaceAll(
      /"[0-9a-f]{8}([0-9a-f]{24})"/g,
      (_, rest) => `"${prefixOf(number)}${rest}"`
    )
  )

interface Sent {
  readonly type: string
  readonly bytes: Uint8Array
  readonly decoded: Decoded
}

const asJson = (random: Random, body: Json): Sent => {
  const text = Buffer.from(JSON.stringify(body))
  const bytes = random() < 0.7 ? text : broken(random, text)
  return { type: "application/json", bytes, decoded: finish(decodeJson(bytes)) }
}

/** Undefined if the encoding can't say what the export does. */
const asProtobuf = (random: Random, body: Json): Sent | undefined => {
  const read = finish(decodeJson(Buffer.from(JSON.stringify(body))))
  if ("problem" in read) return undefined
  const whole = toBinary(ExportTraceServiceRequestSchema, read.request)
  const bytes = random() < 0.5 ? whole : broken(random, whole)
  return { type: PROTOBUF, bytes, decoded: finish(decodeProtobuf(bytes)) }
}

const spanKey = (executionId: string, spanId: string): string => `${executionId} ${spanId}`

/** How many spans an answer says are rejected. */
const rejectedIn = (type: string, answer: Buffer): number => {
  const { partialSuccess } =
    type === PROTOBUF
      ? fromBinary(ExportTraceServiceResponseSchema, answer)
      : fromJson(ExportTraceServiceResponseSchema, JSON.parse(answer.toString()))
  return Number(partialSuccess?.rejectedSpans ?? 0)
}

/** Sends one export, compares its answer with what is read of it here, and gives what has to be listed. */
const send = async ({ bytes, decoded, type }: Sent): Promise<ReadonlyArray<string>> => {
  const response = await fetch(`${running.url}/v1/traces`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": type },
    body: bytes as any
  })
  const answer = Buffer.from(await response.arrayBuffer())
  assert.strictEqual(response.status, "problem" in decoded ? 400 : 200, answer.toString())
  if ("problem" in decoded) return []
  const { commands, refused } = preparedRead(decoded, undefined, TENANT)
  const rejected = rejectedIn(type, answer)
  assert.isAtLeast(rejected, refused.length)
  // Spans that close a circle are refused by the sequencer; which of them is a matter of order.
  if (rejected > refused.length) return []
  return commands.flat().map(({ executionId, spanId }) => spanKey(executionId, spanId))
}

/** Sends so many exports, some at once. */
const sendAll = async (make: (random: Random, body: Json) => Sent | undefined, first: number) => {
  const expected: Array<string> = []
  let next = first
  const sender = async (): Promise<void> => {
    while (next < first + EXPORTS) {
      const number = next++
      const random = randomOf(SEED + number)
      const sent = make(random, withOwnTraces(changed(random), number))
      if (sent !== undefined) expected.push(...(await send(sent)))
    }
  }
  await Promise.all(Array.from({ length: SENDERS }, sender))
  return expected
}

/** All spans that are listed, in parts of less than 100,000 by the first digits of their executions. */
const listed = async (): Promise<ReadonlySet<string>> => {
  const found = new Set<string>()
  const digits = EXPORTS > 20_000 ? 2 : 1
  for (let part = 0; part < 16 ** digits; part++) {
    const beginning = part.toString(16).padStart(digits, "0")
    const query = `SELECT execution_id, span_id FROM spans
      WHERE startsWith(execution_id, '${beginning}')`
    const { body, status, text } = await client.call("/v1/sql", { body: { query } })
    assert.strictEqual(status, 200, text)
    for (const row of body.data) found.add(spanKey(row.execution_id, row.span_id))
  }
  return found
}

describe("exports that are changed at random", () => {
  it("are answered, and each of their spans is listed or rejected", {
    timeout: MS_MAX
  }, async () => {
    const expected = [...(await sendAll(asJson, 0)), ...(await sendAll(asProtobuf, EXPORTS))]
    assert.isAbove(expected.length, EXPORTS)
    await eventuallyAsync(
      "every span that was taken is listed",
      async () => {
        const found = await listed()
        return expected.filter((one) => !found.has(one))
      },
      (missing) => missing.length === 0
    )
  })

  it("leave chains that verify", { timeout: MS_MAX }, async () => {
    const { body, status, text } = await client.call("/v1/verify")
    assert.strictEqual(status, 200, text)
    assert.isTrue(body.valid)
    assert.strictEqual(body.traces.status, "valid")
  })
})
