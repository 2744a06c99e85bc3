/** The values that have no room in their spans, each by the hash that its span refers to it by. */
import { Effect, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { ProjectionProgress } from "../../actors/log/ProjectionProgress.ts"
import { parseFact } from "../../domain/traces/FactText.ts"
import { chunkOf, wholeValue } from "../../domain/traces/Payload.ts"
import { TraceStore } from "../../ports/TraceStore.ts"
import type { RequestOf } from "../contract/Requests.ts"
import { invalid, notFound, unavailable } from "../messages/ApiError.ts"
import { readableView } from "../messages/StoreView.ts"
import { CurrentPrincipal } from "../server/Authorization.ts"
import type { getPayload } from "./TraceContract.ts"

const HASH = /^(?:sha256:)?(?<hash>[0-9a-f]{64})$/

/** The handler of the route of payloads. */
export const makePayloadHandlers = Effect.gen(function* () {
  const store = yield* TraceStore
  const projection = yield* ProjectionProgress

  const valueIn = Effect.fnUntraced(function* (tenantId: string, hash: string) {
    const found = yield* Stream.runCollect(store.payload(tenantId, hash))
    const bodies = found.flat()
    if (bodies.length === 0) return yield* notFound("payload")
    const pieces = bodies.flatMap((body) => chunkOf(parseFact(body)) ?? [])
    const value = wholeValue(hash, pieces)
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
      const value = yield* valueIn(tenantId, hash)
      return HttpServerResponse.text(value, {
        contentType: "text/plain; charset=utf-8",
        headers: { etag: `"${hash}"` }
      })
    })
  }
})
