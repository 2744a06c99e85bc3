/**
 * Serves a tenant's trees as C2SP tlog-tiles: reads the paths, and sends what `Checkpoints` has
 * proven. Makes and checks none of it.
 */
import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { ProjectionProgress } from "../../actors/log/ProjectionProgress.ts"
import { type Chain, chains, treeNameOf } from "../../domain/chain/Chains.ts"
import { entryBundle, isFull, parseTile, type Tile } from "../../domain/chain/Tile.ts"
import { Checkpoints } from "../../services/checkpoints/Checkpoints.ts"
import type { ProvenTile } from "../../services/checkpoints/StoredProofs.ts"
import type { RequestOf } from "../contract/Requests.ts"
import { ApiError, notFound } from "../messages/ApiError.ts"
import { readableView } from "../messages/StoreView.ts"
import { CurrentPrincipal } from "../server/Authorization.ts"
import { NOTE_TYPE } from "./ProofContract.ts"
import { TILE_TYPE, type tlogCheckpoint, type tlogEntries, type tlogTile } from "./TlogContract.ts"

/** Seconds that a client may keep a full tile: a year, the usual value where nothing ever changes. */
const FULL_MAX_AGE_SECONDS = 31_536_000
/** Seconds that a client may keep a partial tile: there will be a wider one. */
const PARTIAL_MAX_AGE_SECONDS = 60

const cachingOf = (tile: Tile): string =>
  isFull(tile)
    ? `private, max-age=${FULL_MAX_AGE_SECONDS}, immutable`
    : `private, max-age=${PARTIAL_MAX_AGE_SECONDS}`

const isChain = (name: string): name is Chain => (chains as ReadonlyArray<string>).includes(name)

/** Name of the tree of the caller's tenant. */
const treeOf = Effect.fnUntraced(function* (chain: string) {
  const { tenantId } = yield* CurrentPrincipal
  if (!isChain(chain)) return yield* notFound("log: its name is events or traces")
  return { tenantId, tree: treeNameOf(tenantId, chain) }
})

const noTile = new ApiError({
  code: "not_found",
  message:
    "there is no such path of a tile; C2SP tlog-tiles writes it <level>/<index>[.p/<width>] with "
    + "an index like x001/x234/067"
})

interface Asked {
  readonly chain: string
  readonly level: string
  /** Index and width as the path has them. */
  readonly index: string
}

/** The handlers of the routes in `TlogContract`, by the names of their endpoints. */
export const makeTlogHandlers = Effect.gen(function* () {
  const checkpoints = yield* Checkpoints
  const projection = yield* ProjectionProgress

  /** What `toBytes` makes of the tile, with the headers of tiles. */
  const tile = Effect.fnUntraced(function* (
    { chain, index, level }: Asked,
    toBytes: (tile: ProvenTile) => Buffer
  ) {
    const { tenantId, tree } = yield* treeOf(chain)
    const asked = parseTile(level, index)
    if (asked === undefined) return yield* noTile
    yield* readableView(projection, tenantId)
    const proven = yield* checkpoints.tile(tree, asked)
    return HttpServerResponse.uint8Array(toBytes(proven), {
      contentType: TILE_TYPE,
      headers: { "cache-control": cachingOf(asked), vary: "Authorization" }
    })
  })

  return {
    tlogCheckpoint: Effect.fnUntraced(function* ({ params }: RequestOf<typeof tlogCheckpoint>) {
      const { tree } = yield* treeOf(params.chain)
      const { note } = yield* checkpoints.latest(tree)
      return HttpServerResponse.text(note, { contentType: `${NOTE_TYPE}; charset=utf-8` })
    }),
    tlogEntries: ({ params: { "*": index, chain } }: RequestOf<typeof tlogEntries>) =>
      tile({ chain, level: "0", index }, ({ entries }) => entryBundle(entries)),
    tlogTile: ({ params: { "*": index, chain, level } }: RequestOf<typeof tlogTile>) =>
      tile({ chain, level, index }, ({ hashes }) => Buffer.concat(hashes))
  }
})
