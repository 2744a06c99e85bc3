/** The module that cuts rows and TypeScript, on 250,000 hostile rows. */
import { assert, describe, it } from "vitest"
import { SEED } from "../../../../support/Seed.ts"
import { fuzz } from "./SplitAgreement.ts"

const ROUNDS = 5
const ROWS = 50_000

describe("the module that cuts rows", () => {
  it("agrees with TypeScript on 250,000 hostile rows", { timeout: 3_600_000 }, () => {
    for (let seed = SEED; seed < SEED + ROUNDS; seed++) {
      assert.isAbove(fuzz(seed, ROWS), 0, `seed ${seed}`)
    }
  })
})
