/**
 * Python programs of tests and examples with the packages that they need, from PyPI at exact versions, kept in
 * the cache folder. Where they can't be had the test fails and says what is missing: nothing is
 * skipped.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { cacheDir } from "../adapters/embedded/fixtures.ts"

const FOLDER = "test/support/python"
const INSTALL_TIMEOUT_MS = 240_000

const execute = promisify(execFile)

const attempt = async (
  command: string,
  args: ReadonlyArray<string>
): Promise<string | undefined> => {
  try {
    await execute(command, [...args], { timeout: INSTALL_TIMEOUT_MS, maxBuffer: 16 * 1_048_576 })
    return undefined
  } catch (error) {
    const { message, stderr } = error as Error & { readonly stderr?: string }
    return `${command} ${args.join(" ")}: ${stderr?.trim() || message}`
  }
}

/** With the pip that is there, or else with the one that Python brings for virtual environments. */
const install = async (folder: string, requirements: string): Promise<void> => {
  const what = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
  const args = [...what, "--target", folder, "--requirement", requirements]
  const first = await attempt("python3", args)
  if (first === undefined) return
  const environment = join(folder, "venv")
  const made = await attempt("python3", ["-m", "venv", environment])
  const second = made ?? (await attempt(join(environment, "bin", "python"), args))
  if (second === undefined) return
  throw new Error(
    "the tests need Python 3 with pip (or venv), and PyPI or a mirror of it that pip is set up "
      + `for, to install ${requirements}:\n${first}\n${second}`
  )
}

/** The folder with the packages of a requirements.txt; installed once for them and this Python. */
export const pythonPackages = async (requirements: string): Promise<string> => {
  const { stdout } = await execute("python3", ["-c", "import sys; print(sys.version)"]).catch(
    (error: unknown) => {
      throw new Error(`the tests need python3 on the PATH: ${String(error)}`)
    }
  )
  const hash = createHash("sha256").update(readFileSync(requirements)).update(stdout).digest("hex")
  const folder = join(cacheDir, "python", hash.slice(0, 16))
  if (existsSync(folder)) return folder
  mkdirSync(join(cacheDir, "python"), { recursive: true })
  const fresh = mkdtempSync(join(cacheDir, "python", "new-"))
  try {
    await install(fresh, requirements)
    // Somebody else may have been first.
    if (!existsSync(folder)) renameSync(fresh, folder)
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
  return folder
}

let installed: Promise<string> | undefined

/** Start one of the programs in test/support/python. */
export const startPython = async (
  name: string,
  args: ReadonlyArray<string>
): Promise<ChildProcess> => {
  const folder = await (installed ??= pythonPackages(join(FOLDER, "requirements.txt")))
  return spawn("python3", ["-B", join(FOLDER, name), ...args], {
    env: { ...process.env, PYTHONPATH: folder },
    stdio: ["ignore", "pipe", "inherit"]
  })
}

/** Its output as soon as it has ended, the last line read as JSON. */
export const resultOf = (child: ChildProcess): Promise<any> =>
  new Promise((resolve, reject) => {
    let output = ""
    child.stdout!.on("data", (data: Buffer) => (output += data.toString()))
    child.once("error", reject)
    child.once("close", (code) => {
      if (code === 0) resolve(JSON.parse(output.trim().split("\n").at(-1) ?? ""))
      else reject(new Error(`python ended with ${code}: ${output}`))
    })
  })
