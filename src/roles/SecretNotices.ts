/** Lines at the start about secrets that others can read. */
import { Effect } from "effect"
import type { Config } from "../config/Config.ts"
import { fileNameOf } from "../config/SecretFiles.ts"
import { embedsStore } from "./Topology.ts"

/**
 * Names secrets that stand in the environment of a process that runs SQL by itself, and files of
 * secrets that every user of the machine may read.
 */
export const noteSecrets = Effect.fnUntraced(function* (config: Config) {
  const { openFiles, variables } = config.secrets
  const names = Object.keys(variables)
  if (names.length > 0 && embedsStore(config)) {
    yield* Effect.logWarning(
      `secrets stand in the environment, which the kernel shows for as long as this process runs `
        + `(/proc/self/environ), and SQL runs in it: write each into a file that only this user may `
        + `read, and name that in ${names.map(fileNameOf).join(", ")} in the place of the variable`
    ).pipe(Effect.annotateLogs({ variables: names }))
  }
  for (const variable of openFiles) {
    yield* Effect.logWarning(
      `every user of this machine may read the file that ${variable} names: chmod o= it, unless this`
        + " machine has no other users"
    )
  }
})
