/**
 * What the live streams of events and of executions have in common: one reader of a partition for
 * all of its subscribers, and a stream that resumes in the store and goes on with what is live.
 */
import { Effect, Option, Schedule, Schema, Stream } from "effect"
import type { Chain, ChainKey } from "../../domain/chain/Chains.ts"
import { defined } from "../../domain/Defined.ts"
import { inSlices } from "../../domain/InSlices.ts"
import { EventLog, type LogReader, type LogRecord, LogUnavailable } from "../../ports/EventLog.ts"
import { type Heads, headOf } from "../follower/Heads.ts"
import type { Keys, Principal } from "../follower/Keys.ts"
import { reportMalformed, takeEach } from "../log/Malformed.ts"
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
/** Time that a stream waits for the head to be as new as what was delivered. */
const HEAD_TIMEOUT = "2 seconds"
const FETCH_BYTES = 2 * 1_048_576
const FETCH_WAIT_MS = 1_000
/** Time that a partition without subscribers is still read, for those who reconnect. */
export const IDLE_TIME = "10 seconds"

/** Without an empty line: to some clients that would be an event without data. */
export const RETRY_LINE = new TextEncoder().encode(`retry: ${RETRY_MS}\n`)

/** The subscribers of one partition. */
interface Feed {
  /** Take a record, of which a subscriber that joins from now on need not hear. */
  deliver(record: LogRecord): void
  /** Hand on all that was taken; what takes long goes on in a fiber of its own. */
  readonly flush: Effect.Effect<void>
  keepAlive(): void
}

interface FeedPlace {
  readonly topic: Chain
  readonly partition: number
}

/** A feed, and how far it is. */
export interface OpenFeed<F> {
  readonly feed: F
  /** Offset after the last record that was delivered; at first, that up to which heads are known. */
  position: number
}

/** Deliver those of the records that a sequencer has written, each as soon as that is known of it. */
const deliverOwn = Effect.fnUntraced(function* (
  heads: Heads["Service"],
  { partition, topic }: FeedPlace,
  records: ReadonlyArray<LogRecord>,
  deliver: (own: ReadonlyArray<LogRecord>) => Effect.Effect<void>
) {
  for (let left = records; left.length > 0; ) {
    const { own, rest } = yield* heads.decided(topic, partition, left)
    // The sequencer and the projection report the others.
    yield* deliver(own)
    left = rest
  }
})

/**
 * Hand on every record that a sequencer has written to one partition from `start` on; what fails is
 * tried again.
 */
const readForEver = (
  heads: Heads["Service"],
  reader: LogReader,
  place: FeedPlace,
  start: number,
  open: OpenFeed<Feed>
) => {
  const { feed } = open
  let offset = start
  const limits = { waitMs: FETCH_WAIT_MS, maxBytes: FETCH_BYTES }
  const take = (record: LogRecord) => {
    offset = record.offset + 1
    feed.deliver(record)
    open.position = offset
  }
  const deliver = (records: ReadonlyArray<LogRecord>) =>
    Effect.suspend(() => {
      const malformed = takeEach(place, records, take)
      return Effect.andThen(feed.flush, reportMalformed(malformed))
    })
  return Effect.suspend(() => reader.fetch([{ ...place, offset }], limits)).pipe(
    Effect.flatMap(([fetched]) =>
      fetched === undefined
        ? Effect.void
        : Effect.map(deliverOwn(heads, place, fetched.records, deliver), () => {
            offset = fetched.nextOffset
          })
    ),
    Effect.forever,
    Effect.catchDefect((defect) => Effect.fail(defect)),
    Effect.retry(Schedule.spaced("500 millis"))
  )
}

/**
 * Deliver what sequencers have written after what the heads known here include, for as long as the
 * scope is open.
 */
export const openFeed = Effect.fnUntraced(function* <F extends Feed>(
  heads: Heads["Service"],
  topic: Chain,
  partition: number,
  feed: F
) {
  const log = yield* EventLog
  const reader = yield* log.reader
  const written = yield* heads.written(topic, partition)
  const { end, start } = yield* log.bounds(topic, partition)
  const open: OpenFeed<F> = { feed, position: Math.min(written, end) }
  // What expires takes the markers of its transactions along, which the heads don't count.
  const from = Math.max(start, open.position)
  yield* Effect.forkScoped(readForEver(heads, reader, { topic, partition }, from, open))
  yield* Effect.forkScoped(
    Effect.sync(() => feed.keepAlive()).pipe(Effect.delay(KEEP_ALIVE), Effect.forever)
  )
  return open
})

/** What every stream of this process needs. */
export interface StreamSources {
  readonly log: EventLog["Service"]
  readonly readers: Readers
  readonly heads: Heads["Service"]
  readonly keys: Keys["Service"]
}

/** Who subscribes, and from where on. */
export interface Subscribing {
  readonly tenantId: string
  readonly keyId: string
  /** The session that the key is used through, if it is one. */
  readonly session?: Principal["session"]
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
  /** The feed that delivers to the subscriber once it has joined. */
  readonly feed: OpenFeed<unknown>
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
 * The tenant's head, no older than what the feed delivered before the stream has joined it, nor than
 * where the stream resumes: each partition learns by a record of its own that a transaction is
 * committed, so a head may be known later than its event.
 */
const headAtStart = Effect.fnUntraced(function* (
  { heads, log }: StreamSources,
  key: ChainKey,
  { position }: OpenFeed<unknown>,
  after: number
) {
  const known = yield* headOf(heads, key)
  const reached = yield* Effect.timeoutOption(heads.reached(key, position, after), HEAD_TIMEOUT)
  if (Option.isSome(reached)) return reached.value?.sequence_number ?? 0
  const written = yield* heads.written(key.chain, log.partitionOf(key.tenantId))
  if (written >= position) return known?.sequence_number ?? 0
  const cause = new Error("the head of the chain is not known in time")
  return yield* new LogUnavailable({ operation: "follow a chain", cause })
})

/**
 * Fix the start point, then deliver what follows it, as ready SSE bytes. The stream ends when the
 * subscriber is too slow, the key is revoked, its session ends or the process stops.
 */
export const openStream = Effect.fnUntraced(function* <E extends LiveMessage, Failure>(
  sources: StreamSources,
  { after, keyId, onStalled, session, tenantId }: Subscribing,
  { chain, feed, join, leave, replay, stream, wanted }: Delivery<E, Failure>
) {
  const { keys } = sources
  const subscriber = yield* openReader<E>(sources.readers, {
    wanted,
    onStalled,
    details: { tenant: tenantId, stream }
  })
  yield* Effect.acquireRelease(
    Effect.sync(() => join(subscriber)),
    () => Effect.sync(() => leave(subscriber))
  )
  const head = yield* headAtStart(sources, { chain, tenantId }, feed, after ?? 0)
  if (after !== undefined && after > head) {
    const name = chain === "events" ? "the chain" : "the chain of facts"
    const message = `sequence ${after} is beyond the head of ${name}, ${head}`
    return yield* new ResumePointInvalid({ message })
  }
  yield* Effect.forkScoped(
    keys
      .ended({ keyId, tenantId, ...defined({ session }) })
      .pipe(Effect.andThen(Effect.sync(() => subscriber.end())))
  )
  const missed =
    after === undefined || after >= head ? Stream.empty : keptAlive(yield* replay(after, head))
  const live = Stream.unwrap(
    Effect.as(Effect.forkScoped(inSlices(() => subscriber.begin(head))), subscriber.messages())
  )
  return Stream.make(RETRY_LINE).pipe(
    Stream.concat(missed),
    Stream.concat(live),
    // A replay that can't go on ends the stream: the client resumes after `retry:`.
    Stream.catch((failure) =>
      Stream.drain(Stream.fromEffect(replayEnded(failure, tenantId, stream)))
    )
  )
})
