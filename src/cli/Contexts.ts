/**
 * Where the service is, and with which key: of the environment, or of the file that `alk login`
 * writes. The file is readable by its owner only, and a key is sent to no other address than its own.
 */
import { chmodSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs"
import { homedir } from "node:os"
import { dirname, join } from "node:path"
import { parseJson } from "../domain/json/Json.ts"
import { CommandFailure, EXIT, usage } from "./Failure.ts"

/** Where a program without a context looks for the service: what `alk up` serves. */
export const DEFAULT_URL = "http://127.0.0.1:8080"
const DEFAULT_NAME = "default"
/** Bits of other users. */
const OTHERS = 0o077

export interface Context {
  readonly url: string
  readonly key: string
}

export interface Contexts {
  /** Name of the context that is used unless another one is named. */
  readonly current: string
  readonly contexts: Readonly<Record<string, Context>>
}

type Environment = Readonly<Record<string, string | undefined>>

/** The file of contexts: below $XDG_CONFIG_HOME, or ~/.config. */
export const contextsFile = (environment: Environment = process.env): string => {
  const { XDG_CONFIG_HOME } = environment
  const folder = XDG_CONFIG_HOME || join(environment["HOME"] ?? homedir(), ".config")
  return join(folder, "alk", "contexts.json")
}

/** The contexts in the file, empty if there is no file. Throws CommandFailure if others can read it. */
export const readContexts = (file: string): Contexts => {
  try {
    const { mode } = statSync(file)
    if (process.platform !== "win32" && (mode & OTHERS) !== 0) {
      const message = `${file}: other users can read the keys in it`
      throw new CommandFailure(EXIT.failed, message, `chmod 600 ${file}`)
    }
    return parseJson(readFileSync(file, "utf8")) as Contexts
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") {
      return { current: DEFAULT_NAME, contexts: {} }
    }
    if (!(error instanceof SyntaxError)) throw error
    throw new CommandFailure(EXIT.failed, `${file}: is no JSON`, `remove it, and run alk login`)
  }
}

/** Write the file in one step, with mode 0600 in a folder of mode 0700. */
export const writeContexts = (file: string, contexts: Contexts): void => {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const temporary = `${file}.${process.pid}`
  writeFileSync(temporary, `${JSON.stringify(contexts, null, 2)}\n`, { mode: 0o600 })
  chmodSync(temporary, 0o600)
  renameSync(temporary, file)
}

/** With a context added, or put in the place of that of the same name, and made the current one. */
export const withContext = (before: Contexts, name: string, context: Context): Contexts => ({
  current: name,
  contexts: { ...before.contexts, [name]: context }
})

export interface Choice {
  /** Of `--context`. */
  readonly context?: string | undefined
  /** Of `--url`. */
  readonly url?: string | undefined
}

const named = (contexts: Contexts, name: string, file: string): Context => {
  const found = contexts.contexts[name]
  if (found !== undefined) return found
  const names = Object.keys(contexts.contexts).join(", ") || "none"
  throw usage(
    `context ${JSON.stringify(name)} is not in ${file}; there are: ${names}`,
    `alk login --context ${name}`
  )
}

const sameAddress = (left: string, right: string): boolean =>
  left.replace(/\/+$/, "") === right.replace(/\/+$/, "")

/** Address and key by what was chosen, the environment and the file. `key` may be unknown. */
export const resolveContext = (
  choice: Choice,
  environment: Environment = process.env
): { readonly url: string; readonly key: string | undefined } => {
  const name = choice.context ?? (environment["ALK_CONTEXT"] || undefined)
  const file = contextsFile(environment)
  if (name !== undefined && choice.url === undefined) return named(readContexts(file), name, file)
  const url = choice.url ?? (environment["ALK_URL"] || undefined)
  const ofEnvironment = environment["ALK_API_KEY"] || undefined
  if (url !== undefined && ofEnvironment !== undefined) return { url, key: ofEnvironment }
  const contexts = readContexts(file)
  const stored = contexts.contexts[name ?? contexts.current]
  if (url === undefined) {
    return { url: stored?.url ?? DEFAULT_URL, key: ofEnvironment ?? stored?.key }
  }
  const known = Object.values(contexts.contexts).find((one) => sameAddress(one.url, url))
  return { url, key: known?.key }
}

/** The same, with a key. Throws CommandFailure. */
export const requireContext = (choice: Choice, environment: Environment = process.env): Context => {
  const { key, url } = resolveContext(choice, environment)
  if (key !== undefined) return { url, key }
  throw new CommandFailure(
    EXIT.unreachable,
    `there is no key for ${url}`,
    "alk login asks for one and keeps it; or set ALK_API_KEY"
  )
}
