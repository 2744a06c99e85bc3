/**
 * The live view of running executions, served from `alk.traces`: one reader per partition and one
 * folded view per execution that has subscribers, each change serialised once. A subscriber that
 * can't keep up is closed and resumes by its last id; it never slows the others.
 */
import { Context, Effect, Layer, RcMap, Schema, type Scope, Stream } from "effect"
import { inSlices } from "../../domain/InSlices.ts"
import { parseJson } from "../../domain/json/Json.ts"
import { finish, type Sliced } from "../../domain/Slices.ts"
import { inReadTurns } from "../../domain/TenantTurns.ts"
import { parseFact } from "../../domain/traces/FactText.ts"
import { shownSpan } from "../../domain/traces/SpanSummary.ts"
import type { TraceFact } from "../../domain/traces/TraceFact.ts"
import { type TraceChange, TraceView } from "../../domain/traces/TraceView.ts"
import { EventLog, type LogRecord, LogUnavailable } from "../../ports/EventLog.ts"
import type { StoredRow, StoreUnavailable } from "../../ports/EventStore.ts"
import { TraceStore } from "../../ports/TraceStore.ts"
import { catchingUpToHeads, caughtUpWithin, shownWithin } from "../follower/CaughtUp.ts"
import { Heads } from "../follower/Heads.ts"
import { Keys } from "../follower/Keys.ts"
import { ProjectionProgress } from "../log/ProjectionProgress.ts"
import { type Followed, FollowedBytes, heldBytes } from "./FollowedBytes.ts"
import { LiveFeed, type TooManyStreams } from "./LiveFeed.ts"
import {
  IDLE_TIME,
  type OpenFeed,
  openFeed,
  openStream,
  REPLAY_TIMEOUT,
  type ResumePointInvalid,
  type Subscribing
} from "./LiveStream.ts"
import { LiveBlock, type LiveMessage, type Subscriber } from "./Subscriber.ts"

/** The tenant has no such execution. */
export class ExecutionUnknown extends Schema.TaggedError<ExecutionUnknown>()(
  "ExecutionUnknown",
  {}
) {}

/** More of the execution is running than may be followed. */
export class ExecutionTooLarge extends Schema.TaggedError<ExecutionTooLarge>()(
  "ExecutionTooLarge",
  {}
) {}

/** What is followed already takes all the memory that there is for it. */
export class TooMuchFollowed extends Schema.TaggedError<TooMuchFollowed>()("TooMuchFollowed", {}) {}

export interface TraceSubscription extends Subscribing {
  readonly executionId: string
}

export class TraceFeed extends Context.Service<
  TraceFeed,
  {
    /**
     * Fix the start point, then deliver every change of the execution committed after it, as ready
     * SSE bytes. The stream ends when the subscriber is too slow, the key is revoked or the process
     * stops; the client resumes with its last id.
     */
    subscribe(
      subscription: TraceSubscription
    ): Effect.Effect<
      Stream.Stream<Uint8Array>,
      | ExecutionTooLarge
      | ExecutionUnknown
      | ResumePointInvalid
      | TooManyStreams
      | TooMuchFollowed
      | LogUnavailable
      | StoreUnavailable,
      Scope.Scope
    >
  }
>()("alk/TraceFeed") {}

const encoder = new TextEncoder()

/**
 * The messages of one fact in one piece. Only the last one has an id: a client that is cut off in
 * between resumes before the fact, so that it may see a state again but never misses one.
 */
const toMessage = (view: TraceView, change: TraceChange, sequence: number): Uint8Array => {
  const parts: Array<readonly [event: string, data: unknown]> = change.spans.flatMap((id) => {
    const span = view.span(id)
    return span === undefined ? [] : [["span.updated", shownSpan(span)] as const]
  })
  if (change.event !== undefined) parts.push(["trace.event", change.event])
  if (change.execution) parts.push(["execution.updated", view.execution])
  const text = parts.map(([event, data], at) => {
    const id = at === parts.length - 1 ? `id: ${sequence}\n` : ""
    return `event: ${event}\n${id}data: ${JSON.stringify(data)}\n\n`
  })
  return encoder.encode(text.join(""))
}

/**
 * What the facts of an execution add up to, message by message. It is known by its own facts, and
 * those of spans that have not ended. What has ended is not kept: what is sent of it after that is
 * whole in itself.
 */
class ExecutionReplay {
  readonly followed: Followed
  readonly #view = new TraceView()
  /** What the beginnings of spans that run are counted for. */
  readonly #running = new Map<string, number>()
  /** Number of the last fact taken. */
  folded = 0

  constructor(followed: Followed) {
    this.followed = followed
  }

  /** Facts that are in the store already, events left out of them. */
  load(bodies: ReadonlyArray<string>): void {
    for (const body of bodies) {
      const fact = parseFact(body)
      if (fact === undefined) continue
      this.#view.take(fact)
      this.#keep(fact, heldBytes(fact, body.length))
    }
  }

  take(fact: TraceFact, bytes: number): LiveMessage {
    const sequenceNumber = fact.chain_sequence
    const message = this.#fold(fact, bytes, (change) =>
      toMessage(this.#view, change, sequenceNumber)
    )
    return { sequenceNumber, message }
  }

  /** Take a fact of which nothing is to be said. */
  skip(fact: TraceFact, bytes: number): void {
    this.#fold(fact, bytes, () => undefined)
  }

  #fold<A>(fact: TraceFact, bytes: number, say: (change: TraceChange) => A): A {
    const change = this.#view.take(fact)
    this.folded = fact.fact_number
    // The end of a span has to be published before the span is dropped.
    if (fact.type !== "span.ended") this.#keep(fact, bytes)
    const said = say(change)
    if (fact.type === "span.ended") this.#keep(fact, bytes)
    return said
  }

  #keep(fact: TraceFact, bytes: number): void {
    switch (fact.type) {
      case "span.event":
      case "span.payload":
      case "span.amended":
        return
      case "span.started":
        this.#leave(fact.span_id)
        this.#running.set(fact.span_id, bytes)
        this.followed.add(bytes)
        return
      case "span.ended":
        this.#leave(fact.span_id)
        return this.#view.forget(fact.span_id)
      default:
        this.followed.add(bytes)
    }
  }

  #leave(spanId: string): void {
    this.followed.add(-(this.#running.get(spanId) ?? 0))
    this.#running.delete(spanId)
  }
}

/** Bytes of facts that wait while the store is read. */
const EARLY_BYTES_MAX = 16 * 1_048_576

/** One execution that is followed, kept as new as the topic. */
class ExecutionChannel {
  readonly subscribers = new Set<Subscriber<LiveMessage>>()
  readonly followed: Followed
  readonly #replay: ExecutionReplay
  /** Facts that arrive before the store has been read; undefined from then on. */
  #early: Array<{ readonly fact: TraceFact; readonly bytes: number }> | undefined = []
  #earlyBytes = 0
  /** Something is missing: a caller that is here has to come again. */
  isBroken = false

  constructor(followed: Followed) {
    this.followed = followed
    this.#replay = new ExecutionReplay(followed)
  }

  /** Facts that the store holds, in order. */
  load(bodies: ReadonlyArray<string>): void {
    this.#replay.load(bodies)
  }

  /** Go on after what the store holds. */
  begin(factCount: number): void {
    this.#replay.folded = factCount
    const early = this.#early ?? []
    this.#early = undefined
    for (const { bytes, fact } of early) this.#take(fact, bytes)
  }

  offer(fact: TraceFact, bytes: number): void {
    if (this.#early === undefined) return this.#take(fact, bytes)
    this.#earlyBytes += bytes
    if (this.#earlyBytes > EARLY_BYTES_MAX) return this.#break()
    this.#early.push({ fact, bytes })
  }

  keepAlive(): void {
    for (const subscriber of this.subscribers) subscriber.keepAlive()
  }

  #take(fact: TraceFact, bytes: number): void {
    const { folded } = this.#replay
    if (this.isBroken || fact.fact_number <= folded) return
    if (fact.fact_number > folded + 1) return this.#break()
    const block = new LiveBlock([this.#replay.take(fact, bytes)])
    for (const subscriber of this.subscribers) finish(subscriber.deliver(block))
    if (this.followed.isTooLarge || this.followed.isOneTooMany) this.#break()
  }

  #break(): void {
    this.isBroken = true
    this.#early = []
    this.followed.release()
    for (const subscriber of this.subscribers) subscriber.close()
  }
}

const ID_MARK = Buffer.from('"execution_id":')
const QUOTE = 0x22
const BACKSLASH = 0x5c

/**
 * The execution of a record, read without parsing the rest. Quotes inside of texts are escaped, so
 * the first such mark is the member itself.
 */
const executionIdOf = (body: Buffer): string | undefined => {
  const start = body.indexOf(ID_MARK) + ID_MARK.length
  if (start < ID_MARK.length || body[start] !== QUOTE) return undefined
  let end = start + 1
  while (end < body.length && body[end] !== QUOTE) end += body[end] === BACKSLASH ? 2 : 1
  try {
    // Hot path: between quotes JSON has nothing but a text.
    return parseJson(body.toString("utf8", start, end + 1)) as string
  } catch {
    // No fact that the sequencer has written.
    return undefined
  }
}

/** The followed executions of one partition, by tenant and id. */
class PartitionFeed {
  readonly #tenants = new Map<string, Map<string, ExecutionChannel>>()

  join(tenantId: string, executionId: string, channel: ExecutionChannel): void {
    const channels = this.#tenants.get(tenantId) ?? new Map<string, ExecutionChannel>()
    this.#tenants.set(tenantId, channels.set(executionId, channel))
  }

  leave(tenantId: string, executionId: string): void {
    const channels = this.#tenants.get(tenantId)
    channels?.delete(executionId)
    if (channels?.size === 0) this.#tenants.delete(tenantId)
  }

  keepAlive(): void {
    for (const channels of this.#tenants.values()) {
      for (const channel of channels.values()) channel.keepAlive()
    }
  }

  deliver({ key, value }: LogRecord): void {
    const channels = this.#tenants.get(key?.toString() ?? "")
    if (channels === undefined || value === null) return
    const channel = channels.get(executionIdOf(value) ?? "")
    const fact = channel === undefined ? undefined : parseFact(value.toString())
    if (fact !== undefined) channel?.offer(fact, heldBytes(fact, value.length))
  }

  /** Each change has gone out when it was delivered. */
  readonly flush = Effect.void
}

const notInTime = (cause: Error) => new LogUnavailable({ operation: "follow an execution", cause })

const caughtUp = (tenantId: string) => caughtUpWithin(tenantId, "traces", REPLAY_TIMEOUT, notInTime)

/** Two ids in one key; neither holds control characters. */
const SEPARATOR = "\n"

const makeChannel = (
  feeds: RcMap.RcMap<number, OpenFeed<PartitionFeed>, LogUnavailable>,
  followedBytes: FollowedBytes
) =>
  Effect.fnUntraced(function* (key: string) {
    const [tenantId = "", executionId = ""] = key.split(SEPARATOR)
    const log = yield* EventLog
    const store = yield* TraceStore
    const open = yield* RcMap.get(feeds, log.partitionOf(tenantId))
    const { feed } = open
    const channel = new ExecutionChannel(followedBytes.begin(tenantId))
    const { followed } = channel
    yield* Effect.acquireRelease(
      Effect.sync(() => feed.join(tenantId, executionId, channel)),
      () =>
        Effect.sync(() => {
          feed.leave(tenantId, executionId)
          followed.release()
        })
    )
    yield* caughtUp(tenantId)
    const reach = yield* store.reach(tenantId, executionId)
    if (reach === undefined) return yield* new ExecutionUnknown()
    const scanned = inReadTurns(tenantId, store.scan(tenantId, executionId, reach))
    const load = Effect.fnUntraced(function* (bodies: ReadonlyArray<string>) {
      channel.load(bodies)
      if (followed.isTooLarge) return yield* new ExecutionTooLarge()
      if (followed.isOneTooMany) return yield* new TooMuchFollowed()
    })
    yield* Stream.runForEach(scanned, load)
    channel.begin(reach)
    return { channel, feed: open }
  })

/** Of rows, in order, that are in the store under one sequence the one that replaced the others. */
const newestVersions = (rows: ReadonlyArray<StoredRow>): ReadonlyArray<StoredRow> => {
  const kept: Array<StoredRow> = []
  for (const row of rows) {
    const last = kept.at(-1)
    if (last?.sequenceNumber !== row.sequenceNumber) kept.push(row)
    else if (row.version > last.version) kept[kept.length - 1] = row
  }
  return kept
}

/** The changes after a place up to the head, from the store. */
const storedChanges = Effect.fnUntraced(function* (
  { executionId, tenantId }: TraceSubscription,
  followedBytes: FollowedBytes,
  after: number,
  head: number
) {
  const store = yield* TraceStore
  const context = yield* Effect.context<EventLog | Heads | ProjectionProgress>()
  const reached = Effect.flatMap(catchingUpToHeads(tenantId, "traces"), (shown) =>
    shownWithin(shown, REPLAY_TIMEOUT, notInTime)
  )
  const followed = followedBytes.begin(tenantId)
  const replay = new ExecutionReplay(followed)
  function* missedOf(rows: ReadonlyArray<StoredRow>): Sliced<ReadonlyArray<Uint8Array>> {
    const messages: Array<Uint8Array> = []
    for (const { body } of newestVersions(rows)) {
      yield
      const fact = parseFact(body)
      if (fact === undefined || fact.fact_number <= replay.folded) continue
      const isMissed = fact.chain_sequence > after && fact.chain_sequence <= head
      const bytes = heldBytes(fact, body.length)
      if (isMissed) messages.push(replay.take(fact, bytes).message)
      else replay.skip(fact, bytes)
    }
    return messages
  }
  const chunks = Stream.suspend(() => store.rows(tenantId, executionId)).pipe(
    Stream.mapEffect((rows) => inSlices(() => missedOf(rows))),
    Stream.mapEffect((chunk) =>
      followed.isOneTooMany
        ? Effect.fail(notInTime(new Error("too much is followed")))
        : Effect.succeed(chunk)
    )
  )
  const messages = inReadTurns(tenantId, chunks).pipe(
    Stream.flatMap((chunk) => Stream.fromIterable(chunk)),
    Stream.ensuring(Effect.sync(followed.release))
  )
  return Stream.unwrap(Effect.as(reached, messages).pipe(Effect.provideContext(context)))
})

const makeTraceFeed = Effect.gen(function* () {
  const context = yield* Effect.context<EventLog | Heads | TraceStore | ProjectionProgress>()
  const live = yield* LiveFeed
  const heads = yield* Heads
  const log = yield* EventLog
  const sources = { log, readers: live.readers, heads, keys: yield* Keys }
  const store = yield* TraceStore
  const projection = yield* ProjectionProgress
  const feeds = yield* RcMap.make({
    lookup: (partition: number) => openFeed(heads, "traces", partition, new PartitionFeed()),
    idleTimeToLive: IDLE_TIME
  })
  const followedBytes = new FollowedBytes()
  const channels = yield* RcMap.make({ lookup: makeChannel(feeds, followedBytes) })

  const subscribe: TraceFeed["Service"]["subscribe"] = Effect.fnUntraced(function* (subscription) {
    const { executionId, tenantId } = subscription
    yield* live.admit(tenantId)
    const { final: deduplicate } = projection.of(tenantId)
    const known = yield* store.facts(tenantId, executionId, { kind: "execution" }, deduplicate)
    if (known.length === 0) return yield* new ExecutionUnknown()
    const { channel, feed } = yield* RcMap.get(channels, `${tenantId}${SEPARATOR}${executionId}`)
    if (channel.isBroken) return yield* notInTime(new Error("the feed of the execution has a gap"))
    return yield* openStream<LiveMessage, never>(sources, subscription, {
      chain: "traces",
      stream: "execution",
      feed,
      join: (subscriber) => channel.subscribers.add(subscriber),
      leave: (subscriber) => channel.subscribers.delete(subscriber),
      replay: (after, head) =>
        storedChanges(subscription, followedBytes, after, head).pipe(Effect.provideContext(context))
    })
  })
  return TraceFeed.of({ subscribe })
})

/** Streams are counted by the LiveFeed, so that a tenant has one limit for all of them. */
export const layerTraceFeed: Layer.Layer<
  TraceFeed,
  never,
  EventLog | TraceStore | ProjectionProgress | Heads | Keys | LiveFeed
> = Layer.effect(TraceFeed, makeTraceFeed)
