/**
 * Signed checkpoints of a test: of whatever chain the test says, forged ones too. Proofs are made
 * of the hashes that the test holds, not of what is stored.
 */
import { Effect } from "effect"
import {
  Frontier,
  hashesOf,
  inclusionParts,
  leafHash,
  nodeHash
} from "../../../src/domain/chain/MerkleTree.ts"
import {
  type CheckpointFound,
  type SignedCheckpoint,
  SignedCheckpoints
} from "../../../src/verify/SignedCheckpoints.ts"
import type { Chain } from "./Chains.ts"

export const hashesOfChain = ({ bodies }: Chain): ReadonlyArray<string> =>
  bodies.map((body) => JSON.parse(body).hash as string)

/** The checkpoint of the first events of a chain. */
export const checkpointOf = (chain: Chain, treeSize: number): SignedCheckpoint => {
  const frontier = Frontier.empty()
  for (const hash of hashesOfChain(chain).slice(0, treeSize)) frontier.append(hash)
  return { treeSize, rootHash: frontier.root().toString("hex"), note: `note of ${treeSize}` }
}

export class CheckpointWorld {
  readonly kept: Array<CheckpointFound> = []
  /** What proofs are made of. */
  hashes: ReadonlyArray<string> = []
  /** What is kept of the tree is not what the hashes make; proofs made anew are right. */
  keptTreeWrong = false

  /** Keep signed checkpoints of the chain, and make proofs of it. */
  sign(chain: Chain, ...sizes: ReadonlyArray<number>): this {
    this.hashes = hashesOfChain(chain)
    for (const size of sizes) this.kept.push(checkpointOf(chain, size))
    return this
  }

  forge(treeSize: number): this {
    this.kept.push({ treeSize, problem: "none of the known keys signed it" })
    return this
  }

  get service(): SignedCheckpoints["Service"] {
    const node = (level: number, index: number): Buffer =>
      level === 0
        ? leafHash(this.hashes[index]!)
        : nodeHash(node(level - 1, 2 * index), node(level - 1, 2 * index + 1))
    return SignedCheckpoints.of({
      newestAtOrBelow: (_, size) =>
        Effect.sync(() =>
          this.kept
            .filter(({ treeSize }) => treeSize <= size)
            .toSorted((left, right) => right.treeSize - left.treeSize)
            .at(0)
        ),
      published: () =>
        Effect.sync(() =>
          this.kept
            .filter((one) => "note" in one)
            .toSorted((left, right) => right.treeSize - left.treeSize)
            .at(0)
        ),
      open: (_, note) =>
        Effect.sync(
          () =>
            this.kept.find((one) => "note" in one && one.note === note) ?? {
              unreadable: "it is not a C2SP signed note"
            }
        ),
      inclusion: (_, sequence, size, anew) =>
        Effect.sync(() =>
          size > this.hashes.length
            ? undefined
            : hashesOf(inclusionParts(sequence - 1, size), (level, index) =>
                this.keptTreeWrong && !anew ? Buffer.alloc(32) : node(level, index)
              )
        )
    })
  }
}
