/** Bundles by esbuild, in memory. */
import { join } from "node:path"
import type { BuildOptions, BuildResult } from "esbuild"

const ROOT = join(import.meta.dirname, "..", "..", "..")
/** Node 20, and every browser of the last three years. */
const TARGET = "es2022"

/** Bundles in the making. */
let running = 0

/** What entries of the source become, with what they import. */
export const bundled = async (
  options: BuildOptions
): Promise<BuildResult<{ readonly write: false; readonly metafile: true }>> => {
  const esbuild = await import("esbuild")
  running += 1
  try {
    return await esbuild.build({
      ...options,
      absWorkingDir: ROOT,
      bundle: true,
      target: TARGET,
      write: false,
      metafile: true,
      logLevel: "silent"
    })
  } finally {
    running -= 1
    // The process that it works in would stay.
    if (running === 0) await esbuild.stop()
  }
}
