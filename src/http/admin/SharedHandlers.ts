/**
 * Serves the bearers of share links: what their link covers, the verdict on it, its documents. Who
 * may use a link is decided by `ShareLinks`; the scope is the one of the link, whatever is asked.
 */
import { Effect, Layer, Redacted } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Keys } from "../../actors/follower/Keys.ts"
import { ProjectionProgress } from "../../actors/log/ProjectionProgress.ts"
import { treeNameOf } from "../../domain/chain/Chains.ts"
import { defined } from "../../domain/Defined.ts"
import type { ShareLink } from "../../domain/registry/RegistryEntry.ts"
import { EventStore } from "../../ports/EventStore.ts"
import { type LinkUnusable, ShareLinks } from "../../services/administration/ShareLinks.ts"
import { Checkpoints } from "../../services/checkpoints/Checkpoints.ts"
import { Verifier, type VerifyRequest } from "../../verify/Verifier.ts"
import { withoutEventIds } from "../../verify/VerifyReport.ts"
import { Api } from "../Api.ts"
import { ExportAnswers } from "../exports/ExportAnswers.ts"
import type { ExportOrder } from "../exports/ExportOrder.ts"
import { errorResponse } from "../messages/Answer.ts"
import { ApiError } from "../messages/ApiError.ts"
import { CurrentRequest } from "../messages/CurrentRequest.ts"
import { withKnownQuery } from "../messages/KnownQuery.ts"
import { readableView } from "../messages/StoreView.ts"
import { tenantSlots } from "../messages/TenantSlots.ts"
import { FailedCredentials } from "../server/FailedCredentials.ts"
import { HttpListener } from "../server/HttpListener.ts"
import { reportAnswer, wantsLines } from "../verification/VerifyAnswers.ts"
import { coverOf, coversTraces } from "./ShareCover.ts"
import { CurrentShareLink, SHARED_CHECKS_MAX, ShareAuthorization } from "./SharedContract.ts"

/** The refusal of a token. Why a link has ended is said to those who have its token. */
const refusalOf = ({ end, message }: LinkUnusable): ApiError =>
  new ApiError({
    code: "unauthenticated",
    message: `${message}; send its token as Authorization: Bearer shr_…`,
    ...(end === undefined
      ? {}
      : {
          headers: {
            "www-authenticate": `Bearer error="invalid_token", error_description="${end}"`
          }
        })
  })

/** 401 without the token of a link that can be used now. */
export const layerShareAuthorization: Layer.Layer<
  ShareAuthorization,
  never,
  ShareLinks | FailedCredentials
> = Layer.effect(
  ShareAuthorization,
  Effect.gen(function* () {
    const links = yield* ShareLinks
    const failed = yield* FailedCredentials
    return ShareAuthorization.of({
      share_token: (handler, { credential, endpoint }) => {
        const token = Redacted.value(credential)
        return links.find(token).pipe(
          Effect.matchEffect({
            onFailure: (unusable) => {
              const refusal = refusalOf(unusable)
              if (token === "") return errorResponse(refusal)
              return Effect.flatMap(failed.refusal(refusal), errorResponse)
            },
            onSuccess: (link) =>
              CurrentRequest.use((facts) => {
                facts.tenantId = link.tenant_id
                return Effect.provideService(
                  withKnownQuery(endpoint, handler),
                  CurrentShareLink,
                  link
                )
              })
          })
        )
      }
    })
  })
)

/** What of the tenant's chains is verified for a link: never more than its documents cover. */
const verificationOf = (link: ShareLink): VerifyRequest => {
  const { from, fromSequence, to, toSequence } = link.filter
  return {
    tenantId: link.tenant_id,
    requireHead: true,
    ...defined({ from, fromSequence, to, toSequence }),
    ...(coversTraces(link) ? {} : { chain: "events" as const })
  }
}

/** The handlers of SharedApi. */
export const layerSharedHandlers = HttpApiBuilder.group(
  Api,
  "Shared",
  Effect.fnUntraced(function* (handlers) {
    const answers = yield* ExportAnswers
    const links = yield* ShareLinks
    const keys = yield* Keys
    const store = yield* EventStore
    const projection = yield* ProjectionProgress
    const verifier = yield* Verifier
    const checkpoints = yield* Checkpoints
    const { url: ownUrl } = yield* HttpListener
    const takeSlot = tenantSlots("verifications", SHARED_CHECKS_MAX, "this share link")

    const orderOf = (link: ShareLink): ExportOrder => ({
      tenantId: link.tenant_id,
      filter: link.filter,
      eventsOnly: !coversTraces(link),
      askedBy: { kind: "share link", id: link.id },
      ownUrl,
      // Counted when there is something to hand out; the last use goes to the first that takes it.
      permit: links
        .use(link)
        .pipe(Effect.catchTag("LinkUnusable", (unusable) => Effect.fail(refusalOf(unusable))))
    })

    return handlers
      .handle(
        "getSharedScope",
        Effect.fnUntraced(function* () {
          const link = yield* CurrentShareLink
          const { filter, tenant_id: tenantId } = link
          const { deduplicate } = yield* readableView(projection, tenantId)
          const query = { tenantId, filter, order: "asc" as const, offset: 0, limit: 1 }
          const { total } = yield* store.page(query, deduplicate)
          const tenant = (yield* keys.tenants).find(({ id }) => id === tenantId)
          // Without one where it can't be read or doesn't hold: the verification says why.
          const checkpoint = yield* Effect.orElseSucceed(
            checkpoints.held(treeNameOf(tenantId, "events")),
            () => undefined
          )
          return {
            tenant: { id: tenantId, ...defined({ name: tenant?.name }) },
            ...coverOf(link),
            events: total,
            ...defined({ checkpoint }),
            has_traces: coversTraces(link)
          }
        })
      )
      .handle(
        "verifyShared",
        Effect.fnUntraced(function* ({ request }) {
          const link = yield* CurrentShareLink
          const inLines = yield* wantsLines(request)
          yield* takeSlot(link.id)
          return yield* reportAnswer(inLines, (more) =>
            Effect.map(verifier.verifyTenant({ ...verificationOf(link), ...more }), withoutEventIds)
          )
        })
      )
      .handleRaw(
        "exportSharedPdf",
        Effect.fnUntraced(function* ({ request }) {
          return yield* answers.pdf(request, orderOf(yield* CurrentShareLink))
        })
      )
      .handleRaw(
        "exportSharedPack",
        Effect.fnUntraced(function* ({ query: { pdf: withPdf = true }, request }) {
          return yield* answers.pack(request, orderOf(yield* CurrentShareLink), withPdf)
        })
      )
  })
)
