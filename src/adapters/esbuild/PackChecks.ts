/**
 * Lets the bundle have the checks of verify.mjs without the part of the program that needs Node: the
 * console checks packs with the very lines that packs carry.
 */
import { readFile } from "node:fs/promises"
import type { Plugin } from "esbuild"

const BEGIN = "// ---- checks: begin ----\n"
const END = "// ---- checks: end ----\n"
/** What browser.mjs takes of them. */
const NAMES = "checkPack, concat, hexOf, keysOfText, keyText, Unreadable, utf8, zipSource"

export const packChecks: Plugin = {
  name: "pack-checks",
  setup: (build) => {
    build.onLoad({ filter: /[\\/]verifiers[\\/]verify\.mjs$/ }, async ({ path }) => {
      const program = await readFile(path, "utf8")
      const [begin, end] = [program.indexOf(BEGIN), program.indexOf(END)]
      if (begin === -1 || end === -1) throw new Error(`${path} does not mark its checks`)
      const checks = program.slice(begin, end)
      return { contents: `${checks}export { ${NAMES} }\n`, loader: "js" }
    })
  }
}
