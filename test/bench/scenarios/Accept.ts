/** What accept costs by itself, with its module and without. */
import { acceptCosts } from "../harness/AcceptCost.ts"
import type { PlainScenario } from "../Scenario.ts"

const QUICK_ROUNDS = 8

export const accept: PlainScenario = {
  name: "accept",
  title: "Accept by itself",
  about: () =>
    "CPU of an event of about 350 bytes in batches of 1,000, from the bytes of the request to the "
    + "events of a command, in this process. Fast: with the module; slow: in TypeScript only.",
  run: async ({ options, recorder, say }) => {
    for (let run = 0; run < options.runs; run++) {
      say(`run ${run + 1} of ${options.runs}`)
      for (const { micros, name, path } of acceptCosts(options.quick ? QUICK_ROUNDS : undefined)) {
        recorder.add(`${name}, ${path}`, "µs", micros)
      }
    }
  }
}
