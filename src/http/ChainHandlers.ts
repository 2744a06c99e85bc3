/**
 * Serves the chain itself: the head as the log tells it, the links as they are stored, and what
 * `ProofHandlers` serves of its checkpoints.
 */
import { Effect, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Heads } from "../actors/Heads.ts"
import { Visibility } from "../actors/Visibility.ts"
import { emptyFilter, type EventFilter } from "../domain/EventFilter.ts"
import { GENESIS_HASH, SCHEME } from "../domain/HashChain.ts"
import { linkOf } from "../domain/Link.ts"
import { Checkpoints } from "../pipeline/Checkpoints.ts"
import { EventStore } from "../ports/EventStore.ts"
import { answering, json } from "./Answer.ts"
import { Api } from "./Api.ts"
import { refusable } from "./ApiError.ts"
import { CurrentPrincipal } from "./Authorization.ts"
import { linkParameters } from "./ChainContract.ts"
import { NDJSON_TYPE } from "./MediaTypes.ts"
import { makeProofHandlers } from "./ProofHandlers.ts"
import { readQuery } from "./QueryParameters.ts"
import { readableView } from "./StoreView.ts"

/** One line: the link of a stored event. Bytes without one are a defect of the store. */
const linkLine = (body: string): string => {
  const link = linkOf(Buffer.from(body))
  if (link === undefined) throw new Error("a stored event without a link")
  const { contentHash, createdAt, hash, prevHash, sequenceNumber } = link
  return `${JSON.stringify({
    sequence_number: sequenceNumber,
    created_at: createdAt,
    content_hash: contentHash,
    prev_hash: prevHash,
    hash
  })}\n`
}

/** The sequences that are asked for; throws ApiError. */
const linkFilter = (target: string): EventFilter => {
  const { from_sequence: first = 1, limit } = readQuery(target, linkParameters).values
  const last = limit === undefined ? undefined : first + limit - 1
  return {
    ...emptyFilter,
    fromSequence: first,
    ...(last === undefined || last > Number.MAX_SAFE_INTEGER ? {} : { toSequence: last })
  }
}

/** The handlers of ChainApi. */
export const layerChainHandlers = HttpApiBuilder.group(
  Api,
  "Chain",
  Effect.fnUntraced(function*(handlers) {
    const checkpoints = yield* Checkpoints
    const heads = yield* Heads
    const proofs = yield* makeProofHandlers
    const store = yield* EventStore
    const visibility = yield* Visibility

    /** The chain is shown without one where the newest one can't be read or doesn't hold. */
    const newestCheckpoint = (tenantId: string) =>
      Effect.catch(checkpoints.held(tenantId), () => Effect.succeed(undefined))

    return handlers
      .handleRaw("listCheckpoints", proofs.listCheckpoints)
      .handleRaw("latestCheckpoint", proofs.latestCheckpoint)
      .handleRaw("inclusionProof", proofs.inclusionProof)
      .handleRaw("consistencyProof", proofs.consistencyProof)
      .handleRaw(
        "getChain",
        answering(
          Effect.fnUntraced(function*() {
            const { tenantId } = yield* CurrentPrincipal
            const head = yield* heads.head(tenantId)
            const checkpoint = head === undefined ? undefined : yield* newestCheckpoint(tenantId)
            return json({
              scheme: SCHEME,
              tenant_id: tenantId,
              length: head?.sequence_number ?? 0,
              genesis_hash: GENESIS_HASH,
              head:
                head === undefined
                  ? null
                  : {
                      sequence_number: head.sequence_number,
                      hash: head.hash,
                      created_at: head.created_at
                    },
              ...(checkpoint === undefined ? {} : { checkpoint })
            })
          })
        )
      )
      .handleRaw(
        "getChainLinks",
        answering(
          Effect.fnUntraced(function*({ request }) {
            const { tenantId } = yield* CurrentPrincipal
            const filter = yield* refusable(() => linkFilter(request.url))
            const { final } = yield* readableView(visibility, tenantId)
            const chunks = store.scan({ tenantId, filter, order: "asc" }, final)
            return HttpServerResponse.stream(
              chunks.pipe(
                Stream.filter((bodies) => bodies.length > 0),
                Stream.map((bodies) => bodies.map(linkLine).join("")),
                Stream.encodeText
              ),
              { contentType: NDJSON_TYPE }
            )
          })
        )
      )
  })
)
