/**
 * The console bundled by esbuild out of `src/console`, in memory: nothing is written, and nothing
 * has to be built before the service starts.
 */
import { basename, join } from "node:path"
import { Effect, Layer } from "effect"
import type { BuildResult } from "esbuild"
import { type ConsoleBundle, ConsoleFiles, ConsoleUnavailable } from "../../ports/ConsoleFiles.ts"
import { packChecks } from "./PackChecks.ts"

const ROOT = join(import.meta.dirname, "..", "..", "..")
const ENTRY = "src/console/main.tsx"
/** These run beside the page. */
const LAYOUT_WORKER = "src/console/workers/GraphLayout.ts"
const PACK_WORKER = "src/console/workers/PackCheck.ts"
/** Every browser of the last three years. */
const TARGET = "es2022"

type Built = BuildResult<{ readonly write: false; readonly metafile: true }>

const bundleOf = ({ metafile, outputFiles }: Built): ConsoleBundle => {
  const outputs = Object.entries(metafile.outputs)
  const outputOf = (source: string) => outputs.find(([, { entryPoint }]) => entryPoint === source)
  const workerOf = (source: string): string => {
    const worker = outputOf(source)
    if (worker === undefined) throw new Error(`the bundle lacks the worker ${source}`)
    return basename(worker[0])
  }
  const entry = outputOf(ENTRY)
  if (entry?.[1].cssBundle === undefined) throw new Error("the bundle has no entry with styles")
  const [path, { cssBundle, imports }] = entry
  return {
    files: new Map(outputFiles.map(({ path: file, text }) => [basename(file), text])),
    entry: basename(path),
    styles: basename(cssBundle),
    layoutWorker: workerOf(LAYOUT_WORKER),
    packWorker: workerOf(PACK_WORKER),
    preloads: imports
      .filter(({ kind }) => kind === "import-statement")
      .map(({ path: chunk }) => basename(chunk))
  }
}

const build = async (): Promise<ConsoleBundle> => {
  const esbuild = await import("esbuild")
  const built = await esbuild.build({
    absWorkingDir: ROOT,
    entryPoints: [ENTRY, LAYOUT_WORKER, PACK_WORKER],
    bundle: true,
    splitting: true,
    format: "esm",
    target: TARGET,
    jsx: "automatic",
    jsxImportSource: "preact",
    minify: true,
    legalComments: "none",
    write: false,
    metafile: true,
    outdir: "console",
    plugins: [packChecks],
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    logLevel: "silent"
  })
  // The process that it works in would stay.
  await esbuild.stop()
  return bundleOf(built)
}

const attempt = Effect.tryPromise({
  try: build,
  catch: (cause) => new ConsoleUnavailable({ message: String(cause) })
}).pipe(Effect.tapError(({ message }) => Effect.logError("the console can't be built", message)))

/** The bundle, made once. */
export const layerConsoleBundle: Layer.Layer<ConsoleFiles> = Layer.effect(
  ConsoleFiles,
  Effect.map(Effect.cached(attempt), (bundle) => ConsoleFiles.of({ bundle }))
)
