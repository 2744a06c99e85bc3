/**
 * Serves checkpoints and proofs: reads what is asked for, and shows what `Checkpoints` has
 * verified. Makes and checks none of it.
 */
import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { ProjectionProgress } from "../../actors/log/ProjectionProgress.ts"
import { type Chain, treeNameOf } from "../../domain/chain/Chains.ts"
import { leafHash } from "../../domain/chain/MerkleTree.ts"
import { Checkpoints } from "../../services/checkpoints/Checkpoints.ts"
import type { RequestOf } from "../contract/Requests.ts"
import { json, negotiated } from "../messages/Answer.ts"
import { ApiSettings } from "../messages/ApiSettings.ts"
import { readableView } from "../messages/StoreView.ts"
import { CurrentPrincipal } from "../server/Authorization.ts"
import {
  checkpointTypes,
  type consistencyProof,
  type inclusionProof,
  type latestCheckpoint,
  type listCheckpoints,
  NOTE_TYPE
} from "./ProofContract.ts"

/** The pages before and after by size; there is no last one to name while the chain grows. */
const linkHeader = (
  base: string,
  { chain, limit }: { readonly chain: Chain; readonly limit: number },
  beforeSize: number | undefined
): string => {
  const query = `${chain === "events" ? "" : `chain=${chain}&`}limit=${limit}`
  const first = `<${base}?${query}>; rel="first"`
  return beforeSize === undefined
    ? first
    : `${first}, <${base}?${query}&before_size=${beforeSize}>; rel="next"`
}

/** The handlers of the routes in `ProofContract`, by the names of their endpoints. */
export const makeProofHandlers = Effect.gen(function* () {
  const checkpoints = yield* Checkpoints
  const projection = yield* ProjectionProgress
  const { publicUrl } = yield* ApiSettings

  return {
    listCheckpoints: Effect.fnUntraced(function* ({ query }: RequestOf<typeof listCheckpoints>) {
      const { tenantId } = yield* CurrentPrincipal
      const { chain, limit } = query
      yield* readableView(projection, tenantId)
      const page = yield* checkpoints.list(treeNameOf(tenantId, chain), query)
      const base = `${publicUrl ?? ""}/v1/chain/checkpoints`
      const link = linkHeader(base, { chain, limit }, page.beforeSize)
      return json({ checkpoints: page.checkpoints }, { headers: { link } })
    }),
    latestCheckpoint: Effect.fnUntraced(function* (input: RequestOf<typeof latestCheckpoint>) {
      const { query, request } = input
      const { tenantId } = yield* CurrentPrincipal
      const type = yield* negotiated(request, checkpointTypes, "a checkpoint comes")
      const latest = yield* checkpoints.latest(treeNameOf(tenantId, query.chain))
      return type === NOTE_TYPE
        ? HttpServerResponse.text(latest.note, { contentType: `${NOTE_TYPE}; charset=utf-8` })
        : json(latest)
    }),
    inclusionProof: Effect.fnUntraced(function* ({ query }: RequestOf<typeof inclusionProof>) {
      const { tenantId } = yield* CurrentPrincipal
      const { chain, sequence, treeSize } = query
      yield* readableView(projection, tenantId)
      const { checkpoint, eventHash, proof } = yield* checkpoints.inclusion(
        treeNameOf(tenantId, chain),
        sequence,
        treeSize
      )
      return {
        tenant_id: tenantId,
        sequence_number: sequence,
        leaf_index: sequence - 1,
        event_hash: eventHash,
        leaf_hash: leafHash(eventHash).toString("hex"),
        proof,
        checkpoint
      }
    }),
    consistencyProof: Effect.fnUntraced(function* ({ query }: RequestOf<typeof consistencyProof>) {
      const { tenantId } = yield* CurrentPrincipal
      const { chain, first, second } = query
      yield* readableView(projection, tenantId)
      const tree = treeNameOf(tenantId, chain)
      const found = yield* checkpoints.consistency(tree, first, second)
      return { tenant_id: tenantId, ...found }
    })
  }
})
