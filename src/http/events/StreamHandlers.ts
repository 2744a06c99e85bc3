/**
 * Serves the live stream: reads where to start, and passes on the feed's bytes until the feed, the
 * client or the process ends it. What an event looks like on the wire is the feed's business.
 */

import { Effect, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { LiveFeed } from "../../actors/feeds/LiveFeed.ts"
import { Api } from "../Api.ts"
import { answering } from "../messages/Answer.ts"
import { refusable } from "../messages/ApiError.ts"
import { cutWhenStalled, resumePoint } from "../messages/EventStream.ts"
import { SSE_TYPE } from "../messages/MediaTypes.ts"
import { readQuery } from "../messages/QueryParameters.ts"
import { CurrentPrincipal } from "../server/Authorization.ts"
import { Draining } from "../server/Draining.ts"
import { toFilter } from "./EventParameters.ts"
import { streamParameters } from "./StreamContract.ts"

/** The handlers of StreamApi. */
export const layerStreamHandlers = HttpApiBuilder.group(
  Api,
  "Stream",
  Effect.fnUntraced(function* (handlers) {
    const feed = yield* LiveFeed
    const draining = yield* Draining

    return handlers.handleRaw(
      "streamEvents",
      answering(
        Effect.fnUntraced(function* ({ request }) {
          const { keyId, tenantId } = yield* CurrentPrincipal
          const { after, filter } = yield* refusable(() => {
            const { metadata, values } = readQuery(request.url, streamParameters, {
              metadata: true
            })
            return {
              filter: toFilter(values, metadata),
              after: resumePoint(request, values.after_sequence)
            }
          })
          const onStalled = yield* cutWhenStalled(request)
          const bytes = yield* feed.subscribe({ tenantId, keyId, filter, after, onStalled })
          return HttpServerResponse.stream(Stream.interruptWhen(bytes, draining.begun), {
            contentType: SSE_TYPE,
            headers: { "cache-control": "no-store", "x-accel-buffering": "no" }
          })
        })
      )
    )
  })
)
