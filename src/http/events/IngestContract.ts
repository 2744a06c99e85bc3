/**
 * The ingest routes and the receipts: paths, bodies, statuses. Says nothing of how they are served.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { errorsOf } from "../contract/ContractErrors.ts"
import {
  BatchAccepted,
  BatchArray,
  BatchInput,
  BatchResult,
  CreatedEvent,
  EventAccepted,
  EventInput,
  exampleReceiptId,
  Receipt
} from "../contract/ContractSchemas.ts"
import { createdHeaders, type HeaderParameter, operation } from "../contract/Operation.ts"
import { NDJSON_TYPE } from "../messages/MediaTypes.ts"
import { idempotencyHeader, ingestQuery, SYNC_HEADER } from "../messages/WriteRequest.ts"
import { Authorization } from "../server/Authorization.ts"

const ingestHeaders: Readonly<Record<string, HeaderParameter>> = {
  [SYNC_HEADER]: {
    description:
      "Wait until the events are committed. If that takes longer than 10 s, the answer is the "
      + "202 of asynchronous ingest.",
    schema: { type: "string", enum: ["true"] }
  },
  ...idempotencyHeader
}

const acceptedHeaders = {
  Location: "Where the receipt is.",
  "Retry-After": "Seconds until it is worth asking."
}

const Lines = Schema.String.annotate({
  description: "One item per line. A line that doesn't parse is an item error."
}).pipe(HttpApiSchema.asText({ contentType: NDJSON_TYPE }))

const createEvent = HttpApiEndpoint.post("createEvent", "/v1/events", {
  query: ingestQuery,
  payload: EventInput,
  success: [
    CreatedEvent.pipe(HttpApiSchema.status(200)),
    CreatedEvent.pipe(HttpApiSchema.status(201)),
    EventAccepted.pipe(HttpApiSchema.status(202))
  ],
  error: errorsOf("object", 400, 401, 403, 409, 413, 415, 422, 429, 503)
}).pipe(
  operation({
    scopes: ["write"],
    summary: "Record one event",
    description:
      "Asynchronous by default: 202 when the event is durable. With sync, 201 and the stored "
      + "event when it is chained and visible to the list, 200 if it was stored before, 409 if "
      + "its id belongs to an event with other content.",
    headers: ingestHeaders,
    responseHeaders: { 201: createdHeaders, 202: acceptedHeaders }
  })
)

const createEvents = HttpApiEndpoint.post("createEvents", "/v1/events/batch", {
  query: ingestQuery,
  payload: [BatchInput, BatchArray, Lines],
  success: [
    BatchResult.pipe(HttpApiSchema.status(200)),
    BatchAccepted.pipe(HttpApiSchema.status(202))
  ],
  error: errorsOf("text", 400, 401, 403, 413, 415, 422, 429, 503)
}).pipe(
  operation({
    scopes: ["write"],
    summary: "Record up to 1000 events",
    description:
      "The request as a whole is refused only if it can't be read. What is wrong with an item "
      + "is in `errors`, and the other items go through. With sync, 200 when everything is "
      + "chained and visible to the list.",
    headers: ingestHeaders,
    responseHeaders: { 202: acceptedHeaders }
  })
)

const getReceipt = HttpApiEndpoint.get("getReceipt", "/v1/receipts/:id", {
  params: {
    id: Schema.String.annotate({
      description: "`receipt_id` of an ingest answer.",
      examples: [exampleReceiptId]
    })
  },
  success: Receipt,
  error: errorsOf("object", 401, 403, 404, 503)
}).pipe(
  operation({
    scopes: ["read", "write"],
    summary: "What became of an ingest request",
    description:
      "Poll until `status` is `committed` or `failed`. Known to every process from the moment "
      + "of the 202; kept for 7 days at least. A read or a write scope will do.",
    responseHeaders: { 200: { "Retry-After": "Only while `pending`." } }
  })
)

/** The routes of the tag Ingest. */
export class IngestApi extends HttpApiGroup.make("Ingest")
  .add(createEvent, createEvents, getReceipt)
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({ description: "Recording events, and what became of the requests." })
  ) {}
