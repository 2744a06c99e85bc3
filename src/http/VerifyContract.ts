/**
 * The routes that recompute what is stored. Says nothing of how it is checked.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Authorization, RequiredScope } from "./Authorization.ts"
import { errorsOf } from "./ContractErrors.ts"
import { EventVerifyReport, VerifyReport } from "./ContractSchemas.ts"
import { filterParameters } from "./EventParameters.ts"
import { operation } from "./Operation.ts"
import { eventParameters } from "./QueryContract.ts"
import { booleanParameter } from "./QueryParameters.ts"

/** Query of `GET /v1/verify`. */
export const verifyParameters = {
  from: filterParameters.from,
  to: filterParameters.to,
  from_sequence: filterParameters.from_sequence,
  to_sequence: filterParameters.to_sequence,
  require_head: booleanParameter({
    default: true,
    description: "Compare the end with the log's head, if no upper bound is given."
  })
}

const verifyChain = HttpApiEndpoint.get("verifyChain", "/v1/verify", {
  success: VerifyReport,
  error: errorsOf("object", 400, 401, 403, 503)
})
  .annotate(RequiredScope, ["read"])
  .annotateMerge(
    operation({
      id: "verifyChain",
      summary: "Verify a range of the chain",
      description:
        "Recomputes contents, links and the head over the sequence span that covers the bounds; " +
        "without bounds over the full supported history, future-dated events included. A " +
        "finished check answers 200, whatever it found.",
      query: verifyParameters
    })
  )

const verifyEvent = HttpApiEndpoint.get("verifyEvent", "/v1/verify/events/:id", {
  params: { id: Schema.String.annotate({ description: "Id of the event, percent-encoded." }) },
  success: EventVerifyReport,
  error: errorsOf("object", 400, 401, 403, 404, 503)
})
  .annotate(RequiredScope, ["read"])
  .annotateMerge(
    operation({
      id: "verifyEvent",
      summary: "Verify one event",
      description: "Its content, and its link to the event before it.",
      query: eventParameters
    })
  )

/** The routes of the tag Verify. */
export class VerifyApi extends HttpApiGroup.make("Verify")
  .add(verifyChain, verifyEvent)
  .middleware(Authorization)
  .annotateMerge(OpenApi.annotations({ description: "Recomputing what is stored." })) {}
