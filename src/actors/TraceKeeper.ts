/**
 * Keeps a sequencer's memory of executions small and whole: loads from the store what a chunk names
 * and memory lacks, and lets go of what has ended or rests once the store shows it. Follows
 * `alk.progress` of its partition, because only what is visible there may be forgotten.
 */
import { Effect, Option } from "effect"
import { nowMicros } from "../domain/Timestamp.ts"
import type { EventLog, LogReader, LogUnavailable, OffsetOutOfRange } from "../ports/EventLog.ts"
import type { LoadedExecution, TraceStore } from "../ports/TraceStore.ts"
import { scan } from "./PartitionScan.ts"
import type { SequencerState, StateRecord } from "./SequencerState.ts"
import type { Arrival } from "./SequencerStep.ts"
import { wantedOf, type TraceCommand, type Wanted } from "./TraceWanted.ts"
import { noProgress, type Progress } from "./Visibility.ts"

/** Time that a chunk waits for the store: audit commands behind it wait too. */
const LOAD_TIMEOUT = "2 seconds"
/** Milliseconds between two looks at a view that has not caught up. */
const CATCH_UP_INTERVAL_MS = 20
/** Microseconds after which an execution that nobody has named leaves memory, and between looks. */
const IDLE_MICROS = 10 * 60 * 1_000_000
const LOOK_MICROS = 1_000_000

/** Asks the store; undefined in a process that has none. */
export type LoadTraces = TraceStore["Service"]["load"]

const NOTHING: Wanted = { executions: [], spans: [] }

const commandsOf = (chunk: ReadonlyArray<Arrival>): ReadonlyArray<TraceCommand> =>
  chunk.flatMap((arrival) =>
    "command" in arrival && arrival.command.traces !== undefined
      ? [{ tenantId: arrival.command.tenantId, operations: arrival.command.traces }]
      : []
  )

export class TraceKeeper {
  readonly #log: EventLog["Service"]
  readonly #reader: LogReader
  readonly #state: SequencerState
  readonly #load: LoadTraces | undefined
  #progress: Progress
  #next: number | undefined
  #lookedAt = 0

  /** `reader` is this keeper's alone. */
  constructor(
    log: EventLog["Service"],
    reader: LogReader,
    state: SequencerState,
    load: LoadTraces | undefined
  ) {
    this.#log = log
    this.#reader = reader
    this.#state = state
    this.#load = load
    this.#progress = noProgress(state.partition)
  }

  /** Load what the chunk needs; what comes back could not be loaded. */
  prepare(chunk: ReadonlyArray<Arrival>): Effect.Effect<Wanted> {
    const commands = commandsOf(chunk)
    const wanted = commands.length === 0 ? NOTHING : wantedOf(this.#state.traces, commands)
    const { executions, spans } = wanted
    if (executions.length + spans.length === 0) return Effect.succeed(NOTHING)
    const load = this.#load
    if (load === undefined) {
      // Nothing was ever forgotten: what memory lacks does not exist.
      return Effect.succeed(this.#state.tracesForgotten === 0 ? NOTHING : wanted)
    }
    return this.#caughtUp().pipe(
      Effect.andThen(load(executions, spans)),
      Effect.timeoutOption(LOAD_TIMEOUT),
      Effect.catch((error) =>
        Effect.as(
          Effect.logWarning("executions could not be loaded", { error: String(error) }),
          Option.none<ReadonlyArray<LoadedExecution>>()
        )
      ),
      Effect.map((loaded) => {
        if (Option.isNone(loaded)) return wanted
        const now = nowMicros()
        for (const execution of loaded.value) this.#state.traces.take(execution, now)
        return NOTHING
      })
    )
  }

  /** Tombstones of what may leave by now; to be written before anything else is. */
  readonly leave: Effect.Effect<
    ReadonlyArray<StateRecord>,
    LogUnavailable | OffsetOutOfRange
  > = Effect.suspend(() => {
    const now = nowMicros()
    const { traces } = this.#state
    if (now - this.#lookedAt < LOOK_MICROS || traces.size === 0) return Effect.succeed([])
    this.#lookedAt = now
    return this.#follow().pipe(
      Effect.map(() => {
        if (this.#progress.rebuilding) return []
        const leaving = traces.evictable(this.#progress.traces_next, now, IDLE_MICROS)
        if (leaving.length === 0) return []
        const { forgotten, records } = traces.evict(leaving)
        this.#state.tracesForgotten = Math.max(this.#state.tracesForgotten, forgotten)
        return records
      })
    )
  })

  /** Until the store shows everything that may have been forgotten. */
  #caughtUp() {
    const { tracesForgotten } = this.#state
    const isThere = () =>
      !this.#progress.rebuilding && this.#progress.traces_next >= tracesForgotten
    return Effect.suspend(() => this.#follow()).pipe(
      Effect.andThen(
        Effect.suspend(() => (isThere() ? Effect.void : Effect.sleep(CATCH_UP_INTERVAL_MS)))
      ),
      Effect.repeat({ until: isThere })
    )
  }

  /** Read `alk.progress` to its end. */
  #follow() {
    const { partition } = this.#state
    const log = this.#log
    const bounds = log.bounds("progress", partition)
    return Effect.flatMap(bounds, ({ end, start }) => {
      const offset = Math.max(start, this.#next ?? start)
      if (offset >= end) return Effect.void
      return scan(this.#reader, { topic: "progress", partition, offset }, end, (records) => {
        for (const { value } of records) {
          if (value === null) continue
          const progress = JSON.parse(value.toString()) as Progress
          this.#progress = { ...noProgress(partition), ...progress }
        }
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
