/** Starts after the first one, as a person at a terminal meets them. */
import { assert, describe, it } from "vitest"
import { Visit } from "./ConsoleBrowser.ts"
import { addressIn, firstStart } from "./FirstStartWorld.ts"

const started = firstStart()

describe("the address of the first start", () => {
  it("is printed by later starts too, while the first key is valid", async () => {
    const before = addressIn(started.running.output())
    const first = await Visit.start(started.browser, started.running.url)
    await first.page.goto(before)
    await first.heading("Welcome").waitFor()
    await first.page.getByRole("button", { name: "Send a test event" }).click()
    await first.page.getByText("verified #1 to #1").waitFor()
    await first.end()

    await started.startAgain()
    const address = addressIn(started.running.output())
    assert.include(address, "#code=")
    assert.notStrictEqual(address.split("#")[1], before.split("#")[1])
    const visit = await Visit.start(started.browser, started.running.url)
    await visit.page.goto(address)
    await visit.heading("Overview").waitFor()
    await visit.end()
  })
})
