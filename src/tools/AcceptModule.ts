/**
 * Compiles the AssemblyScript of src/services/ingest/fast/assembly. Needs the development packages,
 * no network.
 */
import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const repository = join(import.meta.dirname, "..", "..")
const COMPILER = join("node_modules", "assemblyscript", "bin", "asc.js")
const SOURCE = "src/services/ingest/fast/assembly/Accept.ts"
/** Pages of 64 KiB: 24 MiB, enough for the largest request that the module reads. */
const PAGES_MAX = 384

/** Where the program imports the module from. */
export const ACCEPT_MODULE = "src/services/ingest/fast/gen/AcceptModule.ts"

/** The module: no imports, no garbage collector, vectors of 128 bits. */
const compile = (): Buffer => {
  const folder = mkdtempSync(join(tmpdir(), "alk-accept-"))
  try {
    const file = join(folder, "accept.wasm")
    const options = [
      "--enable",
      "simd",
      "--runtime",
      "stub",
      "--use",
      "abort=",
      "--noAssert",
      "-O3"
    ]
    execFileSync(
      process.execPath,
      [COMPILER, SOURCE, "-o", file, ...options, "--maximumMemory", String(PAGES_MAX)],
      { cwd: repository, stdio: "inherit" }
    )
    return readFileSync(file)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** The text of ACCEPT_MODULE. */
export const acceptModuleText = (): string =>
  `// Made of ${SOURCE} by: npm run generate\n`
  + `export const ACCEPT_MODULE =\n  "${compile().toString("base64")}"\n`
