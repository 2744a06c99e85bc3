/**
 * The routes for signed checkpoints and the proofs that refer to them, part of the tag Chain. Says
 * nothing of how they are served.
 */
import { HttpApiEndpoint, HttpApiSchema } from "effect/http-api"
import { chains } from "../../domain/chain/Chains.ts"
import { defined } from "../../domain/Defined.ts"
import { errorsOf } from "../contract/ContractErrors.ts"
import { operation } from "../contract/Operation.ts"
import { queryOf } from "../contract/Requests.ts"
import { JSON_TYPE } from "../messages/MediaTypes.ts"
import { choiceParameter, integerParameter, required } from "../messages/QueryParameters.ts"
import {
  Checkpoint,
  CheckpointList,
  CheckpointNote,
  ConsistencyProof,
  InclusionProof
} from "./ProofSchemas.ts"

/** Checkpoints of one page, unless `limit` says otherwise, and at most. */
export const CHECKPOINTS_DEFAULT = 50
export const CHECKPOINTS_MAX = 100

/** A signed note is text. */
export const NOTE_TYPE = "text/plain"
/** What the latest checkpoint comes as. */
export const checkpointTypes = [JSON_TYPE, NOTE_TYPE] as const

/** Which of the tenant's chains a route is about. */
export const chainParameter = choiceParameter(chains, {
  default: "events",
  description: "The chain of audit events, or that of trace facts."
})

/** Query of the routes that take nothing else. */
export const chainQuery = queryOf(
  { chain: chainParameter },
  { read: ({ chain = "events" }) => ({ chain }) }
)

const checkpointParameters = {
  chain: chainParameter,
  before_size: integerParameter({
    minimum: 1,
    description: "Only checkpoints of smaller trees: the last `tree_size` of the page before."
  }),
  limit: integerParameter({
    minimum: 1,
    maximum: CHECKPOINTS_MAX,
    default: CHECKPOINTS_DEFAULT,
    description: "Checkpoints at most."
  })
}

const inclusionParameters = {
  chain: chainParameter,
  sequence_number: integerParameter({
    minimum: 1,
    description: "The event; of trace facts their `chain_sequence`.",
    example: 1,
    required: true
  }),
  tree_size: integerParameter({
    minimum: 1,
    description:
      "Size of a checkpoint. By default the newest one, or one that is made now if that one is "
      + "before the event."
  })
}

const consistencyParameters = {
  chain: chainParameter,
  first: integerParameter({
    minimum: 1,
    description: "Size of the older checkpoint.",
    example: 1,
    required: true
  }),
  second: integerParameter({
    minimum: 1,
    description: "Size of the newer checkpoint; the newest one by default."
  })
}

export const listCheckpoints = HttpApiEndpoint.get("listCheckpoints", "/v1/chain/checkpoints", {
  query: queryOf(checkpointParameters, {
    read: ({ before_size, chain = "events", limit = CHECKPOINTS_DEFAULT }) => ({
      chain,
      limit,
      ...defined({ beforeSize: before_size })
    })
  }),
  success: CheckpointList,
  error: errorsOf("object", 400, 401, 403, 503)
}).pipe(
  operation({
    scopes: ["read"],
    summary: "The signed checkpoints of the chain",
    description: "One is made every 10 seconds while the chain grows.",
    responseHeaders: { 200: { Link: "first and next page (RFC 8288)." } }
  })
)

export const latestCheckpoint = HttpApiEndpoint.get(
  "latestCheckpoint",
  "/v1/chain/checkpoints/latest",
  {
    query: chainQuery,
    success: [Checkpoint, CheckpointNote.pipe(HttpApiSchema.asText({ contentType: NOTE_TYPE }))],
    error: errorsOf("object", 400, 401, 403, 404, 406, 503)
  }
).pipe(
  operation({
    scopes: ["read"],
    summary: "A signed checkpoint of the whole chain",
    description:
      "Signed now if the chain has grown since the newest one. With `Accept: text/plain` the "
      + "signed note itself. 404 while the chain is empty."
  })
)

const notAProof =
  "Nothing is answered that does not verify against the signed root: if the stored events don't "
  + "lead there, the answer is 503 and its message begins with `checkpoint_mismatch`."

export const inclusionProof = HttpApiEndpoint.get("inclusionProof", "/v1/chain/proofs/inclusion", {
  query: queryOf(inclusionParameters, {
    read: ({ chain = "events", sequence_number, tree_size }) => ({
      chain,
      sequence: required(sequence_number, "sequence_number"),
      treeSize: tree_size
    })
  }),
  success: InclusionProof,
  error: errorsOf("object", 400, 401, 403, 404, 410, 503)
}).pipe(
  operation({
    scopes: ["read"],
    summary: "Proof that an event is part of a checkpoint",
    description: `RFC 9162, section 2.1.3. ${notAProof}`
  })
)

export const consistencyProof = HttpApiEndpoint.get(
  "consistencyProof",
  "/v1/chain/proofs/consistency",
  {
    query: queryOf(consistencyParameters, {
      read: ({ chain = "events", first, second }) => ({
        chain,
        first: required(first, "first"),
        second
      })
    }),
    success: ConsistencyProof,
    error: errorsOf("object", 400, 401, 403, 404, 410, 503)
  }
).pipe(
  operation({
    scopes: ["read"],
    summary: "Proof that one checkpoint only adds to another",
    description: `RFC 9162, section 2.1.4. ${notAProof}`
  })
)
