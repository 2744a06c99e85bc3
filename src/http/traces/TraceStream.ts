/**
 * Serves the live view of one execution: reads where to start, and passes on the feed's bytes until
 * the feed, the client or the process ends it. What a change looks like is the feed's business.
 */
import { Effect, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { TraceFeed } from "../../actors/feeds/TraceFeed.ts"
import { Visibility } from "../../actors/log/Visibility.ts"
import { refusable } from "../messages/ApiError.ts"
import { cutWhenStalled, resumePoint } from "../messages/EventStream.ts"
import { SSE_TYPE } from "../messages/MediaTypes.ts"
import { readQuery } from "../messages/QueryParameters.ts"
import { readableView } from "../messages/StoreView.ts"
import { CurrentPrincipal } from "../server/Authorization.ts"
import { Draining } from "../server/Draining.ts"
import { refusing } from "./TraceAnswer.ts"
import { traceStreamParameters } from "./TraceContract.ts"
import { idOf, type TraceInputOf } from "./TraceRequest.ts"

/** The handler of the stream. */
export const makeTraceStreamHandlers = Effect.gen(function* () {
  const draining = yield* Draining
  const feed = yield* TraceFeed
  const visibility = yield* Visibility

  return {
    streamExecution: Effect.fnUntraced(function* (input: TraceInputOf) {
      const { request } = input
      const { keyId, tenantId } = yield* CurrentPrincipal
      const after = yield* refusable(() => {
        const { values } = readQuery(request.url, traceStreamParameters)
        return resumePoint(request, values.after_sequence)
      })
      const executionId = yield* idOf(input, "execution")
      yield* readableView(visibility, tenantId)
      const onStalled = yield* cutWhenStalled(request)
      const subscription = { tenantId, keyId, executionId, after, onStalled }
      const bytes = yield* refusing(feed.subscribe(subscription))
      return HttpServerResponse.stream(Stream.interruptWhen(bytes, draining.begun), {
        contentType: SSE_TYPE,
        headers: { "cache-control": "no-store", "x-accel-buffering": "no" }
      })
    })
  }
})
