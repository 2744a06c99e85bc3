/**
 * The configured kafkajs client: sockets without Nagle's delay, bounded codecs, its log lines
 * turned into ours, and the names of Kafka's protocol errors.
 */
import { createRequire } from "node:module"
import net from "node:net"
import tls from "node:tls"
import { Kafka, type KafkaConfig, type logCreator, logLevel, type SASLOptions } from "kafkajs"
import { defined } from "../../../domain/Defined.ts"
import { CODECS } from "./BatchLayout.ts"
import { decompress } from "./RecordCodecs.ts"
import { repairKafkajs } from "./Repairs.ts"

const require = createRequire(import.meta.url)

export interface KafkaSettings {
  readonly brokers: ReadonlyArray<string>
  readonly clientId: string
  /** True if no other program that runs uses this client id on this cluster. */
  readonly isClientIdOwn?: boolean
  readonly tls?: tls.ConnectionOptions
  readonly sasl?: SASLOptions
  /**
   * Called with what kafkajs has to say at warn or error. Most of it is a retry that succeeds a
   * moment later, so it is detail: what fails for good reaches our caller as a typed error.
   */
  readonly log: (message: string, detail: object) => void
  /** Where to connect instead of a broker's address, for a proxy in between. */
  readonly route?: (address: Address) => Address
}

export interface Address {
  readonly host: string
  readonly port: number
}

/** Milliseconds; a broker that is up accepts within this time. */
const CONNECTION_TIMEOUT_MS = 3_000
/** Milliseconds for one request of the public clients, which change topics as well. */
const REQUEST_TIMEOUT_MS = 30_000
/**
 * Milliseconds for one request of a cluster that only asks, after which its broker counts as gone: a
 * broker that has frozen holds up who asks it for as long. What waits longer says so by itself.
 */
const QUESTION_TIMEOUT_MS = 10_000
const KEEP_ALIVE_MS = 60_000

const { CompressionCodecs } = require("kafkajs") as {
  readonly CompressionCodecs: Record<number, () => unknown>
}
// kafkajs's own ones have no limit, and none is there for zstd. It compresses nothing here.
for (const codec of [CODECS.gzip, CODECS.zstd]) {
  CompressionCodecs[codec] = () => ({
    decompress: async (bytes: Buffer) => decompress(codec, bytes)
  })
}

repairKafkajs()

type SocketFactory = NonNullable<KafkaConfig["socketFactory"]>

const makeSocketFactory =
  ({ route }: KafkaSettings, sockets?: Set<net.Socket>): SocketFactory =>
  ({ host: brokerHost, port: brokerPort, ssl, onConnect }) => {
    const address = { host: brokerHost, port: brokerPort }
    const { host, port } = route === undefined ? address : route(address)
    const socket = ssl
      ? tls.connect(
          { host, port, ...(net.isIP(host) ? {} : { servername: host }), ...ssl },
          onConnect
        )
      : net.connect({ host, port }, onConnect)
    socket.setNoDelay(true)
    socket.setKeepAlive(true, KEEP_ALIVE_MS)
    sockets?.add(socket)
    socket.once("close", () => sockets?.delete(socket))
    return socket
  }

/** Milliseconds between attempts; small, because the first of them paces every transaction. */
export const RETRY = { initialRetryTime: 4, factor: 0.2, multiplier: 2, maxRetryTime: 500 }

const makeLogCreator =
  (log: KafkaSettings["log"]): logCreator =>
  () =>
  ({ log: entry }) => {
    const { message, timestamp: _timestamp, logger: _logger, ...detail } = entry
    log(message, detail)
  }

/** The same addresses, beginning with any of them: kafkajs asks the first one, the others if it must. */
const fromAny = (brokers: ReadonlyArray<string>): Array<string> => {
  const first = Math.floor(Math.random() * brokers.length)
  return [...brokers.slice(first), ...brokers.slice(0, first)]
}

const kafkaConfig = (settings: KafkaSettings, sockets?: Set<net.Socket>) => ({
  brokers: fromAny(settings.brokers),
  clientId: settings.clientId,
  connectionTimeout: CONNECTION_TIMEOUT_MS,
  retry: { ...RETRY, retries: 8 },
  socketFactory: makeSocketFactory(settings, sockets),
  ...defined({ ssl: settings.tls, sasl: settings.sasl })
})

export const makeKafka = (
  settings: KafkaSettings,
  { requestTimeout = REQUEST_TIMEOUT_MS }: Pick<ClusterOptions, "requestTimeout"> = {}
): Kafka =>
  new Kafka({
    ...kafkaConfig(settings),
    requestTimeout,
    logLevel: logLevel.WARN,
    logCreator: makeLogCreator(settings.log)
  })

/** A request of kafkajs's protocol layer with a decoder of ours. */
export interface RawRequest<Decoded> {
  readonly request: unknown
  readonly response: {
    decode(payload: Buffer): Promise<Decoded>
    parse(decoded: Decoded): Promise<Decoded>
  }
  /** Milliseconds, if longer than those of the cluster. */
  readonly requestTimeout?: number
}

/** What we use of a kafkajs broker connection that its public types don't show. */
export interface RawBroker {
  readonly connectionPool: {
    send<Decoded>(request: RawRequest<Decoded>): Promise<Decoded>
  }
  connect(): Promise<void>
  isConnected(): boolean
  describeGroups(request: { readonly groupIds: ReadonlyArray<string> }): Promise<{
    readonly groups: ReadonlyArray<{
      readonly errorCode: number
      readonly groupId: string
      readonly members: ReadonlyArray<{ readonly memberId: string; readonly clientId: string }>
    }>
  }>
  leaveGroup(request: { readonly groupId: string; readonly memberId: string }): Promise<unknown>
  /** The newest version of a request that the broker and kafkajs both know. */
  lookupRequest(
    apiKey: number,
    definition: unknown
  ): (body: object) => { readonly request: unknown; readonly response: { decode: Decode } }
}

/** Decodes an answer without judging its error codes. */
type Decode = (payload: Buffer) => Promise<unknown>

export interface FetchRequest {
  readonly replicaId: -1
  readonly isolationLevel: number
  readonly maxWaitTime: number
  readonly minBytes: number
  readonly maxBytes: number
  readonly topics: ReadonlyArray<{
    readonly topic: string
    readonly partitions: ReadonlyArray<{
      readonly partition: number
      readonly fetchOffset: string
      readonly maxBytes: number
    }>
  }>
}

/** Version 11 of the Fetch request: every broker since Kafka 2.3 knows it. */
export const fetchRequest = require("kafkajs/src/protocol/requests/fetch/v11/request") as (
  request: FetchRequest
) => unknown

/** An error that a broker answered with, as kafkajs describes it. */
export interface ProtocolError extends Error {
  readonly type: string
  readonly retriable: boolean
}

const createErrorFromCode = (
  require("kafkajs/src/protocol/error") as { createErrorFromCode: (code: number) => ProtocolError }
).createErrorFromCode

/** The one code that is of use to us and that kafkajs does not know. */
const PRODUCER_FENCED = 90

/** The error of a broker's code. */
export const errorOfCode = (code: number): ProtocolError => {
  const error = createErrorFromCode(code)
  return code === PRODUCER_FENCED ? Object.assign(error, { type: "PRODUCER_FENCED" }) : error
}

/** kafkajs's own view of a cluster: the part below its consumer, with exact offsets. */
export interface RawCluster {
  connect(): Promise<void>
  disconnect(): Promise<void>
  isConnected(): boolean
  addMultipleTargetTopics(topics: ReadonlyArray<string>): Promise<void>
  refreshMetadata(): Promise<void>
  refreshMetadataIfNecessary(): Promise<void>
  findLeaderForPartitions(
    topic: string,
    partitions: ReadonlyArray<number>
  ): Record<string, number[]>
  findBroker(node: { readonly nodeId: string }): Promise<RawBroker>
  findControllerBroker(): Promise<RawBroker>
  findGroupCoordinator(group: {
    readonly groupId: string
    readonly coordinatorType: number
  }): Promise<RawBroker>
  fetchTopicsOffset(
    topics: ReadonlyArray<{
      readonly topic: string
      readonly partitions: ReadonlyArray<{ readonly partition: number }>
      readonly fromBeginning: boolean
    }>
  ): Promise<
    ReadonlyArray<{
      readonly topic: string
      readonly partitions: ReadonlyArray<{ readonly partition: number; readonly offset: string }>
    }>
  >
}

/** read_committed, as the protocol numbers it. */
export const READ_COMMITTED = 1
/** The same for what counts records that are not committed yet. */
export const READ_UNCOMMITTED = 0

export interface ClusterOptions {
  /** Milliseconds for one request. */
  readonly requestTimeout?: number
  /** Receives every socket for as long as it is open. */
  readonly sockets?: Set<net.Socket>
  /** READ_COMMITTED unless it is said. */
  readonly isolationLevel?: number
}

export const makeCluster = (settings: KafkaSettings, options: ClusterOptions = {}): RawCluster => {
  const Cluster = require("kafkajs/src/cluster") as new (options: object) => RawCluster
  const { createLogger } = require("kafkajs/src/loggers") as {
    createLogger: (options: object) => unknown
  }
  return new Cluster({
    ...kafkaConfig(settings, options.sockets),
    requestTimeout: options.requestTimeout ?? QUESTION_TIMEOUT_MS,
    logger: createLogger({ level: logLevel.WARN, logCreator: makeLogCreator(settings.log) }),
    metadataMaxAge: 300_000,
    allowAutoTopicCreation: false,
    maxInFlightRequests: null,
    isolationLevel: options.isolationLevel ?? READ_COMMITTED,
    enforceRequestTimeout: true
  })
}

/** A broker's code for a failure of its own, which kafkajs calls UNKNOWN like what it can't name. */
const UNKNOWN_SERVER_ERROR = -1

/** The protocol's name of an error (`OFFSET_OUT_OF_RANGE`), wherever kafkajs has wrapped it. */
export const protocolErrorOf = (error: unknown): string | undefined => {
  for (let cause: unknown = error, depth = 0; depth < 8 && cause instanceof Error; depth++) {
    const {
      type,
      code,
      cause: next,
      originalError
    } = cause as Error & {
      readonly type?: string
      readonly code?: unknown
      readonly originalError?: unknown
    }
    if (type === "UNKNOWN" && code === UNKNOWN_SERVER_ERROR) return "UNKNOWN_SERVER_ERROR"
    if (typeof type === "string" && type !== "UNKNOWN") return type
    cause = next ?? originalError ?? (cause as { readonly errors?: Array<unknown> }).errors?.[0]
  }
  return undefined
}

/** What brokers answer for a moment while a leader is elected, or while they hear of one. */
const LEADERS_MOVING = new Set([
  "FENCED_LEADER_EPOCH",
  "LEADER_NOT_AVAILABLE",
  "NOT_LEADER_FOR_PARTITION",
  "UNKNOWN_LEADER_EPOCH",
  "UNKNOWN_TOPIC_OR_PARTITION"
])
/** Whether the same request succeeds once the brokers agree on who leads the partition. */
export const isLeaderMoving = (error: unknown): boolean =>
  LEADERS_MOVING.has(protocolErrorOf(error) ?? "")

const FENCED = new Set(["INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"])
export const isFenced = (error: unknown): boolean => FENCED.has(protocolErrorOf(error) ?? "")

/** What kafkajs doesn't retry itself, though another attempt may well succeed. */
const GIVEN_UP = new Set([
  "KafkaJSNumberOfRetriesExceeded",
  "KafkaJSGroupCoordinatorNotFound",
  "KafkaJSLockTimeout"
])

/**
 * Whether the same request may succeed later: a lost connection, a leader that moved. What is wrong
 * with the request itself stays wrong; a checksum that fails is counted among that.
 */
export const isRetriable = (error: unknown): boolean => {
  if (!(error instanceof Error)) return false
  if (GIVEN_UP.has(error.name)) return true
  const { retriable, type } = error as Partial<ProtocolError>
  return retriable === true && type !== "CORRUPT_MESSAGE"
}
