/**
 * Readiness by trying: a probe command goes through every partition's sequencer and projection, and
 * the store answers a query. What works for the probe works for a client's write; no state is trusted.
 */
import { Clock, Effect, Exit, Layer, Option, Ref, Semaphore } from "effect"
import { Following } from "../../actors/follower/LogFollower.ts"
import type { Receipts } from "../../actors/follower/Receipts.ts"
import type { ProjectionProgress } from "../../actors/log/ProjectionProgress.ts"
import { EventLog } from "../../ports/EventLog.ts"
import { EventStore } from "../../ports/EventStore.ts"
import type { CommandLog } from "../../services/commands/CommandLog.ts"
import { makeProbe, PROBE_TIMEOUT, type Reach } from "../../services/commands/Probe.ts"
import { Readiness, type ReadinessReport } from "./Readiness.ts"

/** Milliseconds that an answer is good for: a probe costs a transaction per partition. */
const FRESH_MS = 2_000

const make = Effect.fnUntraced(function* (roles: ReadonlyArray<string>) {
  const log = yield* EventLog
  const probe = yield* makeProbe
  const following = yield* Following
  const store = yield* EventStore
  const look = Effect.gen(function* () {
    const partitions = Array.from({ length: log.partitions }, (_, partition) => partition)
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
