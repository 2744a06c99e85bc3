/**
 * What processes that serve one port do together: limits that are counted once, and metrics that
 * show all of them. The first process keeps the counts; the others, the workers, ask it. Knows
 * nothing of how questions travel.
 */
import { Context, Effect } from "effect"
import { mergedMetrics, type ProcessMetrics } from "./MergedMetrics.ts"
import type { Taken, TokenBuckets } from "./TokenBuckets.ts"

/** Limits that are counted once for all processes. */
export type SharedLimit = "events" | "failed_keys"

/** How to take tokens of a limit, given the buckets that this process would count with alone. */
export type SharedBuckets = (
  limit: SharedLimit,
  own: TokenBuckets
) => (name: string, tokens: number) => Effect.Effect<Taken>

export interface Processes {
  readonly sharedBuckets: SharedBuckets
  /** The metrics of all processes, given how this one reads its own. */
  readonly sharedMetrics: (own: Effect.Effect<string>) => Effect.Effect<string>
}

const takeHere = (own: TokenBuckets, name: string, tokens: number) =>
  Effect.sync(() => own.take(name, tokens, performance.now()))

/** The processes of the port; without being told otherwise there is one. */
export const ProcessGroup = Context.Reference<Processes>("alk/http/ProcessGroup", {
  defaultValue: () => ({
    sharedBuckets: (_, own) => (name, tokens) => takeHere(own, name, tokens),
    sharedMetrics: (own) => own
  })
})

/** What a worker asks the first process. */
export type WorkerQuestion =
  | {
      readonly ask: "take"
      readonly limit: SharedLimit
      readonly name: string
      readonly tokens: number
    }
  | { readonly ask: "metrics" }

/** What the first process asks a worker: its metrics, to serve no more, or only for an answer. */
export interface FirstQuestion {
  readonly ask: "metrics" | "drain" | "alive"
}

/** Time that a worker waits for a shared count; then it counts for itself. */
const COUNT_TIMEOUT = "2 seconds"

/** The group as the first process has it, and what it answers to workers. */
export const firstOfGroup = (ofWorkers: Effect.Effect<ReadonlyArray<ProcessMetrics>>) => {
  const buckets = new Map<SharedLimit, TokenBuckets>()
  let ownMetrics = Effect.succeed("")
  const allMetrics = Effect.suspend(() =>
    Effect.zipWith(ownMetrics, ofWorkers, (text, others) =>
      mergedMetrics([{ worker: 0, text }, ...others])
    )
  )
  const processes: Processes = {
    sharedBuckets: (limit, own) => {
      buckets.set(limit, own)
      return (name, tokens) => takeHere(own, name, tokens)
    },
    sharedMetrics: (own) => {
      ownMetrics = own
      return allMetrics
    }
  }
  const answer = (question: WorkerQuestion): Effect.Effect<unknown> => {
    if (question.ask === "metrics") return allMetrics
    const own = buckets.get(question.limit)
    return own === undefined
      ? Effect.die(new Error(`the first process does not count ${question.limit}`))
      : takeHere(own, question.name, question.tokens)
  }
  return { processes, answer }
}

/**
 * The group as a worker has it: it asks the first process, and answers it. `drain` ends once this
 * one serves no more.
 */
export const workerOfGroup = (
  ask: (question: WorkerQuestion) => Effect.Effect<unknown>,
  drain: Effect.Effect<void>
) => {
  let ownMetrics = Effect.succeed("")
  const processes: Processes = {
    sharedBuckets: (limit, own) => (name, tokens) =>
      (ask({ ask: "take", limit, name, tokens }) as Effect.Effect<Taken>).pipe(
        Effect.timeoutOrElse({
          duration: COUNT_TIMEOUT,
          orElse: () => takeHere(own, name, tokens)
        })
      ),
    sharedMetrics: (own) => {
      ownMetrics = own
      return ask({ ask: "metrics" }) as Effect.Effect<string>
    }
  }
  const answers: Readonly<Record<FirstQuestion["ask"], Effect.Effect<unknown>>> = {
    metrics: Effect.suspend(() => ownMetrics),
    drain,
    alive: Effect.void
  }
  return { processes, answer: ({ ask: asked }: FirstQuestion) => answers[asked] }
}
