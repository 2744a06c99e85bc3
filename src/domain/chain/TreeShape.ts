/** The shape of the Merkle tree of RFC 9162 (section 2.1), whatever its nodes are made of. */

export const isOdd = (value: number): boolean => value % 2 === 1

export const isSize = (value: number): boolean => Number.isSafeInteger(value) && value >= 0

/** The largest power of two up to `size`, which is at least 1. Exact where a logarithm is not. */
export const powerWithin = (size: number): number => {
  let power = 1
  while (power * 2 <= size) power *= 2
  return power
}

/** The place of a node and of the last one of its level, one level up at each step. */
export class Climb {
  #node: number
  #last: number

  constructor(node: number, last: number) {
    this.#node = node
    this.#last = last
  }

  get isAtTop(): boolean {
    return this.#last === 0
  }

  get isRight(): boolean {
    return isOdd(this.#node) || this.#node === this.#last
  }

  up(): void {
    this.#node = Math.floor(this.#node / 2)
    this.#last = Math.floor(this.#last / 2)
  }

  /** Past the levels on which the last node has no sibling. */
  skipLone(): void {
    while (!isOdd(this.#node) && this.#node !== 0) this.up()
  }

  skipRight(): void {
    while (isOdd(this.#node)) this.up()
  }
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
  const climb = new Climb(index, size - 1)
  let result = leaf
  for (const sibling of proof) {
    if (climb.isAtTop) return undefined
    if (climb.isRight) {
      result = nodeHash(sibling, result)
      climb.skipLone()
    } else {
      result = nodeHash(result, sibling)
    }
    climb.up()
  }
  return climb.isAtTop ? result : undefined
}
