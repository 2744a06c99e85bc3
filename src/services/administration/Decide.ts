/**
 * Commands of the service's own: written, and waited for until the sequencer has decided. They
 * carry no Idempotency-Key, so the decision is always a receipt.
 */
import { type Duration, Effect, Option } from "effect"
import { Receipts } from "../../actors/follower/Receipts.ts"
import type { Command } from "../../domain/records/Command.ts"
import { LogUnavailable } from "../../ports/EventLog.ts"
import { CommandLog } from "../commands/CommandLog.ts"
import { withdraw } from "../ingest/Ingest.ts"

/** Succeeds when the command is durable; `operation` names it where that fails. */
export const submitted = Effect.fnUntraced(function* (command: Command, operation: string) {
  const commands = yield* CommandLog
  yield* commands
    .submit(command)
    .pipe(
      Effect.catchTag(["CommandLogBusy", "CommandTooLarge"], (cause) =>
        Effect.fail(new LogUnavailable({ operation, cause }))
      )
    )
})

/** The receipt of the command, or none if no sequencer has decided in time: it may still happen. */
export const decided = Effect.fnUntraced(function* (
  command: Command,
  operation: string,
  within: Duration.Input
) {
  const receipts = yield* Receipts
  const expected = yield* receipts.expect(command.attempt)
  yield* submitted(command, operation).pipe(Effect.onError(() => withdraw(expected)))
  const decision = yield* Effect.timeoutOption(expected, within)
  if (Option.isNone(decision)) return Option.none()
  if (decision.value.kind !== "outcome") return yield* Effect.die("a command without a key")
  return Option.some(decision.value.receipt)
})
