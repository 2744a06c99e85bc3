/**
 * Serves the live stream: reads where to start, and passes on the feed's bytes until the feed, the
 * client or the process ends it. The feed decides what an event looks like on the wire.
 */
import { Effect, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { LiveFeed } from "../../actors/feeds/LiveFeed.ts"
import { defined } from "../../domain/Defined.ts"
import { Api } from "../Api.ts"
import { refusable } from "../messages/ApiError.ts"
import { resumePoint, whenStalled } from "../messages/EventStream.ts"
import { SSE_TYPE } from "../messages/MediaTypes.ts"
import { CurrentPrincipal } from "../server/Authorization.ts"
import { Draining } from "../server/Draining.ts"

/** The handlers of StreamApi. */
export const layerStreamHandlers = HttpApiBuilder.group(
  Api,
  "Stream",
  Effect.fnUntraced(function* (handlers) {
    const feed = yield* LiveFeed
    const draining = yield* Draining

    return handlers.handleRaw(
      "streamEvents",
      Effect.fnUntraced(function* ({ query, request }) {
        const { keyId, session, tenantId } = yield* CurrentPrincipal
        const { filter, values } = query
        const after = yield* refusable(() => resumePoint(request, values))
        const onStalled = whenStalled(request)
        const bytes = yield* feed.subscribe({
          tenantId,
          keyId,
          ...defined({ session }),
          filter,
          after,
          onStalled
        })
        return HttpServerResponse.stream(Stream.interruptWhen(bytes, draining.begun), {
          contentType: SSE_TYPE,
          headers: { "cache-control": "no-store", "x-accel-buffering": "no" }
        })
      })
    )
  })
)
