/** Who follows the log begins again whatever ends it, and says meanwhile that it does not follow. */
import { assert, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { Following, layerFollower, RegistryView } from "../../src/actors/Follower.ts"
import { registryKey, registryValue } from "../../src/domain/Registry.ts"
import {
  EventLog,
  LogUnavailable,
  type Fetched,
  type LogReader
} from "../../src/ports/EventLog.ts"
import { EventStore } from "../../src/ports/EventStore.ts"

const entry = {
  kind: "tenant",
  tenant: { id: "acme", created_at: "2026-11-21T00:00:00.000000Z" }
} as const

/** What the registry holds, once it can be read. */
const registry: Fetched = {
  topic: "registry",
  partition: 0,
  offset: 0,
  nextOffset: 1,
  stableEnd: 1,
  logStart: 0,
  records: [
    {
      offset: 0,
      timestamp: 0,
      key: Buffer.from(registryKey(entry)),
      value: Buffer.from(registryValue(entry)),
      headers: {}
    }
  ]
}

it.live("a follower survives errors and defects of its reader", () =>
  Effect.gen(function*() {
    const seen: Array<string | undefined> = []
    let interrupted: () => string | undefined = () => undefined
    const answers: Array<ReturnType<LogReader["fetch"]>> = [
      Effect.fail(new LogUnavailable({ operation: "fetch", cause: new Error("away") })),
      Effect.die(new Error("a mistake of ours")),
      Effect.sync((): never => {
        throw new TypeError("another one")
      }),
      Effect.succeed([registry])
    ]
    const log = Layer.mock(EventLog, {
      partitions: 1,
      bootstrap: "nowhere",
      partitionOf: () => 0,
      bounds: () => Effect.succeed({ start: 0, end: 0 }),
      ends: (positions) => Effect.succeed(positions.map(() => 0)),
      appender: Effect.never,
      reader: Effect.succeed({
        fetch: () =>
          Effect.suspend(() => {
            seen.push(interrupted())
            return answers.shift() ?? Effect.never
          })
      })
    })
    const following = yield* Layer.build(
      layerFollower.pipe(Layer.provide([log, Layer.mock(EventStore, {
        migrate: Effect.void,
        ping: Effect.void,
        mergeDuplicates: Effect.void
      })]))
    )
    interrupted = Context.get(following, Following).interrupted
    const view = Context.get(following, RegistryView)
    yield* view.until(({ tenants }) => tenants.has("acme")).pipe(Effect.timeout("20 seconds"))
    assert.isUndefined(interrupted())
    // What it says before each fetch but the first, and before the one that never ends.
    assert.match(String(seen[1]), /away|LogUnavailable/)
    assert.match(String(seen[2]), /a mistake of ours/)
    assert.match(String(seen[3]), /another one/)
    assert.isUndefined(seen[4])
  }).pipe(Effect.scoped)
)
