/** Nobody who connects to a program that starts waits in vain; `test:all` starts it 20 times. */
import { describe, inject, it } from "vitest"
import { startedUnderProbe } from "../support/ProgramStarts.ts"

const STARTS = 3

describe("the program, started while somebody connects all the time", () => {
  it.each(["api,sequencer,projection", "sequencer"] as const)(
    "answers everybody: roles %s",
    (role) =>
      startedUnderProbe(role, STARTS, {
        bootstrap: inject("bootstrap"),
        storeUrl: inject("storeUrl")
      }),
    240_000
  )
})
