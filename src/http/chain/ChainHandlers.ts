/**
 * Serves the chain itself: the head as the log has it, the links as they are stored, and what
 * `ProofHandlers` and `TlogHandlers` serve of its checkpoints and tree.
 */
import { Effect, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { ChainEnds } from "../../actors/chainEnds/ChainEnds.ts"
import { ProjectionProgress } from "../../actors/log/ProjectionProgress.ts"
import { linkOf } from "../../domain/chain/ChainLink.ts"
import { type Chain, GENESIS_HASH, treeNameOf } from "../../domain/chain/Chains.ts"
import { defined } from "../../domain/Defined.ts"
import { emptyFilter } from "../../domain/events/EventFilter.ts"
import { SCHEME } from "../../domain/events/HashChain.ts"
import { inReadTurns } from "../../domain/TenantTurns.ts"
import { TRACE_SCHEME } from "../../domain/traces/FactText.ts"
import { EventStore, type StoreUnavailable } from "../../ports/EventStore.ts"
import { TraceStore } from "../../ports/TraceStore.ts"
import { Checkpoints } from "../../services/checkpoints/Checkpoints.ts"
import { Api } from "../Api.ts"
import { NDJSON_TYPE } from "../messages/MediaTypes.ts"
import { readableView } from "../messages/StoreView.ts"
import { CurrentPrincipal } from "../server/Authorization.ts"
import { makeProofHandlers } from "./ProofHandlers.ts"
import { makeTlogHandlers } from "./TlogHandlers.ts"

/** One line: the link of a stored event or fact. Bytes without one are a defect of the store. */
const linkLine = (chain: Chain, body: string): string => {
  const link = linkOf(Buffer.from(body), chain)
  if (link === undefined) throw new Error("a stored record without a link")
  const { contentHash, createdAt, hash, prevHash, sequenceNumber } = link
  return `${JSON.stringify({
    sequence_number: sequenceNumber,
    created_at: createdAt,
    content_hash: contentHash,
    prev_hash: prevHash,
    hash
  })}\n`
}

/** The handlers of ChainApi. */
export const layerChainHandlers = HttpApiBuilder.group(
  Api,
  "Chain",
  Effect.fnUntraced(function* (handlers) {
    const checkpoints = yield* Checkpoints
    const ends = yield* ChainEnds
    const traces = yield* TraceStore
    const proofs = yield* makeProofHandlers
    const tlog = yield* makeTlogHandlers
    const store = yield* EventStore
    const projection = yield* ProjectionProgress

    /** The chain is shown without one where the newest one can't be read or doesn't hold. */
    const newestCheckpoint = (tree: string) =>
      Effect.catch(checkpoints.held(tree), () => Effect.succeed(undefined))

    return handlers
      .handleAll({ ...proofs, ...tlog })
      .handle(
        "getChain",
        Effect.fnUntraced(function* ({ query: { chain } }) {
          const { tenantId } = yield* CurrentPrincipal
          const head = yield* ends.head({ tenantId, chain })
          const checkpoint =
            head === undefined ? undefined : yield* newestCheckpoint(treeNameOf(tenantId, chain))
          return {
            scheme: chain === "events" ? SCHEME : TRACE_SCHEME,
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
            ...defined({ checkpoint })
          }
        })
      )
      .handleRaw(
        "getChainLinks",
        Effect.fnUntraced(function* ({ query: { chain, first, last } }) {
          const { tenantId } = yield* CurrentPrincipal
          const { deduplicate } = yield* readableView(projection, tenantId)
          const filter = { ...emptyFilter, fromSequence: first, toSequence: last }
          const chunks: Stream.Stream<ReadonlyArray<string>, StoreUnavailable> = chain === "events"
            ? store.scan({ tenantId, filter, order: "asc" }, deduplicate)
            : traces.chain({ tenantId, first, last, isSuffix: true })
          return HttpServerResponse.stream(
            inReadTurns(tenantId, chunks).pipe(
              Stream.filter((bodies) => bodies.length > 0),
              Stream.map((bodies) => bodies.map((body) => linkLine(chain, body)).join("")),
              Stream.encodeText
            ),
            { contentType: NDJSON_TYPE }
          )
        })
      )
  })
)
