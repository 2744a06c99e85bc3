/** Trying again what failed for a reason that passes: a lost connection, a leader that moved. */
import { Effect, Schedule } from "effect"
import { isRetriable, type RawCluster } from "./KafkaClient.ts"

/** While leaders move: for about five seconds, soon at first. */
export const WHILE_LEADERS_MOVE = Schedule.min([
  Schedule.exponential("25 millis"),
  Schedule.spaced("500 millis")
]).pipe(Schedule.upTo({ times: 14 }))

/** Twice as long each time, from 4 up to 500 milliseconds. */
const BACK_OFF = Schedule.min([Schedule.exponential("4 millis"), Schedule.spaced("500 millis")])

/**
 * The outcome of `attempt`, repeated for as long as `shouldContinue` allows and what it rejects with
 * is retriable. The cluster's metadata is read again before each repetition.
 */
export const retryWhile = <A>(
  cluster: Pick<RawCluster, "refreshMetadata">,
  shouldContinue: () => boolean,
  attempt: () => Promise<A>
): Promise<A> => {
  let failure: { readonly cause: unknown } | undefined
  const once = Effect.tryPromise({
    try: async () => {
      if (failure !== undefined) {
        if (!shouldContinue()) throw failure.cause
        // If no broker answers, the attempt fails as well, and its error says why.
        await cluster.refreshMetadata().catch(() => undefined)
      }
      return attempt()
    },
    catch: (cause) => {
      failure = { cause }
      return cause
    }
  })
  const isRepeated = (cause: unknown) => isRetriable(cause) && shouldContinue()
  return Effect.runPromise(Effect.retry(once, { schedule: BACK_OFF, while: isRepeated }))
}
