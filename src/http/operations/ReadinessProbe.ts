/**
 * Readiness by trying: a probe command goes through every partition's sequencer and projection, and
 * the store answers a query. What works for the probe works for a client's write; no state is trusted.
 */
import { Clock, Effect, Exit, Layer, Option, Ref, Semaphore } from "effect"
import { Following } from "../../actors/follower/LogFollower.ts"
import { Receipts } from "../../actors/follower/Receipts.ts"
import { ProjectionProgress } from "../../actors/log/ProjectionProgress.ts"
import type { Command } from "../../domain/records/Command.ts"
import { EMPTY_BATCH } from "../../domain/records/EventBatch.ts"
import { currentTime } from "../../domain/Timestamp.ts"
import { EventLog } from "../../ports/EventLog.ts"
import { EventStore } from "../../ports/EventStore.ts"
import { CommandLog } from "../../services/commands/CommandLog.ts"
import { submitForDecision } from "../../services/commands/NewCommand.ts"
import { Readiness, type ReadinessReport } from "./Readiness.ts"

/** Time that a probe may take through log, sequencer and projection. */
const PROBE_TIMEOUT = "4 seconds"
/** Milliseconds that an answer is good for: a probe costs a transaction per partition. */
const FRESH_MS = 2_000
/** Owner of the probes' receipts. No tenant can have this name, and no event is ever appended. */
const PROBE_TENANT = "_probe"

const probeCommand = (attempt: string): Command => ({
  kind: "probe",
  tenantId: PROBE_TENANT,
  receiptId: attempt,
  attempt,
  receivedAt: currentTime(),
  events: EMPTY_BATCH,
  errors: [],
  warnings: []
})

/** How far a probe came on one partition. */
type Reach = "log" | "sequencer" | "projection" | "ready"

const make = Effect.fnUntraced(function* (roles: ReadonlyArray<string>) {
  const log = yield* EventLog
  const commands = yield* CommandLog
  const receipts = yield* Receipts
  const projection = yield* ProjectionProgress
  const following = yield* Following
  const store = yield* EventStore
  const partitions = Array.from({ length: log.partitions }, (_, partition) => partition)

  const probe = Effect.fnUntraced(function* (partition: number) {
    const reach = yield* Ref.make<Reach>("log")
    const attempt = crypto.randomUUID()
    yield* Effect.gen(function* () {
      const command = probeCommand(attempt)
      const decided = yield* submitForDecision(commands, receipts, command, partition)
      yield* Ref.set(reach, "sequencer")
      const decision = yield* decided
      if (decision.kind !== "outcome") return
      yield* Ref.set(reach, "projection")
      const { receipt, receiptOffset } = decision
      yield* projection.awaitOffset(partition, {
        events: receipt.events_next,
        receipts: receiptOffset + 1
      })
      yield* Ref.set(reach, projection.partition(partition).rebuilding ? "projection" : "ready")
    }).pipe(Effect.timeoutOption(PROBE_TIMEOUT), Effect.exit)
    return yield* Ref.get(reach)
  })

  const look = Effect.gen(function* () {
    const reached = yield* Effect.forEach(partitions, probe, { concurrency: "unbounded" })
    const pinged = yield* Effect.exit(store.ping.pipe(Effect.timeoutOption(PROBE_TIMEOUT)))
    const storeAnswers = Exit.isSuccess(pinged) && Option.isSome(pinged.value)
    const stuck = (reach: Reach) => partitions.filter((partition) => reached[partition] === reach)
    const part = (name: Reach) => {
      const waiting = stuck(name)
      return waiting.length === 0 ? { state: "ready" } : { state: "not ready", partitions: waiting }
    }
    const interrupted = following.interrupted()
    const follows = interrupted === undefined
    const ready = storeAnswers && follows && reached.every((reach) => reach === "ready")
    const report: ReadinessReport = {
      ready,
      body: {
        status: ready ? "ready" : "not ready",
        kafka: { ...part("log"), bootstrap: log.bootstrap },
        sequencer: part("sequencer"),
        projection: part("projection"),
        follower: follows ? { state: "ready" } : { state: "not ready", reason: interrupted },
        clickhouse: { state: storeAnswers ? "ready" : "not ready" },
        roles
      }
    }
    return report
  })

  const last = yield* Ref.make<
    { readonly at: number; readonly report: ReadinessReport } | undefined
  >(undefined)
  const one = yield* Semaphore.make(1)
  const check = Effect.gen(function* () {
    const known = yield* Ref.get(last)
    if (known !== undefined && (yield* Clock.currentTimeMillis) - known.at < FRESH_MS) {
      return known.report
    }
    const report = yield* look
    yield* Ref.set(last, { at: yield* Clock.currentTimeMillis, report })
    return report
  }).pipe(one.withPermits(1))
  return Readiness.of({ check })
})

/** `roles` are those of this process, shown as they are. */
export const layerReadiness = (
  roles: ReadonlyArray<string>
): Layer.Layer<
  Readiness,
  never,
  EventLog | CommandLog | Receipts | ProjectionProgress | Following | EventStore
> => Layer.effect(Readiness, make(roles))
