/** How long somebody who connects while the program starts and stops waits for an answer. */
import { inject, it } from "vitest"
import { startedUnderProbe } from "../support/ProgramStarts.ts"
import { PROBE_LIMITS } from "../support/StartProbe.ts"

const STARTS = 3

it.each(["api,sequencer,projection", "sequencer"] as const)(
  "the program answers or sends away in time: roles %s",
  async (role) => {
    const probe = await startedUnderProbe(role, STARTS, {
      bootstrap: inject("bootstrap"),
      storeUrl: inject("storeUrl")
    })
    probe.assertWithin(PROBE_LIMITS)
  }
)
