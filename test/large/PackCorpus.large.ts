/** Thousands of packs changed at random: all verifiers say the same of each. */
import { assert, describe, it } from "vitest"
import { agreementOf } from "../exports/support/Agreement.ts"

const PACKS = 5_000
const PAGE_EVERY = 50

describe("all verifiers say the same, word for word", () => {
  it(`of ${PACKS} packs that were changed at random`, async () => {
    const found = await agreementOf(1_000, 1_000 + PACKS, PAGE_EVERY)
    const { disagreements, pages, unnoticed, verdicts } = found
    process.stdout.write(`${JSON.stringify({ verdicts, pages })}\n`)
    assert.deepStrictEqual(disagreements.slice(0, 20), [])
    assert.deepStrictEqual(unnoticed, [])
    assert.strictEqual(pages, PACKS / PAGE_EVERY)
  })
})
