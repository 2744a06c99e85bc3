/**
 * Serves the routes of retention: reads what is asked for and shows what is known. What may be done is
 * decided by the single writer of the registry.
 */
import { Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { ADMIN_KEY_ID } from "../../actors/follower/Keys.ts"
import type { PrunedPoint } from "../../domain/chain/PrunedPoint.ts"
import { type RetentionState, Retentions } from "../../services/retention/Retentions.ts"
import { Api } from "../Api.ts"
import { BODY_BYTES_MAX, bodyOf } from "../contract/Bodies.ts"
import { json } from "../messages/Answer.ts"
import { invalid, notFound, refusable } from "../messages/ApiError.ts"
import { JSON_TYPE } from "../messages/MediaTypes.ts"
import { readBody } from "../messages/RequestBody.ts"
import { ConfirmInput, HoldInput, RetentionInput, RetentionReason } from "./RetentionContract.ts"

const readRetention = bodyOf(RetentionInput, "a retention")
const readHold = bodyOf(HoldInput, "a hold")
const readReason = bodyOf(RetentionReason, "a reason")
const readConfirmation = bodyOf(ConfirmInput, "a confirmation")

const EMPTY_BODY = Buffer.from("{}")

const readInput = <A>(
  request: HttpServerRequest.HttpServerRequest,
  inputOf: (bytes: Buffer) => A
) =>
  Effect.flatMap(readBody(request, [JSON_TYPE], BODY_BYTES_MAX), ({ bytes }) =>
    refusable(() => inputOf(bytes.length === 0 ? EMPTY_BODY : bytes))
  )

const shownPoint = (point: PrunedPoint) => ({
  chain: point.chain,
  up_to_sequence: point.size,
  head_hash: point.head_hash,
  root_hash: point.root_hash,
  checkpoint: point.note,
  recorded_before: point.recorded_before,
  pruned_at: point.pruned_at,
  removed_at: point.removed_at ?? null
})

const shown = ({ pruned, retention, tenantId }: RetentionState) => ({
  tenant_id: tenantId,
  days: retention?.days ?? null,
  hold: retention?.hold ?? null,
  deletion: retention?.deletion ?? null,
  pruned: pruned.map(shownPoint)
})

/** The handlers of RetentionApi. */
export const layerRetentionHandlers = HttpApiBuilder.group(
  Api,
  "Retention",
  Effect.fnUntraced(function* (handlers) {
    const retentions = yield* Retentions
    const by = (tenantId: string) => ({ tenantId, keyId: ADMIN_KEY_ID })

    return handlers
      .handle("getRetention", ({ params: { tenant } }) => Effect.map(retentions.of(tenant), shown))
      .handleRaw(
        "setRetention",
        Effect.fnUntraced(function* ({ params: { tenant }, request }) {
          const { days } = yield* readInput(request, readRetention)
          return json(shown(yield* retentions.keepFor(by(tenant), days ?? undefined)))
        })
      )
      .handleRaw(
        "holdTenant",
        Effect.fnUntraced(function* ({ params: { tenant }, request }) {
          const { reason } = yield* readInput(request, readHold)
          return json(shown(yield* retentions.hold(by(tenant), reason)))
        })
      )
      .handleRaw(
        "releaseTenant",
        Effect.fnUntraced(function* ({ params: { tenant }, request }) {
          const { reason } = yield* readInput(request, readReason)
          return json(shown(yield* retentions.release(by(tenant), reason ?? undefined)))
        })
      )
      .handleRaw(
        "requestDeletion",
        Effect.fnUntraced(function* ({ params: { tenant }, request }) {
          const { reason } = yield* readInput(request, readReason)
          return json(shown(yield* retentions.requestDeletion(by(tenant), reason ?? undefined)))
        })
      )
      .handle("cancelDeletion", ({ params: { tenant } }) =>
        Effect.as(retentions.cancelDeletion(by(tenant)), HttpServerResponse.empty({ status: 204 }))
      )
      .handleRaw(
        "confirmDeletion",
        Effect.fnUntraced(function* ({ params: { tenant }, request }) {
          const confirmed = yield* readInput(request, readConfirmation)
          if (confirmed.tenant !== tenant) {
            return yield* invalid("tenant", "must be the id of the tenant in the path")
          }
          return json(yield* retentions.confirmDeletion(by(tenant)), { status: 202 })
        })
      )
      .handle(
        "getTombstone",
        Effect.fnUntraced(function* ({ params: { tenant } }) {
          return (yield* retentions.tombstone(tenant)) ?? (yield* notFound("deleted tenant"))
        })
      )
  })
)
