/**
 * The routes of C2SP tlog-tiles, part of the tag Chain: each of the tenant's trees as a log that
 * any client of that specification reads. Says nothing of how they are served.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiSchema } from "effect/http-api"
import { errorsOf } from "../contract/ContractErrors.ts"
import { operation } from "../contract/Operation.ts"
import { NOTE_TYPE } from "./ProofContract.ts"
import { CheckpointNote } from "./ProofSchemas.ts"

/** Of tiles and entry bundles. */
export const TILE_TYPE = "application/octet-stream"

const chain = Schema.String.annotate({
  description: "`events`, or `traces` for the chain of trace facts.",
  examples: ["events"]
})

/** The rest of the path, which has slashes itself. */
const index = Schema.String.annotate({
  description:
    "Index of the tile in groups of three digits, all but the last one after an `x`, and the "
    + "width of a partial tile: `000`, `x001/x234/067`, `x001/x234/067.p/5`. Its slashes may be "
    + "sent as they are, as clients of tlog-tiles do, or percent-encoded.",
  examples: ["000.p/1"]
})

const level = Schema.String.annotate({
  description: "Level of the tile, 0 to 63.",
  examples: ["0"]
})

const proven =
  "404 unless the newest signed checkpoint covers all of it. Nothing is answered that does not "
  + "lead to a signed root: if what is stored doesn't, the answer is 503 and its message begins with "
  + "`checkpoint_mismatch`."

const responseHeaders = {
  200: {
    "Cache-Control": "A full tile may be kept for ever, a partial one for a minute.",
    Vary: "The same path is another tile for a key of another tenant."
  }
}

export const tlogCheckpoint = HttpApiEndpoint.get("tlogCheckpoint", "/v1/tlog/:chain/checkpoint", {
  params: { chain },
  success: CheckpointNote.pipe(HttpApiSchema.asText({ contentType: NOTE_TYPE })),
  error: errorsOf("object", 400, 401, 403, 404, 503)
}).pipe(
  operation({
    scopes: ["read"],
    summary: "The newest checkpoint of a tree, for clients of C2SP tlog-tiles",
    description:
      "The prefix of the log is `/v1/tlog/events` or `/v1/tlog/traces`; its origin is "
      + "`<service>/<tenant>` or `<service>/<tenant>/traces`. Signed now if the chain has grown "
      + "since the newest one. 404 while the chain is empty."
  })
)

export const tlogEntries = HttpApiEndpoint.get("tlogEntries", "/v1/tlog/:chain/tile/entries/*", {
  params: { chain, "*": index },
  success: Schema.Uint8Array.annotate({
    description: "For each entry its length in 2 bytes, big-endian, and the entry."
  }).pipe(HttpApiSchema.asUint8Array({ contentType: TILE_TYPE })),
  error: errorsOf("object", 400, 401, 403, 404, 410, 503)
}).pipe(
  operation({
    scopes: ["read"],
    summary: "An entry bundle of C2SP tlog-tiles",
    description:
      "256 entries, or those of a partial tile. An entry is the 32 bytes of the `hash` of an "
      + `event or trace fact, not its content: \`/v1/verify\` checks the contents. ${proven}`,
    responseHeaders
  })
)

export const tlogTile = HttpApiEndpoint.get("tlogTile", "/v1/tlog/:chain/tile/:level/*", {
  params: { chain, level, "*": index },
  success: Schema.Uint8Array.annotate({
    description: "Hashes of 32 bytes, one after the other."
  }).pipe(HttpApiSchema.asUint8Array({ contentType: TILE_TYPE })),
  error: errorsOf("object", 400, 401, 403, 404, 410, 503)
}).pipe(
  operation({
    scopes: ["read"],
    summary: "A tile of C2SP tlog-tiles",
    description:
      "256 consecutive hashes of a level, or those of a partial tile: on level 0 hashes of "
      + `leaves, above it the roots of full tiles of the level below. ${proven}`,
    responseHeaders
  })
)
