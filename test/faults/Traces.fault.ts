/** Executions that many clients want at once while sequencers and projections die. */
import { setTimeout as sleep } from "node:timers/promises"
import { describe, it } from "vitest"
import type { Json } from "../support/Client.ts"
import { TENANTS, withParts } from "./Parts.ts"
import { killSequencers, REPEATS } from "./Scenarios.ts"
import { judgeTraces, raceEnds, raceStarts } from "./TraceRaces.ts"

/** Milliseconds for one repeat: a takeover after a kill lasts as long as the session. */
const REPEAT_MS = 90_000

describe("an execution", () => {
  it(
    `is one, and ends once, with the sequencers killed at ${REPEATS} random moments`,
    withParts(2, async (parts) => {
      const [tenant] = TENANTS
      const ended: Array<Json> = []
      for (let n = 0; n < REPEATS; n++) {
        const started = await raceStarts(parts, tenant, `run ${n}`, () => killSequencers(parts))
        ended.push(await raceEnds(parts, tenant, started, () => killSequencers(parts)))
      }
      await judgeTraces(parts, tenant, ended)
    }),
    REPEATS * 2 * REPEAT_MS + 120_000
  )

  it(
    `is one, and ends once, with the projection killed at ${REPEATS} random moments`,
    withParts(1, async (parts) => {
      const [tenant] = TENANTS
      const ended: Array<Json> = []
      const killProjection = async (): Promise<void> => {
        await sleep(Math.random() * 600)
        await parts.projection.kill()
        parts.projection = await parts.startRole("projection")
      }
      for (let n = 0; n < REPEATS; n++) {
        const started = await raceStarts(parts, tenant, `run ${n}`, killProjection)
        ended.push(await raceEnds(parts, tenant, started, killProjection))
      }
      await judgeTraces(parts, tenant, ended)
    }),
    REPEATS * 2 * REPEAT_MS + 120_000
  )
})
