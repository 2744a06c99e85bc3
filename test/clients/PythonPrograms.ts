/** Runs programs with the Python client of test/examples/python as it lies in the repository. */
import { type ChildProcess, spawn } from "node:child_process"
import { resolve } from "node:path"

export const PYTHON_CLIENT = resolve("test/examples/python")

export interface Ended {
  readonly code: number | NodeJS.Signals
  /** What was printed, errors too. */
  readonly output: string
}

export interface Running {
  readonly process: ChildProcess
  /** What was printed so far, without errors. */
  readonly printed: () => string
  readonly ended: Promise<Ended>
}

/** Where a client finds the service, and its key. */
export const clientEnvironment = (url: string, key: string): Record<string, string> => ({
  ALK_URL: url,
  ALK_API_KEY: key
})

/** Start Python with these arguments; `python` is a program of a virtual environment, if one is made. */
export const startPython = (
  args: ReadonlyArray<string>,
  environment: Readonly<Record<string, string>> = {},
  python = "python3"
): Running => {
  const child = spawn(python, ["-B", ...args], {
    cwd: PYTHON_CLIENT,
    env: { ...process.env, ...environment },
    stdio: ["ignore", "pipe", "pipe"]
  })
  let printed = ""
  let output = ""
  child.stdout.on("data", (data: Buffer) => {
    printed += data.toString()
    output += data.toString()
  })
  child.stderr.on("data", (data: Buffer) => (output += data.toString()))
  const ended = new Promise<Ended>((settle, reject) => {
    child.once("error", reject)
    child.once("close", (code, signal) => settle({ code: code ?? signal ?? 0, output }))
  })
  return { process: child, printed: () => printed, ended }
}

/** One of the programs in tests/programs. */
export const startProgram = (
  name: string,
  args: ReadonlyArray<string | number>,
  environment: Readonly<Record<string, string>>
): Running =>
  startPython([`tests/programs/${name}.py`, ...args.map(String)], {
    ...environment,
    PYTHONPATH: PYTHON_CLIENT
  })

/** What a program printed as its last line, which is JSON. Throws with its output if it failed. */
export const jsonOf = async (running: Running): Promise<any> => {
  const { code, output } = await running.ended
  if (code !== 0) throw new Error(`python ended with ${code}:\n${output}`)
  return JSON.parse(running.printed().trim().split("\n").at(-1)!)
}
