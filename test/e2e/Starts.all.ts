/** The whole program starts, three times and twenty times, under a probe that connects every 10 ms. */
import { describe, inject, it } from "vitest"
import { startedUnderProbe } from "../support/ProgramStarts.ts"

const roles = ["api,sequencer,projection", "sequencer"] as const

const startedIn = (role: (typeof roles)[number], starts: number): Promise<void> =>
  startedUnderProbe(role, starts, { bootstrap: inject("bootstrap"), storeUrl: inject("storeUrl") })

describe("the program, started while somebody connects all the time", () => {
  it.each(roles)("answers everybody: roles %s", (role) => startedIn(role, 3))
})

describe("20 starts of the program, while somebody connects all the time", () => {
  it.each(roles)("answer everybody: roles %s", (role) => startedIn(role, 20))
})
