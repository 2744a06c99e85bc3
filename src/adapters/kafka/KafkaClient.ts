/**
 * The configured kafkajs client: sockets without Nagle's delay, the zstd codec, log lines of kafkajs
 * turned into ours, and the names of Kafka's protocol errors. Knows nothing of topics.
 */
import { createRequire } from "node:module"
import net from "node:net"
import tls from "node:tls"
import { promisify } from "node:util"
import zlib from "node:zlib"
import { Kafka, logLevel, type KafkaConfig, type SASLOptions, type logCreator } from "kafkajs"

const require = createRequire(import.meta.url)

export interface KafkaSettings {
  readonly brokers: ReadonlyArray<string>
  readonly clientId: string
  readonly tls?: tls.ConnectionOptions
  readonly sasl?: SASLOptions
  /**
   * Called with what kafkajs has to say at warn or error. Most of it is a retry that succeeds a
   * moment later, so it is detail: what fails for good reaches our caller as a typed error.
   */
  readonly log: (message: string, detail: object) => void
}

/** Milliseconds; a broker that is up accepts within this time. */
const CONNECTION_TIMEOUT_MS = 3_000
/** Milliseconds for one request. Longer than any fetch waits, shorter than people do. */
const REQUEST_TIMEOUT_MS = 30_000
const KEEP_ALIVE_MS = 60_000
/** Payloads up to this size are compressed on the spot: cheaper than a trip to the thread pool. */
const COMPRESS_INLINE_BYTES_MAX = 16_384

const zstdCompress = promisify(zlib.zstdCompress)
const zstdDecompress = promisify(zlib.zstdDecompress)
const zstdParams = { params: { [zlib.constants.ZSTD_c_compressionLevel]: 1 } }

interface Codecs {
  readonly CompressionTypes: { readonly ZSTD: number }
  readonly CompressionCodecs: Record<number, () => unknown>
}

const { CompressionTypes, CompressionCodecs } = require("kafkajs") as Codecs
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: (encoder: { readonly buffer: Buffer }) =>
    encoder.buffer.length <= COMPRESS_INLINE_BYTES_MAX
      ? Promise.resolve(zlib.zstdCompressSync(encoder.buffer, zstdParams))
      : zstdCompress(encoder.buffer, zstdParams),
  decompress: (buffer: Buffer) =>
    buffer.length <= COMPRESS_INLINE_BYTES_MAX
      ? Promise.resolve(zlib.zstdDecompressSync(buffer))
      : zstdDecompress(buffer)
})
export const ZSTD = CompressionTypes.ZSTD

const socketFactory: NonNullable<KafkaConfig["socketFactory"]> = ({ host, port, ssl, onConnect }) => {
  const socket = ssl
    ? tls.connect({ host, port, ...(net.isIP(host) ? {} : { servername: host }), ...ssl }, onConnect)
    : net.connect({ host, port }, onConnect)
  socket.setNoDelay(true)
  socket.setKeepAlive(true, KEEP_ALIVE_MS)
  return socket
}

/** Milliseconds between attempts; small, because the first of them paces every transaction. */
export const RETRY = { initialRetryTime: 4, factor: 0.2, multiplier: 2, maxRetryTime: 500 }

const makeLogCreator = (log: KafkaSettings["log"]): logCreator => () => ({ log: entry }) => {
  const { message, timestamp: _timestamp, logger: _logger, ...detail } = entry
  log(message, detail)
}

const kafkaConfig = (settings: KafkaSettings) => ({
  brokers: [...settings.brokers],
  clientId: settings.clientId,
  connectionTimeout: CONNECTION_TIMEOUT_MS,
  requestTimeout: REQUEST_TIMEOUT_MS,
  retry: { ...RETRY, retries: 8 },
  socketFactory,
  ...(settings.tls === undefined ? {} : { ssl: settings.tls }),
  ...(settings.sasl === undefined ? {} : { sasl: settings.sasl })
})

export const makeKafka = (settings: KafkaSettings): Kafka =>
  new Kafka({
    ...kafkaConfig(settings),
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
  readonly requestTimeout: number
  readonly logResponseErrors?: boolean
}

/** What we use of a kafkajs broker connection that its public types don't show. */
export interface RawBroker {
  readonly connectionPool: {
    send<Decoded>(request: RawRequest<Decoded>): Promise<Decoded>
  }
  connect(): Promise<void>
  isConnected(): boolean
}

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

/** Version 11 of the Fetch request: every broker since Kafka 2.3 speaks it. */
export const fetchRequest = require("kafkajs/src/protocol/requests/fetch/v11/request") as (
  request: FetchRequest
) => unknown

/** The error that a broker's code stands for; it has kafkajs's `type` and `retriable`. */
export const errorOfCode = (
  require("kafkajs/src/protocol/error") as { createErrorFromCode: (code: number) => Error }
).createErrorFromCode

/** kafkajs's own view of a cluster: the part below its consumer, with exact offsets. */
export interface RawCluster {
  connect(): Promise<void>
  disconnect(): Promise<void>
  isConnected(): boolean
  addMultipleTargetTopics(topics: ReadonlyArray<string>): Promise<void>
  refreshMetadata(): Promise<void>
  refreshMetadataIfNecessary(): Promise<void>
  findLeaderForPartitions(topic: string, partitions: ReadonlyArray<number>): Record<string, number[]>
  findBroker(node: { readonly nodeId: string }): Promise<RawBroker>
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

export const makeCluster = (settings: KafkaSettings): RawCluster => {
  const Cluster = require("kafkajs/src/cluster") as new (options: object) => RawCluster
  const { createLogger } = require("kafkajs/src/loggers") as {
    createLogger: (options: object) => unknown
  }
  return new Cluster({
    ...kafkaConfig(settings),
    logger: createLogger({ level: logLevel.WARN, logCreator: makeLogCreator(settings.log) }),
    metadataMaxAge: 300_000,
    allowAutoTopicCreation: false,
    maxInFlightRequests: null,
    isolationLevel: READ_COMMITTED,
    enforceRequestTimeout: true
  })
}

/** kafkajs's murmur2 of a key, as Kafka's default partitioner uses it. */
export const murmur2 = require("kafkajs/src/producer/partitioners/default/murmur2") as (
  key: string | Buffer
) => number

/** The protocol's name of an error (`OFFSET_OUT_OF_RANGE`), wherever kafkajs has wrapped it. */
export const protocolErrorOf = (error: unknown): string | undefined => {
  for (let cause: unknown = error, depth = 0; depth < 8 && cause instanceof Error; depth++) {
    const { type, code, cause: next, originalError } = cause as Error & {
      readonly type?: string
      readonly code?: number
      readonly originalError?: unknown
    }
    if (code === 90) return "PRODUCER_FENCED"
    if (typeof type === "string" && type !== "UNKNOWN") return type
    cause = next ?? originalError ?? (cause as { readonly errors?: Array<unknown> }).errors?.[0]
  }
  return undefined
}

const FENCED = new Set(["INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"])
export const isFenced = (error: unknown): boolean => FENCED.has(protocolErrorOf(error) ?? "")

/**
 * kafkajs arms a timer with a negative delay when it connects under Node 24 (kafkajs #1751). That
 * one warning says nothing to an operator; every other warning still gets through.
 */
export const silenceNegativeTimeoutWarning = (): void => {
  const emitWarning = process.emitWarning.bind(process)
  process.emitWarning = ((warning: string | Error, ...rest: Array<never>) => {
    const name = typeof rest[0] === "string" ? rest[0] : (rest[0] as { type?: string } | undefined)?.type
    if (name === "TimeoutNegativeWarning") return
    emitWarning(warning as string, ...rest)
  }) as typeof process.emitWarning
}
