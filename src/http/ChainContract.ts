/**
 * The routes that show a tenant's hash chain. Says nothing of how they are served.
 */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Authorization, RequiredScope } from "./Authorization.ts"
import { errorsOf } from "./ContractErrors.ts"
import { Chain, ChainLink } from "./ContractSchemas.ts"
import { NDJSON_TYPE } from "./MediaTypes.ts"
import { operation } from "./Operation.ts"
import { integerParameter } from "./QueryParameters.ts"

/** Query of `GET /v1/chain/links`. */
export const linkParameters = {
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

const Links = ChainLink.annotate({
  description: "One link per line, ascending; the schema is that of one line."
}).pipe(HttpApiSchema.asJson({ contentType: NDJSON_TYPE }))

const getChain = HttpApiEndpoint.get("getChain", "/v1/chain", {
  success: Chain,
  error: errorsOf("object", 401, 403, 503)
})
  .annotate(RequiredScope, ["read"])
  .annotateMerge(
    operation({
      id: "getChain",
      summary: "The tenant's chain",
      description: "Length and head as the log tells them, independent of the query store."
    })
  )

const getChainLinks = HttpApiEndpoint.get("getChainLinks", "/v1/chain/links", {
  success: Links,
  error: errorsOf("object", 400, 401, 403, 503)
})
  .annotate(RequiredScope, ["read"])
  .annotateMerge(
    operation({
      id: "getChainLinks",
      summary: "The links of the chain",
      description: "Everything that is needed to check the chain, without the contents.",
      query: linkParameters
    })
  )

/** The routes of the tag Chain. */
export class ChainApi extends HttpApiGroup.make("Chain")
  .add(getChain, getChainLinks)
  .middleware(Authorization)
  .annotateMerge(OpenApi.annotations({ description: "The hash chain itself." })) {}

