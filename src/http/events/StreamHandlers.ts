/**
 * Serves the live stream: reads where to start, and passes on the feed's bytes until the feed, the
 * client or the process ends it. What an event looks like on the wire is the feed's business.
 */
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Effect, Result, Stream } from "effect"
import { HttpServerResponse, type HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { LiveFeed } from "../../actors/feeds/LiveFeed.ts"
import { answering } from "../messages/Answer.ts"
import { Api } from "../Api.ts"
import { invalid, refusable } from "../messages/ApiError.ts"
import { CurrentPrincipal } from "../server/Authorization.ts"
import { Draining } from "../server/Draining.ts"
import { toFilter } from "./EventParameters.ts"
import { SSE_TYPE } from "../messages/MediaTypes.ts"
import { readQuery } from "../messages/QueryParameters.ts"
import { LAST_EVENT_ID_HEADER, streamParameters } from "./StreamContract.ts"

/**
 * Milliseconds after which a connection is cut on which nothing moves. Longer than the time between
 * two keep-alive comments, so only a client that does not read is quiet for so long; without this
 * its response would wait for ever for room to write into.
 */
const STALLED_MS = 30_000

export const cutWhenStalled = (request: HttpServerRequest.HttpServerRequest) =>
  Effect.sync(() => {
    const { socket } = NodeHttpServerRequest.toIncomingMessage(request)
    // Node's own timeout takes over again when the response is finished.
    socket.setTimeout(STALLED_MS)
    return (stalled: () => void): void => void socket.once("timeout", stalled)
  })

/** Where a client resumes: a browser's header says more than the address it first came with. */
export const resumePoint = (
  request: HttpServerRequest.HttpServerRequest,
  parameter: number | undefined
): number | undefined => {
  const header = request.headers[LAST_EVENT_ID_HEADER.toLowerCase()]
  if (header === undefined) return parameter
  const parsed = streamParameters.after_sequence.parse(header)
  if (Result.isFailure(parsed)) throw invalid(LAST_EVENT_ID_HEADER, parsed.failure)
  return parsed.success
}

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
