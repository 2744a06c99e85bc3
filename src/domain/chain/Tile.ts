/**
 * The tiles that C2SP tlog-tiles (https://c2sp.org/tlog-tiles) cuts a Merkle tree into: their
 * paths, the tree nodes in them, and the root that a tile leads to. Knows neither where hashes come
 * from nor how tiles are served.
 */
import {
  HASH_BYTES,
  hashesOf,
  type NodeSource,
  nodeHash,
  rootPart,
  type TreeNode
} from "./MerkleTree.ts"

/** Tree levels between two levels of tiles. */
const TILE_HEIGHT = 8
/** Hashes of a full tile. */
export const TILE_WIDTH = 2 ** TILE_HEIGHT

/** `width` consecutive hashes, from the hash `index` * 256 of the level on. */
export interface Tile {
  /** On level 0 hashes of leaves, above it the roots of full tiles of the level below. */
  readonly level: number
  readonly index: number
  /** 1 to 256; below 256 the tile is a partial one. */
  readonly width: number
}

export const isFull = ({ width }: Tile): boolean => width === TILE_WIDTH

const LEVEL_FORM = /^(?:[1-5]?[0-9]|6[0-3])$/
// Six groups name every index below 10^18, which is more than a sequence number can reach.
const INDEX_FORM = /^((?:x[0-9]{3}\/){0,5}[0-9]{3})(?:\.p\/([1-9][0-9]{0,2}))?$/

const indexPath = (index: number): string => {
  const groups = [String(index % 1_000).padStart(3, "0")]
  for (let rest = Math.floor(index / 1_000); rest > 0; rest = Math.floor(rest / 1_000)) {
    groups.unshift(`x${String(rest % 1_000).padStart(3, "0")}`)
  }
  return groups.join("/")
}

/**
 * The tile of a path `<level>/<index>[.p/<width>]`, for example `0`, `x001/x234/067.p/5`; undefined
 * if that is not how tlog-tiles writes one.
 */
export const parseTile = (level: string, path: string): Tile | undefined => {
  const [, groups, digits] = INDEX_FORM.exec(path) ?? []
  if (!LEVEL_FORM.test(level) || groups === undefined) return undefined
  const index = Number(groups.replaceAll(/[x/]/g, ""))
  const width = digits === undefined ? TILE_WIDTH : Number(digits)
  const isPartial = digits !== undefined
  if (!Number.isSafeInteger(index) || indexPath(index) !== groups) return undefined
  if (isPartial && width >= TILE_WIDTH) return undefined
  return { level: Number(level), index, width }
}

/** Leaves of the smallest tree that has the tile. */
export const leavesUpTo = ({ index, level, width }: Tile): number =>
  (index * TILE_WIDTH + width) * TILE_WIDTH ** level

/** The nodes whose hashes are the tile. */
export const nodesOfTile = ({ index, level, width }: Tile): ReadonlyArray<TreeNode> =>
  Array.from({ length: width }, (_, place) => ({
    level: level * TILE_HEIGHT,
    index: index * TILE_WIDTH + place
  }))

/** True if the node has no leaf in common with the tile. */
const isBeside = (tile: Tile, { index, level }: TreeNode): boolean => {
  const height = level - tile.level * TILE_HEIGHT
  // The complete subtrees of a tree that are lower than the tile's nodes come after all of those.
  if (height < 0) return true
  const first = tile.index * TILE_WIDTH
  const span = 2 ** height
  return (index + 1) * span <= first || index * span >= first + tile.width
}

const isOfTile = (tile: Tile, { level }: TreeNode): boolean => level === tile.level * TILE_HEIGHT

const childrenOf = ({ index, level }: TreeNode): readonly [left: TreeNode, right: TreeNode] => [
  { level: level - 1, index: 2 * index },
  { level: level - 1, index: 2 * index + 1 }
]

const besideIn = (tile: Tile, node: TreeNode): ReadonlyArray<TreeNode> => {
  if (isBeside(tile, node)) return [node]
  return isOfTile(tile, node) ? [] : childrenOf(node).flatMap((child) => besideIn(tile, child))
}

/** The nodes that, together with the tile, give the root of a tree of `size` leaves. */
export const nodesBeside = (tile: Tile, size: number): ReadonlyArray<TreeNode> =>
  rootPart(size).flatMap((node) => besideIn(tile, node))

/**
 * Root of the tree of `size` leaves with these hashes as the tile; `beside` has the hashes of
 * `nodesBeside`.
 */
export const rootWithTile = (
  tile: Tile,
  hashes: ReadonlyArray<Buffer>,
  size: number,
  beside: NodeSource
): Buffer => {
  const hashOf = (node: TreeNode): Buffer => {
    if (isBeside(tile, node)) return beside(node.level, node.index)
    if (isOfTile(tile, node)) return hashes[node.index - tile.index * TILE_WIDTH]!
    const [left, right] = childrenOf(node)
    return nodeHash(hashOf(left), hashOf(right))
  }
  return hashesOf([rootPart(size)], (level, index) => hashOf({ level, index }))[0]!
}

const ENTRY_LENGTH = Buffer.from([HASH_BYTES >> 8, HASH_BYTES & 0xff])

/**
 * An entry bundle: for each leaf the length of its input in 2 bytes, big-endian, and the input,
 * which is the 32 bytes of a `hash` (64 hex digits).
 */
export const entryBundle = (hashes: ReadonlyArray<string>): Buffer =>
  Buffer.concat(hashes.flatMap((hash) => [ENTRY_LENGTH, Buffer.from(hash, "hex")]))
