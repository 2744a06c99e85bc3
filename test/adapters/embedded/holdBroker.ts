/**
 * A stand-in for alk that does nothing but hold the embedded broker: the tests kill it. Prints one
 * line of JSON when the broker is ready, and ends cleanly on SIGTERM.
 * Arguments: data folder, cache folder, port.
 */
import { NodeRuntime } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { EmbeddedBroker } from "../../../src/adapters/embedded/broker/EmbeddedBroker.ts"
import { DataFolder } from "../../../src/adapters/embedded/DataFolder.ts"

const [, , dataFolder = "", cacheDir = "", port = ""] = process.argv

Effect.gen(function* () {
  const { bootstrap, state } = yield* EmbeddedBroker
  process.stdout.write(`${JSON.stringify({ bootstrap, state: yield* state })}\n`)
  return yield* Effect.never
}).pipe(
  Effect.provide(
    EmbeddedBroker.layer({
      port: Number(port),
      isOpen: true,
      cacheDir,
      report: () => undefined
    }).pipe(Layer.provide(DataFolder.layer(dataFolder)))
  ),
  NodeRuntime.runMain
)
