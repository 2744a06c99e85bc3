/**
 * The verifiers that packs carry, bundled by esbuild out of `src/exports/checker` when a pack is made
 * first: in memory, as the console is, so nothing built is committed and nothing can be out of date.
 * The same source and the same version of esbuild, which is pinned, make the same bytes everywhere.
 */
import { Effect, Layer } from "effect"
import type { BuildOptions } from "esbuild"
import { PackVerifiers, type VerifierFiles } from "../../ports/PackVerifiers.ts"
import { bundled } from "./Bundle.ts"

const NODE_HEAD = `#!/usr/bin/env node
/**
 * Checks an alk evidence pack offline: node verify.mjs [pack.zip | folder]. Plain Node 20 or later
 * and nothing else: it asks no network. Made of the sources of alk that are named below, which hash
 * and read as the service does; verify.py shares no code with them.
 */`

const fileOf = async (entry: string, options: BuildOptions): Promise<string> => {
  const entryPoints = [`src/exports/checker/${entry}`]
  const { outputFiles } = await bundled({ entryPoints, charset: "utf8", ...options })
  return outputFiles[0]!.text
}

const make = async (): Promise<VerifierFiles> => {
  const [program, checks] = await Promise.all([
    fileOf("Program.ts", { platform: "node", format: "esm", banner: { js: NODE_HEAD } }),
    fileOf("Page.ts", { platform: "browser", format: "iife", globalName: "checks" })
  ])
  return { program, checks }
}

let made: Promise<VerifierFiles> | undefined

/** Both programs, made once. */
export const verifierFiles = (): Promise<VerifierFiles> => {
  made ??= make()
  return made
}

export const layerPackVerifiers: Layer.Layer<PackVerifiers> = Layer.succeed(
  PackVerifiers,
  PackVerifiers.of({ files: Effect.promise(verifierFiles) })
)
