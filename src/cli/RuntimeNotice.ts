/**
 * A line at the start about a mistake of the runtime that alk works around.
 * Nothing waits for it and nothing depends on it.
 */
import { Effect } from "effect"
import { engineConfusesKeys } from "../domain/json/Json.ts"

/** One line if the JSON.parse of this runtime confuses keys, nothing if it is mended. */
export const noteKeyConfusion = (isConfused = engineConfusesKeys()): Effect.Effect<void> =>
  isConfused
    ? Effect.logInfo(
        "JSON.parse of this Node confuses keys that are written with an escape "
          + "(nodejs/node#63785); alk reads them by itself and is not affected",
        { node: process.version, v8: process.versions.v8 }
      )
    : Effect.void
