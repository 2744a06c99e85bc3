/**
 * A process in the role `store`, for tests: opens the folder in its first argument, serves it on a
 * free port, says `{"url"}` or `{"error"}` on one line, and ends with its parent or on SIGTERM.
 */
import { Effect, Layer, Redacted } from "effect"
import { ChdbEngine } from "../../../../src/adapters/clickhouse/client/ChdbEngine.ts"
import { StoreServer } from "../../../../src/adapters/clickhouse/client/StoreServer.ts"

const [folder = "", password] = process.argv.slice(2)

const asked = new Promise<void>((resolve) => {
  process.on("SIGTERM", () => resolve())
  process.on("disconnect", () => resolve())
})

const settings = {
  port: 0,
  ...(password === undefined ? {} : { password: Redacted.make(password) })
}

const program = Effect.gen(function* () {
  const { url } = yield* StoreServer
  console.log(JSON.stringify({ url }))
  yield* Effect.promise(() => asked)
}).pipe(
  Effect.provide(StoreServer.layer(settings).pipe(Layer.provide(ChdbEngine.layer(folder)))),
  Effect.catch((error) =>
    Effect.sync(() => {
      console.log(JSON.stringify({ error: error._tag, message: error.message }))
      process.exitCode = 1
    })
  )
)

await Effect.runPromise(program)
if (process.connected) process.disconnect()
