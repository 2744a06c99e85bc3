/** Runs the service as `npm start` does: its start line, in the place of this process where it can be. */
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { parseJson } from "../../domain/json/Json.ts"
import { CommandFailure, EXIT } from "../Failure.ts"

const repository = join(import.meta.dirname, "..", "..", "..")

export interface StartLine {
  readonly variables: Readonly<Record<string, string>>
  readonly flags: ReadonlyArray<string>
}

/** Variables and flags of Node in the script `start` of package.json, which is the only place of them. */
export const startLine = (folder = repository): StartLine => {
  const text = readFileSync(join(folder, "package.json"), "utf8")
  const { scripts } = parseJson(text) as { readonly scripts: { readonly start: string } }
  const [, variables, flags] =
    /^((?:\w+=\S+ )*)exec node (.*?) ?src\/main\.ts$/.exec(scripts.start) ?? []
  if (variables === undefined || flags === undefined) {
    throw new CommandFailure(EXIT.failed, "package.json: its script start is of another form")
  }
  const pairs = variables
    .trim()
    .split(" ")
    .filter((one) => one !== "")
  return {
    variables: Object.fromEntries(pairs.map((one) => one.split("=") as [string, string])),
    flags: flags.split(" ").filter((one) => one !== "")
  }
}

/** Runs Node with this terminal; its exit code becomes that of the command. */
const runNode = async (
  args: ReadonlyArray<string>,
  variables: Readonly<Record<string, string>> = {}
): Promise<void> => {
  const child = spawn(process.execPath, args, {
    stdio: "inherit",
    env: { ...variables, ...process.env }
  })
  // A terminal sends Ctrl-C to both; the service stops in order, and then this process ends.
  process.on("SIGINT", () => {})
  process.on("SIGTERM", () => child.kill("SIGTERM"))
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("exit", resolve)
    child.once("error", reject)
  })
  process.exitCode = code ?? EXIT.failed
}

/** The program with these arguments. */
export const runService = (args: ReadonlyArray<string>): Promise<void> => {
  const { flags, variables } = startLine()
  return runNode([...flags, join(repository, "src", "main.ts"), ...args], variables)
}

/** `npm run bench` with these options. */
export const runBench = (options: ReadonlyArray<string>): Promise<void> =>
  runNode([join(repository, "test", "bench", "Bench.ts"), ...options])
