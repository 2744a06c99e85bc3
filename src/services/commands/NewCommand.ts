/**
 * Commands of the service's own, and the one way to wait for what a sequencer decides on a command.
 */
import { Effect } from "effect"
import type { Decision, Receipts } from "../../actors/follower/Receipts.ts"
import { makeReceiptId, uuidv7 } from "../../domain/Identifiers.ts"
import type { Command, CommandKind } from "../../domain/records/Command.ts"
import { EMPTY_BATCH } from "../../domain/records/EventBatch.ts"
import { currentTime } from "../../domain/Timestamp.ts"
import type { CommandLog } from "./CommandLog.ts"

/** A command without items, with a receipt id of its own; `secret` is `ALK_SECRET`. */
export const newCommand = (kind: CommandKind, secret: string, tenantId: string): Command => ({
  kind,
  tenantId,
  receiptId: makeReceiptId(secret, tenantId, uuidv7()),
  attempt: crypto.randomUUID(),
  receivedAt: currentTime(),
  events: EMPTY_BATCH,
  errors: [],
  warnings: []
})

/** Waiting for no time drops the registration of an attempt that was not written. */
const withdraw = (decision: Effect.Effect<Decision>): Effect.Effect<void> =>
  Effect.asVoid(Effect.timeoutOption(decision, 0))

/** Succeeds when the command is durable, with the effect that waits for the decision on it. */
export const submitForDecision = Effect.fnUntraced(function* (
  commands: CommandLog["Service"],
  receipts: Receipts["Service"],
  command: Command,
  /** A partition other than the tenant's, for probes. */
  partition?: number
) {
  const decision = yield* receipts.expect(command.attempt)
  yield* commands.submit(command, partition).pipe(Effect.onError(() => withdraw(decision)))
  return decision
})
