/**
 * The live stream of audit events, served from the topic: one shared reader per partition that has
 * subscribers, each event serialised once. A subscriber that can't keep up is closed and resumes by
 * its last id; it never slows the others.
 */
import { Context, Effect, Layer, Option, RcMap, Schema, type Scope, Stream } from "effect"
import { linkOf } from "../../domain/chain/ChainLink.ts"
import type { AuditEvent } from "../../domain/events/AuditEvent.ts"
import { type EventFilter, matcherOf } from "../../domain/events/EventFilter.ts"
import { FilteredEvent } from "../../domain/events/FilteredEvent.ts"
import { inSlices } from "../../domain/InSlices.ts"
import { parseJson } from "../../domain/json/Json.ts"
import type { Sliced } from "../../domain/Slices.ts"
import { Tally } from "../../domain/Tally.ts"
import { inReadTurns } from "../../domain/TenantTurns.ts"
import { EventLog, type LogRecord, type LogUnavailable } from "../../ports/EventLog.ts"
import { EventStore } from "../../ports/EventStore.ts"
import { catchingUpToHeads, shownWithin } from "../follower/CaughtUp.ts"
import { Heads } from "../follower/Heads.ts"
import { Keys } from "../follower/Keys.ts"
import { ProjectionProgress } from "../log/ProjectionProgress.ts"
import {
  IDLE_TIME,
  openFeed,
  openStream,
  REPLAY_TIMEOUT,
  type ResumePointInvalid,
  type Subscribing
} from "./LiveStream.ts"
import {
  type CloseReason,
  LiveBlock,
  type LiveMessage,
  READER_LIMITS,
  type ReaderLimits,
  Readers,
  type Subscriber
} from "./Subscriber.ts"

/** The tenant has as many streams open as it may. */
export class TooManyStreams extends Schema.TaggedError<TooManyStreams>()("TooManyStreams", {
  limit: Schema.Int
}) {}

export interface Subscription extends Subscribing {
  readonly filter: EventFilter
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
    /** Count one stream of the tenant, of any kind, for as long as the scope is open. */
    admit(tenantId: string): Effect.Effect<void, TooManyStreams, Scope.Scope>
    /** What waits for the readers of this process, of any kind of stream. */
    readonly readers: Readers
    /** Streams now open in this process. */
    readonly subscribers: Effect.Effect<number>
  }
>()("alk/LiveFeed") {}

const encoder = new TextEncoder()

/** One event as SSE; `data` is the stored JSON, which holds no line break. */
const toMessage = (sequenceNumber: number, body: string): Uint8Array =>
  encoder.encode(`event: audit.event\nid: ${sequenceNumber}\ndata: ${body}\n\n`)

/** One event of the log, as those who filter look at it. */
class LiveEvent implements LiveMessage {
  readonly sequenceNumber: number
  readonly message: Uint8Array
  readonly #body: string
  #filtered: FilteredEvent | undefined

  constructor(sequenceNumber: number, body: string) {
    this.sequenceNumber = sequenceNumber
    this.message = toMessage(sequenceNumber, body)
    this.#body = body
  }

  /** Hot path, unchecked: its link is that of a stored event. */
  get filtered(): FilteredEvent {
    return (this.#filtered ??= new FilteredEvent(parseJson(this.#body) as AuditEvent))
  }

  /** It may wait for long until another one looks at it. */
  forget(): void {
    this.#filtered = undefined
  }
}

/** Asked once per event, however many want the same; undefined if the filter matches everything. */
const wantedBy = (filter: EventFilter): ((event: LiveEvent) => boolean) | undefined => {
  const { metadata, ...rest } = filter
  const selective = metadata.length > 0 || Object.keys(rest).length > 0
  if (!selective) return undefined
  const isMeant = matcherOf(filter)
  const known = new WeakMap<LiveEvent, boolean>()
  const ask = (event: LiveEvent): boolean => {
    try {
      return isMeant(event.filtered)
    } catch {
      // No event that the sequencer has written: the projection reports it.
      return false
    }
  }
  return (event) => {
    const answer = known.get(event) ?? ask(event)
    known.set(event, answer)
    return answer
  }
}

/** Bytes of one block: a reader writes it at once. */
const BLOCK_BYTES = 65_536

/**
 * Bytes of a tenant's events that wait for its filters before the other tenants of the partition wait
 * too, and how long they do: then the readers with filters are closed, and resume. So they are where
 * an event has waited for them as long as one may for a reader.
 */
const UNFILTERED_BYTES_MAX = 16 * 1_048_576
const FILTER_PATIENCE = "1 second"
const FILTER_LOOK = "20 millis"

/**
 * The subscribers of one tenant, and the events that go to them next. Its filters look
 * at events in a fiber of their own, for which no other tenant waits.
 */
class TenantFeed {
  readonly subscribers = new Set<Subscriber<LiveEvent>>()
  readonly #readers: Readers
  readonly #blocks: Array<{ readonly block: LiveBlock<LiveEvent>; readonly at: number }> = []
  #next: Array<LiveEvent> = []
  #nextBytes = 0
  /** Bytes of the blocks that were cut and not handed on. */
  #blockBytes = 0
  #isHandingOn = false

  constructor(readers: Readers) {
    this.#readers = readers
  }

  take(event: LiveEvent): void {
    if (this.#nextBytes + event.message.length > BLOCK_BYTES) this.#cut()
    this.#next.push(event)
    this.#nextBytes += event.message.length
  }

  readonly flush: Effect.Effect<void> = Effect.suspend(() => {
    this.#cut()
    if (this.#blocks.length === 0) return Effect.void
    if (this.#isHandingOn) return this.#waited
    this.#isHandingOn = true
    const handedOn = inSlices(() => this.#handOn()).pipe(
      // What a reader was to be given would be missing.
      Effect.onError(() => Effect.sync(() => this.subscribers.forEach((one) => one.end())))
    )
    return Effect.andThen(Effect.forkDetach(handedOn), this.#waited)
  })

  get #isFull(): boolean {
    return this.#blockBytes > UNFILTERED_BYTES_MAX
  }

  /** Until its events may wait. */
  readonly #waited: Effect.Effect<void> = Effect.suspend(() =>
    this.#isFull
      ? Effect.sleep(FILTER_LOOK).pipe(
          Effect.repeat({ while: () => this.#isFull }),
          Effect.timeoutOption(FILTER_PATIENCE),
          Effect.map((waited) => {
            if (Option.isNone(waited)) this.#closeFiltering("behind")
          })
        )
      : Effect.void
  )

  #closeFiltering(reason: CloseReason): void {
    for (const one of this.subscribers) if (one.isFiltering) one.close(reason)
  }

  /** Block by block to all of them, those who join meanwhile too: they know where they begin. */
  *#handOn(): Sliced<void> {
    const { limits, now } = this.#readers
    try {
      for (let next = this.#blocks.shift(); next !== undefined; next = this.#blocks.shift()) {
        const { at, block } = next
        if (now() - at > limits.lateMs) this.#closeFiltering("late")
        for (const subscriber of this.subscribers) yield* subscriber.deliver(block)
        for (const event of block.events) {
          event.forget()
          this.#blockBytes -= event.message.length
        }
        yield
      }
    } finally {
      // In the step that finds no more blocks: one that comes later begins anew.
      this.#isHandingOn = false
    }
  }

  #cut(): void {
    const [first, ...others] = this.#next
    if (first === undefined) return
    this.#blockBytes += this.#nextBytes
    this.#next = []
    this.#nextBytes = 0
    const block = new LiveBlock<LiveEvent>([first, ...others])
    this.#blocks.push({ block, at: this.#readers.now() })
  }
}

/** The subscribers of one partition, by tenant. */
class Feed {
  readonly #tenants = new Map<string, TenantFeed>()
  readonly #readers: Readers

  constructor(readers: Readers) {
    this.#readers = readers
  }

  join(tenantId: string, subscriber: Subscriber<LiveEvent>): void {
    const tenant = this.#tenants.get(tenantId) ?? new TenantFeed(this.#readers)
    this.#tenants.set(tenantId, tenant)
    tenant.subscribers.add(subscriber)
  }

  leave(tenantId: string, subscriber: Subscriber<LiveEvent>): void {
    const tenant = this.#tenants.get(tenantId)
    tenant?.subscribers.delete(subscriber)
    if (tenant?.subscribers.size === 0) this.#tenants.delete(tenantId)
  }

  keepAlive(): void {
    for (const { subscribers } of this.#tenants.values()) {
      for (const subscriber of subscribers) subscriber.keepAlive()
    }
  }

  deliver(record: LogRecord): void {
    const tenant = this.#tenants.get(record.key?.toString() ?? "")
    if (tenant === undefined || record.value === null) return
    const link = linkOf(record.value)
    if (link === undefined) return
    tenant.take(new LiveEvent(link.sequenceNumber, record.value.toString()))
  }

  readonly flush = Effect.suspend(() =>
    Effect.forEach([...this.#tenants.values()], (tenant) => tenant.flush, {
      concurrency: "unbounded",
      discard: true
    })
  )
}

/** The stored events after one up to another, from the store. */
const storedEvents = Effect.fnUntraced(function* (
  { filter, tenantId }: Subscription,
  after: number,
  head: number
) {
  const store = yield* EventStore
  const projection = yield* ProjectionProgress
  const shown = yield* catchingUpToHeads(tenantId, "events")
  const bounded = {
    ...filter,
    fromSequence: Math.max(after + 1, filter.fromSequence ?? 0),
    toSequence: Math.min(head, filter.toSequence ?? head)
  }
  const scanned = Stream.suspend(() =>
    store.scan({ tenantId, filter: bounded, order: "asc" }, projection.of(tenantId).final)
  )
  const events = inReadTurns(tenantId, scanned).pipe(
    Stream.flatMap((bodies) =>
      Stream.fromIterable(
        bodies.flatMap((body) => {
          const link = linkOf(Buffer.from(body))
          return link === undefined ? [] : [toMessage(link.sequenceNumber, body)]
        })
      )
    )
  )
  const inTime = shownWithin(shown, REPLAY_TIMEOUT, () => "not in time" as const)
  return Stream.unwrap(Effect.as(inTime, events))
})

const makeLiveFeed = Effect.fnUntraced(function* (streamsMax: number, limits: ReaderLimits) {
  const context = yield* Effect.context<EventLog | EventStore | Heads | ProjectionProgress>()
  const log = yield* EventLog
  const heads = yield* Heads
  const readers = new Readers(limits)
  const feeds = yield* RcMap.make({
    lookup: (partition: number) => openFeed(heads, "events", partition, new Feed(readers)),
    idleTimeToLive: IDLE_TIME
  })
  const wanted = yield* RcMap.make({
    lookup: (filter: string) => Effect.sync(() => wantedBy(parseJson(filter) as EventFilter))
  })
  const sources = { log, readers, heads, keys: yield* Keys }
  const opened = new Tally()
  const count = (tenantId: string, by: 1 | -1) => Effect.sync(() => opened.add(tenantId, by))
  const admit = (tenantId: string) =>
    Effect.acquireRelease(
      Effect.suspend(() =>
        opened.of(tenantId) >= streamsMax
          ? Effect.fail(new TooManyStreams({ limit: streamsMax }))
          : count(tenantId, 1)
      ),
      () => count(tenantId, -1)
    )
  const subscribe: LiveFeed["Service"]["subscribe"] = Effect.fnUntraced(function* (subscription) {
    const { filter, tenantId } = subscription
    yield* admit(tenantId)
    const open = yield* RcMap.get(feeds, log.partitionOf(tenantId))
    return yield* openStream<LiveEvent, LogUnavailable>(sources, subscription, {
      chain: "events",
      stream: "events",
      wanted: yield* RcMap.get(wanted, JSON.stringify(filter)),
      feed: open,
      join: (subscriber) => open.feed.join(tenantId, subscriber),
      leave: (subscriber) => open.feed.leave(tenantId, subscriber),
      replay: (after, head) =>
        storedEvents(subscription, after, head).pipe(Effect.provideContext(context))
    })
  })
  return LiveFeed.of({ admit, readers, subscribe, subscribers: Effect.sync(() => opened.total) })
})

/** At most `streamsMax` streams per tenant in this process. */
export const layerLiveFeed = (
  streamsMax: number,
  limits: ReaderLimits = READER_LIMITS
): Layer.Layer<LiveFeed, never, EventLog | EventStore | ProjectionProgress | Heads | Keys> =>
  Layer.effect(LiveFeed, makeLiveFeed(streamsMax, limits))
