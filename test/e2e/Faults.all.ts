/**
 * The most telling faults once each, so that every run of the tests has seen them; `npm run
 * test:faults` repeats them at random moments and knows many more.
 */
import { describe, it } from "vitest"
import { withEmbedded } from "../faults/Embedded.ts"
import { Load } from "../faults/Load.ts"
import { judge } from "../faults/Oracle.ts"
import { TENANTS, withParts } from "../faults/Parts.ts"
import {
  assertWritable,
  DuplicateWatch,
  freezeBroker,
  freezeSequencer,
  killBroker,
  killProjection,
  killSequencers
} from "../faults/Scenarios.ts"
import { Subscriber } from "../faults/Subscriber.ts"
import { judgeTraces, raceEnds, raceStarts } from "../faults/TraceRaces.ts"

const options = { tenants: TENANTS, senders: 1 }

describe("one chain throughout", () => {
  it(
    "a sequencer frozen past its session, and a projection killed while it inserts",
    withParts(2, async (parts) => {
      const load = new Load(parts, options)
      const subscribers = TENANTS.map((tenant) => new Subscriber(parts, tenant))
      const watch = new DuplicateWatch(parts, TENANTS)
      load.begin()
      await freezeSequencer(parts, () => load.more(10))
      await killProjection(parts, load)
      await load.more(5)
      await load.end()
      await assertWritable(parts, load, TENANTS)
      await watch.finish()
      await judge(parts, load, subscribers)
    })
  )

  it(
    "a broker killed, and a broker that falls silent",
    withEmbedded(async (embedded) => {
      const load = new Load(embedded, options)
      const subscribers = TENANTS.map((tenant) => new Subscriber(embedded, tenant))
      load.begin()
      await killBroker(embedded, load)
      await freezeBroker(embedded, load)
      await load.end()
      await assertWritable(embedded, load, TENANTS)
      await judge(embedded, load, subscribers)
    })
  )
})

describe("one execution", () => {
  it(
    "of 50 starts at once and one end of 50, with every sequencer killed among them",
    withParts(2, async (parts) => {
      const [tenant] = TENANTS
      const before = await raceStarts(parts, tenant, "before", async () => undefined)
      let killed: Promise<void> | undefined
      const kill = (): Promise<void> => (killed ??= killSequencers(parts))
      const [started, ended] = await Promise.all([
        raceStarts(parts, tenant, "amid", kill),
        raceEnds(parts, tenant, before, kill)
      ])
      const last = await raceEnds(parts, tenant, started, async () => undefined)
      await judgeTraces(parts, tenant, [ended, last])
    })
  )
})
