/**
 * More of the console as people meet it: other looks of the overview, the guide, the reference.
 */
import { assert, describe, it } from "vitest"
import { places } from "../../src/console/Places.ts"
import { openApiDocument } from "../../src/http/Api.ts"
import { Client } from "../support/Client.ts"
import { type ExampleRequest, exampleRequestsOf, operationsOf } from "../support/ExampleRequests.ts"
import { ADMIN_TOKEN, testKey } from "../support/Program.ts"
import { overviewWorld, reader } from "./OverviewWorld.ts"

const examples = testKey("examples")
const writer = testKey("only-writes")

/** Paths whose ids the service makes, or whose content it would have to have. */
const UNKNOWABLE = [
  "/v1/receipts/{id}",
  "/v1/exports/{id}",
  "/v1/exports/{id}/file",
  "/v1/share/links/{id}",
  "/v1/admin/tenants/{tenant}/keys/{key}",
  "/v1/admin/tenants/{tenant}/tombstone",
  "/v1/admin/quarantine/{id}",
  "/v1/admin/quarantine/{id}/replay",
  "/v1/admin/quarantine/{id}/drop",
  "/api/v1/payloads/{sha256}"
]

const world = overviewWorld(`${examples}=examples:read+write,${writer}=examples:write`)
const { assertQuiet, open } = world

describe("the overview", () => {
  it("fits every page into the window at 200 % zoom", async () => {
    // A window of 1280 × 800 pixels has half as many CSS pixels at 200 %.
    await open("/settings", { width: 640, height: 400, scale: 2 })
    await world.visit.signIn(reader)
    await world.visit.heading("Settings").waitFor()
    for (const { path } of places) {
      await world.visit.open(path)
      await world.visit.heading(/./).waitFor()
      await world.visit.page.locator(".loading").first().waitFor({ state: "detached" })
      await world.visit.assertSound(`zoom${path.replace("/", "-")}`)
    }
    assertQuiet()
  })

  it("is closed to a key that may not read, and asks nothing with it", async () => {
    await open("/events")
    await world.visit.signIn(writer)
    await world.visit.heading("Events").waitFor()
    for (const path of ["/", "/events", "/live", "/executions", "/executions/run", "/evidence"]) {
      await world.visit.page.goto(`${world.running.url}${path}`)
      const { page } = world.visit
      await page.getByRole("heading", { name: "Your key may not read" }).waitFor()
      assert.deepStrictEqual(await world.visit.faults(), [])
    }
    await world.visit.assertSound("overview-no-permission")
    assertQuiet()
  })

  it("says what doesn't work when the service is gone, and goes on when it is back", async () => {
    await open("/")
    await world.visit.signIn(reader)
    await world.visit.page.getByText("verified #1 to #6").waitFor()
    await world.visit.context.setOffline(true)
    await world.visit.page.getByRole("button", { name: "Verify again" }).click()
    await world.visit.page.getByRole("alert").getByText("can't be reached").waitFor()
    assert.strictEqual(await world.visit.page.getByText("verified #1 to #6").count(), 0)
    await world.visit.page.getByText("last checkpoint: not up to date").waitFor()
    assert.strictEqual(await world.visit.page.getByText("Signed to #6").count(), 0)
    await world.visit.assertSound("overview-unreachable")
    await world.visit.context.setOffline(false)
    await world.visit.page.getByText("verified #1 to #6").waitFor()
    await world.visit.page.getByText("can't be reached").waitFor({ state: "detached" })
    assert.deepStrictEqual(world.visit.foreign, [])
  })
})

describe("the guide", () => {
  it("is read without a script", async () => {
    await open("/docs/guide")
    const { page } = world.visit
    for (const link of ["Architecture", "Glossary"]) {
      await page.getByRole("main").getByRole("link", { name: link, exact: true }).click()
      await world.visit.heading(link).waitFor()
      await world.visit.assertSound(`guide-${link.toLowerCase()}`)
      await page.getByRole("link", { name: "alk guide" }).click()
      await world.visit.heading("The guide").waitFor()
    }
    await world.visit.assertSound("guide")
    assertQuiet()
  })

  it("is read at 200 % zoom, and left for the reference", async () => {
    await open("/docs/guide/architecture", { width: 720, height: 450, scale: 2 })
    const { page } = world.visit
    assert.isFalse(await world.visit.overflows())
    await page.getByRole("navigation", { name: "On this page" }).getByRole("link").first().click()
    assert.match(page.url(), /#[a-z]/)
    await page.getByRole("link", { name: "API reference" }).click()
    await page.getByRole("heading", { level: 1, name: /Audit Log/ }).waitFor()
    assertQuiet()
  })
})

/** What `ask` answers to each, one after the other. */
const inTurn = async <A, B>(
  list: ReadonlyArray<A>,
  ask: (one: A) => Promise<B>
): Promise<Array<B>> => {
  const answers: Array<B> = []
  for (const one of list) answers.push(await ask(one))
  return answers
}

describe("the reference page", () => {
  it("sends its example with the key that was filled in once, and keeps it nowhere", async () => {
    await open("/docs#tag/ingest/POST/v1/events")
    const { page } = world.visit
    const token = page.getByPlaceholder("Token").filter({ visible: true }).first()
    await token.fill(examples)
    await page.getByRole("button", { name: "Test Request (post /v1/events)" }).click()
    const [request] = await Promise.all([
      page.waitForRequest((one) => new URL(one.url()).pathname === "/v1/events"),
      page.getByRole("button", { name: /^Send post request/ }).click()
    ])
    await page.getByText("201 Created").waitFor()
    assert.strictEqual(request.headers()["authorization"], `Bearer ${examples}`)
    const kept = await page.evaluate(
      "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href])"
    )
    assert.notInclude(String(kept), examples)
    assert.notInclude(request.url(), examples)
    assert.notInclude(world.running.output(), examples)
    assertQuiet()
    await page.reload()
    await token.waitFor()
    assert.strictEqual(await token.inputValue(), "")
  })

  it("has examples that are answered as they stand: 2xx, or 404 of an id that none can know", async () => {
    const document: any = openApiDocument()
    const { url } = world.running
    const tokens: Record<string, string> = { api_key: examples, admin_token: ADMIN_TOKEN }
    const client = (token: string) => new Client(url, token, true, 5)
    const send = ({ body, headers, method, path, scheme = "", target }: ExampleRequest) =>
      client(tokens[scheme] ?? "").call(target, {
        method: method.toUpperCase(),
        headers,
        // A key that works is in no document.
        ...(body === undefined ? {} : { body: path === "/v1/session" ? { key: examples } : body })
      })
    const odd: Array<string> = []
    const unknown = new Set<string>()
    for (const documented of operationsOf(document)) {
      if (documented.path.endsWith("/stream")) continue
      // Its tenant is gone for good, and other examples are about it.
      if (documented.path.endsWith("/deletion/confirm")) continue
      const requests = exampleRequestsOf(document, documented)
      // A report is printed in seconds, and its filters are those of the list.
      const isPrinted = documented.path.includes("/export/")
      const sent = isPrinted ? requests.slice(0, 1) : requests
      // What writes comes one after the other, as people send it.
      const answers =
        documented.method === "get" ? await Promise.all(sent.map(send)) : await inTurn(sent, send)
      for (const [index, { body, status, text }] of answers.entries()) {
        const { method, path, target } = sent[index]!
        if (path === "/v1/share/links" && method === "post") tokens["share_token"] = body.token
        if (status === 404) unknown.add(path)
        else if (status >= 300) odd.push(`${method} ${target}: ${status} ${text.slice(0, 200)}`)
      }
    }
    assert.deepStrictEqual(odd, [])
    // Whether there is a checkpoint of one event by now is a matter of time.
    unknown.delete("/v1/chain/proofs/consistency")
    assert.sameMembers([...unknown], UNKNOWABLE)
  })
})
