/**
 * The whole program starts three times, under a probe that connects every 10 ms; `npm run
 * test:faults` starts it twenty times.
 */
import { describe, inject, it } from "vitest"
import { startedUnderProbe } from "../support/ProgramStarts.ts"

const STARTS = 3

describe("the program, started while somebody connects all the time", () => {
  it.each(["api,sequencer,projection", "sequencer"] as const)(
    "answers everybody: roles %s",
    async (role) => {
      await startedUnderProbe(role, STARTS, {
        bootstrap: inject("bootstrap"),
        storeUrl: inject("storeUrl")
      })
    }
  )
})
