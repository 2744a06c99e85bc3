/**
 * The route that says whose key a request came with, and which limits hold for it. Says nothing of
 * how keys are kept.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { exampleEvent } from "../../contracts/ExampleEvent.ts"
import { natural, text } from "../../domain/Forms.ts"
import * as Registry from "../../domain/registry/RegistryEntry.ts"
import { errorsOf } from "../contract/ContractErrors.ts"
import { operation } from "../contract/Operation.ts"
import { Authorization } from "../server/Authorization.ts"

const { created_at, expires_at, hint, label, scopes } = Registry.ApiKey.fields
const optional = Schema.optionalKey
const orNone = (description: string) =>
  Schema.NullOr(natural("At least 1.")).annotate({ description: `${description}; null: no limit.` })

const kinds = ["api_key", "admin_token"] as const

const CurrentKey = Schema.Struct({
  id: text("Names the key; not the key itself. `admin` for the admin token."),
  kind: Schema.Literals(kinds),
  label,
  hint: optional(hint),
  created_at: optional(created_at),
  expires_at
}).annotate({
  identifier: "CurrentKey",
  description:
    "The key without its secret. It is valid until it expires, if it does, or is revoked."
})

const Limits = Schema.Struct({
  body_bytes_max: natural("Bytes of a body of events, spans or trace operations, decompressed."),
  batch_items_max: natural("Events, or trace operations, of one request."),
  event_bytes_max: natural("Bytes of one event."),
  metadata_bytes_max: natural("Bytes of the metadata of one event, execution or span."),
  payload_bytes_max: natural("Bytes of the payload of one trace event."),
  action_length_max: natural("Characters of an action."),
  idempotency_key_length_max: natural("Characters of an `Idempotency-Key`."),
  otlp_spans_max: natural("Spans of one OpenTelemetry export."),
  page_size_default: natural("Entries of a page of events or executions, unless asked otherwise."),
  page_size_max: natural("Entries of such a page at most."),
  paged_entries_max: natural("`page` times `page_size` at most."),
  trace_page_size_max: natural("Spans, or trace events, of one page."),
  where_length_max: natural("Characters of a `where` expression."),
  streams_max: natural("Open streams of the tenant."),
  events_per_second_max: orNone("Events, spans and trace operations of the tenant in a second"),
  exports_at_once_max: orNone("Exports of the tenant that are made at once")
}).annotate({
  identifier: "Limits",
  description:
    "What this service is configured with. Sizes are those of the RFC 8785 form, in bytes of UTF-8."
})

const Me = Schema.Struct({
  tenant_id: Schema.String.annotate({
    description: "Whose data the key reads and writes; `_system` with the admin token."
  }),
  scopes,
  key: CurrentKey,
  limits: Limits,
  has_admin_token: Schema.Boolean.annotate({
    description:
      "Whether `ALK_ADMIN_TOKEN` is set; without one, the routes that make tenants and keys are closed."
  })
}).annotate({
  identifier: "Me",
  examples: [
    {
      tenant_id: exampleEvent.tenant_id,
      scopes: ["write"],
      key: {
        id: "key_01980d2c-7a5b-7c3e-9d41-0f6a2b8c4d5e",
        kind: "api_key",
        label: "ingest of the web shop",
        hint: "alk_live_3fJx…",
        created_at: exampleEvent.created_at
      },
      limits: {
        body_bytes_max: 16_777_216,
        batch_items_max: 1_000,
        event_bytes_max: 65_536,
        metadata_bytes_max: 32_768,
        payload_bytes_max: 65_536,
        action_length_max: 128,
        idempotency_key_length_max: 255,
        otlp_spans_max: 20_000,
        page_size_default: 50,
        page_size_max: 1_000,
        paged_entries_max: 10_000_000,
        trace_page_size_max: 10_000,
        where_length_max: 4_096,
        streams_max: 100,
        events_per_second_max: null,
        exports_at_once_max: null
      },
      has_admin_token: true
    }
  ]
})

const getMe = HttpApiEndpoint.get("getMe", "/v1/me", {
  success: Me,
  error: errorsOf("object", 401, 429, 503)
}).pipe(
  operation({
    scopes: Registry.scopes,
    summary: "The key of this request",
    description:
      "Tenant, scopes and label of the key, and the limits that hold for it. Every API key may "
      + "ask, whatever its scopes, and so may the admin token. The token of a share link is valid "
      + "at `/v1/share/export/pdf` only, here it is 401."
  })
)

/** The route of the tag Keys. */
export class MeApi extends HttpApiGroup.make("Keys")
  .add(getMe)
  .middleware(Authorization)
  .annotateMerge(OpenApi.annotations({ description: "What a client can know of its own key." })) {}
