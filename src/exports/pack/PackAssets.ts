/**
 * The files of a pack that are the same in every pack: the verifiers, the schemas and the page that
 * explains them. They are read once.
 */
import { readFileSync } from "node:fs"
import { packSchemas } from "./PackRecords.ts"

/** One file, as it is. */
export interface PackAsset {
  readonly name: string
  readonly isProgram: boolean
  readonly content: Buffer
}

/** What encloses the checks in verify.mjs that verify.html runs too. */
const CHECKS_BEGIN = "// ---- checks: begin ----\n"
const CHECKS_END = "// ---- checks: end ----\n"
/** Where they go in verify.html. */
const CHECKS_PLACE = "/* the checks of verify.mjs */"

const read = (path: string): string => readFileSync(new URL(path, import.meta.url), "utf8")

/** The page with the checks in it: one file that needs no other. */
const verifierPage = (program: string): string => {
  const start = program.indexOf(CHECKS_BEGIN)
  const end = program.indexOf(CHECKS_END)
  const page = read("../verifiers/verify.html")
  if (start === -1 || end === -1 || !page.includes(CHECKS_PLACE)) {
    throw new Error("verify.mjs and verify.html don't fit together")
  }
  const checks = program.slice(start + CHECKS_BEGIN.length, end)
  return page.replace(CHECKS_PLACE, () => checks)
}

let known: ReadonlyArray<PackAsset> | undefined

/** Schemas and verifiers, in the order in which they are in a pack. */
export const packAssets = (): ReadonlyArray<PackAsset> => {
  if (known !== undefined) return known
  const program = read("../verifiers/verify.mjs")
  const asset = (name: string, text: string, isProgram = false): PackAsset => ({
    name,
    isProgram,
    content: Buffer.from(text)
  })
  known = [
    ...packSchemas.map(({ name }) =>
      asset(`schema/${name}.schema.json`, read(`schemas/${name}.schema.json`))
    ),
    asset("verify.html", verifierPage(program)),
    asset("verify.mjs", program, true),
    asset("verify.py", read("../verifiers/verify.py"), true)
  ]
  return known
}
