/** The version of the program, which is another one than that of its API. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { parseJson } from "../domain/json/Json.ts"

const FILE = join(import.meta.dirname, "..", "..", "package.json")

let known: string | undefined

/** As package.json says it; read once. */
export const programVersion = (): string => {
  known ??= (parseJson(readFileSync(FILE, "utf8")) as { readonly version: string }).version
  return known
}
