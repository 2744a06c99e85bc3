/**
 * The console over a tenant of a few events, some of them failures and one dated tomorrow, and an
 * agent that runs: what the files of the overview share.
 */
import { assert, it } from "vitest"
import { Client } from "../support/Client.ts"
import { testKey } from "../support/Program.ts"
import { sharedParts } from "../support/SharedParts.ts"
import { type ConsoleWorld, consoleWorld } from "./ConsoleWorld.ts"

/** Of the same tenant. */
export const [key, reader] = [testKey("console"), testKey("reader")]
const HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
const event = (n: number, outcome: string) => ({
  actor: { id: n === 3 ? HOSTILE : `user_${n}`, type: "human" },
  action: "document.read",
  resource: { id: `doc-${n}`, type: "document" },
  outcome
})

/** `otherKeys` are those of other tenants, as `ALK_BOOTSTRAP_KEYS` has them. */
export const overviewWorld = (otherKeys: string): ConsoleWorld => {
  const keys = `${key}=acme:read+write,${reader}=acme:read,${otherKeys}`
  return consoleWorld(
    "console",
    keys,
    async ({ url }) => {
      const client = new Client(url, key)
      const outcomes = ["success", "failure", "success", "error", "success", "failure"]
      const tomorrow = new Date(Date.now() + 86_400_000).toISOString()
      const events = outcomes.map((outcome, n) => ({
        ...event(n, outcome),
        ...(n === 4 ? { timestamp: tomorrow } : {})
      }))
      const sent = await client.call("/v1/events/batch?sync=true", { body: { events } })
      assert.strictEqual(sent.status, 200, sent.text)
      const agent = await client.call("/api/v1/executions", {
        body: { agent_id: "invoice-triage" }
      })
      assert.strictEqual(agent.status, 201, agent.text)
    },
    sharedParts("console")
  )
}

export const itShowsTheOverview = (world: ConsoleWorld): void => {
  it("shows the verdict, failures and running agents", async () => {
    await world.open("/")
    await world.visit.signIn(reader)
    const { page } = world.visit
    await page.getByText("verified #1 to #6").waitFor()
    await page.getByText("5 events, 2 failures, 1 error").waitFor()
    const rows = page.getByRole("region", { name: "Last failures and errors" }).getByRole("row")
    await rows.nth(3).waitFor()
    assert.strictEqual(await rows.count(), 4)
    await page.getByText("invoice-triage").waitFor()
    await page.getByText("executions hold").waitFor()
    // What clients send is text, whatever it looks like.
    await page.getByText("<img src=x", { exact: false }).first().waitFor()
    await page.getByRole("link", { name: /^Signed to #6 / }).waitFor()
    await page.getByText("; 0 events a minute now.").waitFor()
    assert.match(await page.title(), /^(\w+ · )?alk$/)
    await world.visit.assertSound("overview")
    world.assertQuiet()
  })
}
