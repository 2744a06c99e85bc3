/** The whole program starts twenty times, under a probe that connects every 10 ms. */
import { describe, inject, it } from "vitest"
import { startedUnderProbe } from "../support/ProgramStarts.ts"

const STARTS = 20
const MS_MAX = 900_000

describe("20 starts of the program, while somebody connects all the time", () => {
  it.each(["api,sequencer,projection", "sequencer"] as const)(
    "answer everybody: roles %s",
    (role) =>
      startedUnderProbe(role, STARTS, {
        bootstrap: inject("bootstrap"),
        storeUrl: inject("storeUrl")
      }),
    MS_MAX
  )
})
