/** The broker dies or falls silent under a whole program, and comes back. */
import { describe, it } from "vitest"
import { withEmbedded } from "./Embedded.ts"
import { Load } from "./Load.ts"
import { judge } from "./Oracle.ts"
import { TENANTS } from "./Parts.ts"
import { assertWritable, freezeBroker, killBroker, REPEATS } from "./Scenarios.ts"
import { Subscriber } from "./Subscriber.ts"

const REPEAT_MS = 90_000

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
})
