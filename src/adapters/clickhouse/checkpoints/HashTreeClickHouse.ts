/**
 * Merkle trees over what is stored. Subtrees of 2^8, 2^16 and 2^24 leaves are kept in a table of
 * their own, so that a proof reads a few hundred rows whatever the size of the tree; they are
 * computed by ClickHouse when they are first needed. Where the first leaves were pruned, what is
 * over them is not asked for. Believes what it reads.
 */
import { Effect, Layer, Semaphore } from "effect"
import type { TreeNode } from "../../../domain/chain/MerkleTree.ts"
import type { StoreUnavailable } from "../../../ports/EventStore.ts"
import { HashTree, type StoredTree, TreeUnbuildable } from "../../../ports/HashTree.ts"
import { ClickHouseConnection } from "../client/ClickHouseConnection.ts"
import { escapedRows } from "../client/RawRows.ts"
import type { RowBinary } from "../client/RowBinary.ts"
import { StoreClient } from "../client/StoreClient.ts"
import {
  CHILDREN,
  computedNodes,
  hexOf,
  keptLevels,
  leavesOf,
  type NodeRange,
  type TreeTables
} from "./HashTreeSql.ts"
import {
  type GroupLevel,
  type GroupSlice,
  NodeGroups,
  nodesNeeded,
  slicesOf
} from "./NodeGroups.ts"

/** Nodes that one statement computes at most: of 2^18 events, about 30 MB and 0.2 s. */
const COMPUTED_NODES_MAX = 1_024
/** Groups of kept nodes that are read at once: the neighbours will be asked for as well. */
const READ_AHEAD_GROUPS = 16

const HASH_FORM = /^[0-9a-f]{64}$/

interface NodeRow {
  readonly index: number
  /** 64 hex digits, unless it was changed. */
  readonly hash: string
}

const toNodeRow = (row: RowBinary): NodeRow => ({ index: row.int64(), hash: row.string() })

/** Groups from `first` up to, exclusive, `end`. */
interface GroupRange {
  readonly level: GroupLevel
  readonly first: number
  readonly end: number
}

/** The groups to read for slices of one level, without overlaps. */
const groupRanges = (slices: ReadonlyArray<GroupSlice>): ReadonlyArray<GroupRange> => {
  const ahead = (level: GroupLevel) => (level === 0 ? 1 : READ_AHEAD_GROUPS)
  const ranges = new Map<string, GroupRange>()
  for (const { group, level } of slices) {
    const first = Math.floor(group / ahead(level)) * ahead(level)
    ranges.set(`${level}/${first}`, { level, first, end: first + ahead(level) })
  }
  return [...ranges.values()]
}

/** Rows of the leaves from `first` up to, exclusive, `end`. */
const readLeaves = (
  store: StoreClient,
  tables: TreeTables,
  tree: string,
  first: number,
  end: number
) =>
  store.read(
    "hashTree",
    (bind) => {
      const { condition, sequence, table } = leavesOf(tables, tree, bind)
      return (
        `SELECT ${sequence} - 1, hash FROM ${table} WHERE ${condition}`
        + ` AND ${sequence} > ${bind.integer(first)} AND ${sequence} <= ${bind.integer(end)}`
      )
    },
    toNodeRow
  )

const readRange = (
  store: StoreClient,
  tables: TreeTables,
  tree: string,
  { end, first, level }: GroupRange
) => {
  const [from, to] = [first * CHILDREN, end * CHILDREN]
  if (level === 0) return readLeaves(store, tables, tree, from, to)
  return store.read(
    "hashTree",
    (bind) =>
      `SELECT node_index, ${hexOf("hash")} FROM ${tables.nodes}`
      + ` WHERE tree = ${bind.string(tree)} AND level = ${level}`
      + ` AND node_index >= ${bind.integer(from)} AND node_index < ${bind.integer(to)}`,
    toNodeRow
  )
}

/** What is stored at each of `count` places from `first` on. */
const textsOf = (rows: ReadonlyArray<NodeRow>, first: number, count: number) => {
  const texts: Array<string | undefined> = new Array(count).fill(undefined)
  for (const { hash, index } of rows) {
    const place = index - first
    texts[place] = texts[place] === undefined || texts[place] === hash ? hash : "disputed"
  }
  return texts
}

/**
 * Hashes from the first place on, up to the first place of which nothing is known: no row, two that
 * differ, or no hash.
 */
const knownHashes = (texts: ReadonlyArray<string | undefined>): ReadonlyArray<string> => {
  const known: Array<string> = []
  for (const text of texts) {
    if (text === undefined || !HASH_FORM.test(text)) break
    known.push(text)
  }
  return known
}

/** The first node of a level that is over none of the pruned leaves, `base` of them. */
const firstNode = (level: number, base: number): number => Math.ceil(base / 2 ** level)

const toGroups = (
  { end, first, level }: GroupRange,
  rows: ReadonlyArray<NodeRow>,
  base: number,
  put: (level: GroupLevel, group: number, hashes: ReadonlyArray<string>, start: number) => void
): void => {
  const from = firstNode(level, base)
  const texts = textsOf(rows, first * CHILDREN, (end - first) * CHILDREN)
  for (let group = first; group < end; group++) {
    const start = (group - first) * CHILDREN
    const pruned = Math.min(CHILDREN, Math.max(0, from - group * CHILDREN))
    const hashes = knownHashes(texts.slice(start + pruned, start + CHILDREN))
    if (hashes.length > 0) put(level, group, hashes, pruned)
  }
}

const unbuildable = (level: number, index: number): TreeUnbuildable => {
  const events = 2 ** level
  const firstSequence = index * events + 1
  return new TreeUnbuildable({ firstSequence, lastSequence: firstSequence + events - 1 })
}

const computeNodes = (store: StoreClient, tables: TreeTables, range: NodeRange) =>
  store.read("computeHashTree", (bind) => computedNodes(tables, range, bind), toNodeRow)

/** Up to where the nodes of each kept level are there without a gap, from its first one on. */
const keptUpTo = (store: StoreClient, tables: TreeTables, tree: string, base: number) =>
  store
    .read(
      "hashTree",
      (bind) => {
        const wanted = keptLevels.map(
          (level) => `level = ${level} AND node_index >= ${bind.integer(firstNode(level, base))}`
        )
        return (
          "SELECT level, uniqExact(node_index), max(node_index) + 1"
          + ` FROM ${tables.nodes} WHERE tree = ${bind.string(tree)}`
          + ` AND (${wanted.join(" OR ")}) GROUP BY level`
        )
      },
      (row) => ({ level: row.uint8(), count: row.uint64(), end: row.uint64() })
    )
    .pipe(
      Effect.map(
        (levels) =>
          new Map(
            levels.map(({ count, end, level }) => {
              const first = firstNode(level, base)
              return [level, end - first === count ? end : first] as const
            })
          )
      )
    )

const keep = (
  store: StoreClient,
  tables: TreeTables,
  { level, tree }: NodeRange,
  nodes: ReadonlyArray<NodeRow>
) =>
  store.insert({
    operation: "keepHashTree",
    table: tables.nodes,
    columns: ["tree", "level", "node_index", "hash"],
    format: "TabSeparated",
    rows: nodes.length,
    bytes: () =>
      escapedRows(nodes.map(({ hash, index }) => [tree, level, index, Buffer.from(hash, "hex")]))
  })

/** Computes and keeps what is missing of the nodes that are needed of each level. */
const makeFill = (store: StoreClient, tables: TreeTables) =>
  Effect.fnUntraced(function* (tree: string, base: number, needed: ReadonlyMap<number, number>) {
    const kept = yield* keptUpTo(store, tables, tree, base)
    for (const level of keptLevels) {
      const end = needed.get(level) ?? 0
      const from = kept.get(level) ?? firstNode(level, base)
      for (let first = from; first < end; first += COMPUTED_NODES_MAX) {
        const range = { tree, level, first, end: Math.min(end, first + COMPUTED_NODES_MAX) }
        const nodes = yield* computeNodes(store, tables, range)
        const gap = nodes.findIndex(({ index }, place) => index !== first + place)
        const known = gap === -1 ? nodes : nodes.slice(0, gap)
        yield* keep(store, tables, range, known)
        const next = first + known.length
        if (next < range.end) return yield* unbuildable(level, next)
      }
    }
  })

const make = Effect.gen(function* () {
  const connection = yield* ClickHouseConnection
  const store = new StoreClient(connection)
  const tables = { events: store.events, facts: store.facts, nodes: store.subtrees }
  const groups = new NodeGroups()
  const fill = makeFill(store, tables)
  // Each of them keeps every core of the store busy, and two of one tree do the same work.
  const oneAtATime = (yield* Semaphore.make(1)).withPermits(1)

  /** Reads what is not known of the slices; comes back with what the store doesn't hold either. */
  const load = Effect.fnUntraced(function* (
    tree: string,
    base: number,
    slices: ReadonlyArray<GroupSlice>
  ) {
    const unknown = slices.filter((slice) => !groups.has(tree, slice))
    yield* Effect.forEach(
      groupRanges(unknown),
      (range) =>
        Effect.map(readRange(store, tables, tree, range), (rows) =>
          toGroups(range, rows, base, (level, group, hashes, start) =>
            groups.put(tree, level, group, hashes, start)
          )
        ),
      { concurrency: 2 }
    )
    return unknown.filter((slice) => !groups.has(tree, slice))
  })

  const nodes = Effect.fn("HashTree.nodes")(function* (
    tree: string,
    wanted: ReadonlyArray<TreeNode>,
    base = 0
  ): Effect.fn.Return<StoredTree, StoreUnavailable | TreeUnbuildable> {
    const slices = wanted.flatMap(({ index, level }) => slicesOf(level, index))
    let [missing] = yield* load(tree, base, slices)
    if (missing !== undefined && missing.level > 0) {
      yield* oneAtATime(fill(tree, base, nodesNeeded(slices)))
      const left = yield* load(tree, base, slices)
      missing = left[0]
    }
    if (missing !== undefined) {
      const first = groups.knownUpTo(tree, missing)
      return yield* unbuildable(missing.level, first)
    }
    const snapshot = groups.snapshot(tree, slices)
    return {
      node: (level, index) => snapshot.node(level, index),
      eventHash: (index) => snapshot.eventHash(index)
    }
  })

  const leaves = Effect.fn("HashTree.leaves")(function* (
    tree: string,
    first: number,
    end: number
  ): Effect.fn.Return<ReadonlyArray<string>, StoreUnavailable | TreeUnbuildable> {
    const rows = yield* readLeaves(store, tables, tree, first, end)
    const known = knownHashes(textsOf(rows, first, end - first))
    return first + known.length < end ? yield* unbuildable(0, first + known.length) : known
  })

  return HashTree.of({
    nodes,
    leaves,
    forget: (tree) =>
      store
        .remove("forgetHashTree", tables.nodes, (bind) => `tree = ${bind.string(tree)}`)
        .pipe(Effect.ensuring(Effect.sync(() => groups.forget(tree))), oneAtATime)
  })
})

/** The trees of the port. */
export const layerHashTree: Layer.Layer<HashTree, never, ClickHouseConnection> = Layer.effect(
  HashTree,
  make
)
