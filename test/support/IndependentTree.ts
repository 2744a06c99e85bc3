/** Runs the independent Python implementation of RFC 9162, which shares no code with alk. */
import { spawnSync } from "node:child_process"

const PROGRAM = new URL("../independent/alk_tree.py", import.meta.url).pathname

export interface TreeQuestion {
  /** Inputs of the leaves, 64 hex digits each. */
  readonly hashes: ReadonlyArray<string>
  readonly sizes: ReadonlyArray<number>
  /** Leaf and size. */
  readonly inclusion: ReadonlyArray<readonly [number, number]>
  /** Both sizes. */
  readonly consistency: ReadonlyArray<readonly [number, number]>
}

export interface TreeAnswer {
  readonly roots: ReadonlyArray<string>
  readonly inclusion: ReadonlyArray<ReadonlyArray<string>>
  readonly consistency: ReadonlyArray<ReadonlyArray<string>>
}

export const askIndependentTree = (question: TreeQuestion): TreeAnswer => {
  const { error, status, stderr, stdout } = spawnSync("python3", [PROGRAM], {
    input: JSON.stringify(question),
    encoding: "utf8",
    maxBuffer: 64 * 1_048_576
  })
  if (error !== undefined) throw error
  if (status !== 0) throw new Error(stderr)
  return JSON.parse(stdout) as TreeAnswer
}
