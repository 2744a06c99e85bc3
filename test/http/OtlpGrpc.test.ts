/**
 * OTLP over gRPC over the doubles: statuses and their details, what is answered before a message has
 * arrived, and how many messages are received at a time. What spans become is as over HTTP.
 */

import { once } from "node:events"
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2"
import { connect as connectSocket, createServer, type Socket } from "node:net"
import { create, fromBinary, toBinary } from "@bufbuild/protobuf"
import {
  Client,
  compressionAlgorithms,
  credentials,
  Metadata,
  type ServiceError,
  status
} from "@grpc/grpc-js"
import { Layer } from "effect"
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { CurrentServerTimes, SERVER_TIMES } from "../../src/http/server/ServerTimes.ts"
import { CommandLogBusy } from "../../src/services/commands/CommandLog.ts"
import { StatusSchema } from "../../src/services/ingest/otlp/gen/google/rpc/status_pb.js"
import { ExportLogsServiceResponseSchema } from "../../src/services/ingest/otlp/gen/opentelemetry/proto/collector/logs/v1/logs_service_pb.js"
import { ExportTraceServiceResponseSchema } from "../../src/services/ingest/otlp/gen/opentelemetry/proto/collector/trace/v1/trace_service_pb.js"
import { exportOf, span, toProtobuf } from "../services/ingest/otlp/support/Exports.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { OTHER_KEY, READ_KEY, World, WRITE_KEY } from "./support/Doubles.ts"
import { portIsClosed } from "./support/RawHttp.ts"
import { TestApi } from "./support/TestApi.ts"

const COLLECTOR = "/opentelemetry.proto.collector"
const TRACES = `${COLLECTOR}.trace.v1.TraceService/Export`
const LOGS = `${COLLECTOR}.logs.v1.LogsService/Export`
const METRICS = `${COLLECTOR}.metrics.v1.MetricsService/Export`
const MAX_BYTES = 65_536
/** Milliseconds that a client has to take an answer. */
const STALLED_MS = 300
/** Messages of that size that are received at a time. */
const RECEIVED_AT_ONCE = 4

/** Calls and connections of one address at a time, and calls of a connection. */
const CALLS_MAX = 1_000
const CONNECTIONS_MAX = 256
const STREAMS_MAX = 16
/** Wrong keys of an address in a minute. */
const GUESSES_MAX = 5

const connectTo = ({ hostname, port }: URL): Socket =>
  connectSocket(Number(port), hostname).on("error", () => {})

interface Call {
  readonly path?: string
  readonly key?: string
  readonly deadlineMs?: number
}

const raw = (bytes: Buffer): Buffer => bytes
const message = Buffer.from(toProtobuf(exportOf([span()])))
const empty = Buffer.from(
  toBinary(ExportTraceServiceResponseSchema, create(ExportTraceServiceResponseSchema))
)

/** A message as it is framed. */
const framed = (bytes: Buffer): Buffer => {
  const head = Buffer.alloc(5)
  head.writeUInt32BE(bytes.length, 1)
  return Buffer.concat([head, bytes])
}

/** What a refusal says of itself beside its status. */
const detailsOf = ({ metadata }: ServiceError): ReadonlyArray<string> => {
  const [bytes] = metadata.get("grpc-status-details-bin")
  assert.instanceOf(bytes, Buffer)
  return fromBinary(StatusSchema, bytes as Buffer).details.map(({ typeUrl }) =>
    typeUrl.slice(typeUrl.lastIndexOf(".") + 1)
  )
}

describe("OTLP over gRPC", () => {
  let world: World
  let api: TestApi
  let address: URL
  let client: Client
  let session: ClientHttp2Session

  beforeEach(async () => {
    world = new World()
    const limits = {
      bodyBytesMax: MAX_BYTES,
      bodyBudgetBytes: RECEIVED_AT_ONCE * MAX_BYTES,
      eventBytesMax: 65_536,
      metadataBytesMax: 32_768,
      payloadBytesMax: 65_536,
      actionLengthMax: 128
    }
    const times = Layer.succeed(CurrentServerTimes, { ...SERVER_TIMES, stalledMs: STALLED_MS })
    api = await TestApi.start(
      { otlpGrpcPort: 0, failedKeysPerMinuteMax: GUESSES_MAX, limits },
      world,
      times
    )
    address = new URL(api.otlpGrpc!)
    client = new Client(address.host, credentials.createInsecure())
    session = connect(address)
  })
  afterEach(async () => {
    client.close()
    session.destroy()
    await api.stop()
  })

  const call = (
    bytes: Buffer,
    { deadlineMs, key = WRITE_KEY, path = TRACES }: Call = {}
  ): Promise<Buffer | ServiceError> => {
    const metadata = new Metadata()
    if (key !== "") metadata.set("authorization", `Bearer ${key}`)
    const options = deadlineMs === undefined ? {} : { deadline: Date.now() + deadlineMs }
    return new Promise((resolve) => {
      client.makeUnaryRequest(path, raw, raw, bytes, metadata, options, (error, answer) =>
        resolve(error ?? answer!)
      )
    })
  }

  const answered = async (bytes: Buffer, options: Call = {}): Promise<Buffer> => {
    const answer = await call(bytes, options)
    if (answer instanceof Error) assert.fail(answer.message)
    return answer
  }

  const refused = async (bytes: Buffer, options: Call = {}): Promise<ServiceError> => {
    const answer = await call(bytes, options)
    if (Buffer.isBuffer(answer)) assert.fail("was answered")
    return answer
  }

  /** A call whose message does not come, unless the test sends it. */
  const opened = (key: string, path = TRACES, from = session): ClientHttp2Stream => {
    const stream = from.request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc",
      te: "trailers",
      ...(key === "" ? {} : { authorization: `Bearer ${key}` })
    })
    stream.on("error", () => {})
    return stream
  }

  /** The status that a call ends with. */
  const statusOf = async (stream: ClientHttp2Stream): Promise<number> => {
    const ended = once(stream, "trailers").then(([trailers]) => trailers)
    const first = once(stream, "response").then(([headers]) => headers)
    stream.resume()
    const headers = await first
    const { "grpc-status": code } = headers["grpc-status"] === undefined ? await ended : headers
    return Number(code)
  }

  it("takes spans, and answers with an empty message", async () => {
    assert.deepStrictEqual(await answered(message), empty)
    assert.strictEqual(world.commands.length, 1)
    assert.strictEqual(world.commands[0]!.tenantId, "acme")
    client.close()
    client = new Client(address.host, credentials.createInsecure(), {
      "grpc.default_compression_algorithm": compressionAlgorithms.gzip
    })
    assert.deepStrictEqual(await answered(message), empty)
    assert.strictEqual(world.commands.length, 2)
    const lines = api.logs.filter(({ message }) => message === "request")
    assert.deepInclude(lines[0]!.annotations, { route: "/v1/traces", status: 200, tenant: "acme" })
  })

  it("says in the answer which spans it has not taken", async () => {
    const bad = span({ spanId: "00000000000000bb", startTimeUnixNano: "0", endTimeUnixNano: "0" })
    const answer = await answered(Buffer.from(toProtobuf(exportOf([span(), bad]))))
    const { partialSuccess } = fromBinary(ExportTraceServiceResponseSchema, answer)
    assert.strictEqual(partialSuccess?.rejectedSpans, 1n)
    assert.include(partialSuccess?.errorMessage, "00000000000000bb")
  })

  it("answers logs and metrics, of which it keeps nothing", async () => {
    // A ResourceLogs with a ScopeLogs with a LogRecord, each empty but for the next.
    const logs = Buffer.from([0x0a, 0x04, 0x12, 0x02, 0x12, 0x00])
    const answer = fromBinary(ExportLogsServiceResponseSchema, await answered(logs, { path: LOGS }))
    assert.strictEqual(answer.partialSuccess?.rejectedLogRecords, 1n)
    assert.strictEqual((await answered(Buffer.alloc(0), { path: METRICS })).length, 0)
    const unknown = await refused(message, { path: `${COLLECTOR}.profiles.v1.X/Export` })
    assert.strictEqual(unknown.code, status.UNIMPLEMENTED)
  })

  it("refuses as HTTP does, and says what is worth another try", async () => {
    const nobody = await refused(message, { key: "" })
    assert.strictEqual(nobody.code, status.UNAUTHENTICATED)
    assert.include(nobody.details, "Authorization")
    const wrong = await refused(message, { key: "alk_live_wrong" })
    assert.strictEqual(wrong.code, status.UNAUTHENTICATED)
    assert.deepStrictEqual(detailsOf(wrong), ["ErrorInfo"])
    const reader = await refused(message, { key: READ_KEY })
    assert.strictEqual(reader.code, status.PERMISSION_DENIED)
    const unreadable = await refused(Buffer.from("no message"))
    assert.strictEqual(unreadable.code, status.INVALID_ARGUMENT)
    assert.deepStrictEqual(detailsOf(unreadable), ["ErrorInfo", "BadRequest"])
    const large = await refused(Buffer.alloc(MAX_BYTES + 1))
    assert.strictEqual(large.code, status.RESOURCE_EXHAUSTED)
    assert.isEmpty(large.metadata.get("grpc-status-details-bin"))
    world.refuse = new CommandLogBusy({ message: "", maybeWritten: false })
    const busy = await refused(message)
    assert.strictEqual(busy.code, status.UNAVAILABLE)
    assert.deepStrictEqual(detailsOf(busy), ["ErrorInfo", "RetryInfo"])
    assert.isEmpty(world.commands)
  })

  it("answers a call that may not write before its message has come", async () => {
    assert.strictEqual(await statusOf(opened("")), status.UNAUTHENTICATED)
    assert.strictEqual(await statusOf(opened(READ_KEY)), status.PERMISSION_DENIED)
    assert.strictEqual(await statusOf(opened("alk_live_wrong")), status.UNAUTHENTICATED)
    assert.isEmpty(world.commands)
  })

  it("counts calls without a known key, slows guesses down, and makes no request of them", async () => {
    assert.strictEqual(await statusOf(opened("")), status.UNAUTHENTICATED)
    const guessed = Array.from({ length: 2 * GUESSES_MAX }, () =>
      refused(message, { key: "alk_live_wrong" })
    )
    const codes = (await Promise.all(guessed)).map(({ code }) => code)
    assert.includeMembers(codes, [status.UNAUTHENTICATED, status.RESOURCE_EXHAUSTED])
    assert.isEmpty(api.logs.filter((line) => line.message === "request"))
    const metrics = (await api.call("/metrics")).text
    const counted = metrics.split("\n").filter((line) => line.includes('code="unauthenticated"'))
    assert.isTrue(
      counted.some((line) => line.includes('route="/v1/traces"')),
      counted.join("\n")
    )
    assert.deepStrictEqual(await answered(message), empty)
  })

  it("has so many calls of an address under way, and takes others then", async () => {
    const sessions = Array.from({ length: CALLS_MAX / STREAMS_MAX + 1 }, () => connect(address))
    const calls = sessions.flatMap((from) =>
      Array.from({ length: STREAMS_MAX }, () => opened(WRITE_KEY, TRACES, from))
    )
    let ended = 0
    const over = calls.map((stream) =>
      statusOf(stream).then((code) => {
        ended += 1
        return code
      })
    )
    for (const one of over) one.catch(() => {})
    assert.strictEqual(await Promise.race(over), status.RESOURCE_EXHAUSTED)
    await eventuallyAsync(
      "those that are too many have ended",
      () => ended,
      (count) => count === calls.length - CALLS_MAX
    )
    for (const from of sessions) from.destroy()
    await eventuallyAsync(
      "there is room again",
      () => call(message),
      (answer) => Buffer.isBuffer(answer)
    )
  })

  it("takes so many connections of an address, and cuts the next one", async () => {
    // Of the session of the test, the first one.
    await new Promise((resolve) => session.ping(resolve))
    const open = Array.from({ length: CONNECTIONS_MAX - 1 }, () => connectTo(address))
    await Promise.all(open.map((socket) => once(socket, "connect")))
    const next = connectTo(address)
    await once(next.resume(), "close")
    for (const socket of open) socket.destroy()
    await eventuallyAsync(
      "there is room again",
      () => call(message),
      (answer) => Buffer.isBuffer(answer)
    )
  })

  it("closes a call that it refuses, whether its message comes or not", async () => {
    const sending = opened("")
    sending.write(framed(message).subarray(0, 9))
    const calls = [opened(""), opened(READ_KEY), opened("", "/unknown"), sending]
    await Promise.all(calls.map((stream) => once(stream.resume(), "close")))
    for (const { rstCode } of calls) assert.strictEqual(rstCode, constants.NGHTTP2_NO_ERROR)
  })

  it("receives as many messages at a time as have room together, and the next one then", async () => {
    const slow = Array.from({ length: RECEIVED_AT_ONCE / 2 }, () => opened(WRITE_KEY))
    for (const stream of slow) stream.write(framed(message).subarray(0, 9))
    const waiting = opened(WRITE_KEY)
    let isAnswered = false
    const ended = statusOf(waiting).then((code) => {
      isAnswered = true
      return code
    })
    waiting.end(framed(message))
    // Answered behind them, so all of them have been seen.
    await new Promise((resolve) => session.ping(resolve))
    assert.strictEqual((await refused(message, { deadlineMs: 500 })).code, status.DEADLINE_EXCEEDED)
    assert.isFalse(isAnswered)
    // The other half is there for others.
    assert.deepStrictEqual(await answered(message, { key: OTHER_KEY }), empty)
    slow[0]!.close(constants.NGHTTP2_CANCEL)
    assert.strictEqual(await ended, status.OK)
    const rest = slow[1]!
    const answer = statusOf(rest)
    rest.end(framed(message).subarray(9))
    assert.strictEqual(await answer, status.OK)
    assert.deepStrictEqual(await answered(message), empty)
  })

  it("ends a call whose client has no room for the answer", async () => {
    const closed = connect(address, { settings: { initialWindowSize: 0 } })
    const stream = closed.request({
      ":method": "POST",
      ":path": TRACES,
      "content-type": "application/grpc",
      te: "trailers",
      authorization: `Bearer ${WRITE_KEY}`
    })
    stream.on("error", () => {})
    stream.end(framed(message))
    await once(stream, "close")
    assert.strictEqual(stream.rstCode, constants.NGHTTP2_CANCEL)
    assert.strictEqual(world.commands.length, 1)
    closed.destroy()
  })

  it("gives up a call whose deadline has passed", async () => {
    world.undecided = true
    let deadlineMs = 200
    await eventuallyAsync(
      "the call has come in before its deadline",
      async () => {
        deadlineMs *= 2
        const late = await refused(message, { deadlineMs })
        assert.strictEqual(late.code, status.DEADLINE_EXCEEDED)
        return world.commands
      },
      ({ length }) => length > 0
    )
    await eventuallyAsync(
      "the log says that it was given up",
      () => api.logs.map(({ annotations }) => annotations["status"]),
      (statuses) => statuses.includes(499)
    )
    world.undecided = false
    assert.deepStrictEqual(await answered(message), empty)
  })

  it("answers what is in flight before it goes down", async () => {
    world.undecided = true
    const inFlight = answered(message)
    const command = await world.firstCommand()
    const stopped = api.stop()
    await portIsClosed(Number(address.port))
    world.decide(command)
    assert.deepStrictEqual(await inFlight, empty)
    await stopped
    const after = await refused(message, { deadlineMs: 2_000 })
    assert.include([status.UNAVAILABLE, status.DEADLINE_EXCEEDED], after.code)
  })
})

describe("the port of OTLP over gRPC", () => {
  it("is named if it can't be listened on", async () => {
    const taken = createServer().listen(0, "127.0.0.1")
    await once(taken, "listening")
    const { port } = taken.address() as { readonly port: number }
    const failure = await TestApi.start({ otlpGrpcPort: port }).then(
      () => undefined,
      (error: unknown) => String(error)
    )
    taken.close()
    assert.include(failure, `can't listen on port ${port} of 127.0.0.1: set ALK_OTLP_GRPC_PORT`)
  })
})
