import { type AddressInfo, createServer, type Server } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { anyFreePort, freePortFrom } from "../../../src/adapters/embedded/FreePort.ts"
import { freePort } from "../../support/FreePort.ts"

/** The port that is held for as long as the scope is open; one that another program has is as good. */
const held = (port: number, host: string) =>
  Effect.acquireRelease(
    Effect.callback<Server>((resume) => {
      const server = createServer()
      server.once("error", () => resume(Effect.succeed(server)))
      server.listen(port, host, () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => server.close())
  ).pipe(Effect.map((server) => (server.address() as AddressInfo | null)?.port ?? port))

describe("freePortFrom", () => {
  it.live("takes the wanted port if it is free", () =>
    Effect.gen(function* () {
      const port = yield* Effect.promise(freePort)
      assert.strictEqual(yield* freePortFrom(port), port)
    })
  )

  it.live("takes the next one if somebody listens on the wanted one", () =>
    Effect.gen(function* () {
      const port = yield* held(0, "127.0.0.1")
      const found = yield* freePortFrom(port)
      assert(found !== undefined)
      assert.isAbove(found, port)
    })
  )

  it.live("takes the next one if somebody listens there on all addresses", () =>
    Effect.gen(function* () {
      const port = yield* held(0, "0.0.0.0")
      const found = yield* freePortFrom(port)
      assert(found !== undefined)
      assert.isAbove(found, port)
    })
  )

  it.live("does not run over the last port", () =>
    Effect.gen(function* () {
      yield* held(65_535, "127.0.0.1")
      assert.isUndefined(yield* freePortFrom(65_535))
    })
  )

  it.live("takes any if it may", () =>
    Effect.gen(function* () {
      assert.isAbove((yield* freePortFrom(0)) ?? 0, 0)
      assert.isAbove(yield* anyFreePort, 0)
    })
  )
})
