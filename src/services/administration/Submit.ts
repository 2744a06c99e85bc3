/**
 * Commands of the service's own: written, and waited for until the sequencer has decided. They
 * carry no Idempotency-Key, so the decision is always a receipt.
 */
import { type Duration, Effect, Option } from "effect"
import { Receipts } from "../../actors/follower/Receipts.ts"
import type { Command } from "../../domain/records/Command.ts"
import { LogUnavailable } from "../../ports/EventLog.ts"
import { CommandLog, type CommandLogBusy, type CommandTooLarge } from "../commands/CommandLog.ts"
import { submitForDecision } from "../commands/NewCommand.ts"

/** Own commands are small and rare: one that can't be written is the log's failure. */
const asUnavailable =
  (operation: string) =>
  <A, R>(
    written: Effect.Effect<A, CommandLogBusy | CommandTooLarge | LogUnavailable, R>
  ): Effect.Effect<A, LogUnavailable, R> =>
    Effect.catchTag(written, ["CommandLogBusy", "CommandTooLarge"], (cause) =>
      Effect.fail(new LogUnavailable({ operation, cause }))
    )

/** Succeeds when the command is durable; `operation` names it where that fails. */
export const submitted = (command: Command, operation: string) =>
  CommandLog.use((commands) => commands.submit(command).pipe(asUnavailable(operation)))

/** The receipt of the command, or none if no sequencer has decided in time: it may still happen. */
export const decided = Effect.fnUntraced(function* (
  command: Command,
  operation: string,
  within: Duration.Input
) {
  const decision = yield* submitForDecision(yield* CommandLog, yield* Receipts, command).pipe(
    asUnavailable(operation),
    Effect.flatMap(Effect.timeoutOption(within))
  )
  if (Option.isNone(decision)) return Option.none()
  if (decision.value.kind !== "outcome") return yield* Effect.die("a command without a key")
  return Option.some(decision.value.receipt)
})
