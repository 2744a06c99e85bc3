/**
 * A probe: a command that changes nothing, sent through the sequencer and the projection of one
 * partition. What works for it works for a client's write; no state is trusted.
 */
import { Effect, Ref } from "effect"
import { Receipts } from "../../actors/follower/Receipts.ts"
import { ProjectionProgress } from "../../actors/log/ProjectionProgress.ts"
import { PROBE_TENANT } from "../../domain/Identifiers.ts"
import type { Command } from "../../domain/records/Command.ts"
import { EMPTY_BATCH } from "../../domain/records/EventBatch.ts"
import { currentTime } from "../../domain/Timestamp.ts"
import { CommandLog } from "./CommandLog.ts"
import { submitForDecision } from "./NewCommand.ts"

/** Time that a probe may take through log, sequencer and projection. */
export const PROBE_TIMEOUT = "4 seconds"

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

/** How far a probe came on one partition: what it waits for, or `ready`. */
export type Reach = "log" | "sequencer" | "projection" | "ready"

/** Sends probes to partitions; each ends within PROBE_TIMEOUT. */
export const makeProbe = Effect.gen(function* () {
  const commands = yield* CommandLog
  const receipts = yield* Receipts
  const projection = yield* ProjectionProgress
  return Effect.fnUntraced(function* (partition: number) {
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
})
