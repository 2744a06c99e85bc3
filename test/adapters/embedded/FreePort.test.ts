import { createServer, type Server } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { anyFreePort, freePortFrom } from "../../../src/adapters/embedded/FreePort.ts"

const listening = (port: number, host: string) =>
  Effect.acquireRelease(
    Effect.callback<Server>((resume) => {
      const server = createServer()
      server.listen(port, host, () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => server.close())
  )

describe("freePortFrom", () => {
  it.live("takes the wanted port if it is free", () =>
    Effect.gen(function* () {
      const port = yield* anyFreePort
      assert.strictEqual(yield* freePortFrom(port), port)
    })
  )

  it.live("takes the next one if somebody listens on the wanted one", () =>
    Effect.gen(function* () {
      const port = yield* anyFreePort
      yield* listening(port, "127.0.0.1")
      const found = yield* freePortFrom(port)
      assert(found !== undefined)
      assert.isAbove(found, port)
    })
  )

  it.live("takes the next one if somebody listens there on all addresses", () =>
    Effect.gen(function* () {
      const port = yield* anyFreePort
      yield* listening(port, "0.0.0.0")
      const found = yield* freePortFrom(port)
      assert(found !== undefined)
      assert.isAbove(found, port)
    })
  )

  it.live("does not run over the last port", () =>
    Effect.gen(function* () {
      yield* Effect.ignore(listening(65_535, "127.0.0.1"))
      assert.isUndefined(yield* freePortFrom(65_535))
    })
  )
})
