/**
 * The executions that a sequencer has in memory: loads from the store those that a chunk names and
 * that are not in memory, looks up events that the duplicate window may have forgotten, and evicts
 * executions that have ended or are idle once the store shows them.
 * What takes long to be loaded is loaded while the partition goes on; until it has come, no command
 * that names it is applied, so that nothing of it changes meanwhile.
 */
import { Clock, type Duration, Effect, Fiber, Option, Semaphore } from "effect"
import { inSlices } from "../../../domain/InSlices.ts"
import { isMarked } from "../../../domain/records/FactPlace.ts"
import type { RecordMac } from "../../../domain/records/RecordMac.ts"
import type { StateRecord } from "../../../domain/records/StateRecords.ts"
import type { Sliced } from "../../../domain/Slices.ts"
import { nowMicros } from "../../../domain/Timestamp.ts"
import { holdsItsHashes, parseFact } from "../../../domain/traces/FactText.ts"
import { traceEventKeyOf } from "../../../domain/traces/TraceOperation.ts"
import type {
  EventLog,
  LogReader,
  LogUnavailable,
  OffsetOutOfRange
} from "../../../ports/EventLog.ts"
import type {
  LoadedExecution,
  SoughtEvents,
  StoredEvent,
  TraceKey
} from "../../../ports/TraceStore.ts"
import type { SequencerState } from "../SequencerState.ts"
import type { ReceivedCommand } from "../SequencerStep.ts"
import {
  apart,
  ExecutionLoad,
  joined,
  keysIn,
  type LoadAnswer,
  type LoadPlan,
  LoadTimes,
  selected
} from "./ExecutionLoads.ts"
import { checkedEntry } from "./LoadedEntry.ts"
import {
  type MissingExecutions,
  missingExecutionsOf,
  soughtEventsOf,
  type TraceCommand
} from "./MissingExecutions.ts"
import type { ExecutionEntry } from "./TraceEntry.ts"
import { EVICTED_ENTRIES_MAX } from "./TraceState.ts"
import { type TraceLookup, VisibleStore } from "./VisibleStore.ts"

/** Milliseconds that a chunk waits for the store: the audit commands after it wait too. */
const LOOK_UP_TIMEOUT_MS = 2_000
/** Time after which a load is given up that no chunk waits for. */
const LOAD_TIMEOUT = "1 minute"
/** Loads that are under way: each may hold as much as the store answers at most. */
const LOADS_AT_ONCE = 8
/**
 * Microseconds after which an execution that no command has named is evicted, and between looks.
 */
const IDLE_MICROS = 10 * 60 * 1_000_000
const LOOK_MICROS = 1_000_000

/** Executions that are loaded at once because they are due. */
const DUE_LOADED_MAX = 100

const NONE: MissingExecutions = { executions: [], spans: [] }

/** What a chunk was prepared with. */
export interface PreparedTraces {
  /** What could not be loaded, or not be looked up. */
  readonly unloaded: MissingExecutions
  readonly storedEvents: ReadonlySet<string>
}

const NO_EVENTS: ReadonlySet<string> = new Set()

const keyOfSought = ({ executionId: id, tenantId }: SoughtEvents): TraceKey => ({ tenantId, id })

interface EventsAnswer {
  readonly keys: ReadonlySet<string>
  /** Tenants of which an event is not as this service has written it. */
  readonly wrong: ReadonlySet<string>
}

/** The keys of events that the store holds; one in a step. */
function* keysOf(mac: RecordMac, events: ReadonlyArray<StoredEvent>): Sliced<EventsAnswer> {
  const keys = new Set<string>()
  const wrong = new Set<string>()
  for (const { body, marked } of events) {
    const fact = parseFact(body)
    const isEvent =
      fact?.type === "span.event"
      && fact.tenant_id === marked.tenantId
      && fact.hash === marked.hash
      && holdsItsHashes(fact)
      && isMarked(mac, marked)
    if (isEvent) keys.add(traceEventKeyOf(fact.tenant_id, fact.event_id))
    else wrong.add(marked.tenantId)
    yield
  }
  return { keys, wrong }
}

const MESSAGE = "AN EXECUTION IS NOT STORED AS IT WAS WRITTEN: alk rebuild-view mends it"

const commandsOf = (chunk: ReadonlyArray<ReceivedCommand>): ReadonlyArray<TraceCommand> =>
  chunk.flatMap((received) =>
    "command" in received && received.command.traces !== undefined
      ? [{ tenantId: received.command.tenantId, operations: received.command.traces }]
      : []
  )

/** A load and what makes it. */
interface RunningLoad {
  readonly load: ExecutionLoad
  readonly fiber: Fiber.Fiber<void>
}

export class ExecutionCache {
  readonly #state: SequencerState
  readonly #store: TraceLookup | undefined
  readonly #visible: VisibleStore
  readonly #mac: RecordMac
  readonly #times = new LoadTimes()
  readonly #turns = Semaphore.makeUnsafe(LOADS_AT_ONCE)
  /** A load that no chunk waits for, one at a time: what it holds is as much as any load. */
  #late: RunningLoad | undefined
  #lookedAt = 0

  /**
   * `reader` is used by this cache only; `store` is undefined in a process that has none; `mac` is
   * that of the facts it shows.
   */
  constructor(
    log: EventLog["Service"],
    reader: LogReader,
    state: SequencerState,
    store: TraceLookup | undefined,
    mac: RecordMac
  ) {
    this.#state = state
    this.#store = store
    this.#visible = new VisibleStore(log, reader, state.partition)
    this.#mac = mac
  }

  /**
   * Load what the chunk needs, and look up which of its events the store has. Loads that take longer
   * than the chunk waits are of the fiber that runs this.
   */
  readonly prepare = Effect.fnUntraced(
    { self: this },
    function* (chunk: ReadonlyArray<ReceivedCommand>): Effect.fn.Return<PreparedTraces> {
      yield* this.#takeLate
      const commands = commandsOf(chunk)
      if (commands.length === 0) return { unloaded: NONE, storedEvents: NO_EVENTS }
      const unloaded = yield* this.#loadMissing(missingExecutionsOf(this.#state.traces, commands))
      // One wait is enough.
      const store = keysIn(unloaded).length === 0 ? this.#store : undefined
      const { executions, storedEvents } = yield* this.#lookUpEvents(commands, store)
      return {
        unloaded: { ...unloaded, executions: [...unloaded.executions, ...executions] },
        storedEvents
      }
    }
  )

  /** Load what of the executions that are due is not in memory. */
  readonly prepareDue = Effect.suspend((): Effect.Effect<void> => {
    const inPart = this.#state.traces.dueInPart(nowMicros(), DUE_LOADED_MAX)
    const executions = inPart.map(({ executionId: id, tenantId }) => ({ tenantId, id }))
    return this.#store === undefined
      ? Effect.void
      : Effect.andThen(this.#takeLate, this.#loadMissing({ executions, spans: [] }))
  })

  readonly #loadMissing = Effect.fnUntraced(
    { self: this },
    function* (missing: MissingExecutions): Effect.fn.Return<MissingExecutions> {
      if (keysIn(missing).length === 0) return NONE
      const store = this.#store
      // Nothing was ever evicted: what is not in memory does not exist.
      if (store === undefined) return this.#state.evictedBelow === 0 ? NONE : missing
      const started = yield* Clock.currentTimeMillis
      const isHeld = (key: TraceKey) => this.#late?.load.names(key) === true
      const { held, plans } = this.#times.plan(missing, started, isHeld)
      const running: Array<LoadPlan & RunningLoad> = []
      for (const plan of plans) running.push(yield* this.#start(store, plan))
      const unloaded = [held]
      // It grows meanwhile.
      for (const one of running) {
        const { fiber, load, patienceMs } = one
        const left = load.startedAt + patienceMs - (yield* Clock.currentTimeMillis)
        yield* Effect.timeoutOption(Fiber.join(fiber), Math.max(0, left))
        const parts = load.askedAt !== undefined && !load.hasCome ? apart(load.missing) : []
        if (parts.length > 0) {
          yield* Fiber.interrupt(fiber)
          for (const part of parts) running.push(yield* this.#start(store, part))
        } else if (load.answer !== undefined) unloaded.push(yield* this.#arrived(load))
        else {
          unloaded.push(load.missing)
          yield* this.#goOn(one)
        }
      }
      return joined(unloaded)
    }
  )

  readonly #start = Effect.fnUntraced(
    { self: this },
    function* (store: TraceLookup, plan: LoadPlan): Effect.fn.Return<LoadPlan & RunningLoad> {
      const load = new ExecutionLoad(plan.missing, yield* Clock.currentTimeMillis)
      const { executions, spans } = load.missing
      const asked = this.#visible.asked(store, this.#state.evictedBelow, ({ load: ask }) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          load.askedAt = now
          return ask(executions, spans)
        })
      )
      const fiber = yield* asked.pipe(
        Effect.flatMap((loaded) => this.#checked(loaded)),
        this.#inTime(LOAD_TIMEOUT),
        this.#turns.withPermits(1),
        Effect.map((answer) => {
          load.answer = answer
        }),
        // A load that no chunk waits for may not be waited for without an end.
        Effect.ensuring(
          Effect.sync(() => {
            load.answer ??= Option.none()
          })
        ),
        Effect.forkChild
      )
      return { ...plan, load, fiber }
    }
  )

  /** The chunk waits no longer: the load goes on without it, or ends. */
  readonly #goOn = Effect.fnUntraced(
    { self: this },
    function* (late: LoadPlan & RunningLoad): Effect.fn.Return<void> {
      const { fiber, isPatient, load, patienceMs } = late
      const now = yield* Clock.currentTimeMillis
      // Where the view lags, or others had their turn, that is no matter of what it is asked for.
      const hadItsTime = now - (load.askedAt ?? now) >= patienceMs / 2
      if (!hadItsTime) return yield* Fiber.interrupt(fiber)
      if (isPatient) this.#times.usedUp(load.missing, now)
      if (isPatient && this.#late === undefined) {
        load.isLate = true
        this.#late = late
        return
      }
      yield* Fiber.interrupt(fiber)
      this.#times.failed(load.missing, load.startedAt, now)
    }
  )

  /** Take what was loaded; what of it is missing still. */
  readonly #arrived = Effect.fnUntraced(
    { self: this },
    function* (load: ExecutionLoad): Effect.fn.Return<MissingExecutions> {
      const { missing } = load
      const answer = Option.getOrUndefined(load.answer ?? Option.none())
      if (answer !== undefined) {
        yield* inSlices(() => load.take(this.#state.traces, answer.entries, nowMicros()))
        this.#times.succeeded(missing)
      }
      const failed = selected(missing, ({ tenantId }) => answer?.wrong.has(tenantId) ?? true)
      this.#times.failed(failed, load.startedAt, yield* Clock.currentTimeMillis)
      return failed
    }
  )

  readonly #takeLate = Effect.suspend((): Effect.Effect<void> => {
    const load = this.#late?.load
    if (load?.answer === undefined) return Effect.void
    this.#late = undefined
    return Effect.asVoid(this.#arrived(load))
  })

  /**
   * Which of the events that the duplicate window may have forgotten the store has; without one that
   * answers they are unknown.
   */
  readonly #lookUpEvents = Effect.fnUntraced(
    { self: this },
    function* (commands: ReadonlyArray<TraceCommand>, store: TraceLookup | undefined) {
      const { dedup, forgottenEvents, traces } = this.#state
      const { upTo } = forgottenEvents
      const holds = (key: string) => dedup.find(key) !== undefined
      const sought = upTo === 0 ? [] : soughtEventsOf(traces, commands, upTo, holds)
      const keys = sought.map(keyOfSought)
      const unknown = { executions: keys, storedEvents: NO_EVENTS }
      if (keys.length === 0 || store === undefined) return unknown
      const now = yield* Clock.currentTimeMillis
      const asked = sought.filter((_, at) => !this.#times.isHeldBack(keys[at]!, now))
      const answers = asked.length === 0 ? [] : yield* this.#askForEvents(store, upTo, asked)
      const stored = answers.flatMap(({ answer }) => (answer === undefined ? [] : [answer]))
      const known = new Set(
        answers.flatMap(({ answer, sought: own }) =>
          answer === undefined ? [] : own.filter(({ tenantId }) => !answer.wrong.has(tenantId))
        )
      )
      const failed = answers.flatMap(({ isAsked, sought: own }) =>
        isAsked ? own.filter((one) => !known.has(one)).map(keyOfSought) : []
      )
      const after = yield* Clock.currentTimeMillis
      this.#times.failed({ executions: failed, spans: [] }, now, after)
      return {
        executions: sought.filter((one) => !known.has(one)).map(keyOfSought),
        storedEvents: new Set(stored.flatMap((answer) => [...answer.keys]))
      }
    }
  )

  /** All together, and those of each tenant by themselves where that takes long or fails. */
  readonly #askForEvents = Effect.fnUntraced(
    { self: this },
    function* (store: TraceLookup, upTo: number, sought: ReadonlyArray<SoughtEvents>) {
      const parts = [...Map.groupBy(sought, ({ tenantId }) => tenantId).values()]
      const isShared = parts.length > 1
      const time = isShared ? LOOK_UP_TIMEOUT_MS / 2 : LOOK_UP_TIMEOUT_MS
      const together = yield* this.#stored(store, upTo, sought, time)
      if (!isShared || !together.isAsked || together.answer !== undefined) return [together]
      const until = (yield* Clock.currentTimeMillis) + time
      const each = Effect.fnUntraced({ self: this }, function* (own: ReadonlyArray<SoughtEvents>) {
        const left = until - (yield* Clock.currentTimeMillis)
        // With less than half of the time it could not be told whether it takes long.
        if (left < time / 2) return { sought: own, isAsked: false, answer: undefined }
        return yield* this.#stored(store, upTo, own, left)
      })
      return yield* Effect.forEach(parts, each, { concurrency: LOADS_AT_ONCE })
    }
  )

  /**
   * What was loaded as it is remembered, without what is not as this service has written it: what the
   * store says of that can't be continued.
   */
  #checked(all: ReadonlyArray<LoadedExecution>): Effect.Effect<LoadAnswer> {
    const mac = this.#mac
    const wrong: Array<LoadedExecution> = []
    const checked = inSlices(function* () {
      const now = nowMicros()
      const entries: Array<ExecutionEntry> = []
      for (const loaded of all) {
        const entry = yield* checkedEntry(mac, loaded, now)
        if (entry === undefined) wrong.push(loaded)
        else entries.push(entry)
      }
      return { entries, wrong: new Set(wrong.map(({ tenantId }) => tenantId)) }
    })
    return Effect.tap(checked, () => {
      if (wrong.length === 0) return Effect.void
      const executions = wrong.map(({ executionId, tenantId }) => `${tenantId}/${executionId}`)
      return Effect.logError(MESSAGE, { executions })
    })
  }

  #stored(store: TraceLookup, upTo: number, sought: ReadonlyArray<SoughtEvents>, timeMs: number) {
    let isAsked = false
    const asked = this.#visible.asked(store, upTo, (lookup) => {
      isAsked = true
      return lookup.storedEvents(sought)
    })
    return asked.pipe(
      Effect.flatMap((events) => inSlices(() => keysOf(this.#mac, events))),
      this.#inTime(timeMs),
      Effect.tap((answer) =>
        Option.isSome(answer) && answer.value.wrong.size > 0
          ? Effect.logError(MESSAGE, { tenants: [...answer.value.wrong] })
          : Effect.void
      ),
      Effect.map((answer) => ({ sought, isAsked, answer: Option.getOrUndefined(answer) }))
    )
  }

  /** None where the store does not answer in time. */
  #inTime(time: Duration.Input) {
    return <A, E>(answer: Effect.Effect<A, E>): Effect.Effect<Option.Option<A>> =>
      answer.pipe(
        Effect.timeoutOption(time),
        Effect.catch((error) =>
          Effect.as(
            Effect.logWarning("executions could not be loaded", { error: String(error) }),
            Option.none<A>()
          )
        ),
        Effect.tap((found) =>
          Effect.sync(() => {
            if (Option.isNone(found)) this.#visible.doubt()
          })
        )
      )
  }

  /** Evicts what it may; the tombstones have to be written before anything else is. */
  readonly evict: Effect.Effect<ReadonlyArray<StateRecord>, LogUnavailable | OffsetOutOfRange> =
    Effect.suspend(() => {
      const now = nowMicros()
      const { traces } = this.#state
      if (now - this.#lookedAt < LOOK_MICROS || traces.size === 0) return Effect.succeed([])
      this.#lookedAt = now
      return this.#visible.follow.pipe(
        Effect.map(() => {
          const { rebuilding, traces_next } = this.#visible.progress
          if (rebuilding) return []
          const leaving = traces.evictable(traces_next, now, IDLE_MICROS)
          if (leaving.length === 0) return []
          this.#late?.load.noteLeaving(leaving)
          const { forgotten, records, size } = traces.evict(leaving)
          // The limit of one eviction: there may be more, so look again with the next chunk.
          if (size >= EVICTED_ENTRIES_MAX) this.#lookedAt = 0
          this.#state.evictedBelow = Math.max(this.#state.evictedBelow, forgotten)
          return records
        })
      )
    })
}
