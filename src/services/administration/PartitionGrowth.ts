/**
 * Adds partitions to the topics of a service that runs. Step by step, each written to the registry
 * and to the log of the system tenant, so that it may be interrupted anywhere and done again:
 * written down; topics grown; opened, from when on every process works on them; spread, from when
 * on new tenants get them. Tenants that are there stay where they are.
 */
import { Context, Effect, Layer, Schedule, Schema } from "effect"
import { ADMIN_KEY_ID, type AdminRefused, type AdminTimedOut } from "../../actors/follower/Keys.ts"
import { RegistryView } from "../../actors/follower/LogFollower.ts"
import type { Receipts } from "../../actors/follower/Receipts.ts"
import type { ProjectionProgress } from "../../actors/log/ProjectionProgress.ts"
import { type PartitionedTopic, partitionedTopics } from "../../domain/records/Topics.ts"
import {
  DATA_VERSION,
  type GrowthStep,
  PARTITIONS_MAX
} from "../../domain/registry/RegistryEntry.ts"
import { currentTime } from "../../domain/Timestamp.ts"
import { EventLog, type LogUnavailable } from "../../ports/EventLog.ts"
import type { CommandLog } from "../commands/CommandLog.ts"
import { makeProbe } from "../commands/Probe.ts"
import { dataVersionOf } from "./DataVersions.ts"
import { SystemAuditLog } from "./SystemAuditLog.ts"

/** The topics can't get so many partitions. */
export class PartitionsRefused extends Schema.TaggedError<PartitionsRefused>()(
  "PartitionsRefused",
  { message: Schema.String }
) {}

/** Times that the brokers are asked for the leaders of new partitions, and the time between. */
const whileElected = Schedule.spaced("200 millis").pipe(Schedule.upTo({ times: 50 }))

/** How many partitions there are, and how far a growth is. */
export interface PartitionsShown {
  /** Those that every process works on. */
  readonly partitions: number
  /** Numbers over which new tenants were spread; that of now is the last one. */
  readonly counts: ReadonlyArray<number>
  /** What a growth that has not come to its end goes to. */
  readonly growingTo: number | undefined
  readonly topics: ReadonlyArray<{ readonly topic: PartitionedTopic; readonly partitions: number }>
}

export interface PartitionsAdded extends PartitionsShown {
  /** Partitions on which no sequencer, or no projection, works yet: to be asked again. */
  readonly waitingFor: ReadonlyArray<number>
}

type Failure = PartitionsRefused | AdminRefused | AdminTimedOut | LogUnavailable

export class PartitionGrowth extends Context.Service<
  PartitionGrowth,
  {
    readonly show: Effect.Effect<PartitionsShown, LogUnavailable>
    /** Goes as far as it can; asked again, it goes on from there. */
    add(to: number): Effect.Effect<PartitionsAdded, Failure>
    /** Whether it could be done; nothing is written. */
    check(to: number): Effect.Effect<PartitionsShown, PartitionsRefused | LogUnavailable>
  }
>()("alk/PartitionGrowth") {}

const actions = {
  begin: "partitions.growth_begun",
  open: "partitions.added",
  spread: "partitions.growth_completed"
} as const satisfies Record<GrowthStep, string>

const refuse = (message: string) => Effect.fail(new PartitionsRefused({ message }))

/** Why the topics can't be given so many, or undefined if they can. */
const refusalOf = (
  { counts, growingTo, partitions, topics }: PartitionsShown,
  to: number
): string | undefined => {
  const spread = counts.at(-1)!
  if (to > PARTITIONS_MAX) return `must be at most ${PARTITIONS_MAX}`
  if (growingTo !== undefined && growingTo !== to) {
    return `must be ${growingTo}: a growth to that number is under way, finish it first`
  }
  if (to < spread) return `must not be less than ${spread}: topics never lose partitions`
  const most = growingTo ?? partitions
  const odd = topics.find((one) => one.partitions < partitions || one.partitions > most)
  return odd === undefined
    ? undefined
    : `the topics have to be of ${partitions} partitions, but ${odd.topic} has ${odd.partitions}: `
        + "it was changed by hand"
}

/** The step in the registry and in the log, or in neither. */
const writer =
  (auditLog: SystemAuditLog["Service"], program: string) =>
  (step: GrowthStep, from: number, to: number) => {
    const changed_at = currentTime()
    const data_version = dataVersionOf(program, DATA_VERSION)
    return auditLog.record(
      { op: "grow_partitions", step, from, to, changed_at, data_version },
      {
        actor: ADMIN_KEY_ID,
        action: actions[step],
        resource: { type: "partitions", id: "topics" },
        metadata: { from, to }
      }
    )
  }

const added = (from: number, to: number): ReadonlyArray<number> =>
  Array.from({ length: to - from }, (_, at) => from + at)

/** The brokers have leaders for all that were added. */
const elected = (log: EventLog["Service"], from: number, to: number) =>
  log
    .ends(
      partitionedTopics.flatMap((topic) =>
        added(from, to).map((partition) => ({ topic, partition }))
      )
    )
    .pipe(Effect.retry(whileElected), Effect.asVoid)

const make = Effect.fnUntraced(function* (program: string) {
  const log = yield* EventLog
  const view = yield* RegistryView
  const probe = yield* makeProbe
  const write = writer(yield* SystemAuditLog, program)
  const placement = yield* log.placement

  const show = Effect.gen(function* () {
    yield* view.caughtUp
    const found = yield* log.counts
    const { counts, growing_to, topics } = placement.record ?? {
      counts: placement.counts,
      topics: placement.partitions,
      growing_to: undefined
    }
    return {
      partitions: topics,
      counts,
      growingTo: growing_to ?? (topics > counts.at(-1)! ? topics : undefined),
      topics: partitionedTopics.map((topic) => ({ topic, partitions: found.get(topic) ?? 0 }))
    } satisfies PartitionsShown
  })

  const check = Effect.fnUntraced(function* (to: number) {
    const shown = yield* show
    const refusal = refusalOf(shown, to)
    return refusal === undefined ? shown : yield* refuse(refusal)
  })

  const add = Effect.fn("PartitionGrowth.add")(function* (to: number) {
    const { counts, growingTo, partitions } = yield* check(to)
    const from = counts.at(-1)!
    if (from === to) return { ...(yield* show), waitingFor: [] }
    if (growingTo === undefined) yield* write("begin", from, to)
    if (partitions < to) {
      yield* log.addPartitions(to)
      yield* elected(log, from, to)
      yield* write("open", from, to)
    }
    // What is not worked on yet is looked at again when the caller asks again.
    const reached = yield* Effect.forEach(added(from, to), probe, { concurrency: "unbounded" })
    const waitingFor = added(from, to).filter((_, at) => reached[at] !== "ready")
    if (waitingFor.length === 0) yield* write("spread", from, to)
    return { ...(yield* show), waitingFor }
  })

  return PartitionGrowth.of({ show, check, add })
})

/** `program` is the version of alk, for who starts an earlier one later. */
export const layerPartitionGrowth = (
  program: string
): Layer.Layer<
  PartitionGrowth,
  never,
  EventLog | RegistryView | SystemAuditLog | CommandLog | Receipts | ProjectionProgress
> => Layer.effect(PartitionGrowth, make(program))
