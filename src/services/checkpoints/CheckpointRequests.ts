/** Asks the sequencer for a checkpoint of a chain as it is now. */
import { Deferred, Effect, Option } from "effect"
import type { Receipts } from "../../actors/follower/Receipts.ts"
import { chainOfTree } from "../../domain/chain/Chains.ts"
import type { CheckpointRecord } from "../../domain/chain/Checkpoint.ts"
import { decided } from "../administration/Submit.ts"
import type { CommandLog } from "../commands/CommandLog.ts"
import { newCommand } from "../commands/NewCommand.ts"
import { type CheckpointFailure, CheckpointTimedOut, ProofRefused } from "./CheckpointFailures.ts"
import type { KnownCheckpoints } from "./KnownCheckpoints.ts"

/** Time that a request for a checkpoint waits for the sequencer. */
const DECISION_TIMEOUT = "10 seconds"

const sign = Effect.fnUntraced(function* (known: KnownCheckpoints, secret: string, tree: string) {
  const { chain, tenantId } = chainOfTree(tree)
  const receipt = yield* decided(
    newCommand("checkpoint", secret, tenantId),
    "checkpoint",
    DECISION_TIMEOUT
  )
  if (Option.isNone(receipt)) {
    return yield* new CheckpointTimedOut({ message: "no sequencer has signed in time" })
  }
  const { checkpoint: ofEvents, trace_checkpoint: ofTraces } = receipt.value
  for (const made of [ofEvents, ofTraces]) {
    if (made !== undefined) known.add(made)
  }
  const checkpoint = chain === "events" ? ofEvents : ofTraces
  if (checkpoint === undefined) {
    const message = "no checkpoint of this chain can be made: its start has left the log"
    return yield* new ProofRefused({ code: "not_found", message })
  }
  return yield* known.checked(tree, checkpoint)
})

/** One command at a time and tree; requests that come meanwhile share its answer. */
export const makeCheckpointRequests = Effect.fnUntraced(function* (
  known: KnownCheckpoints,
  secret: string
) {
  const context = yield* Effect.context<CommandLog | Receipts>()
  const inFlight = new Map<string, Deferred.Deferred<CheckpointRecord, CheckpointFailure>>()
  return (tree: string): Effect.Effect<CheckpointRecord, CheckpointFailure> =>
    Effect.suspend(() => {
      const running = inFlight.get(tree)
      if (running !== undefined) return Deferred.await(running)
      const answer = Deferred.makeUnsafe<CheckpointRecord, CheckpointFailure>()
      inFlight.set(tree, answer)
      return sign(known, secret, tree).pipe(
        Effect.provideContext(context),
        Effect.ensuring(Effect.sync(() => inFlight.delete(tree))),
        Deferred.into(answer),
        // Not a child: others may wait for it when the first one has gone.
        Effect.forkDetach,
        Effect.andThen(Deferred.await(answer))
      )
    })
})
