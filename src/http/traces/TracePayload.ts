/** The values that have no room in their spans, each by the hash that its span refers to it by. */
import { Effect, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { ProjectionProgress } from "../../actors/log/ProjectionProgress.ts"
import type { Sliced } from "../../domain/Slices.ts"
import { oneInTurn } from "../../domain/TenantTurns.ts"
import { parseFact } from "../../domain/traces/FactText.ts"
import { chunkOf, type PayloadChunk, wholeValue } from "../../domain/traces/Payload.ts"
import { TraceStore } from "../../ports/TraceStore.ts"
import type { RequestOf } from "../contract/Requests.ts"
import { invalid, notFound, unavailable } from "../messages/ApiError.ts"
import { inSlices } from "../messages/InSlices.ts"
import { readableView } from "../messages/StoreView.ts"
import { CurrentPrincipal } from "../server/Authorization.ts"
import type { getPayload } from "./TraceContract.ts"

const HASH = /^(?:sha256:)?(?<hash>[0-9a-f]{64})$/

/** Adds the pieces that the facts hold, by their numbers; true once there are as many as they say. */
function* gathered(
  bodies: ReadonlyArray<string>,
  pieces: Map<number, PayloadChunk>
): Sliced<boolean> {
  for (const body of bodies) {
    yield
    const piece = chunkOf(parseFact(body))
    if (piece === undefined) continue
    pieces.set(piece.chunk, piece)
    if (pieces.size >= piece.chunks) return true
  }
  return false
}

/** The handler of the route of payloads. */
export const makePayloadHandlers = Effect.gen(function* () {
  const store = yield* TraceStore
  const projection = yield* ProjectionProgress
  // A value may have 16 MiB: so many requests for it hold one at a time.
  const inTurn = oneInTurn()

  const valueIn = Effect.fnUntraced(function* (tenantId: string, hash: string) {
    const pieces = new Map<number, PayloadChunk>()
    // The same value may be there again, of another span.
    yield* store.payload(tenantId, hash).pipe(
      Stream.mapEffect((bodies) => inSlices(() => gathered(bodies, pieces))),
      Stream.takeUntil((isWhole) => isWhole),
      Stream.runDrain
    )
    if (pieces.size === 0) return yield* notFound("payload")
    const value = wholeValue(hash, [...pieces.values()])
    if (value !== undefined) return value
    yield* Effect.logError("the stored pieces of a value do not add up to it", { tenantId, hash })
    return yield* unavailable(
      "what is stored of this value was changed in the database: verify its execution"
    )
  })

  return {
    getPayload: Effect.fnUntraced(function* ({ params }: RequestOf<typeof getPayload>) {
      const hash = HASH.exec(params.sha256)?.groups?.["hash"]
      if (hash === undefined) return yield* invalid("sha256", "must be 64 lower-case hex digits")
      const { tenantId } = yield* CurrentPrincipal
      yield* readableView(projection, tenantId)
      const value = yield* inTurn(tenantId, valueIn(tenantId, hash))
      return HttpServerResponse.text(value, {
        contentType: "text/plain; charset=utf-8",
        headers: { etag: `"${hash}"` }
      })
    })
  }
})
