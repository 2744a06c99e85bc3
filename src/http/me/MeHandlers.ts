/**
 * Serves what a client can know of its own key: the registry's record of it, and the limits that
 * this process was configured with.
 */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ADMIN_KEY_ID, Keys } from "../../actors/follower/Keys.ts"
import { defined } from "../../domain/Defined.ts"
import { WHERE_LENGTH_MAX } from "../../domain/events/where/Expression.ts"
import { BATCH_ITEMS_MAX } from "../../domain/records/Command.ts"
import { SPANS_MAX } from "../../services/ingest/otlp/PrepareSpans.ts"
import { Api } from "../Api.ts"
import { ApiSettings, type Settings } from "../messages/ApiSettings.ts"
import { PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX, PAGED_EVENTS_MAX } from "../messages/Pages.ts"
import { IDEMPOTENCY_KEY_LENGTH_MAX } from "../messages/WriteRequest.ts"
import { CurrentPrincipal } from "../server/Authorization.ts"
import { TRACE_PAGE_SIZE } from "../traces/TraceContract.ts"

const limitsOf = ({
  eventsPerSecondMax,
  exportsAtOnceMax,
  limits,
  streamsPerTenantMax
}: Settings) => ({
  body_bytes_max: limits.bodyBytesMax,
  batch_items_max: BATCH_ITEMS_MAX,
  event_bytes_max: limits.eventBytesMax,
  metadata_bytes_max: limits.metadataBytesMax,
  payload_bytes_max: limits.payloadBytesMax,
  action_length_max: limits.actionLengthMax,
  idempotency_key_length_max: IDEMPOTENCY_KEY_LENGTH_MAX,
  otlp_spans_max: SPANS_MAX,
  page_size_default: PAGE_SIZE_DEFAULT,
  page_size_max: PAGE_SIZE_MAX,
  paged_entries_max: PAGED_EVENTS_MAX,
  trace_page_size_max: TRACE_PAGE_SIZE,
  where_length_max: WHERE_LENGTH_MAX,
  streams_max: streamsPerTenantMax,
  events_per_second_max: eventsPerSecondMax ?? null,
  exports_at_once_max: exportsAtOnceMax ?? null
})

/** The handlers of MeApi. */
export const layerMeHandlers = HttpApiBuilder.group(
  Api,
  "Keys",
  Effect.fnUntraced(function* (handlers) {
    const keys = yield* Keys
    const limits = limitsOf(yield* ApiSettings)

    return handlers.handle(
      "getMe",
      Effect.fnUntraced(function* () {
        const { keyId, scopes, tenantId } = yield* CurrentPrincipal
        const kind = keyId === ADMIN_KEY_ID ? ("admin_token" as const) : ("api_key" as const)
        const known = (yield* keys.keysOf(tenantId))?.find(({ id }) => id === keyId)
        const { created_at, expires_at, hint, label } = known ?? {}
        return {
          tenant_id: tenantId,
          scopes,
          key: { id: keyId, kind, ...defined({ label, hint, created_at, expires_at }) },
          limits,
          has_admin_token: keys.known(ADMIN_KEY_ID) !== undefined
        }
      })
    )
  })
)
