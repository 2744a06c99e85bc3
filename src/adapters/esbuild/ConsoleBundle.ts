/**
 * The console bundled by esbuild out of `src/console`, in memory: nothing is written, and nothing
 * has to be built before the service starts.
 */
import { basename } from "node:path"
import { Effect, Layer } from "effect"
import type { BuildResult } from "esbuild"
import { type ConsoleBundle, ConsoleFiles, ConsoleUnavailable } from "../../ports/ConsoleFiles.ts"
import { bundled } from "./Bundle.ts"

const ENTRY = "src/console/main.tsx"
/** These run beside the page. */
const LAYOUT_WORKER = "src/console/workers/GraphLayout.ts"
const PACK_WORKER = "src/console/workers/PackCheck.ts"

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
  const built = await bundled({
    entryPoints: [ENTRY, LAYOUT_WORKER, PACK_WORKER],
    splitting: true,
    format: "esm",
    jsx: "automatic",
    jsxImportSource: "preact",
    minify: true,
    legalComments: "none",
    outdir: "console",
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]"
  })
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
