/** The broker dies or falls silent under a whole program, and comes back. */
import { assert, describe, it } from "vitest"
import { withEmbedded } from "./Embedded.ts"
import { Load } from "./Load.ts"
import { judge } from "./Oracle.ts"
import { pause, residentKib, resume, TENANTS } from "./Parts.ts"
import { assertWritable, freezeBroker, killBroker, REPEATS } from "./Scenarios.ts"
import { Subscriber } from "./Subscriber.ts"

const REPEAT_MS = 90_000
/** Requests at once, 6 MB each: more than may wait for the log. */
const FLOOD = 28
const FLOOD_EVENTS = 1_000
/** KiB that the queue, and the requests on their way to it, may cost. */
const FLOOD_KIB_MAX = 1_024 * 1_024

describe("the broker", () => {
  it(
    `killed ${REPEATS} times under load: what was acknowledged is there, and it goes on by itself`,
    withEmbedded(async (embedded) => {
      const load = new Load(embedded, { tenants: TENANTS })
      const subscribers = TENANTS.map((tenant) => new Subscriber(embedded, tenant))
      load.begin()
      for (let n = 0; n < REPEATS; n++) await killBroker(embedded, load)
      await load.end()
      await assertWritable(embedded, load, TENANTS)
      await judge(embedded, load, subscribers)
    }),
    REPEATS * REPEAT_MS + 120_000
  )

  it(
    "silent for 15 s under load: 503 with Retry-After, no 202 for what was not written",
    withEmbedded(async (embedded) => {
      const load = new Load(embedded, { tenants: TENANTS })
      const subscribers = TENANTS.map((tenant) => new Subscriber(embedded, tenant))
      load.begin()
      await freezeBroker(embedded, load)
      await load.end()
      await assertWritable(embedded, load, TENANTS)
      await judge(embedded, load, subscribers)
    })
  )

  it(
    "silent under more than the queue takes: all of it is refused, and memory stays bounded",
    withEmbedded(async (embedded) => {
      const load = new Load(embedded, { tenants: TENANTS })
      await assertWritable(embedded, load, TENANTS)
      const before = residentKib(embedded.program.pid)
      const pid = embedded.broker()
      pause({ pid })
      try {
        await Promise.all(
          Array.from({ length: FLOOD }, (_, n) =>
            load.large(TENANTS[n % TENANTS.length]!, FLOOD_EVENTS)
          )
        )
        assert.strictEqual(load.statuses.get(503), FLOOD, load.summary())
        const grown = residentKib(embedded.program.pid) - before
        assert.isBelow(grown, FLOOD_KIB_MAX, "KiB more than before")
      } finally {
        resume({ pid })
      }
      await assertWritable(embedded, load, TENANTS)
      await judge(embedded, load)
    })
  )
})
