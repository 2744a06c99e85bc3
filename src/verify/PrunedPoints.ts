/**
 * Where the chain that is left begins: the pruned points of the registry, each believed only if its
 * signed checkpoint proves it. Whether the rest leads on from there is the check's to say.
 */
import { Context, Effect, Layer, Option } from "effect"
import { RegistryView } from "../actors/follower/LogFollower.ts"
import { openPoint, type PrunedEnd, type PrunedPoint } from "../domain/chain/PrunedPoint.ts"
import type { LogUnavailable } from "../ports/EventLog.ts"
import { isForged, SignedCheckpoints } from "./SignedCheckpoints.ts"

/** The beginning of the chain was removed up to here. */
export interface ProvenPoint {
  readonly point: PrunedPoint
  readonly end: PrunedEnd
}

/** A point that proves nothing: the chain is expected to be whole. */
export interface ForgedPoint {
  readonly point: PrunedPoint
  readonly problem: string
}

export type PointFound = ProvenPoint | ForgedPoint

export const isForgedPoint = (found: PointFound): found is ForgedPoint => "problem" in found

/** The first sequence of what is left of a chain. */
export const beginningOf = (found: PointFound | undefined): number =>
  found === undefined || isForgedPoint(found) ? 1 : found.end.size + 1

export class PrunedPoints extends Context.Service<
  PrunedPoints,
  {
    /** Undefined of a chain that is whole, as of everything committed before the call. */
    of(tree: string): Effect.Effect<PointFound | undefined, LogUnavailable>
  }
>()("alk/PrunedPoints") {
  /** Of a service that prunes nothing. */
  static readonly none = PrunedPoints.of({ of: () => Effect.succeed(undefined) })
}

/** Those of the service where they are provided, else none. */
export const prunedPoints: Effect.Effect<PrunedPoints["Service"]> = Effect.map(
  Effect.serviceOption(PrunedPoints),
  Option.getOrElse(() => PrunedPoints.none)
)

const make = Effect.gen(function* () {
  const view = yield* RegistryView
  const checkpoints = yield* SignedCheckpoints

  const opened = Effect.fnUntraced(function* (tree: string, point: PrunedPoint) {
    const signed = yield* checkpoints.open(tree, point.note)
    if ("unreadable" in signed) return { point, problem: signed.unreadable }
    if (isForged(signed)) return { point, problem: signed.problem }
    const end = openPoint(point, signed)
    return typeof end === "string" ? { point, problem: end } : { point, end }
  })

  return PrunedPoints.of({
    of: Effect.fnUntraced(function* (tree) {
      yield* view.caughtUp
      const point = view.registry().pruned(tree)
      return point === undefined ? undefined : yield* opened(tree, point)
    })
  })
})

/** By the registry and the keys that the service publishes. */
export const layerPrunedPoints: Layer.Layer<PrunedPoints, never, RegistryView | SignedCheckpoints> =
  Layer.effect(PrunedPoints, make)
