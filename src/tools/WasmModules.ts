/**
 * Compiles the AssemblyScript of src: the folders `assembly`. Needs the development packages, no
 * network.
 */
import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const repository = join(import.meta.dirname, "..", "..")
const COMPILER = join("node_modules", "assemblyscript", "bin", "asc.js")
/** No imports, no garbage collector, vectors of 128 bits. */
const OPTIONS = [
  "--enable",
  "simd",
  "--runtime",
  "stub",
  "--use",
  "abort=",
  "--noAssert",
  "-O3"
] as const

/** A module that is compiled of AssemblyScript. */
export interface WasmModule {
  readonly source: string
  /** Where the program imports it from. */
  readonly file: string
  /** What it is called there. */
  readonly constant: string
  /** Pages of 64 KiB that its memory has at most. */
  readonly pagesMax: number
}

export const acceptModule: WasmModule = {
  source: "src/services/ingest/fast/assembly/Accept.ts",
  file: "src/services/ingest/fast/gen/AcceptModule.ts",
  constant: "ACCEPT_MODULE",
  // 24 MiB, enough for the largest request that the module reads.
  pagesMax: 384
}

export const splitModule: WasmModule = {
  source: "src/adapters/clickhouse/events/fast/assembly/Split.ts",
  file: "src/adapters/clickhouse/events/fast/gen/SplitModule.ts",
  constant: "SPLIT_MODULE",
  // 8 MiB, enough for the columns of the largest piece.
  pagesMax: 128
}

const compile = ({ pagesMax, source }: WasmModule): Buffer => {
  const folder = mkdtempSync(join(tmpdir(), "alk-wasm-"))
  try {
    const file = join(folder, "module.wasm")
    execFileSync(
      process.execPath,
      [COMPILER, source, "-o", file, ...OPTIONS, "--maximumMemory", String(pagesMax)],
      { cwd: repository, stdio: "inherit" }
    )
    return readFileSync(file)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** The text of the module's file. */
export const moduleText = (module: WasmModule): string =>
  `// Made of ${module.source} by: npm run generate\n`
  + `export const ${module.constant} =\n  "${compile(module).toString("base64")}"\n`
