/**
 * Secrets that come from files: what a secret variable X would say may be in the file that X_FILE
 * names, so that it is not in the environment of the process, which the kernel shows to every program
 * of the same user for as long as the process runs. No problem that is told shows a value or a path,
 * which may be the secret itself.
 */
import { readFileSync, statSync } from "node:fs"
import { resolve } from "node:path"
import { type Name, type Variable, variables } from "./Variables.ts"

type Environment = Readonly<Record<string, string | undefined>>

/** The variables whose value is never shown. */
export const secretNames: ReadonlyArray<Name> = Object.entries<Variable<unknown>>(variables)
  .filter(([, { secret }]) => secret)
  .map(([name]) => name as Name)

/** The variable that names the file of a secret. */
export const fileNameOf = (name: string): string => `${name}_FILE`

/** Bytes of a file at most: a thousand API keys with their tenants have less. */
const FILE_BYTES_MAX = 262_144
/** Permission bits of users who are neither the file's owner nor in its group. */
const OTHERS = 0o007

export interface SecretFiles {
  /** By the name of the secret. */
  readonly values: Readonly<Record<string, string>>
  readonly problems: ReadonlyArray<string>
  /** Variables whose file every user of the machine may read. */
  readonly open: ReadonlyArray<string>
}

export const noSecretFiles: SecretFiles = { values: {}, problems: [], open: [] }

const READABLE = "name one that is there and that this user may read"

const whyUnreadable = (cause: unknown): string => (cause as NodeJS.ErrnoException).code ?? "unknown"

/**
 * Reads the files that the environment names, of these secrets; relative paths are below
 * `workingDirectory`.
 */
export const readSecretFiles = (
  environment: Environment,
  workingDirectory: string,
  names: ReadonlyArray<Name> = secretNames
): SecretFiles => {
  const values: Record<string, string> = {}
  const problems: Array<string> = []
  const open: Array<string> = []
  for (const name of names) {
    const variable = fileNameOf(name)
    const path = environment[variable]
    if (path === undefined || path === "") continue
    if (environment[name] !== undefined && environment[name] !== "") {
      problems.push(`${variable} and ${name} are both set: unset one of them`)
      continue
    }
    try {
      const file = resolve(workingDirectory, path)
      const { mode, size } = statSync(file)
      if (size > FILE_BYTES_MAX) {
        problems.push(`${variable} names a file of ${size} bytes; allowed: ${FILE_BYTES_MAX} bytes`)
        continue
      }
      const value = readFileSync(file, "utf8").replace(/[\r\n]+$/, "")
      if (value === "") problems.push(`${variable} names an empty file: write the secret into it`)
      else values[name] = value
      if ((mode & OTHERS) !== 0) open.push(variable)
    } catch (cause) {
      problems.push(
        `${variable} names a file that can't be read (${whyUnreadable(cause)}); ${READABLE}`
      )
    }
  }
  return { values, problems, open }
}
