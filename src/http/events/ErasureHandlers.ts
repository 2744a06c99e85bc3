/**
 * Serves the erasure of an event's details: reads the request, hands it on, and shows what is left.
 */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { RegistryView } from "../../actors/follower/LogFollower.ts"
import { ProjectionProgress } from "../../actors/log/ProjectionProgress.ts"
import type { AuditEvent } from "../../domain/events/AuditEvent.ts"
import { isClientId } from "../../domain/Identifiers.ts"
import { parseJson } from "../../domain/json/Json.ts"
import { EventStore } from "../../ports/EventStore.ts"
import { EventErasures } from "../../services/retention/EventErasures.ts"
import { Api } from "../Api.ts"
import { BODY_BYTES_MAX, bodyOf } from "../contract/Bodies.ts"
import { json } from "../messages/Answer.ts"
import { invalid, notFound, refusable, unavailable } from "../messages/ApiError.ts"
import { ApiSettings } from "../messages/ApiSettings.ts"
import { refuseUnderHold } from "../messages/LegalHold.ts"
import { JSON_TYPE } from "../messages/MediaTypes.ts"
import { readBody } from "../messages/RequestBody.ts"
import { readableView } from "../messages/StoreView.ts"
import { topicCopyUntil } from "../messages/TopicCopy.ts"
import { idempotencyKey } from "../messages/WriteRequest.ts"
import { CurrentPrincipal } from "../server/Authorization.ts"
import { ErasureInput } from "./ErasureContract.ts"
import { toResponse } from "./IngestHandlers.ts"

const readErasure = bodyOf(ErasureInput, "an erasure")

/** The handlers of ErasureApi. */
export const layerErasureHandlers = HttpApiBuilder.group(
  Api,
  "Erasure",
  Effect.fnUntraced(function* (handlers) {
    const { topicRetentionMs } = yield* ApiSettings
    const erasures = yield* EventErasures
    const store = yield* EventStore
    const projection = yield* ProjectionProgress
    const registry = yield* RegistryView

    const shown = Effect.fnUntraced(function* (
      tenantId: string,
      id: string,
      sequence: number | undefined,
      deduplicate: boolean
    ) {
      const found = yield* store.byId(tenantId, id, sequence, deduplicate)
      const body = found?.body
      return body === undefined ? yield* notFound("event") : (parseJson(body) as AuditEvent)
    })

    return handlers.handleRaw(
      "eraseEvent",
      Effect.fnUntraced(function* ({ params: { id }, query, request }) {
        const { keyId, tenantId } = yield* CurrentPrincipal
        const path = `/v1/events/${encodeURIComponent(id)}/erase`
        const key = yield* refusable(() => idempotencyKey(request, path))
        const { sequence_number: sequence } = yield* query
        const { bytes } = yield* readBody(request, [JSON_TYPE], BODY_BYTES_MAX)
        const { reason } = yield* refusable(() => readErasure(bytes))
        if (!isClientId(id)) return yield* notFound("event")
        yield* refuseUnderHold(registry, tenantId)
        const { deduplicate: merging } = yield* readableView(projection, tenantId)
        // Nothing is erased for the sake of an event that can't be shown.
        if (sequence !== undefined) yield* shown(tenantId, id, sequence, merging)
        const idempotency = key && { key, body: bytes }
        const outcome = yield* erasures
          .erase({ tenantId, keyId, eventId: id, reason, idempotency })
          .pipe(
            Effect.catchTag("EventUnknown", () => notFound("event")),
            Effect.catchTag("EventReserved", ({ action }) =>
              invalid("id", `names an event of the service itself (${action}), which stays`)
            )
          )
        const known = outcome === undefined ? undefined : yield* toResponse(outcome)
        if (known?.kind === "written") {
          return yield* unavailable("not erased in time; it may still happen, so try again")
        }
        const { final: deduplicate } = projection.of(tenantId)
        const event = yield* shown(tenantId, id, sequence, deduplicate)
        return json({
          ...event,
          topic_copy_until: topicCopyUntil(event.created_at, topicRetentionMs)
        })
      })
    )
  })
)
