/**
 * Serves checkpoints and proofs: reads what is asked for, and shows what `Checkpoints` has
 * verified. Makes and checks none of it.
 */
import { Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { Visibility } from "../../actors/log/Visibility.ts"
import { type Chain, treeNameOf } from "../../domain/chain/Chains.ts"
import { leafHash } from "../../domain/chain/MerkleTree.ts"
import type {
  CheckpointMismatch,
  CheckpointTimedOut,
  ProofRefused
} from "../../services/checkpoints/CheckpointFailures.ts"
import { Checkpoints } from "../../services/checkpoints/Checkpoints.ts"
import { answering, type Failure, json, negotiated } from "../messages/Answer.ts"
import { ApiError, invalid, refusable, unavailable } from "../messages/ApiError.ts"
import { ApiSettings } from "../messages/ApiSettings.ts"
import { readQuery } from "../messages/QueryParameters.ts"
import { readableView } from "../messages/StoreView.ts"
import { CurrentPrincipal } from "../server/Authorization.ts"
import {
  CHECKPOINTS_DEFAULT,
  checkpointParameters,
  checkpointTypes,
  consistencyParameters,
  inclusionParameters,
  latestParameters,
  NOTE_TYPE
} from "./ProofContract.ts"

interface Input {
  readonly request: HttpServerRequest.HttpServerRequest
}

/** What was asked for and can't be proven. */
const refusalOf = ({ code, field, message }: ProofRefused): ApiError =>
  new ApiError({
    code,
    message: field === undefined ? message : `${field}: ${message}`,
    ...(field === undefined ? {} : { field })
  })

/** The failures of proofs as refusals; what all routes may fail with stays as it is. */
export const refusingProofs = <A, R>(
  effect: Effect.Effect<A, CheckpointMismatch | CheckpointTimedOut | ProofRefused | Failure, R>
): Effect.Effect<A, Failure, R> =>
  effect.pipe(
    Effect.catchTag("ProofRefused", (refused) => Effect.fail(refusalOf(refused))),
    Effect.catchTag(["CheckpointMismatch", "CheckpointTimedOut"], ({ message }) =>
      Effect.fail(unavailable(message))
    )
  )

const required = (value: number | undefined, field: string): number => {
  if (value === undefined) throw invalid(field, "is required")
  return value
}

/** The pages before and after by size; there is no last one to name while the chain grows. */
const linkHeader = (
  base: string,
  { chain, limit }: { readonly chain: Chain; readonly limit: number },
  smallest: number | undefined
): string => {
  const query = `${chain === "events" ? "" : `chain=${chain}&`}limit=${limit}`
  const first = `<${base}?${query}>; rel="first"`
  return smallest === undefined
    ? first
    : `${first}, <${base}?${query}&before_size=${smallest}>; rel="next"`
}

/** The handlers of the routes in `ProofContract`, by the names of their endpoints. */
export const makeProofHandlers = Effect.gen(function* () {
  const checkpoints = yield* Checkpoints
  const visibility = yield* Visibility
  const { publicUrl } = yield* ApiSettings

  return {
    listCheckpoints: answering(
      Effect.fnUntraced(function* ({ request }: Input) {
        const { tenantId } = yield* CurrentPrincipal
        const { values } = yield* refusable(() => readQuery(request.url, checkpointParameters))
        const { before_size, chain = "events", limit = CHECKPOINTS_DEFAULT } = values
        yield* readableView(visibility, tenantId)
        const found = yield* refusingProofs(
          checkpoints.list(treeNameOf(tenantId, chain), {
            limit,
            ...(before_size === undefined ? {} : { beforeSize: before_size })
          })
        )
        const smallest = found.length < limit ? undefined : found.at(-1)?.tree_size
        const link = linkHeader(
          `${publicUrl ?? ""}/v1/chain/checkpoints`,
          { chain, limit },
          smallest
        )
        return json({ checkpoints: found }, { headers: { link } })
      })
    ),
    latestCheckpoint: answering(
      Effect.fnUntraced(function* ({ request }: Input) {
        const { tenantId } = yield* CurrentPrincipal
        const { values } = yield* refusable(() => readQuery(request.url, latestParameters))
        const type = yield* negotiated(request, checkpointTypes, "a checkpoint comes")
        const tree = treeNameOf(tenantId, values.chain ?? "events")
        const latest = yield* refusingProofs(checkpoints.latest(tree))
        return type === NOTE_TYPE
          ? HttpServerResponse.text(latest.note, { contentType: `${NOTE_TYPE}; charset=utf-8` })
          : json(latest)
      })
    ),
    inclusionProof: answering(
      Effect.fnUntraced(function* ({ request }: Input) {
        const { tenantId } = yield* CurrentPrincipal
        const { sequence, tree, treeSize } = yield* refusable(() => {
          const { values } = readQuery(request.url, inclusionParameters)
          return {
            sequence: required(values.sequence_number, "sequence_number"),
            tree: treeNameOf(tenantId, values.chain ?? "events"),
            treeSize: values.tree_size
          }
        })
        yield* readableView(visibility, tenantId)
        const { checkpoint, eventHash, proof } = yield* refusingProofs(
          checkpoints.inclusion(tree, sequence, treeSize)
        )
        return json({
          tenant_id: tenantId,
          sequence_number: sequence,
          leaf_index: sequence - 1,
          event_hash: eventHash,
          leaf_hash: leafHash(eventHash).toString("hex"),
          proof,
          checkpoint
        })
      })
    ),
    consistencyProof: answering(
      Effect.fnUntraced(function* ({ request }: Input) {
        const { tenantId } = yield* CurrentPrincipal
        const { first, second, tree } = yield* refusable(() => {
          const { values } = readQuery(request.url, consistencyParameters)
          return {
            first: required(values.first, "first"),
            second: values.second,
            tree: treeNameOf(tenantId, values.chain ?? "events")
          }
        })
        yield* readableView(visibility, tenantId)
        const found = yield* refusingProofs(checkpoints.consistency(tree, first, second))
        return json({ tenant_id: tenantId, ...found })
      })
    )
  }
})
