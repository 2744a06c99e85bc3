/**
 * The RFC 9162 tree over recomputed event hashes, growing by single leaves or by whole subtrees
 * that another program has computed, and its roots at the sizes of checkpoints. Keeps the
 * hashes of at most one subtree for each binary digit of its size.
 */
import { EMPTY_ROOT, leafHash, nodeHash, rootPart } from "../domain/chain/MerkleTree.ts"

/** A tree to go on from: its size and the hashes of its complete subtrees, largest first. */
export interface TreeStart {
  readonly size: number
  readonly peaks: ReadonlyArray<Buffer>
}

interface Peak {
  readonly leaves: number
  readonly hash: Buffer
}

export class GrowingTree {
  readonly #peaks: Array<Peak> = []
  readonly #roots = new Map<number, string>()
  readonly #wanted: ReadonlySet<number>
  #size = 0
  #spoiled = false

  /** `sizes`: the tree sizes whose roots will be asked for; `start`: the tree to go on from. */
  constructor(sizes: Iterable<number>, start: TreeStart = { size: 0, peaks: [] }) {
    this.#wanted = new Set(sizes)
    this.#size = start.size
    rootPart(start.size).forEach(({ level }, place) =>
      this.#peaks.push({ leaves: 2 ** level, hash: start.peaks[place]! })
    )
    this.#remember()
  }

  /** Add the event with this hash, 64 hex digits. */
  append(eventHash: string): void {
    this.#push({ leaves: 1, hash: leafHash(eventHash) })
  }

  /** Add a complete subtree, as many leaves as its size allows where it goes. */
  appendSubtree(leaves: number, hash: string): void {
    if (this.#size % leaves === 0) this.#push({ leaves, hash: Buffer.from(hash, "hex") })
    else this.spoil()
  }

  /** An event is missing or unreadable: the tree has no roots from here on. */
  spoil(): void {
    this.#spoiled = true
  }

  /** 64 hex digits; undefined if the tree did not get to this size, or got there spoiled. */
  root(size: number): string | undefined {
    return this.#roots.get(size)
  }

  #push(added: Peak): void {
    let peak = added
    while (this.#peaks.at(-1)?.leaves === peak.leaves) {
      const left = this.#peaks.pop()!
      peak = { leaves: 2 * peak.leaves, hash: nodeHash(left.hash, peak.hash) }
    }
    this.#peaks.push(peak)
    this.#size += added.leaves
    this.#remember()
  }

  #remember(): void {
    if (this.#spoiled || !this.#wanted.has(this.#size)) return
    const root =
      this.#size === 0
        ? EMPTY_ROOT
        : this.#peaks.map(({ hash }) => hash).reduceRight((right, left) => nodeHash(left, right))
    this.#roots.set(this.#size, root.toString("hex"))
  }
}
