/**
 * Trace facts for whoever selects executions by what they say, as CheckedEvents has events: each
 * recomputed as it is read, linked to the one before it, and the last one in the chain.
 */
import { Context, Effect, Layer, Stream } from "effect"
import type { ChainEnds } from "../actors/chainEnds/ChainEnds.ts"
import type { ProjectionProgress } from "../actors/log/ProjectionProgress.ts"
import { GENESIS_HASH } from "../domain/chain/Chains.ts"
import type { TraceFact } from "../domain/traces/TraceFact.ts"
import type { EventLog, LogUnavailable } from "../ports/EventLog.ts"
import { StoreUnavailable } from "../ports/EventStore.ts"
import { type FactRange, TraceStore } from "../ports/TraceStore.ts"
import { chainedFacts } from "./ChainProofs.ts"
import { factIn } from "./FactSource.ts"

type Failure = LogUnavailable | StoreUnavailable

export class CheckedFacts extends Context.Service<
  CheckedFacts,
  {
    /** Every fact of a range, ascending. Fails with the first one that does not hold. */
    of(range: FactRange): Stream.Stream<ReadonlyArray<TraceFact>, Failure>
    /** What an execution says of itself up to a sequence, as far as it is in the chain. */
    ofExecution(
      tenantId: string,
      executionId: string,
      last: number
    ): Effect.Effect<ReadonlyArray<TraceFact>, Failure>
  }
>()("alk/CheckedFacts") {}

const isOther = (sequence: number) => {
  const cause = new Error(`trace fact ${sequence} is no longer what the chain says`)
  return Effect.fail(new StoreUnavailable({ operation: "read checked facts", cause }))
}

const make = Effect.gen(function* () {
  const store = yield* TraceStore
  const context = yield* Effect.context<ChainEnds | EventLog | ProjectionProgress | TraceStore>()

  const read = Effect.fnUntraced(function* (range: FactRange) {
    const { first, last, tenantId } = range
    const chained = yield* chainedFacts(tenantId)
    let sequence = first - 1
    let hash = first === 1 ? GENESIS_HASH : undefined
    const checked = Effect.fnUntraced(function* (bodies: ReadonlyArray<string>) {
      yield* Effect.yieldNow
      const facts: Array<TraceFact> = []
      for (const body of bodies) {
        const fact = factIn(body, tenantId)
        const isNext =
          fact?.chain_sequence === sequence + 1 && (hash === undefined || fact.prev_hash === hash)
        if (fact === undefined || !isNext) return yield* isOther(sequence + 1)
        sequence += 1
        hash = fact.hash
        facts.push(fact)
      }
      return facts
    })
    const end = Effect.suspend(() => {
      const lastHash = hash
      if (sequence !== last || lastHash === undefined) return isOther(sequence + 1)
      return chained([{ sequenceNumber: last, hash: lastHash }]).pipe(
        Effect.flatMap((proven) => (proven.has(lastHash) ? Effect.void : isOther(last)))
      )
    })
    return store
      .chain(range)
      .pipe(Stream.mapEffect(checked), Stream.concat(Stream.fromEffectDrain(end)))
  })

  const ofExecution = Effect.fnUntraced(function* (
    tenantId: string,
    executionId: string,
    last: number
  ) {
    const chained = yield* chainedFacts(tenantId)
    const bodies = yield* store.facts(tenantId, executionId, { kind: "execution" }, true)
    const facts = bodies
      .flatMap((body) => factIn(body, tenantId) ?? [])
      .filter((fact) => fact.execution_id === executionId && fact.chain_sequence <= last)
    const proven = yield* chained(
      facts.map(({ chain_sequence, hash }) => ({ sequenceNumber: chain_sequence, hash }))
    )
    return facts.filter(({ hash }) => proven.has(hash))
  })

  return CheckedFacts.of({
    of: (range) => Stream.unwrap(read(range)).pipe(Stream.provideContext(context)),
    ofExecution: (tenantId, executionId, last) =>
      ofExecution(tenantId, executionId, last).pipe(Effect.provideContext(context))
  })
})

/** Uses `SignedCheckpoints` where they are provided. */
export const layerCheckedFacts: Layer.Layer<
  CheckedFacts,
  never,
  ChainEnds | EventLog | ProjectionProgress | TraceStore
> = Layer.effect(CheckedFacts, make)
