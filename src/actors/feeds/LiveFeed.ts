/**
 * The live stream of audit events, served from the topic: one shared reader per partition that has
 * subscribers, each event serialised once. A subscriber that can't keep up is closed and resumes by
 * its last id; it never slows the others.
 */
import { Context, Effect, Layer, Option, RcMap, Schedule, Schema, type Scope, Stream } from "effect"
import { linkOf } from "../../domain/chain/ChainLink.ts"
import type { AuditEvent } from "../../domain/events/AuditEvent.ts"
import { type EventFilter, matches } from "../../domain/events/EventFilter.ts"
import { parseJson } from "../../domain/json/Json.ts"
import type { TopicKind } from "../../domain/records/Topics.ts"
import {
  EventLog,
  type LogReader,
  type LogRecord,
  type LogUnavailable
} from "../../ports/EventLog.ts"
import { EventStore, type StoreUnavailable } from "../../ports/EventStore.ts"
import { catchingUp } from "../follower/CaughtUp.ts"
import { Heads } from "../follower/Heads.ts"
import { Keys } from "../follower/Keys.ts"
import { reportMalformed, takeEach } from "../log/Malformed.ts"
import { ProjectionProgress } from "../log/ProjectionProgress.ts"
import {
  type LiveMessage,
  openReader,
  READER_LIMITS,
  type ReaderLimits,
  type ReaderOptions,
  Readers,
  type Subscriber
} from "./Subscriber.ts"

/** The resume point is not within the tenant's chain. */
export class ResumePointInvalid extends Schema.TaggedError<ResumePointInvalid>()(
  "ResumePointInvalid",
  { message: Schema.String }
) {}

/** The tenant has as many streams open as it may. */
export class TooManyStreams extends Schema.TaggedError<TooManyStreams>()("TooManyStreams", {
  limit: Schema.Int
}) {}

/** Milliseconds after which a client connects again when its stream ends. */
const RETRY_MS = 3_000
export const KEEP_ALIVE = "15 seconds"
/** Time that a replay waits for the store to hold what the log holds. */
export const REPLAY_TIMEOUT = "10 seconds"
const FETCH_BYTES = 2 * 1_048_576
const FETCH_WAIT_MS = 1_000
/** Time that a partition without subscribers is still read, for those who reconnect. */
export const IDLE_TIME = "10 seconds"

export interface Subscription {
  readonly tenantId: string
  readonly keyId: string
  readonly filter: EventFilter
  /** Resume after this sequence number; undefined is live only. */
  readonly after: number | undefined
  readonly onStalled?: ReaderOptions<never>["onStalled"]
}

export class LiveFeed extends Context.Service<
  LiveFeed,
  {
    /**
     * Fix the start point, then deliver every event committed after it that matches, as ready SSE
     * bytes (`retry:`, events, comments). The stream ends when the subscriber is too slow, the key
     * is revoked or the process stops; the client resumes with its last id.
     */
    subscribe(
      subscription: Subscription
    ): Effect.Effect<
      Stream.Stream<Uint8Array>,
      ResumePointInvalid | TooManyStreams | LogUnavailable,
      Scope.Scope
    >
    /** Count one stream of the tenant, of whatever kind, for as long as the scope is open. */
    admit(tenantId: string): Effect.Effect<void, TooManyStreams, Scope.Scope>
    /** What waits for the readers of this process, whatever they read. */
    readonly readers: Readers
    /** Streams now open in this process. */
    readonly subscribers: Effect.Effect<number>
  }
>()("alk/LiveFeed") {}

const encoder = new TextEncoder()
/** Without an empty line: to some clients that would be an event without data. */
export const RETRY_LINE = encoder.encode(`retry: ${RETRY_MS}\n`)

/** One event as SSE; `data` is the stored JSON, which holds no line break. */
const toMessage = (sequenceNumber: number, body: string): Uint8Array =>
  encoder.encode(`event: audit.event\nid: ${sequenceNumber}\ndata: ${body}\n\n`)

interface LiveEvent extends LiveMessage {
  readonly parsed: () => AuditEvent
}

/** Undefined if the filter wants everything. */
const wantedBy = (filter: EventFilter): ((event: LiveEvent) => boolean) | undefined => {
  const { metadata, ...rest } = filter
  const selective = metadata.length > 0 || Object.keys(rest).length > 0
  return selective ? (event) => matches(filter, event.parsed()) : undefined
}

/** The subscribers of one partition, by tenant. */
class Feed {
  readonly #byTenant = new Map<string, Set<Subscriber<LiveEvent>>>()

  join(tenantId: string, subscriber: Subscriber<LiveEvent>): void {
    const subscribers = this.#byTenant.get(tenantId)
    if (subscribers === undefined) this.#byTenant.set(tenantId, new Set([subscriber]))
    else subscribers.add(subscriber)
  }

  leave(tenantId: string, subscriber: Subscriber<LiveEvent>): void {
    const subscribers = this.#byTenant.get(tenantId)
    subscribers?.delete(subscriber)
    if (subscribers?.size === 0) this.#byTenant.delete(tenantId)
  }

  keepAlive(): void {
    for (const subscribers of this.#byTenant.values()) {
      for (const subscriber of subscribers) subscriber.keepAlive()
    }
  }

  deliver(record: LogRecord): void {
    const subscribers = this.#byTenant.get(record.key?.toString() ?? "")
    if (subscribers === undefined || record.value === null) return
    const link = linkOf(record.value)
    if (link === undefined) return
    const body = record.value.toString()
    let parsed: AuditEvent | undefined
    const event: LiveEvent = {
      sequenceNumber: link.sequenceNumber,
      message: toMessage(link.sequenceNumber, body),
      // Hot path, unchecked: its link is that of a stored event.
      parsed: () => (parsed ??= parseJson(body) as AuditEvent)
    }
    for (const subscriber of subscribers) subscriber.deliver(event)
  }
}

/** Hand on every record of one partition from `start` on, for as long as there are subscribers. */
export const readForEver = (
  reader: LogReader,
  topic: TopicKind,
  partition: number,
  start: number,
  deliver: (record: LogRecord) => void
) => {
  let offset = start
  const limits = { waitMs: FETCH_WAIT_MS, maxBytes: FETCH_BYTES }
  return Effect.suspend(() => reader.fetch([{ topic, partition, offset }], limits)).pipe(
    Effect.flatMap(([fetched]) => {
      if (fetched === undefined) return Effect.void
      offset = fetched.nextOffset
      return reportMalformed(takeEach(fetched, fetched.records, deliver))
    }),
    Effect.forever,
    Effect.catchDefect((defect) => Effect.fail(defect)),
    Effect.retry(Schedule.spaced("500 millis"))
  )
}

const makeFeed = Effect.fnUntraced(function* (partition: number) {
  const log = yield* EventLog
  const reader = yield* log.reader
  const { end } = yield* log.bounds("events", partition)
  const feed = new Feed()
  const deliver = (record: LogRecord) => feed.deliver(record)
  yield* Effect.forkScoped(readForEver(reader, "events", partition, end, deliver))
  yield* Effect.forkScoped(
    Effect.sync(() => feed.keepAlive()).pipe(Effect.delay(KEEP_ALIVE), Effect.forever)
  )
  return feed
})

/** The stored events after the resume point up to the start point, from the store. */
const replayFrom = Effect.fnUntraced(function* (subscription: Subscription, head: number) {
  const { after, filter, tenantId } = subscription
  const store = yield* EventStore
  const projection = yield* ProjectionProgress
  if (after === undefined || after >= head) return Stream.empty
  const shown = yield* catchingUp(tenantId, "events")
  const bounded = {
    ...filter,
    fromSequence: Math.max(after + 1, filter.fromSequence ?? 0),
    toSequence: Math.min(head, filter.toSequence ?? head)
  }
  const events = Stream.suspend(() =>
    store.scan({ tenantId, filter: bounded, order: "asc" }, projection.of(tenantId).final)
  ).pipe(
    Stream.flatMap((bodies) =>
      Stream.fromIterable(
        bodies.flatMap((body) => {
          const link = linkOf(Buffer.from(body))
          return link === undefined ? [] : [toMessage(link.sequenceNumber, body)]
        })
      )
    )
  )
  const replay = (reached: boolean): Stream.Stream<Uint8Array, StoreUnavailable | "not in time"> =>
    reached ? events : Stream.fail("not in time")
  const inTime = Effect.timeoutOption(shown, REPLAY_TIMEOUT)
  return Stream.unwrap(Effect.map(inTime, (reached) => replay(Option.isSome(reached))))
})

const makeLiveFeed = Effect.fnUntraced(function* (streamsMax: number, limits: ReaderLimits) {
  const context = yield* Effect.context<EventLog | EventStore | ProjectionProgress>()
  const log = yield* EventLog
  const heads = yield* Heads
  const keys = yield* Keys
  const feeds = yield* RcMap.make({ lookup: makeFeed, idleTimeToLive: IDLE_TIME })
  const readers = new Readers(limits)
  const open = new Map<string, number>()
  let subscribers = 0
  const count = (tenantId: string, by: 1 | -1) =>
    Effect.sync(() => {
      const now = (open.get(tenantId) ?? 0) + by
      if (now === 0) open.delete(tenantId)
      else open.set(tenantId, now)
      subscribers += by
    })
  const admit = (tenantId: string) =>
    Effect.acquireRelease(
      Effect.suspend(() =>
        (open.get(tenantId) ?? 0) >= streamsMax
          ? Effect.fail(new TooManyStreams({ limit: streamsMax }))
          : count(tenantId, 1)
      ),
      () => count(tenantId, -1)
    )
  const subscribe: LiveFeed["Service"]["subscribe"] = Effect.fnUntraced(function* (subscription) {
    const { after, filter, keyId, onStalled, tenantId } = subscription
    yield* admit(tenantId)
    const feed = yield* RcMap.get(feeds, log.partitionOf(tenantId))
    const subscriber = yield* openReader<LiveEvent>(readers, {
      wanted: wantedBy(filter),
      onStalled,
      details: { tenant: tenantId, stream: "events" }
    })
    yield* Effect.acquireRelease(
      Effect.sync(() => feed.join(tenantId, subscriber)),
      () => Effect.sync(() => feed.leave(tenantId, subscriber))
    )
    const head = (yield* heads.head(tenantId))?.sequence_number ?? 0
    if (after !== undefined && after > head) {
      return yield* new ResumePointInvalid({
        message: `sequence ${after} lies beyond the head of the chain, ${head}`
      })
    }
    yield* Effect.forkScoped(
      keys.revoked(keyId).pipe(Effect.andThen(Effect.sync(() => subscriber.close())))
    )
    const replay = yield* replayFrom(subscription, head).pipe(Effect.provideContext(context))
    const live = Stream.suspend(() => {
      subscriber.begin(head)
      return subscriber.messages()
    })
    return Stream.make(RETRY_LINE).pipe(
      Stream.concat(replay),
      Stream.concat(live),
      // A replay that can't go on ends the stream: the client resumes after `retry:`.
      Stream.catch(() => Stream.empty)
    )
  })
  return LiveFeed.of({ admit, readers, subscribe, subscribers: Effect.sync(() => subscribers) })
})

/** At most `streamsMax` streams per tenant in this process. */
export const layerLiveFeed = (
  streamsMax: number,
  limits: ReaderLimits = READER_LIMITS
): Layer.Layer<LiveFeed, never, EventLog | EventStore | ProjectionProgress | Heads | Keys> =>
  Layer.effect(LiveFeed, makeLiveFeed(streamsMax, limits))
