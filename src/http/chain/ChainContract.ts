/**
 * The routes that show a tenant's hash chain. Says nothing of how they are served.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { exampleCheckpoint } from "../../contracts/ExampleCheckpoint.ts"
import { exampleEvent } from "../../contracts/ExampleEvent.ts"
import { errorsOf } from "../contract/ContractErrors.ts"
import { Chain, ChainLink } from "../contract/ContractSchemas.ts"
import { operation } from "../contract/Operation.ts"
import { queryOf } from "../contract/Requests.ts"
import { NDJSON_TYPE } from "../messages/MediaTypes.ts"
import { integerParameter } from "../messages/QueryParameters.ts"
import { Authorization } from "../server/Authorization.ts"
import {
  chainParameter,
  chainQuery,
  consistencyProof,
  inclusionProof,
  latestCheckpoint,
  listCheckpoints
} from "./ProofContract.ts"
import { Checkpoint } from "./ProofSchemas.ts"
import { tlogCheckpoint, tlogEntries, tlogTile } from "./TlogContract.ts"

const linkParameters = {
  chain: chainParameter,
  from_sequence: integerParameter({
    minimum: 1,
    default: 1,
    description: "The first link."
  }),
  limit: integerParameter({
    minimum: 1,
    description: "Links at most; to the end of the chain if missing."
  })
}

/** Query of `GET /v1/chain/links`: the chain, and the first and the last sequence. */
const linkQuery = queryOf(linkParameters, {
  read: ({ chain = "events", from_sequence: first = 1, limit = Number.MAX_SAFE_INTEGER }) => ({
    chain,
    first,
    last: Math.min(Number.MAX_SAFE_INTEGER, first + limit - 1)
  })
})

/** The chain with its newest signed checkpoint. */
const SignedChain = Schema.Struct({
  ...Chain.fields,
  checkpoint: Schema.optionalKey(
    Checkpoint.annotate({
      description: "The newest one; it may be a few seconds older than the head."
    })
  )
}).annotate({
  identifier: "Chain",
  description: "The tenant's chain as the log has it.",
  examples: [
    {
      scheme: "alk-chain-v1",
      tenant_id: exampleEvent.tenant_id,
      length: 1,
      genesis_hash: exampleEvent.prev_hash,
      head: {
        sequence_number: exampleEvent.sequence_number,
        hash: exampleEvent.hash,
        created_at: exampleEvent.created_at
      },
      checkpoint: exampleCheckpoint
    }
  ]
})

const Links = ChainLink.annotate({
  description: "One link per line, ascending; the schema is that of one line."
}).pipe(HttpApiSchema.asJson({ contentType: NDJSON_TYPE }))

const getChain = HttpApiEndpoint.get("getChain", "/v1/chain", {
  query: chainQuery,
  success: SignedChain,
  error: errorsOf("object", 400, 401, 403, 503)
}).pipe(
  operation({
    scopes: ["read"],
    summary: "The tenant's chain",
    description:
      "Length and head as the log has them, independent of the query store, and the newest "
      + "signed checkpoint if there is one."
  })
)

const getChainLinks = HttpApiEndpoint.get("getChainLinks", "/v1/chain/links", {
  query: linkQuery,
  success: Links,
  error: errorsOf("object", 400, 401, 403, 503)
}).pipe(
  operation({
    scopes: ["read"],
    summary: "The links of the chain",
    description: "Everything that is needed to check the chain, without the contents."
  })
)

/** The routes of the tag Chain. */
export class ChainApi extends HttpApiGroup.make("Chain")
  .add(
    getChain,
    getChainLinks,
    listCheckpoints,
    latestCheckpoint,
    inclusionProof,
    consistencyProof,
    tlogCheckpoint,
    tlogEntries,
    tlogTile
  )
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({
      description: "The hash chain itself, its signed checkpoints and their proofs."
    })
  ) {}
