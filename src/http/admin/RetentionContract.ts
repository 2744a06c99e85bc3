/**
 * The routes of retention, legal holds and the deletion of tenants. Says nothing of what is removed
 * how.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { chains } from "../../domain/chain/Chains.ts"
import { time } from "../../domain/Forms.ts"
import { RETENTION_DAYS_MAX, Tombstone } from "../../domain/registry/RetentionEntry.ts"
import { integerInput, member, mustBe, optionalInput, textInput } from "../contract/Bodies.ts"
import { errorsOf } from "../contract/ContractErrors.ts"
import { operation } from "../contract/Operation.ts"
import { AdminAuthorization } from "../server/Authorization.ts"

/** Characters of a reason: the log has room for more. */
const REASON_LENGTH_MAX = 1_000

const tenant = Schema.String.annotate({ description: "Id of the tenant.", examples: ["initech"] })
const params = { tenant }

const Pruned = Schema.Struct({
  chain: Schema.Literals(chains),
  up_to_sequence: Schema.Int.annotate({
    description: "Records with sequence numbers up to this one were removed."
  }),
  head_hash: Schema.String.annotate({ description: "`hash` of the last of them." }),
  root_hash: Schema.String.annotate({ description: "Root of the tree over them, as signed." }),
  checkpoint: Schema.String.annotate({ description: "The signed checkpoint that proves it." }),
  recorded_before: time("All of them were recorded before this time."),
  pruned_at: time("When that was decided."),
  removed_at: Schema.NullOr(time("When their rows were gone; null until then."))
})

const Retention = Schema.Struct({
  tenant_id: Schema.String,
  days: Schema.NullOr(Schema.Int).annotate({
    description: "Days after which records are removed; null: they are kept for ever."
  }),
  hold: Schema.NullOr(
    Schema.Struct({ reason: Schema.String, by: Schema.String, since: time("When it was set.") })
  ).annotate({ description: "A legal hold: nothing of the tenant is removed while it is set." }),
  deletion: Schema.NullOr(
    Schema.Struct({ by: Schema.String, requested_at: time("When it was asked for.") })
  ).annotate({ description: "Somebody has asked for the tenant to be deleted." }),
  pruned: Schema.Array(Pruned).annotate({ description: "What was removed so far, by chain." })
}).annotate({ identifier: "TenantRetention" })

export const RetentionInput = Schema.Struct({
  days: mustBe(
    `an integer from 1 to ${RETENTION_DAYS_MAX}, or null`,
    Schema.NullOr(integerInput(RETENTION_DAYS_MAX))
  ).annotateKey({ description: "null: keep them for ever." })
}).annotate({ identifier: "RetentionInput", examples: [{ days: 365 }] })

export const HoldInput = Schema.Struct({
  reason: member(
    `a string of 1 to ${REASON_LENGTH_MAX} characters`,
    textInput(REASON_LENGTH_MAX, "Why nothing may be removed; it is kept and shown.")
  )
}).annotate({ identifier: "HoldInput", examples: [{ reason: "case 2026-17" }] })

export const RetentionReason = Schema.Struct({
  reason: optionalInput(textInput(REASON_LENGTH_MAX, "Why, for the log."))
}).annotate({ identifier: "RetentionReason", examples: [{ reason: "the case is closed" }] })

export const ConfirmInput = Schema.Struct({
  tenant: member("the id of the tenant", Schema.String.annotate({ description: "Its id again." }))
}).annotate({ identifier: "DeletionConfirmation", examples: [{ tenant: "initech" }] })

const errors = errorsOf("object", 400, 401, 404, 409, 410, 413, 415, 429, 503)
const PATH = "/v1/admin/tenants/:tenant"

const getRetention = HttpApiEndpoint.get("getRetention", `${PATH}/retention`, {
  params,
  success: Retention,
  error: errorsOf("object", 401, 404, 410, 429, 503)
}).pipe(
  operation({
    summary: "Retention of a tenant",
    description: "How long its records are kept, and what was removed so far."
  })
)

const setRetention = HttpApiEndpoint.put("setRetention", `${PATH}/retention`, {
  params,
  payload: RetentionInput,
  success: Retention,
  error: errors
}).pipe(
  operation({
    summary: "Set the retention of a tenant",
    description:
      "Events that were recorded more than so many days ago are removed from the store, up to a "
      + "signed checkpoint and not before they were verified against it. In the log of `_system`: "
      + "`retention.set`, and `retention.pruned` and `retention.removed` for what is removed."
  })
)

const holdTenant = HttpApiEndpoint.post("holdTenant", `${PATH}/hold`, {
  params,
  payload: HoldInput,
  success: Retention,
  error: errors
}).pipe(
  operation({
    summary: "Set a legal hold",
    description:
      "Nothing of the tenant is removed until it is released. 409 `id_conflict` where one is set. In "
      + "the log of `_system`: `retention.held`."
  })
)

const releaseTenant = HttpApiEndpoint.post("releaseTenant", `${PATH}/release`, {
  params,
  payload: RetentionReason,
  success: Retention,
  error: errors
}).pipe(
  operation({
    optionalBody: true,
    summary: "Release a legal hold",
    description: "404 where none is set. In the log of `_system`: `retention.released`."
  })
)

const requestDeletion = HttpApiEndpoint.post("requestDeletion", `${PATH}/deletion`, {
  params,
  payload: RetentionReason,
  success: Retention,
  error: errors
}).pipe(
  operation({
    optionalBody: true,
    summary: "Ask for a tenant to be deleted",
    description:
      "Nothing is removed before it is confirmed. 409 `legal_hold` under a hold. In the log of "
      + "`_system`: `tenant.deletion_requested`."
  })
)

const confirmDeletion = HttpApiEndpoint.post("confirmDeletion", `${PATH}/deletion/confirm`, {
  params,
  payload: ConfirmInput,
  success: Tombstone.pipe(HttpApiSchema.status(202)),
  error: errors
}).pipe(
  operation({
    summary: "Delete a tenant",
    description:
      "For good: its keys, links and sessions end at once, its records leave the store soon after, and "
      + "its id can't be taken again. What is left is the tombstone: how many records there were, the "
      + "last hash, the root and the signed checkpoint. 404 where nobody has asked for it before, 409 "
      + "`legal_hold` under a hold. In the log of `_system`: `tenant.deleted`, and `tenant.removed` "
      + "when everything is gone."
  })
)

const cancelDeletion = HttpApiEndpoint.delete("cancelDeletion", `${PATH}/deletion`, {
  params,
  success: HttpApiSchema.NoContent.annotate({ description: "The tenant stays." }),
  error: errors
}).pipe(
  operation({
    summary: "Take back that a tenant be deleted",
    description: "Until it is confirmed. In the log of `_system`: `tenant.deletion_cancelled`."
  })
)

const getTombstone = HttpApiEndpoint.get("getTombstone", `${PATH}/tombstone`, {
  params,
  success: Tombstone,
  error: errorsOf("object", 401, 404, 429, 503)
}).pipe(
  operation({
    summary: "What is left of a deleted tenant",
    description:
      "`removed_at` is there once everything else is gone. 404 for one that was not deleted."
  })
)

/** The routes of retention, for the admin token. */
export class RetentionApi extends HttpApiGroup.make("Retention")
  .add(getRetention, setRetention, holdTenant, releaseTenant)
  .add(requestDeletion, cancelDeletion, confirmDeletion, getTombstone)
  .middleware(AdminAuthorization)
  .annotateMerge(
    OpenApi.annotations({ description: "How long records are kept, and what ends a tenant." })
  ) {}
