/** The whole program starts twenty times, under a probe that connects every 10 ms. */
import { describe, inject, it } from "vitest"
import { startedUnderProbe } from "../support/ProgramStarts.ts"
import { PROBE_LIMITS } from "../support/StartProbe.ts"

const STARTS = 20
const MS_MAX = 900_000

describe("20 starts of the program, while somebody connects all the time", () => {
  it.each(["api,sequencer,projection", "sequencer"] as const)(
    "answer everybody: roles %s",
    async (role) => {
      const probe = await startedUnderProbe(role, STARTS, {
        bootstrap: inject("bootstrap"),
        storeUrl: inject("storeUrl")
      })
      probe.assertWithin(PROBE_LIMITS)
    },
    MS_MAX
  )
})
