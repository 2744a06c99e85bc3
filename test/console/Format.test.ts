/** How messages of the service are shown. */
import { assert, describe, it } from "vitest"
import { sentence } from "../../src/console/parts/Format.ts"

describe("a message of the service", () => {
  it.each([
    ["the API key is missing, unknown or revoked", "The API key is missing, unknown or revoked."],
    ["This page can't be loaded. Try again.", "This page can't be loaded. Try again."],
    ["actor.id is missing", "actor.id is missing."],
    ["where: column 1: ends here", "where: column 1: ends here."]
  ])("%s", (message, shown) => {
    assert.strictEqual(sentence(message), shown)
  })
})
