/** How a question about checkpoints and proofs may fail. */
import { Effect, Schema } from "effect"
import type { LogUnavailable } from "../../ports/EventLog.ts"
import type { StoreUnavailable } from "../../ports/EventStore.ts"

/** What is asked for can't be proven: it is not there, or not within the checkpoint. */
export class ProofRefused extends Schema.TaggedError<ProofRefused>()("ProofRefused", {
  code: Schema.Literals(["not_found", "invalid_range", "pruned"]),
  /** The parameter at fault. */
  field: Schema.optionalKey(Schema.String),
  message: Schema.String
}) {}

/**
 * What the store holds does not lead to the signed checkpoint, or the checkpoint in the store was
 * not signed by this service: one of the two was changed. Never answered with a proof.
 */
export class CheckpointMismatch extends Schema.TaggedError<CheckpointMismatch>()(
  "CheckpointMismatch",
  { tree: Schema.String, treeSize: Schema.Int, reason: Schema.String }
) {
  override get message(): string {
    return `checkpoint_mismatch: the checkpoint of size ${this.treeSize}: ${this.reason}`
  }
}

/** The sequencer did not sign in time; it may still do so. */
export class CheckpointTimedOut extends Schema.TaggedError<CheckpointTimedOut>()(
  "CheckpointTimedOut",
  { message: Schema.String }
) {}

export type CheckpointFailure =
  | CheckpointMismatch
  | CheckpointTimedOut
  | LogUnavailable
  | ProofRefused
  | StoreUnavailable

/** Logs that what is stored and what was signed differ, and fails with it. */
export const mismatch = Effect.fnUntraced(function* (
  tree: string,
  treeSize: number,
  reason: string
) {
  const failure = new CheckpointMismatch({ tree, treeSize, reason })
  yield* Effect.logError(failure.message, { tree })
  return yield* failure
})
