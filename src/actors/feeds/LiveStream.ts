/**
 * What the live streams of events and of executions have in common: one reader of a partition for
 * all of its subscribers, and a stream that resumes in the store and goes on with what is live.
 */
import { Effect, Schedule, Schema, Stream } from "effect"
import type { Chain } from "../../domain/chain/Chains.ts"
import { EventLog, type LogReader, type LogRecord } from "../../ports/EventLog.ts"
import { type Heads, headOf } from "../follower/Heads.ts"
import type { Keys } from "../follower/Keys.ts"
import { reportMalformed, takeEach } from "../log/Malformed.ts"
import type { Partition } from "../log/PartitionScan.ts"
import {
  KEEP_ALIVE_COMMENT,
  type LiveMessage,
  openReader,
  type ReaderOptions,
  type Readers,
  type Subscriber
} from "./Subscriber.ts"

/** The resume point is not within the tenant's chain. */
export class ResumePointInvalid extends Schema.TaggedError<ResumePointInvalid>()(
  "ResumePointInvalid",
  { message: Schema.String }
) {}

/** Milliseconds after which a client connects again when its stream ends. */
const RETRY_MS = 3_000
const KEEP_ALIVE = "15 seconds"
/** Time that a replay waits for the store to hold what the log holds. */
export const REPLAY_TIMEOUT = "10 seconds"
const FETCH_BYTES = 2 * 1_048_576
const FETCH_WAIT_MS = 1_000
/** Time that a partition without subscribers is still read, for those who reconnect. */
export const IDLE_TIME = "10 seconds"

/** Without an empty line: to some clients that would be an event without data. */
export const RETRY_LINE = new TextEncoder().encode(`retry: ${RETRY_MS}\n`)

/** The subscribers of one partition. */
interface Feed {
  deliver(record: LogRecord): void
  /** All records of one fetch are delivered. */
  flush(): void
  keepAlive(): void
}

/** Hand on every record of one partition from `start` on; what fails is tried again. */
const readForEver = (reader: LogReader, place: Partition, start: number, feed: Feed) => {
  let offset = start
  const limits = { waitMs: FETCH_WAIT_MS, maxBytes: FETCH_BYTES }
  const deliver = (record: LogRecord) => feed.deliver(record)
  return Effect.suspend(() => reader.fetch([{ ...place, offset }], limits)).pipe(
    Effect.flatMap(([fetched]) => {
      if (fetched === undefined) return Effect.void
      offset = fetched.nextOffset
      const malformed = takeEach(fetched, fetched.records, deliver)
      feed.flush()
      return reportMalformed(malformed)
    }),
    Effect.forever,
    Effect.catchDefect((defect) => Effect.fail(defect)),
    Effect.retry(Schedule.spaced("500 millis"))
  )
}

/** Deliver what is committed to a partition from now on, for as long as the scope is open. */
export const openFeed = Effect.fnUntraced(function* <F extends Feed>(place: Partition, feed: F) {
  const log = yield* EventLog
  const reader = yield* log.reader
  const { end } = yield* log.bounds(place.topic, place.partition)
  yield* Effect.forkScoped(readForEver(reader, place, end, feed))
  yield* Effect.forkScoped(
    Effect.sync(() => feed.keepAlive()).pipe(Effect.delay(KEEP_ALIVE), Effect.forever)
  )
  return feed
})

/** What every stream of this process needs. */
export interface StreamSources {
  readonly readers: Readers
  readonly heads: Heads["Service"]
  readonly keys: Keys["Service"]
}

/** Who subscribes, and from where on. */
export interface Subscribing {
  readonly tenantId: string
  readonly keyId: string
  /** Resume after this place in the tenant's chain; undefined is live only. */
  readonly after: number | undefined
  readonly onStalled?: ReaderOptions<never>["onStalled"]
}

/** What a stream delivers. */
interface Delivery<E extends LiveMessage, Failure> {
  readonly chain: Chain
  /** Name of the stream in the log. */
  readonly stream: string
  /** Undefined: everything. */
  readonly wanted?: ((event: E) => boolean) | undefined
  readonly join: (subscriber: Subscriber<E>) => void
  readonly leave: (subscriber: Subscriber<E>) => void
  /** The messages after a place up to a head, from the store. */
  readonly replay: (
    after: number,
    head: number
  ) => Effect.Effect<Stream.Stream<Uint8Array, unknown>, Failure>
}

/** A connection on which nothing moves is cut, and the store may search for long. */
const keptAlive = <E>(missed: Stream.Stream<Uint8Array, E>): Stream.Stream<Uint8Array, E> => {
  const comments = Stream.make(KEEP_ALIVE_COMMENT).pipe(
    Stream.mapEffect((comment) => Effect.delay(Effect.succeed(comment), KEEP_ALIVE)),
    Stream.forever
  )
  return Stream.merge(missed, comments, { haltStrategy: "left" })
}

const replayEnded = (failure: unknown, tenant: string, stream: string): Effect.Effect<void> =>
  Effect.logWarning("a resumed live stream ended before what it missed was read").pipe(
    Effect.annotateLogs({ reason: String(failure), tenant, stream })
  )

/**
 * Fix the start point, then deliver what follows it, as ready SSE bytes. The stream ends when the
 * subscriber is too slow, the key is revoked or the process stops.
 */
export const openStream = Effect.fnUntraced(function* <E extends LiveMessage, Failure>(
  { heads, keys, readers }: StreamSources,
  { after, keyId, onStalled, tenantId }: Subscribing,
  { chain, join, leave, replay, stream, wanted }: Delivery<E, Failure>
) {
  const subscriber = yield* openReader<E>(readers, {
    wanted,
    onStalled,
    details: { tenant: tenantId, stream }
  })
  yield* Effect.acquireRelease(
    Effect.sync(() => join(subscriber)),
    () => Effect.sync(() => leave(subscriber))
  )
  const head = (yield* headOf(heads, { chain, tenantId }))?.sequence_number ?? 0
  if (after !== undefined && after > head) {
    const name = chain === "events" ? "the chain" : "the chain of facts"
    const message = `sequence ${after} is beyond the head of ${name}, ${head}`
    return yield* new ResumePointInvalid({ message })
  }
  yield* Effect.forkScoped(
    keys.revoked(keyId).pipe(Effect.andThen(Effect.sync(() => subscriber.close())))
  )
  const missed =
    after === undefined || after >= head ? Stream.empty : keptAlive(yield* replay(after, head))
  const live = Stream.suspend(() => {
    subscriber.begin(head)
    return subscriber.messages()
  })
  return Stream.make(RETRY_LINE).pipe(
    Stream.concat(missed),
    Stream.concat(live),
    // A replay that can't go on ends the stream: the client resumes after `retry:`.
    Stream.catch((failure) =>
      Stream.drain(Stream.fromEffect(replayEnded(failure, tenantId, stream)))
    )
  )
})
