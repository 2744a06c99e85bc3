/** The page of the chain over a store that was really tampered with, one that was not, and none. */
import { readFileSync } from "node:fs"
import { createClient } from "@clickhouse/client"
import { assert, describe, it } from "vitest"
import { Client } from "../support/Client.ts"
import { type Started, testKey } from "../support/Program.ts"
import { consoleWorld } from "./ConsoleWorld.ts"

const [whole, tampered, empty, writer] = [
  testKey("whole"),
  testKey("tampered"),
  testKey("empty"),
  testKey("writer")
]
const EVENTS = 12
/** The event whose stored row is changed. */
const AT = 8

const event = (n: number) => ({
  id: `e-${n}`,
  actor: { id: `u_${n}`, type: "human" },
  action: "document.read",
  resource: { id: `doc-${n}`, type: "document" },
  outcome: "success"
})

const events = (from: number, count: number) =>
  Array.from({ length: count }, (_, n) => event(from + n))

const send = async (api: Client, from: number, count: number) => {
  const { status } = await api.call("/v1/events/batch?sync=true", {
    body: { events: events(from, count) }
  })
  assert.strictEqual(status, 200)
}

/** The newest checkpoint, which is signed now. */
const sign = async (api: Client, chain = "events"): Promise<string> => {
  const { body } = await api.call(`/v1/chain/checkpoints/latest?chain=${chain}`)
  return body.note
}

/** The notes that were kept: of the chain that is whole, and of the one that is changed afterwards. */
const kept = { whole: "", tampered: "" }

const prepare = async ({ store, url }: Started): Promise<void> => {
  for (const [name, key] of [
    ["whole", whole],
    ["tampered", tampered]
  ] as const) {
    const api = new Client(url, key)
    await send(api, 1, 5)
    await sign(api)
    await api.call("/api/v1/executions", { body: { agent_id: "invoice-triage" } })
    await sign(api, "traces")
    await send(api, 6, EVENTS - 5)
    kept[name] = await sign(api)
  }
  const intruder = createClient({ url: store })
  await intruder.command({
    query:
      "ALTER TABLE alk.events UPDATE outcome = 'failure'"
      + ` WHERE tenant_id = 'tampered' AND sequence_number = ${AT}`,
    clickhouse_settings: { mutations_sync: "1" }
  })
  await intruder.close()
}

const keys = [
  `${whole}=whole:read+write`,
  `${tampered}=tampered:read+write`,
  `${empty}=empty:read`,
  `${writer}=whole:write`
].join(",")

const world = consoleWorld("chain", keys, prepare, {
  ALK_ROLES: "api,sequencer,projection,store",
  ALK_EMBEDDED_OPEN: "true"
})
const { assertQuiet, open } = world

const begin = async (path: string, key: string, options?: Parameters<typeof open>[1]) => {
  await open(path, options)
  await world.visit.signIn(key)
  await world.visit.heading("Chain").waitFor()
  return world.visit.page
}

const parameter = (name: string): string | null =>
  new URL(world.visit.page.url()).searchParams.get(name)

describe("a chain that is whole", () => {
  it("is verified and shows its checkpoints", async () => {
    const page = await begin("/chain?run=1", whole)
    await page.getByText("audit events verified, #1 to #12").waitFor()
    await page.getByText("trace facts verified, #1 to #2").waitFor()
    await page.getByText("12 events").first().waitFor()
    await page.getByRole("region", { name: "Checkpoint of #12" }).waitFor()
    await world.visit.assertSound("chain")
    assertQuiet()
  })

  it("is verified in the part that somebody names, which is in the address", async () => {
    const page = await begin("/chain", whole)
    await page.getByText("Nothing was verified on this page yet").waitFor()
    assert.strictEqual(await page.locator(".state.good").count(), 0)
    await page.getByLabel("Range").selectOption("by number")
    await page.getByLabel("From #").fill("3")
    await page.getByLabel("To #").fill("6")
    await page.getByRole("button", { name: "Verify", exact: true }).click()
    await page.getByText("audit events verified, #3 to #6").waitFor()
    assert.strictEqual(parameter("from_sequence"), "3")
    assert.strictEqual(parameter("verify"), "events")
    await page.goBack()
    await page.getByText("Nothing was verified on this page yet").waitFor()
    await world.visit.open("/chain?verify=traces&from=-1h&run=1")
    await page.getByText("trace facts verified, #1 to #2").waitFor()
    assert.strictEqual(await page.getByLabel("From").inputValue(), "-1h")
    assert.strictEqual(await page.getByText("audit events verified").count(), 0)
    await world.visit.open("/chain?from=yesterday&run=1")
    await page.getByRole("alert").getByText("from").waitFor()
    await page.getByText("not finished: no verdict on the audit events").waitFor()
  })

  it("has checkpoints to walk through, keep and compare", async () => {
    const page = await begin("/chain", whole)
    await page.getByRole("link", { name: "Checkpoint #12" }).focus()
    await page.keyboard.press("ArrowLeft")
    await page.waitForURL(/checkpoint=5$/)
    const details = page.getByRole("region", { name: "Checkpoint of #5" })
    await details.waitFor()
    await page.keyboard.press("End")
    await page.getByRole("region", { name: "Checkpoint of #12" }).waitFor()
    await page.getByText("As a table").first().click()
    const table = page.getByRole("region", { name: "Checkpoints, as a table" })
    assert.strictEqual(await table.getByRole("row").count(), 3)
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Save the note" }).click()
    ])
    assert.strictEqual(download.suggestedFilename(), "whole-events-12.checkpoint")
    assert.strictEqual(readFileSync(await download.path(), "utf8"), kept.whole)
    await page.getByRole("button", { name: "Recompute" }).click()
    await page.getByText("#12 only adds to #5").waitFor()
    for (const step of ["path to the older root", "newer: signature"]) {
      await page.locator(".steps .good").getByText(step, { exact: true }).waitFor()
    }
    assert.deepStrictEqual(await world.visit.faults(), [])
    await page.getByRole("link", { name: "trace facts" }).click()
    await page.getByRole("region", { name: "Checkpoint of #2" }).waitFor()
    assert.strictEqual(parameter("chain"), "traces")
    assertQuiet()
  })

  it("shows older checkpoints page by page", async () => {
    await open("/chain")
    await world.visit.page.route("**/v1/chain/checkpoints?**", async (route) => {
      const before = Number(new URL(route.request().url()).searchParams.get("before_size") ?? 71)
      const checkpoints = Array.from({ length: Math.min(50, before - 1) }, (_, n) => ({
        tenant_id: "whole",
        tree_size: before - 1 - n,
        root_hash: "0".repeat(64),
        created_at: new Date(1_800_000_000_000 + (before - n) * 60_000).toISOString(),
        key_id: "00000000",
        note: "a note"
      }))
      await route.fulfill({ json: { checkpoints } })
    })
    await world.visit.signIn(whole)
    const { page } = world.visit
    await page.getByText("50 checkpoints shown, of #21 to #70.").waitFor()
    await page.getByRole("button", { name: "Show older ones" }).click()
    await page.getByText("70 checkpoints shown, of #1 to #70. There are no older ones.").waitFor()
    assert.strictEqual(await page.locator("svg.checkpoint-line a").count(), 70)
    assert.strictEqual(await page.locator('svg.checkpoint-line a[tabindex="0"]').count(), 1)
    await world.visit.assertSound("chain-many")
    assertQuiet()
  })

  it("does not lead from a checkpoint to another when the proof is changed", async () => {
    await open("/chain")
    await world.visit.page.route("**/v1/chain/proofs/consistency**", async (route) => {
      const response = await route.fetch()
      const body = await response.json()
      body.proof[0] = "0".repeat(64)
      await route.fulfill({ response, json: body })
    })
    await world.visit.signIn(whole)
    const { page } = world.visit
    await page.getByRole("button", { name: "Recompute" }).click()
    await page.getByText("#12 does not lead from #5").waitFor()
    assert.strictEqual(await page.locator(".steps .good").count(), 0)
    assertQuiet()
  })

  it("still leads to the note that was kept, and to no other", async () => {
    const page = await begin("/chain", whole)
    const box = page.getByLabel("Paste the signed note")
    await box.fill(kept.whole)
    await page.getByRole("button", { name: "Check it" }).click()
    await page.getByText("the chain still leads to this checkpoint").waitFor()
    await page.getByText("none of the first 12 audit events was changed").waitFor()
    await world.visit.assertSound("chain-kept")
    const file = { name: "kept.txt", mimeType: "text/plain", buffer: Buffer.from(kept.tampered) }
    await page.getByLabel("or choose a file").setInputFiles(file)
    await page.getByText("still leads to this checkpoint").waitFor({ state: "detached" })
    await page.getByRole("button", { name: "Check it" }).click()
    await page.getByText("this is no checkpoint of this chain").waitFor()
    await page.getByText("it is about alk/tampered").waitFor()
    assert.strictEqual(await page.getByText("What to do now").count(), 0)
    await world.visit.assertSound("chain-kept-other")
    await box.fill("no note at all")
    await page.getByRole("button", { name: "Check it" }).click()
    await page.getByRole("alert").getByText("This did not work.").waitFor()
    await page.getByRole("alert").getByText("checkpoint").waitFor()
  })
})

describe("a chain that is broken", () => {
  it("says where, and what to do now", async () => {
    const page = await begin("/chain?run=1", tampered)
    await page.getByText("the chain of audit events is broken").waitFor()
    await page.getByText("trace facts verified, #1 to #2").waitFor()
    await page.getByText("the stored content is not what was recorded").waitFor()
    await page.getByText("The last checkpoint before the break is of #5").waitFor()
    await page.getByText("npm start -- rebuild-view").waitFor()
    await page.getByText("All breaks: 3").click()
    assert.strictEqual(await page.locator(".state.good").count(), 0)
    await world.visit.assertSound("chain-broken")
    assertQuiet()
  })

  it("is reached from the overview, and leads to the event", async () => {
    await open("/")
    await world.visit.signIn(tampered)
    const { page } = world.visit
    await page.getByRole("link", { name: "What to do now" }).click()
    await world.visit.heading("Chain").waitFor()
    await page.getByText(`First break: event #${AT}`).waitFor()
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Save the report" }).click()
    ])
    const report = JSON.parse(readFileSync(await download.path(), "utf8"))
    assert.deepInclude(report, { status: "broken", breaks_total: 3 })
    await page.getByRole("link", { name: `Event #${AT}`, exact: true }).click()
    await page.waitForURL(new RegExp(`/events\\?event=${AT}$`))
    assertQuiet()
  })

  it("does not lead to the note that was kept before", async () => {
    const page = await begin("/chain", tampered)
    await page.getByLabel("Paste the signed note").fill(kept.tampered)
    await page.getByRole("button", { name: "Check it" }).click()
    await page.getByText("the chain does not lead to this checkpoint").waitFor()
    await page.getByText(`First break: event #${AT}`).waitFor()
    assertQuiet()
  })
})

describe("a verification that takes its time", () => {
  /** Lines of the service as the test says them, in pieces as a network has them. */
  const beginSlow = async () => {
    await open("/chain")
    const { page } = world.visit
    await world.visit.signIn(whole)
    await world.visit.heading("Chain").waitFor()
    await page.evaluate(`{
      const real = window.fetch
      window.fetch = (path, options) => String(path).startsWith("/v1/verify")
        ? Promise.resolve(new Response(new ReadableStream({ start(controller) { window.lines = controller } })))
        : real(path, options)
      window.say = (text) => window.lines.enqueue(new TextEncoder().encode(text))
    }`)
    await page.getByLabel("Verify").selectOption("audit events")
    await page.getByRole("button", { name: "Verify", exact: true }).click()
    await page.getByText("Verifying audit events …").waitFor()
    return page
  }
  const line = (done: number, breaks = 0) =>
    JSON.stringify({ events_checked: done, up_to_sequence: done, of: 1_000, breaks_total: breaks })
  const say = (text: string) => world.visit.page.evaluate(`say(${JSON.stringify(text)})`)

  it("says how far it is, how fast, and how long it takes; cut, it has no verdict", async () => {
    const page = await beginSlow()
    await say(`${line(100)}\n${line(250).slice(0, 20)}`)
    await page.getByText("100 records recomputed, up to #100 of #1,000").waitFor()
    await say(`${line(250, 2).slice(20)}\n`)
    await page.getByText(/250 records recomputed.*, [\d,]+ a second, about .* left/).waitFor()
    await page.getByText("2 breaks so far").waitFor()
    assert.strictEqual(await page.getByRole("progressbar").getAttribute("value"), "250")
    await world.visit.assertSound("chain-verifying")
    await page.evaluate("lines.error(new Error('cut'))")
    await page.getByText("not finished: breaks in the audit events").waitFor()
    await page.getByText("It had come to #250 of #1,000").waitFor()
    await page.getByRole("alert").getByText("the connection ended").waitFor()
    assert.strictEqual(await page.locator(".state.good").count(), 0)
    await world.visit.assertSound("chain-cut")
    await page.getByRole("button", { name: "Try again" }).click()
    await page.getByText("Verifying audit events …").waitFor()
    assert.strictEqual(await page.getByText("not finished").count(), 0)
    // A stream that ends without its report is cut as well.
    await say(`${line(900)}\n`)
    await page.evaluate("lines.close()")
    await page.getByText("It had come to #900 of #1,000").waitFor()
  })

  it("is cancelled, and says so", async () => {
    const page = await beginSlow()
    await say(`${line(400)}\n`)
    await page.getByText("400 records recomputed").waitFor()
    await page.getByRole("button", { name: "Cancel" }).click()
    await page.getByText("cancelled: no verdict on the audit events").waitFor()
    assert.isNull(parameter("run"))
    await say(`${line(500)}\n`)
    await page.getByRole("button", { name: "Verify", exact: true }).waitFor()
    assert.strictEqual(await page.getByText("500 records").count(), 0)
    assertQuiet()
  })
})

describe("nothing to show", () => {
  it("is said of an empty tenant", async () => {
    const page = await begin("/chain?run=1", empty)
    await page.getByText("no audit events in this range").waitFor()
    await page.getByText("no trace facts in this range").waitFor()
    await page.getByRole("heading", { name: "No checkpoint yet" }).waitFor()
    assert.strictEqual(await page.getByText("Nothing was recorded yet.").count(), 2)
    await world.visit.assertSound("chain-empty")
    assertQuiet()
  })

  it("is said of a key that may not read", async () => {
    const page = await begin("/chain?run=1", writer)
    await page.getByText("Your key may not do this.").first().waitFor()
    assert.strictEqual(await page.locator(".state.good").count(), 0)
    await world.visit.assertSound("chain-forbidden")
  })
})
