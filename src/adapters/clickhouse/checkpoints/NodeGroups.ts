/**
 * The nodes of trees in memory, in groups of 256 siblings: leaves, and the nodes that the store
 * keeps. Bounded; what was used longest ago goes first. Knows neither a store nor a proof.
 */
import { BoundedMap } from "../../../domain/BoundedMap.ts"
import { HASH_BYTES, leafHash, nodeHash } from "../../../domain/chain/MerkleTree.ts"
import { CHILDREN, KEPT_LEVELS, keptLevels } from "./HashTreeSql.ts"

/** Groups at most, about 40 KB each: those of 67,000,000 events. */
const GROUPS_MAX = 1_024

/** 0 for events, else one of `keptLevels`. */
export type GroupLevel = 0 | (typeof keptLevels)[number]

/** Nodes from `first` up to, exclusive, `end`; all of one group. */
export interface GroupSlice {
  readonly level: GroupLevel
  readonly group: number
  readonly first: number
  readonly end: number
}

/** The level of the groups that a node of this level is made of. */
export const groupLevel = (level: number): GroupLevel =>
  keptLevels.findLast((kept) => kept <= level) ?? 0

/** What has to be known for a node. */
export const slicesOf = (level: number, index: number): ReadonlyArray<GroupSlice> => {
  const base = groupLevel(level)
  const size = 2 ** (level - base)
  const slices: Array<GroupSlice> = []
  for (let first = index * size; first < (index + 1) * size; ) {
    const group = Math.floor(first / CHILDREN)
    const end = Math.min((index + 1) * size, (group + 1) * CHILDREN)
    slices.push({ level: base, group, first, end })
    first = end
  }
  return slices
}

/** Nodes side by side; `first` is the place of the first one on their level of the group. */
interface Siblings {
  readonly first: number
  readonly nodes: Buffer
}

/** The complete subtrees over pairs of siblings. */
const parentsOf = ({ first, nodes }: Siblings): Siblings => {
  const parents: Array<Buffer> = []
  // One whose left sibling is not known has no known parent.
  for (let at = (first % 2) * HASH_BYTES; at + 2 * HASH_BYTES <= nodes.length; ) {
    const middle = at + HASH_BYTES
    const end = middle + HASH_BYTES
    parents.push(nodeHash(nodes.subarray(at, middle), nodes.subarray(middle, end)))
    at = end
  }
  return { first: Math.ceil(first / 2), nodes: Buffer.concat(parents) }
}

/** Some siblings of a group side by side, and every complete subtree above them. */
class Group {
  /** Place of the first one in the group: those before were pruned. */
  readonly start: number
  /** Hashes as they are in the store, 64 hex digits each: of the events on level 0. */
  readonly hashes: ReadonlyArray<string>
  /** By their level within the group. */
  readonly #levels: ReadonlyArray<Siblings>

  constructor(level: GroupLevel, hashes: ReadonlyArray<string>, start: number) {
    this.start = start
    this.hashes = hashes
    const toNode = (hash: string) => (level === 0 ? leafHash(hash) : Buffer.from(hash, "hex"))
    const levels: Array<Siblings> = [{ first: start, nodes: Buffer.concat(hashes.map(toNode)) }]
    for (let below = levels[0]!; below.nodes.length >= 2 * HASH_BYTES; below = levels.at(-1)!) {
      levels.push(parentsOf(below))
    }
    this.#levels = levels
  }

  /** The place after the last one. */
  get end(): number {
    return this.start + this.hashes.length
  }

  /** The node on a level of the group; `place` counts from the group's first one there. */
  node(level: number, place: number): Buffer | undefined {
    const { first, nodes } = this.#levels[level] ?? { first: 0, nodes: Buffer.alloc(0) }
    const at = (place - first) * HASH_BYTES
    return at >= 0 && at < nodes.length ? nodes.subarray(at, at + HASH_BYTES) : undefined
  }
}

const keyOf = (tree: string, { group, level }: Pick<GroupSlice, "group" | "level">): string =>
  `${tree} ${level}/${group}`

export class NodeGroups {
  readonly #groups = new BoundedMap<Group>(GROUPS_MAX)

  /** The first node of the group that is not known and that the slice needs, or one after it. */
  knownUpTo(tree: string, slice: GroupSlice): number {
    const known = this.#use(keyOf(tree, slice))
    const first = slice.group * CHILDREN
    if (known === undefined) return first
    return slice.first < first + known.start ? slice.first : first + known.end
  }

  /** True if all of the slice is known. */
  has(tree: string, slice: GroupSlice): boolean {
    return this.knownUpTo(tree, slice) >= slice.end
  }

  /** `hashes`: as many of the group as are known, from the place `start` on. */
  put(
    tree: string,
    level: GroupLevel,
    group: number,
    hashes: ReadonlyArray<string>,
    start = 0
  ): void {
    this.#groups.set(keyOf(tree, { level, group }), new Group(level, hashes, start))
  }

  forget(tree: string): void {
    for (const key of this.#groups.keys()) {
      if (key.startsWith(`${tree} `)) this.#groups.delete(key)
    }
  }

  /** The groups of these slices as they are now, whatever is dropped later. */
  snapshot(tree: string, slices: ReadonlyArray<GroupSlice>): GroupSnapshot {
    const groups = new Map<string, Group>()
    for (const slice of slices) {
      const known = this.#use(keyOf(tree, slice))
      if (known !== undefined) groups.set(`${slice.level}/${slice.group}`, known)
    }
    return new GroupSnapshot(groups)
  }

  /** What is read counts as used. */
  #use(key: string): Group | undefined {
    const known = this.#groups.get(key)
    if (known !== undefined) this.#groups.set(key, known)
    return known
  }
}

/** Groups that no longer change, and the nodes above them. */
class GroupSnapshot {
  readonly #groups: ReadonlyMap<string, Group>

  constructor(groups: ReadonlyMap<string, Group>) {
    this.#groups = groups
  }

  /** The `hash` of the event of a leaf, 64 hex digits. */
  eventHash(index: number): string {
    const group = Math.floor(index / CHILDREN)
    const known = this.#groups.get(`0/${group}`)
    const hash = known?.hashes[index - group * CHILDREN - known.start]
    if (hash === undefined) throw new RangeError(`event ${index + 1} is not known`)
    return hash
  }

  /** @throws RangeError for a node that is not made of these groups */
  node(level: number, index: number): Buffer {
    const base = groupLevel(level)
    const within = level - base
    // Above the highest kept level a node is larger than a group.
    if (within > KEPT_LEVELS) {
      return nodeHash(this.node(level - 1, 2 * index), this.node(level - 1, 2 * index + 1))
    }
    const perGroup = CHILDREN / 2 ** within
    const group = Math.floor(index / perGroup)
    const node = this.#groups.get(`${base}/${group}`)?.node(within, index - group * perGroup)
    if (node === undefined) throw new RangeError(`node ${level}/${index} is not known`)
    return node
  }
}

/** How many nodes of each kept level there have to be, so that the slices can be known. */
export const nodesNeeded = (slices: ReadonlyArray<GroupSlice>): ReadonlyMap<number, number> => {
  const needed = new Map<number, number>()
  for (const kept of keptLevels.toReversed()) {
    const ends = slices.filter(({ level }) => level === kept).map(({ end }) => end)
    const above = (needed.get(kept + KEPT_LEVELS) ?? 0) * CHILDREN
    needed.set(kept, Math.max(above, 0, ...ends))
  }
  return needed
}
