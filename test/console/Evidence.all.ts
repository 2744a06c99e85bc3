/** The page of evidence as people use it: what it covers, what is made of it, what becomes of that. */

import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "vitest"
import { Client } from "../support/Client.ts"
import { testKey } from "../support/Program.ts"
import { consoleWorld } from "./ConsoleWorld.ts"

const [key, writer, other] = [testKey("evidence"), testKey("writer"), testKey("other")]
const COUNT = 400
const HOSTILE = '<img src=x onerror="document.title=1">'

const outcomes = ["success", "success", "success", "failure"]
const event = (n: number) => ({
  timestamp: new Date(Date.now() - n * 60_000).toISOString(),
  actor: { id: `u_${n % 5}`, type: "human" },
  action: n % 2 === 0 ? "document.read" : "user.login",
  resource: { id: HOSTILE, type: "document" },
  outcome: outcomes[n % 4],
  metadata: { amount: n }
})

const RUNS_FROM = "2026-02-03T08:00:00.000Z"
/** One before, three in the time from RUNS_FROM on; what each was given and returned. */
const operations = [-3_600_000, 0, 1_000, 2_000].flatMap((after, n) => {
  const at = (ms: number) => new Date(Date.parse(RUNS_FROM) + after + ms).toISOString()
  const [id, spanId] = [`run-${n}`, `span-${n}`]
  return [
    { op: "execution.start", id, agent_id: "billing", started_at: at(0) },
    {
      op: "span.start",
      execution_id: id,
      id: spanId,
      span_type: "TOOL_CALL",
      name: "customer",
      started_at: at(1),
      metadata: { input: { id: n } }
    },
    { op: "span.end", span_id: spanId, status: "COMPLETED", ended_at: at(2) },
    { op: "execution.end", execution_id: id, status: "COMPLETED", ended_at: at(1_498) }
  ]
})

const world = consoleWorld(
  "evidence",
  `${key}=acme:read,${writer}=acme:write,${other}=globex:read`,
  async ({ url }) => {
    const events = Array.from({ length: COUNT }, (_, n) => event(n))
    const client = new Client(url, writer)
    const { status } = await client.call("/v1/events/batch?sync=true", { body: { events } })
    assert.strictEqual(status, 200)
    const traces = await client.call("/api/v1/traces/batch?sync=true", { body: { operations } })
    assert.strictEqual(traces.status, 200, traces.text)
  }
)
const { assertQuiet, open } = world
const folder = mkdtempSync(join(tmpdir(), "alk-evidence-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const begin = async (path: string, options?: Parameters<typeof open>[1], as = key) => {
  await open(path, options)
  await world.visit.signIn(as)
  await world.visit.heading("Evidence").waitFor()
  return world.visit.page
}

const parameter = (name: string): string | null =>
  new URL(world.visit.page.url()).searchParams.get(name)

const panel = () => world.visit.page.locator(".panel-of-export")

/** The file behind the button of the panel. */
const download = async (): Promise<string> => {
  const waiting = world.visit.page.waitForEvent("download")
  await panel()
    .getByRole("link", { name: /^Download/ })
    .click()
  const got = await waiting
  const path = join(folder, got.suggestedFilename())
  await got.saveAs(path)
  return path
}

const assertSound = async (name: string) => {
  await world.visit.assertSound(name)
}

describe("the page of evidence", () => {
  it("shows what a period holds, with nothing made yet", async () => {
    const page = await begin("/evidence?period=all")
    await page.locator(".preview").getByText("the whole log").waitFor()
    const counts = page.locator(".preview")
    await counts.getByText(String(COUNT), { exact: true }).waitFor()
    await counts.getByText("failure").locator("..").getByText("100").waitFor()
    await page.getByRole("heading", { name: "None yet" }).waitFor()
    await counts.getByText("not recomputed yet").waitFor()
    await counts.getByRole("button", { name: "Recompute it now" }).click()
    await counts.getByText(`${COUNT} events recomputed`).waitFor()
    await assertSound("evidence-empty")
    assertQuiet()
  })

  it("says before the button that agent executions go out, and that a link with a query has none", async () => {
    const page = await begin(`/evidence?from=${RUNS_FROM}&to=2026-02-04`)
    const holds = page.locator(".holds")
    const link = page.locator(".new-link")
    const whole =
      "0 events and 3 agent executions, and those of 1 earlier one that still ran then, "
      + "with their inputs and outputs"
    await holds.getByText(whole).waitFor()
    await link.getByText(whole).waitFor()
    await page.getByRole("radio", { name: /^CSV/ }).check()
    await holds.getByText("0 events, no agent executions").waitFor()
    await assertSound("evidence-executions")
    await page.getByLabel("Query").fill("outcome:failure")
    await page.getByRole("button", { name: "Search" }).click()
    await link.getByText("0 events of the query, no agent executions").waitFor()
    await page.locator(".preview").getByText("the query chooses events only").waitFor()
    assertQuiet()
  })

  it("names the execution that somebody comes from, with its spans, though it has no event", async () => {
    await open("/executions/run-0")
    await world.visit.signIn(key)
    const { page } = world.visit
    await page.getByRole("link", { name: "Evidence and share links…" }).click()
    const facts = page.locator(".preview")
    await facts.getByText("with 2 spans, and every other one that ran in the same time").waitFor()
    await facts.getByRole("link", { name: "billing" }).waitFor()
    assert.strictEqual(await page.getByText("prove little").count(), 0)
    await assertSound("evidence-of-execution")
    await page.getByLabel("This year", { exact: true }).check()
    await facts.getByRole("link", { name: "billing" }).waitFor({ state: "detached" })
    assert.isNull(parameter("execution"))
    assertQuiet()
  })

  it("makes a pack that verifies, from choosing to the check", async () => {
    const page = await begin("/evidence")
    await page.getByLabel("Everything", { exact: true }).check()
    assert.strictEqual(parameter("period"), "all")
    await page.getByLabel("Query").fill("action:document.read")
    await page.getByRole("button", { name: "Search" }).click()
    await page.locator(".preview").getByText("200", { exact: true }).waitFor()
    await page.getByLabel("Name for the list").fill(HOSTILE)
    await page.getByLabel("with the PDF report").uncheck()
    await page.getByRole("button", { name: "Make the evidence pack" }).click()
    await panel()
      .getByRole("link", { name: /^Download/ })
      .waitFor()
    await panel().getByText("node verify.mjs").waitFor()
    assert.match(parameter("export")!, /^exp_/)
    const path = await download()
    const hash = createHash("sha256").update(readFileSync(path)).digest("hex")
    await panel().getByText(hash, { exact: true }).waitFor()
    const pack = join(folder, "pack")
    execFileSync("unzip", ["-q", path, "-d", pack])
    for (const [program, script] of [
      [process.execPath, "verify.mjs"],
      ["python3", "verify.py"]
    ] as const) {
      assert.match(String(execFileSync(program, [script], { cwd: pack })), /consistent/i)
    }
    assert.strictEqual(
      readFileSync(join(pack, "events.ndjson"), "utf8").trim().split("\n").length,
      200
    )
    await assertSound("evidence-done")
    // It is found again by its address, in another window too.
    await page.reload()
    await panel().getByText(hash, { exact: true }).waitFor()
    assert.match(await page.title(), /^(\w+ · )?alk$/)
    assertQuiet()
  })

  it("prints a PDF, says how far it is, and removes it when asked to", async () => {
    const page = await begin("/evidence?period=this-year")
    await page.getByRole("radio", { name: /^PDF report/ }).check()
    await page.getByRole("button", { name: "Make the PDF report" }).click()
    await panel().locator("progress").waitFor()
    await panel().getByRole("listitem").getByText("recomputing the chain").waitFor()
    await panel()
      .getByRole("link", { name: /^Download/ })
      .waitFor()
    assert.strictEqual(
      readFileSync(await download())
        .subarray(0, 5)
        .toString(),
      "%PDF-"
    )
    await panel().getByText("The report is to be read and signed").waitFor()
    // The whole command is in sight.
    const cut = await panel()
      .locator(".command pre")
      .evaluate((pre) => pre.scrollWidth - pre.clientWidth)
    assert.strictEqual(cut, 0)
    await assertSound("evidence-pdf-done")
    await page.getByRole("button", { name: /^Remove PDF report/ }).click()
    await page.locator("table.exports").getByText("PDF report").waitFor({ state: "detached" })
    await panel().getByText("There is no such export (any more)").waitFor()
    await panel().getByRole("button", { name: "Close" }).click()
    assert.isNull(parameter("export"))
    // The browser itself names the 404.
    assert.isTrue(world.visit.errors.every((error) => error.includes("404")))
  })

  it("cancels what is under way, and makes it again", async () => {
    const page = await begin("/evidence?period=all&where=outcome:failure")
    await page.locator(".preview").getByText("100", { exact: true }).first().waitFor()
    await page.getByRole("radio", { name: /^PDF report/ }).check()
    await page.getByRole("button", { name: "Make the PDF report" }).click()
    await panel().getByRole("button", { name: "Cancel" }).click()
    await panel().getByText("It was cancelled before it was done").waitFor()
    await assertSound("evidence-cancelled")
    const before = parameter("export")
    await panel().getByRole("button", { name: "Make it again" }).click()
    await panel()
      .getByRole("link", { name: /^Download/ })
      .waitFor()
    assert.notStrictEqual(parameter("export"), before)
    await panel().getByText("outcome:failure").waitFor()
    assertQuiet()
  })

  it("takes over what the page of events shows", async () => {
    await open("/events?where=action:user.login&from=-24h")
    await world.visit.signIn(key)
    const { page } = world.visit
    await page.getByRole("link", { name: "Export…" }).click()
    await world.visit.heading("Evidence").waitFor()
    assert.deepStrictEqual(["period", "from", "to", "where"].map(parameter), [
      "own",
      "-24h",
      null,
      "action:user.login"
    ])
    await page.locator(".preview").getByText("200", { exact: true }).first().waitFor()
    // A period of one's own, by hand.
    await page.getByLabel("From", { exact: true }).fill("2020-01-01")
    await page.getByLabel("To", { exact: true }).fill("2020-12-31")
    await page.getByRole("button", { name: "Set" }).click()
    await page.getByText("a document would say so, and prove little").waitFor()
    await page
      .getByText("2020-01-01 to 2020-12-31, narrowed by the query; days are days in UTC")
      .waitFor()
    await assertSound("evidence-own-period")
    assertQuiet()
  })

  it("says what is wrong with a query, and makes nothing of it", async () => {
    const page = await begin("/evidence?period=all&where=nothing:%23")
    await page.locator("#where-failure").waitFor()
    assert.isTrue(await page.getByRole("button", { name: "Make the evidence pack" }).isDisabled())
    assert.strictEqual(await page.locator(".preview").count(), 0)
    await assertSound("evidence-refused")
  })

  it("is closed to a key that may not read, and asks nothing with it", async () => {
    const page = await begin("/evidence", undefined, writer)
    await page.getByRole("heading", { name: "Your key may not read" }).waitFor()
    await assertSound("evidence-no-permission")
    assertQuiet()
  })

  it("shows another tenant nothing", async () => {
    const page = await begin("/evidence?period=all", undefined, other)
    await page.getByRole("heading", { name: "None yet" }).waitFor()
    await page.getByText("a document would say so, and prove little").waitFor()
    assertQuiet()
  })
})

const HASH = "0f".repeat(32)
const base = {
  from: "2026-07-01T00:00:00.000000Z",
  to: "2026-09-30T23:59:59.999999Z",
  filters: {},
  created_by: "key_019a8f3c00007000",
  created_at: new Date(Date.now() - 65_000).toISOString(),
  stage: "writing"
}
const states: ReadonlyArray<Record<string, unknown>> = [
  {
    ...base,
    id: "exp_running",
    kind: "pack",
    pdf: true,
    label: "third quarter, for the auditor",
    status: "running",
    stage: "verifying",
    progress: { done: 400_000, total: 1_000_000, unit: "events" },
    filters: { where: 'outcome:failure,error actor_id:"somebody with a long name" amount>10' }
  },
  { ...base, id: "exp_queued", kind: "csv", status: "queued", stage: "waiting", from: null },
  {
    ...base,
    id: "exp_done",
    kind: "ndjson",
    status: "done",
    bytes: 12_345_678,
    sha256: HASH,
    file_name: "alk-events-acme-20261124T080000Z.ndjson",
    finished_at: base.created_at,
    expires_at: new Date(Date.now() + 80_000_000).toISOString()
  },
  {
    ...base,
    id: "exp_failed",
    kind: "pdf",
    status: "failed",
    stage: "printing",
    finished_at: base.created_at,
    error: { code: "pdf_unavailable", message: "no Chromium can print here" }
  },
  { ...base, id: "exp_cancelled", kind: "pack", pdf: false, status: "cancelled", to: null },
  { ...base, id: "exp_expired", kind: "csv", status: "expired", from: null, to: null, bytes: 120 }
]

/** The service says that there are exports in each state. */
const withStates = async (path: string, options?: Parameters<typeof open>[1]) => {
  await open(path, options)
  const { page } = world.visit
  let verified = 400_000
  await page.route(/\/v1\/exports(?:\/exp_\w+)?$/, async (route) => {
    if (route.request().method() !== "GET") return route.fallback()
    verified += 20_000
    const progress = { done: verified, total: 1_000_000, unit: "events" }
    const [running, ...rest] = states
    const exports = [{ ...running, progress }, ...rest]
    const id = /exp_\w+$/.exec(route.request().url())?.[0]
    const one = exports.find((job) => (job as Record<string, unknown>)["id"] === id)
    const all = { exports, total: exports.length, page: 1, page_size: 1_000 }
    return route.fulfill({ json: id === undefined ? all : one })
  })
  await world.visit.signIn(key)
  await panel().waitFor()
  return page
}

describe("exports in every state", () => {
  it("are shown in every look", async () => {
    const path = "/evidence?period=last-quarter&export=exp_running"
    const page = await withStates(path)
    await panel()
      .getByText(/of 1,000,000 events, about .* left/)
      .waitFor()
    const shown = await page.locator("table.exports tbody tr").allInnerTexts()
    assert.strictEqual(shown.length, states.length)
    assert.match(shown[0]!, /verifying \d+ %[^]*2026-07-01 to 2026-09-30/)
    assert.match(shown[2]!, /done[^]*Download[^]*12\.3 MB/)
    assert.match(shown[5]!, /expired[^]*the whole log/)
    await assertSound("evidence-states")
    assertQuiet()
  })

  it("say what to install where nothing prints, and offer the rest", async () => {
    const page = await withStates("/evidence?export=exp_failed")
    await panel().getByText("no Chromium can print here").waitFor()
    await panel().getByText("or set CHROMIUM_PATH").waitFor()
    await assertSound("evidence-failed")
    const asked = page.waitForRequest((request) => request.method() === "POST")
    await page.route(/\/v1\/exports$/, (route) =>
      route.request().method() === "POST"
        ? route.fulfill({ status: 202, json: states[0] })
        : route.fallback()
    )
    await panel().getByRole("button", { name: "Make the evidence pack without the PDF" }).click()
    const { kind, pdf } = (await asked).postDataJSON() as { kind: string; pdf: boolean }
    assert.deepStrictEqual([kind, pdf], ["pack", false])
    await panel().getByRole("listitem").getByText("recomputing the chain").waitFor()
    assertQuiet()
  })

  it("say that they are old where the service is away", async () => {
    const page = await withStates("/evidence?export=exp_running")
    await panel().locator("progress").waitFor()
    await page.unroute(/\/v1\/exports(?:\/exp_\w+)?$/)
    await world.visit.context.setOffline(true)
    await panel().getByText("not up to date").waitFor()
    await page
      .locator("section", { has: page.locator("table.exports") })
      .getByText("not up to date")
      .first()
      .waitFor()
    await assertSound("evidence-away")
    await page.getByRole("button", { name: "Make the evidence pack" }).click()
    await page.locator(".make").getByText("can't be reached").waitFor()
    await world.visit.context.setOffline(false)
  })
})
