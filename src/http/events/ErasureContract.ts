/**
 * The route that erases an event's details. Says nothing of how they are taken out.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { exampleEvent } from "../../contracts/ExampleEvent.ts"
import { AuditEvent } from "../../domain/events/AuditEvent.ts"
import { REASON_LENGTH_MAX } from "../../services/ingest/PrepareTrace.ts"
import { textInput } from "../contract/Bodies.ts"
import { errorsOf } from "../contract/ContractErrors.ts"
import { Timestamp } from "../contract/ContractSchemas.ts"
import { operation } from "../contract/Operation.ts"
import { lateQueryOf } from "../contract/Requests.ts"
import { idempotencyHeader } from "../messages/WriteRequest.ts"
import { Authorization } from "../server/Authorization.ts"
import { eventId, eventParameters } from "./QueryContract.ts"

export const ErasureInput = Schema.Struct({
  reason: textInput(
    REASON_LENGTH_MAX,
    "Why; kept in the tenant's log for ever, so it should name no person."
  ).annotate({ examples: ["erasure request 4711"] })
}).annotate({ identifier: "ErasureInput", examples: [{ reason: "erasure request 4711" }] })

const { actor, metadata: _metadata, resource, ...kept } = exampleEvent

export const ErasedEvent = Schema.Struct({
  ...AuditEvent.fields,
  topic_copy_until: Schema.NullOr(Timestamp).annotate({
    description:
      "Until when the topics keep what was erased, the request that brought it included, unless an "
      + "operator lets them forget it before; null: as long as alk.events keeps it, which has no end "
      + "as it is configured."
  })
}).annotate({
  identifier: "ErasedEvent",
  description: "The event without actor.email, resource.name and metadata.",
  examples: [
    {
      ...kept,
      actor: { id: actor.id, type: actor.type },
      resource: { id: resource.id, type: resource.type },
      erased_at: "2026-11-22T08:00:00.000000Z",
      topic_copy_until: null
    }
  ]
})

const eraseEvent = HttpApiEndpoint.post("eraseEvent", "/v1/events/:id/erase", {
  params: eventId,
  // The key of idempotency is refused first.
  query: lateQueryOf(eventParameters),
  payload: ErasureInput,
  success: ErasedEvent,
  error: errorsOf("object", 400, 401, 403, 404, 409, 413, 415, 422, 503)
}).pipe(
  operation({
    scopes: ["write"],
    summary: "Erase the details of an event",
    description:
      "Takes actor.email, resource.name and metadata out of every answer, every export and the "
      + "database, and appends an event `alk.event.erased` to the tenant's log. Chain and proofs "
      + "stay valid. Of several events with this id all are erased. Again: 200, and nothing "
      + "changes. The service's own events can't be erased. 409 `legal_hold` while the tenant is "
      + "under a hold.",
    headers: idempotencyHeader
  })
)

/** The erasure of the tag Ingest. */
export class ErasureApi extends HttpApiGroup.make("Erasure")
  .add(eraseEvent)
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({ title: "Ingest", description: "Erasing the details of events." })
  ) {}
