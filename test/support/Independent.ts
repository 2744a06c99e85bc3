/** Runs the independent Python implementation, which shares no code with alk. */
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"

const PROGRAM = new URL("../independent/alk_chain.py", import.meta.url).pathname

export interface Verdict {
  readonly status: number | null
  readonly output: string
}

/** One run of `python3 alk_chain.py`, with `input` on its standard input. */
export const runIndependent = (
  args: ReadonlyArray<string>,
  input: string | Buffer = ""
): Verdict => {
  const { error, status, stderr, stdout } = spawnSync("python3", [PROGRAM, ...args], {
    input,
    encoding: "utf8",
    maxBuffer: 64 * 1_048_576
  })
  if (error !== undefined) throw error
  return { status, output: stdout + stderr }
}

/** What it makes of each text: the canonical form, or undefined if it refuses. */
export const askIndependent = (
  command: "canonical" | "timestamps",
  texts: ReadonlyArray<Buffer>
): ReadonlyArray<string | undefined> => {
  const { output, status } = runIndependent(
    [command],
    texts.map((text) => `${text.toString("hex")}\n`).join("")
  )
  if (status !== 0) throw new Error(output)
  const answers = output.split("\n").slice(0, -1)
  if (answers.length !== texts.length) throw new Error(`${answers.length} answers`)
  return answers.map((text) => (text === "refused" ? undefined : text))
}

/** Path of a file of schemas/vectors. */
export const vectorsPath = (name: string): string =>
  new URL(`../../schemas/vectors/${name}`, import.meta.url).pathname

export const readVectors = (name: string): unknown =>
  JSON.parse(readFileSync(vectorsPath(name), "utf8"))
