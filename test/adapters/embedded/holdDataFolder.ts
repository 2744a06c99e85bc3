/** Owns the data folder named until it is killed; says so on its standard output. */
import { NodeRuntime } from "@effect/platform-node"
import { Effect } from "effect"
import { DataFolder } from "../../../src/adapters/embedded/DataFolder.ts"

DataFolder.open(process.argv[2] ?? "").pipe(
  Effect.tap(() => Effect.sync(() => process.stdout.write("owned\n"))),
  Effect.andThen(Effect.never),
  Effect.scoped,
  NodeRuntime.runMain
)
