/**
 * The live view of running executions, served from `alk.traces`: one reader per partition and one
 * folded view per execution that has subscribers, each change serialised once. A subscriber that
 * can't keep up is closed and resumes by its last id; it never slows the others.
 */
import { Context, Effect, Layer, Option, RcMap, Schema, type Scope, Stream } from "effect"
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

/** Bytes of a piece of a message: what a fact says of many spans is made and handed on in several. */
const PIECE_BYTES = 65_536

type Part = readonly [event: string, data: unknown]

function* partsOf(view: TraceView, change: TraceChange): Generator<Part, void> {
  for (const id of change.spans) {
    const span = view.span(id)
    if (span !== undefined) yield ["span.updated", shownSpan(span)]
  }
  if (change.event !== undefined) yield ["trace.event", change.event]
  if (change.execution) yield ["execution.updated", view.execution]
}

const textOf = ([event, data]: Part, id: string): string =>
  `event: ${event}\n${id}data: ${JSON.stringify(data)}\n\n`

/**
 * The messages of one fact, in pieces. Only the last one has an id: a client that is cut off in
 * between resumes before the fact, so that it may see a state again but never misses one.
 */
function* piecesOf(
  view: TraceView,
  change: TraceChange,
  sequenceNumber: number
): Generator<LiveMessage, void> {
  let text = ""
  let last: Part | undefined
  for (const part of partsOf(view, change)) {
    if (last !== undefined) text += textOf(last, "")
    last = part
    if (text.length < PIECE_BYTES) continue
    yield { sequenceNumber, message: encoder.encode(text) }
    text = ""
  }
  if (last !== undefined) text += textOf(last, `id: ${sequenceNumber}\n`)
  yield { sequenceNumber, message: encoder.encode(text) }
}

/**
 * What the facts of an execution add up to, message by message. It is known by its own facts, and
 * those of spans that have not ended. What has ended is not kept: what is sent of it after that is
 * whole in itself.
 */
class ExecutionReplay {
  readonly followed: Followed
  #view = new TraceView()
  /** What the beginnings of spans that run are counted for. */
  readonly #running = new Map<string, number>()
  /** The same of the execution's own facts that later ones replace, by type. */
  readonly #own = new Map<string, number>()
  /** Number of the last fact taken. */
  folded = 0

  /** `madeRoom` is called where others needed its memory more. */
  constructor(all: FollowedBytes, tenantId: string, madeRoom: () => void = () => {}) {
    this.followed = all.begin(tenantId, () => {
      this.drop()
      madeRoom()
    })
  }

  /** Nothing is known of it any more. */
  drop(): void {
    this.#view = new TraceView()
    this.#running.clear()
    this.#own.clear()
    this.followed.release()
  }

  /** Facts that are in the store already, events left out of them; one in a step. */
  *load(bodies: ReadonlyArray<string>): Sliced<void> {
    for (const body of bodies) {
      yield
      const fact = parseFact(body)
      if (fact === undefined) continue
      this.#view.take(fact)
      this.#keep(fact, heldBytes(fact, body.length))
    }
  }

  /** What a fact says; the next one may be taken when all of it was given. */
  *take(fact: TraceFact, bytes: number): Generator<LiveMessage, void> {
    const change = this.#fold(fact, bytes)
    yield* piecesOf(this.#view, change, fact.chain_sequence)
    this.#forgetEnded(fact, bytes)
  }

  /** Take a fact of which nothing is to be said. */
  skip(fact: TraceFact, bytes: number): void {
    this.#fold(fact, bytes)
    this.#forgetEnded(fact, bytes)
  }

  #fold(fact: TraceFact, bytes: number): TraceChange {
    const change = this.#view.take(fact)
    this.folded = fact.fact_number
    if (fact.type !== "span.ended") this.#keep(fact, bytes)
    return change
  }

  /** The end of a span has to be published before the span is dropped. */
  #forgetEnded(fact: TraceFact, bytes: number): void {
    if (fact.type === "span.ended") this.#keep(fact, bytes)
  }

  #keep(fact: TraceFact, bytes: number): void {
    switch (fact.type) {
      case "span.event":
      case "span.payload":
      case "span.amended":
        return
      case "span.started":
        return this.#hold(this.#running, fact.span_id, bytes)
      case "span.ended":
        this.#leave(this.#running, fact.span_id)
        return this.#view.forget(fact.span_id)
      case "execution.started":
      case "execution.ended":
        return this.#hold(this.#own, fact.type, bytes)
      case "execution.resumed":
        return this.#leave(this.#own, "execution.ended")
      case "execution.erased":
        this.followed.add(bytes)
    }
  }

  /** In the place of what was held by this name. */
  #hold(counted: Map<string, number>, name: string, bytes: number): void {
    this.#leave(counted, name)
    counted.set(name, bytes)
    this.followed.add(bytes)
  }

  #leave(counted: Map<string, number>, name: string): void {
    this.followed.add(-(counted.get(name) ?? 0))
    counted.delete(name)
  }
}

/** Bytes of facts that wait while the store is read, or the pieces of one before are made. */
const EARLY_BYTES_MAX = 16 * 1_048_576

/** What a fact says. */
type Pieces = Generator<LiveMessage, void>

/** Work that is begun when all records of a batch have been delivered. */
type Later = (work: () => Sliced<void>) => void

/** One execution that is followed, kept as new as the topic. */
class ExecutionChannel {
  readonly subscribers = new Set<Subscriber<LiveMessage>>()
  readonly #replay: ExecutionReplay
  readonly #later: Later
  /** Facts that wait; undefined while none has to. */
  #early: Array<{ readonly fact: TraceFact; readonly bytes: number }> | undefined = []
  #earlyBytes = 0
  /** Something is missing: it delivers nothing any more, and holds nothing. */
  isBroken = false
  #isReplaced = false

  constructor(all: FollowedBytes, tenantId: string, later: Later) {
    this.#replay = new ExecutionReplay(all, tenantId, () => this.#break())
    this.#later = later
  }

  get followed(): Followed {
    return this.#replay.followed
  }

  /** Facts that the store holds, in order. */
  load(bodies: ReadonlyArray<string>): Sliced<void> {
    return this.#replay.load(bodies)
  }

  /** Go on after what the store holds. */
  begin(factCount: number): Sliced<void> {
    this.#replay.folded = factCount
    return this.#catchUp()
  }

  offer(fact: TraceFact, bytes: number): void {
    if (this.isBroken) return
    if (this.#early === undefined) return this.#take(fact, bytes)
    this.#earlyBytes += bytes
    if (this.#earlyBytes > EARLY_BYTES_MAX) return this.#break()
    this.#early.push({ fact, bytes })
  }

  /** True for the first caller that finds it broken: it sees to another one in its place. */
  replace(): boolean {
    const isFirst = !this.#isReplaced
    this.#isReplaced = true
    return isFirst
  }

  keepAlive(): void {
    for (const subscriber of this.subscribers) subscriber.keepAlive()
  }

  /** Facts that have waited, and those that come meanwhile. */
  *#catchUp(): Sliced<void> {
    for (let early = this.#early; early !== undefined && early.length > 0; early = this.#early) {
      this.#early = []
      this.#earlyBytes = 0
      for (const { bytes, fact } of early) {
        yield
        const pieces = this.#piecesOf(fact, bytes)
        if (pieces !== undefined) yield* this.#tellAll(pieces.next(), pieces)
        if (this.isBroken) return
      }
    }
    this.#early = undefined
  }

  #take(fact: TraceFact, bytes: number): void {
    const pieces = this.#piecesOf(fact, bytes)
    if (pieces === undefined) return
    finish(this.#tell(pieces.next()))
    const second = pieces.next()
    if (second.done === true) return this.#check()
    // What follows the fact waits until all of it was told.
    this.#early = []
    this.#later(() => this.#tellRest(second, pieces))
  }

  /** What is to be told of a fact; undefined if it is known, or another one is missing before it. */
  #piecesOf(fact: TraceFact, bytes: number): Pieces | undefined {
    const { folded } = this.#replay
    if (fact.fact_number === folded + 1) return this.#replay.take(fact, bytes)
    if (fact.fact_number > folded) this.#break()
    return undefined
  }

  *#tell(piece: IteratorResult<LiveMessage, void>): Sliced<void> {
    if (piece.done === true) return
    const block = new LiveBlock([piece.value])
    for (const subscriber of this.subscribers) yield* subscriber.deliver(block)
  }

  *#tellAll(first: IteratorResult<LiveMessage, void>, pieces: Pieces): Sliced<void> {
    for (let piece = first; piece.done !== true && !this.isBroken; piece = pieces.next()) {
      yield* this.#tell(piece)
      yield
    }
    if (!this.isBroken) this.#check()
  }

  *#tellRest(second: IteratorResult<LiveMessage, void>, pieces: Pieces): Sliced<void> {
    let isTold = false
    try {
      yield* this.#tellAll(second, pieces)
      if (!this.isBroken) yield* this.#catchUp()
      isTold = true
    } finally {
      if (!isTold) this.#break()
    }
  }

  #check(): void {
    if (this.followed.isTooLarge || this.followed.isOneTooMany) this.#break()
  }

  #break(): void {
    this.isBroken = true
    this.#early = undefined
    this.#replay.drop()
    for (const subscriber of this.subscribers) subscriber.end()
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
  #work: Array<() => Sliced<void>> = []

  join(tenantId: string, executionId: string, channel: ExecutionChannel): void {
    const channels = this.#tenants.get(tenantId) ?? new Map<string, ExecutionChannel>()
    this.#tenants.set(tenantId, channels.set(executionId, channel))
  }

  /** Another one of the execution may have come in its place. */
  leave(tenantId: string, executionId: string, channel: ExecutionChannel): void {
    const channels = this.#tenants.get(tenantId)
    if (channels?.get(executionId) !== channel) return
    channels.delete(executionId)
    if (channels.size === 0) this.#tenants.delete(tenantId)
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

  readonly later: Later = (work) => void this.#work.push(work)

  /** Most changes have gone out when they were delivered. */
  readonly flush = Effect.suspend(() =>
    Effect.forEach(this.#work.splice(0), (work) => Effect.forkDetach(inSlices(work)), {
      discard: true
    })
  )
}

const notInTime = (cause: Error) => new LogUnavailable({ operation: "follow an execution", cause })

const hasGap = Effect.suspend(() =>
  Effect.fail(notInTime(new Error("the feed of the execution has a gap")))
)

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
    const channel = new ExecutionChannel(followedBytes, tenantId, feed.later)
    const { followed } = channel
    yield* Effect.acquireRelease(
      Effect.sync(() => feed.join(tenantId, executionId, channel)),
      () =>
        Effect.sync(() => {
          feed.leave(tenantId, executionId, channel)
          followed.release()
        })
    )
    yield* caughtUp(tenantId)
    const reach = yield* store.reach(tenantId, executionId)
    if (reach === undefined) return yield* new ExecutionUnknown()
    const scanned = inReadTurns(tenantId, store.scan(tenantId, executionId, reach))
    const load = Effect.fnUntraced(function* (bodies: ReadonlyArray<string>) {
      yield* inSlices(() => channel.load(bodies))
      if (followed.isTooLarge) return yield* new ExecutionTooLarge()
      if (followed.isOneTooMany) return yield* new TooMuchFollowed()
      if (channel.isBroken) return yield* hasGap
    })
    yield* Stream.runForEach(scanned, load)
    yield* inSlices(() => channel.begin(reach))
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

/** Bytes of pieces that are made before the client takes them. */
const MADE_BYTES = 262_144

/** The next of them, and whether they are the last. */
function* nextPieces(
  pieces: Iterator<Uint8Array | undefined, void>
): Sliced<readonly [some: ReadonlyArray<Uint8Array>, isLast: boolean]> {
  const some: Array<Uint8Array> = []
  for (let bytes = 0; bytes < MADE_BYTES; ) {
    yield
    const next = pieces.next()
    if (next.done === true) return [some, true]
    if (next.value === undefined) continue
    some.push(next.value)
    bytes += next.value.length
  }
  return [some, false]
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
  const replay = new ExecutionReplay(followedBytes, tenantId)
  const { followed } = replay
  /** One piece, or a fact that none is told of, in a step. */
  function* missedOf(rows: ReadonlyArray<StoredRow>): Generator<Uint8Array | undefined, void> {
    for (const { body } of newestVersions(rows)) {
      yield
      const fact = parseFact(body)
      if (fact === undefined || fact.fact_number <= replay.folded) continue
      const isMissed = fact.chain_sequence > after && fact.chain_sequence <= head
      const bytes = heldBytes(fact, body.length)
      if (!isMissed) replay.skip(fact, bytes)
      else for (const { message } of replay.take(fact, bytes)) yield message
    }
  }
  const pieces = (rows: ReadonlyArray<StoredRow>) => {
    const missed = missedOf(rows)
    return Stream.paginate(undefined, () =>
      Effect.flatMap(
        inSlices(() => nextPieces(missed)),
        ([some, isLast]) =>
          followed.isOneTooMany
            ? Effect.fail(notInTime(new Error("too much is followed")))
            : Effect.succeed([some, isLast ? Option.none() : Option.some(undefined)] as const)
      )
    )
  }
  const messages = inReadTurns(
    tenantId,
    Stream.flatMap(
      Stream.suspend(() => store.rows(tenantId, executionId)),
      pieces
    )
  ).pipe(Stream.ensuring(Effect.sync(() => followed.release())))
  return Stream.unwrap(Effect.as(reached, messages).pipe(Effect.provideContext(context)))
})

const makeTraceFeed = Effect.fnUntraced(function* (followedBytes: FollowedBytes) {
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
  const channels = yield* RcMap.make({ lookup: makeChannel(feeds, followedBytes) })
  /** A broken one is kept for as long as its last reader's response: who comes finds a new one. */
  const openChannel = Effect.fnUntraced(function* (key: string) {
    const found = yield* RcMap.get(channels, key)
    if (!found.channel.isBroken) return found
    if (found.channel.replace()) yield* RcMap.invalidate(channels, key)
    const opened = yield* RcMap.get(channels, key)
    return opened.channel.isBroken ? yield* hasGap : opened
  })

  const subscribe: TraceFeed["Service"]["subscribe"] = Effect.fnUntraced(function* (subscription) {
    const { executionId, tenantId } = subscription
    yield* live.admit(tenantId)
    const { final: deduplicate } = projection.of(tenantId)
    const known = yield* store.facts(tenantId, executionId, { kind: "execution" }, deduplicate)
    if (known.length === 0) return yield* new ExecutionUnknown()
    const { channel, feed } = yield* openChannel(`${tenantId}${SEPARATOR}${executionId}`)
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
export const layerTraceFeed = (
  followedBytes = new FollowedBytes()
): Layer.Layer<
  TraceFeed,
  never,
  EventLog | TraceStore | ProjectionProgress | Heads | Keys | LiveFeed
> => Layer.effect(TraceFeed, makeTraceFeed(followedBytes))
