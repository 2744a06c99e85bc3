/** What stands between the topic and the lists dies and freezes: nothing is shown twice. */
import { setTimeout as sleep } from "node:timers/promises"
import { describe, it } from "vitest"
import { Load } from "./Load.ts"
import { judge } from "./Oracle.ts"
import { pause, resume, TENANTS, withParts } from "./Parts.ts"
import {
  assertWritable,
  DuplicateWatch,
  freezeProjection,
  killProjection,
  REPEATS
} from "./Scenarios.ts"
import { Subscriber } from "./Subscriber.ts"

const REPEAT_MS = 60_000

describe("the projection", () => {
  it(
    `killed at ${REPEATS} random moments shows nothing twice`,
    withParts(1, async (parts) => {
      const load = new Load(parts, { tenants: TENANTS })
      const watch = new DuplicateWatch(parts, TENANTS)
      load.begin()
      for (let n = 0; n < REPEATS; n++) await killProjection(parts, load)
      await load.more(10)
      await load.end()
      await load.settle()
      await watch.finish()
      await judge(parts, load)
    }),
    REPEATS * REPEAT_MS + 120_000
  )

  it(
    "frozen past its session shows nothing twice and takes nothing back when it thaws",
    withParts(1, async (parts) => {
      const load = new Load(parts, { tenants: TENANTS })
      const watch = new DuplicateWatch(parts, TENANTS)
      load.begin()
      await load.more(20)
      const thaw = await freezeProjection(parts, load)
      await load.end()
      await load.settle()
      thaw()
      // A receipt that was final stays final, whatever the thawed process still has to say.
      for (let n = 0; n < 50; n++) {
        await load.assertFinal(20)
        await sleep(100)
      }
      await assertWritable(parts, load, TENANTS)
      await watch.finish()
      await judge(parts, load)
    })
  )
})

describe("the store", () => {
  it(
    "frozen for 10 s does not hold up ingest or streams, and is caught up with",
    withParts(1, async (parts) => {
      const load = new Load(parts, { tenants: TENANTS })
      const subscribers = TENANTS.map((tenant) => new Subscriber(parts, tenant))
      load.begin()
      await load.more(10)
      // A stream reads what was before it from the store, and begins once that is done.
      await Promise.all(subscribers.map((subscriber) => subscriber.begun()))
      pause(parts.store)
      const streamed = subscribers.map(({ received }) => received.length)
      await sleep(10_000)
      await load.more(20)
      subscribers.forEach(({ received }, index) => {
        if (received.length <= streamed[index]!) throw new Error("a stream stood still")
      })
      resume(parts.store)
      await load.end()
      await judge(parts, load, subscribers)
    })
  )

  it(
    `killed ${REPEATS} times loses nothing that was shown`,
    withParts(1, async (parts) => {
      const load = new Load(parts, { tenants: TENANTS })
      const subscribers = TENANTS.map((tenant) => new Subscriber(parts, tenant))
      const watch = new DuplicateWatch(parts, TENANTS)
      load.begin()
      for (let n = 0; n < REPEATS; n++) {
        await load.more(10)
        await parts.store.kill()
        await load.more(10)
        await parts.startStore()
        await sleep(2_000)
      }
      await load.end()
      await load.settle()
      await watch.finish()
      await judge(parts, load, subscribers)
    }),
    REPEATS * REPEAT_MS + 120_000
  )
})
