/**
 * The executions that a sequencer has in memory: loads from the store those that a chunk names and
 * that are not in memory, looks up events that the duplicate window may have forgotten, and evicts
 * executions that have ended or are idle once the store shows them.
 * Follows `alk.progress` of its partition, because only what is visible there may be evicted.
 */
import { Effect, Option } from "effect"
import { inSlices } from "../../../domain/InSlices.ts"
import { isMarked } from "../../../domain/records/FactPlace.ts"
import { noProgress, type Progress, progressAfter } from "../../../domain/records/Progress.ts"
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
import type { StoreResult } from "../../../ports/EventStore.ts"
import type {
  LoadedExecution,
  SoughtEvents,
  StoredEvent,
  TraceStore
} from "../../../ports/TraceStore.ts"
import { scanEach } from "../../log/Malformed.ts"
import type { SequencerState } from "../SequencerState.ts"
import type { ReceivedCommand } from "../SequencerStep.ts"
import {
  type MissingExecutions,
  missingExecutionsOf,
  soughtEventsOf,
  type TraceCommand
} from "./MissingExecutions.ts"
import { EVICTED_ENTRIES_MAX } from "./TraceState.ts"

/** Time that a chunk waits for the store: the audit commands after it wait too. */
const LOAD_TIMEOUT = "2 seconds"
/** Milliseconds between two looks at a view that has not caught up. */
const CATCH_UP_INTERVAL_MS = 20
/**
 * Microseconds after which an execution that no command has named is evicted, and between looks.
 */
const IDLE_MICROS = 10 * 60 * 1_000_000
const LOOK_MICROS = 1_000_000

/** What the cache needs of the store. */
export type TraceLookup = Pick<TraceStore["Service"], "load" | "position" | "storedEvents">

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

/**
 * The keys of events that the store holds, or undefined if one of them is not as this service has
 * written it; one in a step.
 */
function* keysOf(
  mac: RecordMac,
  events: ReadonlyArray<StoredEvent>
): Sliced<ReadonlySet<string> | undefined> {
  const keys = new Set<string>()
  for (const { body, marked } of events) {
    const fact = parseFact(body)
    if (fact?.type !== "span.event" || fact.hash !== marked.hash) return undefined
    if (!holdsItsHashes(fact) || !isMarked(mac, marked)) return undefined
    keys.add(traceEventKeyOf(fact.tenant_id, fact.event_id))
    yield
  }
  return keys
}

const MESSAGE = "AN EXECUTION IS NOT STORED AS IT WAS WRITTEN: alk rebuild-view mends it"

const commandsOf = (chunk: ReadonlyArray<ReceivedCommand>): ReadonlyArray<TraceCommand> =>
  chunk.flatMap((received) =>
    "command" in received && received.command.traces !== undefined
      ? [{ tenantId: received.command.tenantId, operations: received.command.traces }]
      : []
  )

/** Whether this service has written every row that is said to be of it; one in a step. */
function* isWrittenBy(mac: RecordMac, { marked }: LoadedExecution): Sliced<boolean> {
  for (const fact of marked) {
    if (!isMarked(mac, fact)) return false
    yield
  }
  return true
}

export class ExecutionCache {
  readonly #log: EventLog["Service"]
  readonly #reader: LogReader
  readonly #state: SequencerState
  readonly #store: TraceLookup | undefined
  readonly #mac: RecordMac
  #progress: Progress
  #next: number | undefined
  #lookedAt = 0
  /** True once the store itself was seen to reach as far as `alk.progress` says. */
  #confirmed = false
  /** The view was being rebuilt at some time since this was last set to false. */
  #rebuilt = false

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
    this.#log = log
    this.#reader = reader
    this.#state = state
    this.#store = store
    this.#mac = mac
    this.#progress = noProgress(state.partition)
  }

  /** Load what the chunk needs, and look up which of its events the store has. */
  prepare(chunk: ReadonlyArray<ReceivedCommand>): Effect.Effect<PreparedTraces> {
    const commands = commandsOf(chunk)
    if (commands.length === 0) return Effect.succeed({ unloaded: NONE, storedEvents: NO_EVENTS })
    return this.#loadMissing(missingExecutionsOf(this.#state.traces, commands)).pipe(
      Effect.flatMap((unloaded) => {
        // One wait is enough.
        const store = unloaded === NONE ? this.#store : undefined
        return Effect.map(this.#lookUpEvents(commands, store), ({ executions, storedEvents }) => ({
          unloaded: { ...unloaded, executions: [...unloaded.executions, ...executions] },
          storedEvents
        }))
      })
    )
  }

  /** Load what of the executions that are due is not in memory. */
  readonly prepareDue: Effect.Effect<void> = Effect.suspend(() => {
    const inPart = this.#state.traces.dueInPart(nowMicros(), DUE_LOADED_MAX)
    const executions = inPart.map(({ executionId: id, tenantId }) => ({ tenantId, id }))
    return this.#store === undefined
      ? Effect.void
      : Effect.asVoid(this.#loadMissing({ executions, spans: [] }))
  })

  #loadMissing(missing: MissingExecutions): Effect.Effect<MissingExecutions> {
    const { executions, spans } = missing
    if (executions.length + spans.length === 0) return Effect.succeed(NONE)
    if (this.#store === undefined) {
      // Nothing was ever evicted: what is not in memory does not exist.
      return Effect.succeed(this.#state.evictedBelow === 0 ? NONE : missing)
    }
    const load = ({ load }: TraceLookup) => load(executions, spans)
    return this.#asked(this.#store, this.#state.evictedBelow, load).pipe(
      Effect.flatMap((loaded) => Effect.forEach(loaded, this.#checked)),
      this.#inTime,
      Effect.flatMap((loaded) => {
        if (Option.isNone(loaded)) return Effect.succeed(missing)
        const { value } = loaded
        return Effect.flatMap(
          inSlices(() => this.#taken(value)),
          (executions) =>
            // Treated as if the store had not answered: what it says can't be continued.
            executions.length === 0
              ? Effect.succeed(NONE)
              : Effect.as(Effect.logError(MESSAGE, { executions }), missing)
        )
      })
    )
  }

  /** Take what was loaded, and say of which executions it is not what was written. */
  *#taken(
    all: ReadonlyArray<{ readonly loaded: LoadedExecution; readonly isWritten: boolean }>
  ): Sliced<ReadonlyArray<string>> {
    const now = nowMicros()
    const wrong: Array<string> = []
    for (const { isWritten, loaded } of all) {
      const isTaken = isWritten && (yield* this.#state.traces.take(loaded, now))
      if (!isTaken) wrong.push(`${loaded.tenantId}/${loaded.executionId}`)
    }
    return wrong
  }

  /**
   * Which of the events that the duplicate window may have forgotten the store has; without one that
   * answers they are unknown.
   */
  #lookUpEvents(commands: ReadonlyArray<TraceCommand>, store: TraceLookup | undefined) {
    const { dedup, forgottenEvents, traces } = this.#state
    const { upTo } = forgottenEvents
    const holds = (key: string) => dedup.find(key) !== undefined
    const sought = upTo === 0 ? [] : soughtEventsOf(traces, commands, upTo, holds)
    if (sought.length === 0) return Effect.succeed({ executions: [], storedEvents: NO_EVENTS })
    const unknown = {
      executions: sought.map(({ executionId: id, tenantId }) => ({ tenantId, id })),
      storedEvents: NO_EVENTS
    }
    return store === undefined
      ? Effect.succeed(unknown)
      : Effect.map(this.#stored(store, sought, upTo), (storedEvents) =>
          storedEvents === undefined ? unknown : { executions: [], storedEvents }
        )
  }

  #stored(store: TraceLookup, sought: ReadonlyArray<SoughtEvents>, upTo: number) {
    return this.#asked(store, upTo, ({ storedEvents }) => storedEvents(sought)).pipe(
      Effect.flatMap((events) => inSlices(() => keysOf(this.#mac, events))),
      this.#inTime,
      Effect.flatMap((keys) =>
        Option.isSome(keys) && keys.value === undefined
          ? Effect.as(Effect.logError(MESSAGE, { events: sought.length }), undefined)
          : Effect.succeed(Option.getOrUndefined(keys))
      )
    )
  }

  /** None where the store does not answer in time. */
  readonly #inTime = <A, E>(answer: Effect.Effect<A, E>): Effect.Effect<Option.Option<A>> =>
    answer.pipe(
      Effect.timeoutOption(LOAD_TIMEOUT),
      Effect.catch((error) =>
        Effect.as(
          Effect.logWarning("executions could not be loaded", { error: String(error) }),
          Option.none<A>()
        )
      ),
      Effect.tap((found) =>
        Effect.sync(() => {
          if (Option.isNone(found)) this.#confirmed = false
        })
      )
    )

  /** Evicts what it may; the tombstones have to be written before anything else is. */
  readonly evict: Effect.Effect<ReadonlyArray<StateRecord>, LogUnavailable | OffsetOutOfRange> =
    Effect.suspend(() => {
      const now = nowMicros()
      const { traces } = this.#state
      if (now - this.#lookedAt < LOOK_MICROS || traces.size === 0) return Effect.succeed([])
      this.#lookedAt = now
      return this.#follow().pipe(
        Effect.map(() => {
          if (this.#progress.rebuilding) return []
          const leaving = traces.evictable(this.#progress.traces_next, now, IDLE_MICROS)
          if (leaving.length === 0) return []
          const { forgotten, records, size } = traces.evict(leaving)
          // The limit of one eviction: there may be more, so look again with the next chunk.
          if (size >= EVICTED_ENTRIES_MAX) this.#lookedAt = 0
          this.#state.evictedBelow = Math.max(this.#state.evictedBelow, forgotten)
          return records
        })
      )
    })

  readonly #checked = (loaded: LoadedExecution) =>
    Effect.map(
      inSlices(() => isWrittenBy(this.#mac, loaded)),
      (isWritten) => ({ loaded, isWritten })
    )

  /**
   * What the store answers, asked while it held everything that may have been forgotten: a view that
   * is dropped is said to be rebuilding before anything of it goes.
   */
  #asked<A>(store: TraceLookup, forgotten: number, ask: (store: TraceLookup) => StoreResult<A>) {
    return Effect.gen({ self: this }, function* () {
      for (;;) {
        yield* this.#caughtUp(store, forgotten)
        this.#rebuilt = false
        const answer = yield* ask(store)
        yield* this.#follow()
        if (!this.#rebuilt) return answer
      }
    })
  }

  /** Until the store shows everything that may have been forgotten, up to an offset of `alk.traces`. */
  readonly #caughtUp = Effect.fnUntraced(
    { self: this },
    function* (store: TraceLookup, forgotten: number) {
      const { partition } = this.#state
      for (;;) {
        yield* this.#follow()
        const { rebuilding, traces_next } = this.#progress
        if (!rebuilding && traces_next >= forgotten) {
          if (this.#confirmed) return
          // `alk.progress` does not show that the store was emptied from outside.
          const last = yield* store.position(partition)
          this.#confirmed = (last?.offset ?? -1) + 1 >= forgotten
          if (this.#confirmed) return
        }
        yield* Effect.sleep(CATCH_UP_INTERVAL_MS)
      }
    }
  )

  /** Read `alk.progress` to its end. */
  #follow() {
    const { partition } = this.#state
    const log = this.#log
    const bounds = log.bounds("progress", partition)
    return Effect.flatMap(bounds, ({ end, start }) => {
      const offset = Math.max(start, this.#next ?? start)
      if (offset >= end) return Effect.void
      const position = { topic: "progress" as const, partition, offset }
      return scanEach(this.#reader, position, end, (record) => {
        this.#progress = progressAfter(this.#progress, record)
        this.#rebuilt ||= this.#progress.rebuilding
      }).pipe(
        Effect.andThen(
          Effect.sync(() => {
            this.#next = end
          })
        )
      )
    })
  }
}
