/**
 * The nodes of Merkle trees as ClickHouse expressions: complete subtrees over 256 leaves, or over
 * 256 smaller subtrees, computed where the rows are. A test compares them with the domain's.
 */
import { chainOfTree } from "../../../domain/chain/Chains.ts"
import type { Parameters } from "../client/Parameters.ts"

/** Levels between two that are kept: a kept node has 2^8 kept children, or leaves. */
export const KEPT_LEVELS = 8
export const CHILDREN = 2 ** KEPT_LEVELS
/** Levels of the nodes that are kept. */
export const keptLevels = [8, 16, 24] as const

/** A hash as text: a FixedString that becomes a String loses the zero bytes at its end. */
export const hexOf = (hash: string): string => `lower(hex(${hash}))`

const everySecond = (array: string, rest: 0 | 1): string =>
  `arrayFilter((item, place) -> place % 2 = ${rest}, ${array}, arrayEnumerate(${array}))`

/** The parents of an array of nodes, without a lambda that captures the array. */
const parents = (array: string): string =>
  String.raw`arrayMap((left, right) -> SHA256(concat('\x01', left, right)),`
  + ` ${everySecond(array, 1)}, ${everySecond(array, 0)})`

/** Hash over an array of 2^KEPT_LEVELS nodes; each level is a query, because aliases would grow. */
const folded = (children: string): string => {
  let query = children
  for (let level = 0; level < KEPT_LEVELS; level++) {
    query = `SELECT node_index, ${parents("nodes")} AS nodes FROM (${query})`
  }
  return `SELECT node_index, ${hexOf("nodes[1]")} FROM (${query}) ORDER BY node_index`
}

/** Children, of which none is missing and none is there twice, in order. */
const complete = (place: string, hash: string, from: string): string =>
  `SELECT intDiv(${place}, ${CHILDREN}) AS node_index,`
  + ` arrayMap(child -> child.2, arraySort(groupUniqArray((${place}, ${hash})))) AS nodes`
  + ` FROM ${from} GROUP BY node_index`
  + ` HAVING length(nodes) = ${CHILDREN} AND uniqExact(${place}) = ${CHILDREN}`

export interface NodeRange {
  /** Name of the tree. */
  readonly tree: string
  /** One of `keptLevels`. */
  readonly level: number
  readonly first: number
  /** Exclusive. */
  readonly end: number
}

export interface TreeTables {
  readonly events: string
  readonly facts: string
  readonly nodes: string
}

/** Where the leaves of a tree are: the table, the column of their places, and the condition. */
export const leavesOf = (tables: TreeTables, tree: string, bind: Parameters) => {
  const { chain, tenantId } = chainOfTree(tree)
  const condition = bind.tenant(tenantId)
  return chain === "events"
    ? { table: tables.events, sequence: "sequence_number", condition }
    : { table: tables.facts, sequence: "chain_sequence", condition }
}

const HASH_FORM = "'^[0-9a-f]{64}$'"

const fromLeaves = (tables: TreeTables, range: NodeRange, bind: Parameters): string => {
  const { condition, sequence, table } = leavesOf(tables, range.tree, bind)
  const where =
    condition
    + ` AND ${sequence} > ${bind.integer(range.first * CHILDREN)}`
    + ` AND ${sequence} <= ${bind.integer(range.end * CHILDREN)}`
    + ` AND match(hash, ${HASH_FORM})`
  const children = complete(`${sequence} - 1`, "hash", `${table} WHERE ${where}`)
  return (
    String.raw`SELECT node_index, arrayMap(hash -> SHA256(concat('\0', unhex(hash))), nodes)`
    + ` AS nodes FROM (${children})`
  )
}

const fromNodes = (tables: TreeTables, range: NodeRange, bind: Parameters): string => {
  const child = range.level - KEPT_LEVELS
  const where =
    `tree = ${bind.string(range.tree)}`
    + ` AND level = ${bind.integer(child)}`
    + ` AND node_index >= ${bind.integer(range.first * CHILDREN)}`
    + ` AND node_index < ${bind.integer(range.end * CHILDREN)}`
  return complete(
    "place",
    "hash",
    "(SELECT node_index AS place, hash" + ` FROM ${tables.nodes} WHERE ${where})`
  )
}

/** Index and hash of each node of the range whose children are all there, in order. */
export const computedNodes = (tables: TreeTables, range: NodeRange, bind: Parameters): string =>
  folded((range.level === KEPT_LEVELS ? fromLeaves : fromNodes)(tables, range, bind))
