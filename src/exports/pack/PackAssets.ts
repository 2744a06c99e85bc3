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

/** A part of a program that verify.html has too: what encloses it, and where it goes in the page. */
interface SharedPart {
  readonly begin: string
  readonly end: string
  readonly place: string
}

const CHECKS: SharedPart = {
  begin: "// ---- checks: begin ----\n",
  end: "// ---- checks: end ----\n",
  place: "/* the checks of verify.mjs */"
}
const HOST: SharedPart = {
  begin: "// ---- host: begin ----\n",
  end: "// ---- host: end ----\n",
  place: "/* the host of browser.mjs */"
}

const read = (path: string): string => readFileSync(new URL(path, import.meta.url), "utf8")

/** The page with a part of a program in its place. */
const withPart = (page: string, program: string, { begin, end, place }: SharedPart): string => {
  const from = program.indexOf(begin)
  const to = program.indexOf(end)
  if (from === -1 || to === -1 || !page.includes(place)) {
    throw new Error(`verify.html has no place for the part between ${begin.trim()} and its end`)
  }
  return page.replace(place, () => program.slice(from + begin.length, to))
}

/** The page with checks and host in it: one file that needs no other. */
const verifierPage = (program: string): string => {
  const page = withPart(read("../verifiers/verify.html"), program, CHECKS)
  return withPart(page, read("../verifiers/browser.mjs"), HOST)
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
