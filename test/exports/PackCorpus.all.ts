/** Packs changed at random: all verifiers say the same of each. */
import { assert, describe, it } from "vitest"
import { agreementOf } from "./support/Agreement.ts"

const PACKS = 200
const PAGE_EVERY = 20

describe("all verifiers say the same, word for word", () => {
  it(`of ${PACKS} packs that were changed at random`, async () => {
    const { disagreements, unnoticed, verdicts } = await agreementOf(0, PACKS, PAGE_EVERY)
    assert.deepStrictEqual(disagreements, [])
    assert.deepStrictEqual(unnoticed, [])
    assert.hasAllKeys(verdicts, ["authentic", "consistent", "tampered", "unreadable"])
  })
})
