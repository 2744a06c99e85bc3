/**
 * Every rewriting of a broker's files is an act in the log of the system tenant: when, and how many
 * records of which topics. It is logged by the start that follows, under the id of the rewriting, so
 * what is logged twice is there once.
 */
import { Effect, type Redacted } from "effect"
import { type ForgettingRun, forgottenTopics } from "../../domain/forgetting/ForgettingRun.ts"
import { submitted } from "./Submit.ts"
import { type SystemAct, systemCommand } from "./SystemAuditLog.ts"

/** What the log says of a rewriting; `actor` is the service's name. */
export const forgettingAct = (actor: string, run: ForgettingRun): SystemAct => {
  const uncertain = run.segments.filter(({ is_replaced }) => !is_replaced).length
  return {
    id: `forgetting-${run.id}`,
    actor,
    action: "topics.forgotten",
    resource: { type: "topics", id: run.id },
    metadata: {
      started_at: run.started_at,
      ended_at: run.ended_at,
      topics: forgottenTopics(run),
      // Of a rewriting that was ended and not run again before the start.
      ...(uncertain === 0 ? {} : { segments_uncertain: uncertain })
    }
  }
}

/** Succeeds when the log has all of them. */
export const logForgetting = Effect.fn("ForgettingActs.log")(function* (
  secret: Redacted.Redacted,
  actor: string,
  runs: ReadonlyArray<ForgettingRun>
) {
  for (const run of runs) {
    yield* submitted(systemCommand(secret, forgettingAct(actor, run)), "log what was forgotten")
  }
})
