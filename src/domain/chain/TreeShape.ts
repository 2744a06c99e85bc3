/** The shape of the Merkle tree of RFC 9162 (section 2.1), whatever its nodes are made of. */

export const isOdd = (value: number): boolean => value % 2 === 1

export const isSize = (value: number): boolean => Number.isSafeInteger(value) && value >= 0

/** The largest power of two up to `size`, which is at least 1. Exact where a logarithm is not. */
export const powerWithin = (size: number): number => {
  let power = 1
  while (power * 2 <= size) power *= 2
  return power
}

const half = (index: number): number => Math.floor(index / 2)

/**
 * Hands out the siblings on the way up from a node of a level, of which `end` is the last one, each
 * with its side; false if the way has another length.
 */
const climb = <Node>(
  start: number,
  end: number,
  siblings: ReadonlyArray<Node>,
  take: (sibling: Node, isLeft: boolean) => void
): boolean => {
  let [node, last] = [start, end]
  for (const sibling of siblings) {
    if (last === 0) return false
    const isLeft = isOdd(node) || node === last
    take(sibling, isLeft)
    // Past the levels on which the last node has no sibling.
    while (isLeft && !isOdd(node) && node !== 0) [node, last] = [half(node), half(last)]
    ;[node, last] = [half(node), half(last)]
  }
  return last === 0
}

/** An inclusion proof and the leaf that it is of. */
export interface ProofOfLeaf<Node> {
  readonly leaf: Node
  /** From 0: sequence number - 1. */
  readonly index: number
  readonly size: number
  /** Nearest sibling first. */
  readonly proof: ReadonlyArray<Node>
}

/**
 * The root that a proof leads to (RFC 9162, section 2.1.3.2); undefined if a tree of this size has
 * no such leaf, or no proof of this length.
 */
export const rootOfProof = <Node>(
  { index, leaf, proof, size }: ProofOfLeaf<Node>,
  nodeHash: (left: Node, right: Node) => Node
): Node | undefined => {
  if (!isSize(size) || !isSize(index) || index >= size) return undefined
  let root = leaf
  const isWhole = climb(index, size - 1, proof, (sibling, isLeft) => {
    root = isLeft ? nodeHash(sibling, root) : nodeHash(root, sibling)
  })
  return isWhole ? root : undefined
}

/** A consistency proof between trees of these sizes, and the root of the first one. */
export interface ProofOfGrowth<Node> {
  readonly first: number
  readonly second: number
  readonly firstRoot: Node
  readonly proof: ReadonlyArray<Node>
}

/**
 * The roots that a proof leads to (RFC 9162, section 2.1.4.2); undefined if it has no such length, or
 * the first tree is empty or larger. Where that is one complete subtree the proof begins with its
 * root, which it does not repeat.
 */
export const rootsOfProof = <Node>(
  { first, firstRoot, proof, second }: ProofOfGrowth<Node>,
  nodeHash: (left: Node, right: Node) => Node
): { readonly first: Node; readonly second: Node } | undefined => {
  if (!isSize(first) || !isSize(second) || first < 1 || first > second) return undefined
  if (first === second)
    return proof.length === 0 ? { first: firstRoot, second: firstRoot } : undefined
  const path = powerWithin(first) === first ? [firstRoot, ...proof] : proof
  if (path.length === 0) return undefined
  let [node, last] = [first - 1, second - 1]
  while (isOdd(node)) [node, last] = [half(node), half(last)]
  let [ofFirst, ofSecond]: [Node, Node] = [path[0]!, path[0]!]
  const isWhole = climb(node, last, path.slice(1), (sibling, isLeft) => {
    if (isLeft) ofFirst = nodeHash(sibling, ofFirst)
    ofSecond = isLeft ? nodeHash(sibling, ofSecond) : nodeHash(ofSecond, sibling)
  })
  return isWhole ? { first: ofFirst, second: ofSecond } : undefined
}
