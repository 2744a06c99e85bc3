/** Sequencers that die, freeze, thaw, come and go, under load. One chain throughout. */
import { setTimeout as sleep } from "node:timers/promises"
import { describe, it } from "vitest"
import { Load } from "./Load.ts"
import { judge } from "./Oracle.ts"
import { TENANTS, withParts } from "./Parts.ts"
import {
  assertWritable,
  freezeSequencer,
  killSequencer,
  REPEATS,
  restartTwiceWithinASecond
} from "./Scenarios.ts"
import { Subscriber } from "./Subscriber.ts"

/** Milliseconds for one repeat: a takeover after a kill lasts as long as the session. */
const REPEAT_MS = 60_000

const STORM_ROUNDS = REPEATS * 2

describe("a sequencer", () => {
  it(
    `killed at ${REPEATS} random moments leaves no gap and no double`,
    withParts(2, async (parts) => {
      const load = new Load(parts, { tenants: TENANTS })
      const subscribers = TENANTS.map((tenant) => new Subscriber(parts, tenant))
      load.begin()
      for (let n = 0; n < REPEATS; n++) await killSequencer(parts, load)
      await load.more(10)
      await load.end()
      await judge(parts, load, subscribers)
    }),
    REPEATS * REPEAT_MS + 120_000
  )

  it(
    "started twice within a second works again and is not fenced for ever",
    withParts(1, async (parts) => {
      const load = new Load(parts, { tenants: TENANTS })
      load.begin()
      for (let n = 0; n < REPEATS; n++) await restartTwiceWithinASecond(parts, load)
      await load.end()
      await assertWritable(parts, load, TENANTS)
      await judge(parts, load)
    }),
    REPEATS * REPEAT_MS + 120_000
  )

  it(
    `that comes or goes every 2 s, ${STORM_ROUNDS} times, leaves one writer and no lag`,
    withParts(2, async (parts) => {
      const load = new Load(parts, { tenants: TENANTS, pauseMs: 50 })
      const subscribers = TENANTS.map((tenant) => new Subscriber(parts, tenant))
      load.begin()
      for (let round = 0; round < STORM_ROUNDS; round++) {
        const goes = parts.sequencers.length > 2 || (parts.sequencers.length > 1 && round % 2 === 0)
        // Half of those who go leave the group properly, half of them are dead.
        if (goes && round % 4 === 0) await parts.sequencers.shift()!.stop()
        else if (goes) await parts.sequencers.shift()!.kill()
        else parts.sequencers.push(await parts.startRole("sequencer"))
        await sleep(2_000)
      }
      await load.more(20)
      await load.end()
      await assertWritable(parts, load, TENANTS)
      await judge(parts, load, subscribers)
    }),
    STORM_ROUNDS * REPEAT_MS + 120_000
  )

  it(
    "frozen past its session under load is refused when it thaws",
    withParts(2, async (parts) => {
      const load = new Load(parts, { tenants: TENANTS })
      const subscribers = TENANTS.map((tenant) => new Subscriber(parts, tenant))
      load.begin()
      await load.more(20)
      await freezeSequencer(parts, () => load.more(20))
      await sleep(3_000)
      await load.more(20)
      await load.end()
      await assertWritable(parts, load, TENANTS)
      await judge(parts, load, subscribers)
    })
  )

  it(
    "frozen past its session while idle sequences again when the group gives it a partition back",
    withParts(2, async (parts) => {
      const load = new Load(parts, { tenants: TENANTS })
      await assertWritable(parts, load, TENANTS)
      // Which partition comes back is the group's choice: each of the two has its turn.
      for (let turn = 0; turn < 2; turn++) {
        await freezeSequencer(parts, () => assertWritable(parts, load, TENANTS))
        await sleep(5_000)
        await assertWritable(parts, load, TENANTS)
        parts.sequencers.reverse()
      }
      await judge(parts, load)
    })
  )
})
