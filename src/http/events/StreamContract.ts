/**
 * The live stream of events: its path, parameters and form. Says nothing of how it is fed.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { MARK_EVENTS } from "../../actors/feeds/Subscriber.ts"
import { errorsOf } from "../contract/ContractErrors.ts"
import { operation } from "../contract/Operation.ts"
import { queryOf } from "../contract/Requests.ts"
import { LAST_EVENT_ID_HEADER, resumeParameters, slowReaders } from "../messages/EventStream.ts"
import { SSE_TYPE } from "../messages/MediaTypes.ts"
import { Authorization } from "../server/Authorization.ts"
import { conditionParameters, filterParameters, toFilter } from "./EventParameters.ts"

const streamParameters = {
  ...filterParameters,
  ...resumeParameters
}

const EventStream = Schema.String.annotate({
  description:
    "`event: audit.event`, `id:` the sequence number, `data:` the AuditEvent on one line; "
    + "`retry: 3000` first, a comment every 15 s. Under a filter an `id:` without data moves the "
    + `resume point, at most once for ${MARK_EVENTS} events that were passed over; browsers show no `
    + "event for it, and clients that do (httpx-sse) give it empty data."
}).pipe(HttpApiSchema.asText({ contentType: SSE_TYPE }))

const streamEvents = HttpApiEndpoint.get("streamEvents", "/v1/events/stream", {
  query: queryOf(streamParameters, {
    conditions: conditionParameters,
    read: (values, conditions, now) => ({ values, filter: toFilter(values, conditions, now) })
  }),
  success: EventStream,
  error: errorsOf("object", 400, 401, 403, 429, 503)
}).pipe(
  operation({
    scopes: ["read"],
    summary: "Follow new events",
    description:
      "Server-Sent Events, live only unless resumed. The headers are sent once the start point "
      + "is fixed: every event committed after that is delivered. "
      + slowReaders,
    headers: {
      [LAST_EVENT_ID_HEADER]: {
        description: "Resume after this sequence number, as browsers do by themselves.",
        schema: { type: "integer", minimum: 0 }
      }
    },
    responseHeaders: {
      200: { "Cache-Control": "`no-store`", "X-Accel-Buffering": "`no`" }
    }
  })
)

/** The routes of the tag Stream. */
export class StreamApi extends HttpApiGroup.make("Stream")
  .add(streamEvents)
  .middleware(Authorization)
  .annotateMerge(OpenApi.annotations({ description: "New events as they are committed." })) {}
