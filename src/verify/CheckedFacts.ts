/**
 * Trace facts to select executions by, as CheckedEvents has events: each recomputed as it is read,
 * linked to the one before it, and the last one in the chain.
 */
import { Context, Effect, Layer, Stream } from "effect"
import type { ChainEnds } from "../actors/chainEnds/ChainEnds.ts"
import type { ProjectionProgress } from "../actors/log/ProjectionProgress.ts"
import { treeNameOf } from "../domain/chain/Chains.ts"
import { inSlices } from "../domain/InSlices.ts"
import type { Sliced } from "../domain/Slices.ts"
import type { TraceFact } from "../domain/traces/TraceFact.ts"
import type { EventLog, LogUnavailable } from "../ports/EventLog.ts"
import type { StoreUnavailable } from "../ports/EventStore.ts"
import { type FactRange, TraceStore } from "../ports/TraceStore.ts"
import { chainedFacts } from "./ChainProofs.ts"
import { CheckedLinks, type LinkedRecord } from "./CheckedLinks.ts"
import { factIn } from "./FactSource.ts"
import { beginningOf, prunedPoints } from "./PrunedPoints.ts"

type Failure = LogUnavailable | StoreUnavailable

export class CheckedFacts extends Context.Service<
  CheckedFacts,
  {
    /**
     * Every fact up to a sequence that was not removed with the beginning of the chain, ascending.
     * Fails with the first one that does not hold.
     */
    upTo(tenantId: string, last: number): Stream.Stream<ReadonlyArray<TraceFact>, Failure>
  }
>()("alk/CheckedFacts") {}

const linkOf = ({ chain_sequence, hash, prev_hash }: TraceFact): LinkedRecord => ({
  sequenceNumber: chain_sequence,
  hash,
  prevHash: prev_hash
})

const make = Effect.gen(function* () {
  const store = yield* TraceStore
  const points = yield* prunedPoints
  const context = yield* Effect.context<ChainEnds | EventLog | ProjectionProgress | TraceStore>()

  const read = Effect.fnUntraced(function* (tenantId: string, last: number) {
    const range: FactRange = {
      tenantId,
      first: beginningOf(yield* points.of(treeNameOf(tenantId, "traces"))),
      last
    }
    if (range.first > last) return Stream.empty
    const links = new CheckedLinks("trace fact", range, yield* chainedFacts(tenantId))
    /** The facts up to the first that is another one; one in a step. */
    function* factsOf(bodies: ReadonlyArray<string>): Sliced<ReadonlyArray<TraceFact>> {
      const facts: Array<TraceFact> = []
      for (const body of bodies) {
        const fact = factIn(body, tenantId)
        if (fact === undefined || !links.take(linkOf(fact))) break
        facts.push(fact)
        yield
      }
      return facts
    }
    const checked = Effect.fnUntraced(function* (bodies: ReadonlyArray<string>) {
      const facts = yield* inSlices(() => factsOf(bodies))
      return facts.length === bodies.length ? facts : yield* links.refuse()
    })
    return store
      .chain(range)
      .pipe(Stream.mapEffect(checked), Stream.concat(Stream.fromEffectDrain(links.end)))
  })

  return CheckedFacts.of({
    upTo: (tenantId, last) =>
      Stream.unwrap(read(tenantId, last)).pipe(Stream.provideContext(context))
  })
})

/** Uses `PrunedPoints` and `SignedCheckpoints` where they are provided. */
export const layerCheckedFacts: Layer.Layer<
  CheckedFacts,
  never,
  ChainEnds | EventLog | ProjectionProgress | TraceStore
> = Layer.effect(CheckedFacts, make)
