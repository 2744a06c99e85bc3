/**
 * Serves the routes of commands in quarantine: reads what is asked for and shows what is known. What
 * may be replayed is decided by Quarantine.
 */
import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { ADMIN_KEY_ID } from "../../actors/follower/Keys.ts"
import { defined } from "../../domain/Defined.ts"
import { type Listed, Quarantine, stateOf } from "../../services/administration/Quarantine.ts"
import type {
  Quarantined,
  QuarantinedBytes
} from "../../services/administration/QuarantineTopic.ts"
import { Api } from "../Api.ts"
import { BODY_BYTES_MAX, bodyOf } from "../contract/Bodies.ts"
import { json } from "../messages/Answer.ts"
import { refusable, unavailable } from "../messages/ApiError.ts"
import { ApiSettings } from "../messages/ApiSettings.ts"
import { JSON_TYPE } from "../messages/MediaTypes.ts"
import { readBody } from "../messages/RequestBody.ts"
import { ReasonInput, SHOWN_BYTES_MAX } from "./QuarantineContract.ts"
import { resourcePage } from "./ResourcePages.ts"

const readReason = bodyOf(ReasonInput, "a reason")

const EMPTY_BODY = Buffer.from("{}")

const reasonOf = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const { bytes } = yield* readBody(request, [JSON_TYPE], BODY_BYTES_MAX)
  const { reason } = yield* refusable(() => readReason(bytes.length === 0 ? EMPTY_BODY : bytes))
  return reason ?? undefined
})

const shown = (command: Listed<Quarantined>) => ({
  id: command.id,
  state: stateOf(command),
  kind: command.kind ?? ("unknown" as const),
  reason: command.reason,
  quarantined_at: command.quarantinedAt,
  partition: command.partition,
  command_offset: command.commandOffset,
  bytes: command.bytes,
  ...defined({
    settled_at: command.act?.settled_at,
    settled_by: command.act?.settled_by,
    settled_reason: command.act?.reason
  })
})

const partsOf = ({ command }: QuarantinedBytes) =>
  "unreadable" in command
    ? command
    : {
        tenant_id: command.tenantId,
        receipt_id: command.receiptId,
        received_at: command.receivedAt,
        command_kind: command.kind,
        items: command.events.count + (command.traces?.length ?? 0)
      }

/** The handlers of QuarantineApi. */
export const layerQuarantineHandlers = HttpApiBuilder.group(
  Api,
  "Quarantine",
  Effect.fnUntraced(function* (handlers) {
    const quarantine = yield* Quarantine
    const { publicUrl } = yield* ApiSettings

    return handlers
      .handle(
        "listQuarantine",
        Effect.fnUntraced(function* ({ query: { page, state }, request }) {
          const { commands, left } = yield* quarantine.list(ADMIN_KEY_ID)
          const asked = commands.filter((one) => state === "all" || stateOf(one) === state)
          return yield* resourcePage(request, publicUrl, page, "commands", asked, shown, { left })
        })
      )
      .handle(
        "showQuarantined",
        Effect.fnUntraced(function* ({ params: { id } }) {
          const command = yield* quarantine.show(id, ADMIN_KEY_ID)
          return {
            ...shown(command),
            ...partsOf(command),
            content: command.value.subarray(0, SHOWN_BYTES_MAX).toString("base64"),
            truncated: command.value.length > SHOWN_BYTES_MAX
          }
        })
      )
      .handleRaw(
        "replayQuarantined",
        Effect.fnUntraced(function* ({ params: { id }, request }) {
          const reason = yield* reasonOf(request)
          const { act, receipt, tenantId } = yield* quarantine.replay({
            id,
            keyId: ADMIN_KEY_ID,
            reason
          })
          if (receipt === undefined) {
            return yield* unavailable(
              "the command was submitted, but nothing was decided in time; ask again to see it"
            )
          }
          return json({
            id,
            state: act.state,
            settled_at: act.settled_at,
            tenant_id: tenantId,
            receipt_id: receipt.receipt_id,
            status: receipt.status,
            ...defined({ error: receipt.error })
          })
        })
      )
      .handleRaw(
        "dropQuarantined",
        Effect.fnUntraced(function* ({ params: { id }, request }) {
          const reason = yield* reasonOf(request)
          const dropped = yield* quarantine.drop({ id, keyId: ADMIN_KEY_ID, reason })
          return json(shown(dropped))
        })
      )
  })
)
