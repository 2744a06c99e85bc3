/**
 * The files of a pack that are the same in every pack: the verifiers, the schemas and the page that
 * explains them.
 */
import { readFileSync } from "node:fs"
import type { VerifierFiles } from "../../ports/PackVerifiers.ts"
import { packSchemas } from "./PackRecords.ts"

/** One file, as it is. */
export interface PackAsset {
  readonly name: string
  readonly isProgram: boolean
  readonly content: Buffer
}

/** Where the script of verify.html has the checks. */
const PLACE = "/* the checks */"

const read = (path: string): string => readFileSync(new URL(path, import.meta.url), "utf8")

/** The page with the checks in it: one file that needs no other. */
const verifierPage = (checks: string): string => {
  const page = read("../verifiers/verify.html")
  if (!page.includes(PLACE)) throw new Error(`verify.html has no place for ${PLACE}`)
  return page.replace(PLACE, () => checks)
}

/** Schemas and verifiers, in the order in which they are in a pack. */
export const packAssets = ({ checks, program }: VerifierFiles): ReadonlyArray<PackAsset> => {
  const asset = (name: string, text: string, isProgram = false): PackAsset => ({
    name,
    isProgram,
    content: Buffer.from(text)
  })
  return [
    ...packSchemas.map(({ name }) =>
      asset(`schema/${name}.schema.json`, read(`schemas/${name}.schema.json`))
    ),
    asset("verify.html", verifierPage(checks)),
    asset("verify.mjs", program, true),
    asset("verify.py", read("../verifiers/verify.py"), true)
  ]
}
