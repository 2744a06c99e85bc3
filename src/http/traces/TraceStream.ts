/**
 * Serves the live view of one execution: reads where to start, and passes on the feed's bytes until
 * the feed, the client or the process ends it. The feed decides what a change looks like.
 */
import { Effect, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { TraceFeed } from "../../actors/feeds/TraceFeed.ts"
import { ProjectionProgress } from "../../actors/log/ProjectionProgress.ts"
import { defined } from "../../domain/Defined.ts"
import { isClientId } from "../../domain/Identifiers.ts"
import type { RequestOf } from "../contract/Requests.ts"
import { notFound, refusable } from "../messages/ApiError.ts"
import { resumePoint, whenStalled } from "../messages/EventStream.ts"
import { SSE_TYPE } from "../messages/MediaTypes.ts"
import { readableView } from "../messages/StoreView.ts"
import { CurrentPrincipal } from "../server/Authorization.ts"
import { Draining } from "../server/Draining.ts"
import type { streamExecution } from "./TraceContract.ts"

/** The handler of the stream. */
export const makeTraceStreamHandlers = Effect.gen(function* () {
  const draining = yield* Draining
  const feed = yield* TraceFeed
  const projection = yield* ProjectionProgress

  return {
    streamExecution: Effect.fnUntraced(function* (input: RequestOf<typeof streamExecution>) {
      const { params, query, request } = input
      const { keyId, session, tenantId } = yield* CurrentPrincipal
      const after = yield* refusable(() => resumePoint(request, query))
      const { id: executionId } = params
      if (!isClientId(executionId)) return yield* notFound("execution")
      yield* readableView(projection, tenantId)
      const onStalled = whenStalled(request)
      const from = { after, onStalled, ...defined({ session }) }
      const subscription = { tenantId, keyId, executionId, ...from }
      const bytes = yield* feed.subscribe(subscription)
      return HttpServerResponse.stream(Stream.interruptWhen(bytes, draining.begun), {
        contentType: SSE_TYPE,
        headers: { "cache-control": "no-store", "x-accel-buffering": "no" }
      })
    })
  }
})
