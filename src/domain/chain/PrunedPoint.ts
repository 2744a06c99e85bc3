/**
 * Up to where the records of a chain were removed for good, and what proves what was there: the
 * signed checkpoint of that size, its tree as far as it has to grow, and the hash that the rest
 * links to. A point counts only with a genuine signature; knows neither keys nor what is stored.
 */
import { Schema } from "effect"
import { sequence, sha256, tenant, text, time } from "../Forms.ts"
import { chains, treeNameOf } from "./Chains.ts"
import { Frontier, FrontierUnreadable, leafHash, verifyInclusion } from "./MerkleTree.ts"

export const PrunedPoint = Schema.Struct({
  tenant_id: tenant("Whose chain it is."),
  chain: Schema.Literals(chains).annotate({ description: "Which of the tenant's chains." }),
  size: sequence("The records with sequence numbers up to this one were removed."),
  head_hash: sha256("`hash` of the last of them, the `prev_hash` of the first that is left."),
  root_hash: sha256("RFC 9162 root over their hashes."),
  note: text("The signed checkpoint of this size and root, a C2SP signed note."),
  frontier: text(
    "What the tree needs to go on: `<size>:<base64>` of the hashes of the complete subtrees that it "
      + "consists of, largest first."
  ),
  head_proof: Schema.Array(sha256("A hash.")).annotate({
    description: "RFC 9162 inclusion proof of the last of them in that tree."
  }),
  recorded_before: time("All of them were recorded before this time."),
  pruned_at: time("When it was decided that they go."),
  pruned_by: text("What has decided that."),
  removed_at: Schema.optionalKey(time("When their rows were gone; absent until then."))
}).annotate({ identifier: "PrunedPoint" })
export type PrunedPoint = typeof PrunedPoint.Type

/** What a point says of the end of what was removed. */
export interface PrunedEnd {
  readonly size: number
  readonly headHash: string
  readonly frontier: Frontier
}

/** The name of the tree that a point is of. */
export const treeOfPoint = ({ chain, tenant_id }: Pick<PrunedPoint, "chain" | "tenant_id">) =>
  treeNameOf(tenant_id, chain)

const frontierOf = (text: string): Frontier | undefined => {
  try {
    return Frontier.decode(text)
  } catch (error) {
    if (error instanceof FrontierUnreadable) return undefined
    throw error
  }
}

/**
 * The end that a point proves, given what its note says once it was opened with a published key;
 * a text says why it proves none.
 */
export const openPoint = (
  point: PrunedPoint,
  signed: { readonly treeSize: number; readonly rootHash: string }
): PrunedEnd | string => {
  const { head_hash, head_proof, root_hash, size } = point
  if (signed.treeSize !== size || signed.rootHash !== root_hash) {
    return `its note signs root ${signed.rootHash} over ${signed.treeSize} records`
  }
  const frontier = frontierOf(point.frontier)
  if (frontier === undefined || frontier.size !== size) return "its tree is of another size"
  const root = Buffer.from(root_hash, "hex")
  if (!frontier.root().equals(root)) return "its tree does not lead to the signed root"
  const isHead = verifyInclusion({
    leaf: leafHash(head_hash),
    index: size - 1,
    size,
    root,
    proof: head_proof.map((hash) => Buffer.from(hash, "hex"))
  })
  return isHead
    ? { size, headHash: head_hash, frontier }
    : "the hash of its last record is not in the signed tree"
}

/** The text of a frontier, of the hashes of `rootPart(size)`. */
export const frontierText = (size: number, peaks: ReadonlyArray<Buffer>): string =>
  `${size}:${Buffer.concat([...peaks]).toString("base64")}`
