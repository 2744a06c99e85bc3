/** The two paths of accept on a million hostile events. */
import { assert, describe, it } from "vitest"
import { SEED } from "../../../support/Seed.ts"
import { fuzz } from "./Agreement.ts"

const ROUNDS = 20
const ITEMS = 50_000

describe("the fast path of accept", () => {
  it("agrees with the slow one on a million hostile events", { timeout: 3_600_000 }, () => {
    for (let seed = SEED; seed < SEED + ROUNDS; seed++) {
      assert.isAbove(fuzz(seed, ITEMS).done, 0, `seed ${seed}`)
    }
  })
})
