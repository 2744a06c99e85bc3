/**
 * What a process looks at from outside of its parts, for `/metrics`: whether the broker and the store
 * answer, which partitions it works on, and how far its sequencers and projections are behind. A
 * part that hangs can't say so itself.
 */
import { Effect, Exit, Metric, Option, Schedule, type Scope } from "effect"
import { gaugeOf } from "../domain/metrics/Metrics.ts"
import type { EventLog, LogUnavailable } from "../ports/EventLog.ts"
import type { EventStore } from "../ports/EventStore.ts"

const INTERVAL = "5 seconds"
/** Time after which a part that has not answered counts as unreachable. */
const ANSWER_TIMEOUT = "5 seconds"

const brokerReachable = gaugeOf("alk_broker_reachable")
const storeReachable = gaugeOf("alk_store_reachable")
const allPartitions = gaugeOf("alk_partitions")

/** How far a role is: its partitions, and the next offset of each that it has looked at. */
export interface RoleProgress {
  readonly running: Effect.Effect<ReadonlySet<number>>
  /** By partition; also of one that it does not get on with. */
  readonly reached: () => ReadonlyMap<number, number>
}

const roleMetrics = {
  sequencer: {
    topic: "commands",
    partitions: gaugeOf("alk_sequencer_partitions"),
    lag: gaugeOf("alk_sequencer_lag_commands")
  },
  projection: {
    topic: "events",
    partitions: gaugeOf("alk_projection_partitions"),
    lag: gaugeOf("alk_projection_lag_records")
  }
} as const

export type WatchedRole = keyof typeof roleMetrics

/** Whether something answers in time. */
const answers = <A, E>(question: Effect.Effect<A, E>) =>
  question.pipe(
    Effect.timeoutOption(ANSWER_TIMEOUT),
    Effect.exit,
    Effect.map((exit) => (Exit.isSuccess(exit) ? exit.value : Option.none<A>()))
  )

const watchBroker = Effect.fnUntraced(function* (log: EventLog["Service"]) {
  yield* Metric.update(allPartitions, log.partitions)
  const answer = yield* answers(log.ends([{ topic: "commands", partition: 0 }]))
  yield* Metric.update(brokerReachable, Option.isSome(answer) ? 1 : 0)
})

const watchStore = Effect.fnUntraced(function* (store: EventStore["Service"]) {
  const answer = yield* answers(store.ping)
  yield* Metric.update(storeReachable, Option.isSome(answer) ? 1 : 0)
})

/** `shown`: partitions that have had a lag, of which some may be another process's by now. */
const watchRole = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  role: WatchedRole,
  { reached, running }: RoleProgress,
  shown: Set<number>
): Effect.fn.Return<void, LogUnavailable> {
  const { lag, partitions, topic } = roleMetrics[role]
  yield* Metric.update(partitions, (yield* running).size)
  const behind = [...reached()]
  const ends = yield* log.ends(behind.map(([partition]) => ({ topic, partition })))
  const lags = new Map([...shown].map((partition) => [partition, 0]))
  for (const [at, [partition]] of behind.entries()) {
    // Asked again: it may have moved on while the ends were looked up.
    const next = reached().get(partition)
    if (next !== undefined) lags.set(partition, Math.max(0, ends[at]! - next))
    shown.add(partition)
  }
  for (const [partition, records] of lags) {
    yield* Metric.update(Metric.withAttributes(lag, { partition: String(partition) }), records)
  }
})

/** What there is to be looked at. */
export interface Watched {
  readonly log: EventLog["Service"]
  /** Undefined where the process does without the store. */
  readonly store: EventStore["Service"] | undefined
  readonly roles: Readonly<Partial<Record<WatchedRole, RoleProgress>>>
}

/** Looks for as long as the scope is open. */
export const watchParts = ({
  log,
  roles,
  store
}: Watched): Effect.Effect<void, never, Scope.Scope> => {
  const looks = [
    watchBroker(log),
    ...(store === undefined ? [] : [watchStore(store)]),
    ...(Object.entries(roles) as ReadonlyArray<[WatchedRole, RoleProgress]>).map(
      ([role, progress]) => {
        const shown = new Set<number>()
        return Effect.suspend(() => answers(watchRole(log, role, progress, shown)))
      }
    )
  ]
  return Effect.asVoid(
    Effect.forEach(looks, (look) =>
      Effect.forkScoped(Effect.repeat(look, Schedule.spaced(INTERVAL)))
    )
  )
}
