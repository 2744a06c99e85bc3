/** How long somebody who connects while a server starts and stops waits for an answer. */
import { it } from "vitest"
import { PROBE_LIMITS } from "../support/StartProbe.ts"
import { probedStarts, servers } from "./support/ProbedStarts.ts"

it.each(servers)("%s answers or sends away in time, however often it starts", async (_, start) => {
  const probe = await probedStarts(start)
  probe.assertWithin(PROBE_LIMITS)
})
