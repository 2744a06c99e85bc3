/**
 * Share links as people use them: made by somebody who is signed in, opened by somebody who is not.
 */
import { readFileSync } from "node:fs"
import type { Download, Page } from "playwright-core"
import decodeQR from "qr/decode.js"
import { assert, describe, it } from "vitest"
import { verify } from "../../src/exports/checker/Verify.ts"
import { PackEditor } from "../exports/support/PackEditor.ts"
import { Client } from "../support/Client.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { testKey } from "../support/Program.ts"
import type { Visit } from "./ConsoleBrowser.ts"
import { consoleWorld } from "./ConsoleWorld.ts"

const [key, other] = [testKey("share"), testKey("elsewhere")]
const COUNT = 40
const HOSTILE = '<img src=x onerror="document.title=1">'

const event = (n: number) => ({
  actor: { id: n === 3 ? HOSTILE : `user_${n % 4}`, type: "human", email: `u${n}@example.com` },
  action: "document.read",
  resource: { id: `doc-${n}`, type: "document" },
  outcome: n % 5 === 0 ? "failure" : "success"
})

const keys = `${key}=acme:read+write,${other}=globex:read+write`
const world = consoleWorld("share", keys, async ({ url }) => {
  for (const [own, count] of [
    [key, COUNT],
    [other, 1]
  ] as const) {
    const events = Array.from({ length: count }, (_, n) => event(n))
    const { status } = await new Client(url, own).call("/v1/events/batch?sync=true", {
      body: { events }
    })
    assert.strictEqual(status, 200)
  }
})
const { assertQuiet, open } = world

interface MadeLink {
  readonly id: string
  readonly token: string
  readonly page_url: string
  readonly expires_at: string
}

const api = () => new Client(world.running.url, key)

const makeLink = async (body: object = {}): Promise<MadeLink> => {
  const { body: made, status } = await api().call("/v1/share/links", { body })
  assert.strictEqual(status, 201)
  return made as MadeLink
}

/** Opens the page of a link in a browser that nobody has used. */
const openShared = async (link: MadeLink, options?: Parameters<typeof open>[1]): Promise<Page> => {
  await open(link.page_url.slice(world.running.url.length), options)
  return world.visit.page
}

const bytesOf = async (download: Download): Promise<Buffer> =>
  readFileSync((await download.path())!)

const downloaded = async (page: Page, place: number): Promise<Download> => {
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Download", exact: true }).nth(place).click()
  ])
  return download
}

/** The text of the QR code, from the modules that are drawn. */
const readQr = async (page: Page): Promise<string> => {
  const svg = page.getByRole("img", { name: "QR code of the page address" })
  await svg.locator("path").waitFor({ state: "attached" })
  const [, , size] = (await svg.getAttribute("viewBox"))!.split(" ").map(Number)
  const drawn = (await svg.locator("path").getAttribute("d"))!
  const scale = 4
  const width = size! * scale
  const data = new Uint8Array(width * width * 4).fill(255)
  for (const [, x, y] of drawn.matchAll(/M(\d+) (\d+)/g)) {
    for (let row = 0; row < scale; row++) {
      const at = ((Number(y) * scale + row) * width + Number(x) * scale) * 4
      for (let column = 0; column < scale; column++)
        data.fill(0, at + 4 * column, at + 4 * column + 3)
    }
  }
  return decodeQR({ width, height: width, data })
}

/** What the page has kept anywhere but in its address. */
const stored = (page: Page): Promise<string> =>
  page.evaluate(
    "(async () => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, "
      + "await indexedDB.databases(), await caches.keys(), history.state]))()"
  )

describe("share links in the console", () => {
  it("are made, shown once with a QR code, listed and revoked", async () => {
    await open("/evidence")
    await world.visit.signIn(key)
    const { page } = world.visit
    await page.getByText("No link can be used now").waitFor()
    await world.visit.assertSound("share-links-none")
    await page.getByLabel("Label").fill(`for ${HOSTILE}`)
    await page.getByLabel("Expires in").selectOption("1 day")
    await page.getByLabel("Uses at most").fill("3")
    await page.getByRole("button", { name: "Make a link" }).click()
    await page.getByText("The link is made").waitFor()
    const address = await page.locator(".link-address pre").first().textContent()
    assert.match(address!, /^http:\/\/127\.0\.0\.1:\d+\/share#shr_[0-9A-Za-z]{43}$/)
    assert.strictEqual(await readQr(page), address)
    await page.getByText("This address works only on this machine.").waitFor()
    await page.getByText(`/v1/share/export/pdf -o report.pdf`).waitFor()
    await page.getByRole("cell", { name: "0 of 3" }).waitFor()
    await world.visit.assertSound("share-link-made")
    await page.getByRole("button", { name: "I have kept it" }).click()
    assert.strictEqual(await page.getByText("shr_").count(), 0)
    await page.getByRole("button", { name: `Revoke for ${HOSTILE}` }).click()
    const dialog = page.getByRole("dialog")
    await dialog.getByText("can’t be undone").waitFor()
    await world.visit.assertSound("share-link-revoke")
    await page.keyboard.press("Escape")
    await dialog.waitFor({ state: "hidden" })
    await page.getByRole("button", { name: `Revoke for ${HOSTILE}` }).click()
    await dialog.getByRole("button", { name: "Revoke the link" }).click()
    await page.getByText("1 link that ended").click()
    await page.getByRole("region", { name: "Links that ended" }).getByText("revoked").waitFor()
    assertQuiet()
  })

  it("are listed", async () => {
    await makeLink({ label: "Q3 for the auditor", max_uses: 5, from: "2026-07-01" })
    await makeLink({ filters: { where: "outcome:failure -actor_id:user_1" } })
    await open("/evidence")
    await world.visit.signIn(key)
    await world.visit.page.getByText("Q3 for the auditor").first().waitFor()
    await world.visit.assertSound("share-links")
    assertQuiet()
  })
})

describe("the page of a share link", () => {
  it("shows scope, verdict, documents and its own check to somebody without a key", async () => {
    const link = await makeLink({ label: "For Ms Auditor", max_uses: 9 })
    await open("/sign-in")
    const signedIn: Visit = world.visit
    const page = await openShared(link)
    const asked: Array<string> = []
    const cookies: Array<string> = []
    page.context().on("request", (request) => {
      asked.push(request.url(), request.headers()["referer"] ?? "")
      cookies.push(request.headers()["cookie"] ?? "")
    })
    await page.reload()
    await world.visit.heading("For Ms Auditor").waitFor()
    await page.getByText(`events #1 to #${COUNT} verified`).waitFor()
    await page.getByText("9 of 9").waitFor()
    await world.visit.assertSound("share-whole")

    const pdf = await downloaded(page, 0)
    assert.match(pdf.suggestedFilename(), /^alk-audit-report-acme-.*\.pdf$/)
    assert.strictEqual((await bytesOf(pdf)).subarray(0, 5).toString(), "%PDF-")
    await page.getByText("8 of 9").waitFor()
    const pack = await downloaded(page, 0)
    assert.match(pack.suggestedFilename(), /^alk-evidence-acme-.*\.zip$/)
    const { text } = await verify([(await pack.path())!, "--json"])
    assert.deepInclude(JSON.parse(text), { verdict: "consistent", problems: [], events: COUNT })

    await page.getByText("Uses the pack that you have downloaded").waitFor()
    await page.getByRole("button", { name: "Verify here" }).click()
    const verdict = page.getByRole("region", { name: "Verdict of this browser" })
    await verdict.getByText("Consistent, origin not checked").waitFor()
    await verdict.getByText(`${COUNT} links of the chain of acme`).waitFor()
    const published = await fetch(`${world.running.url}/.well-known/alk-keys.json`)
    await page.getByLabel("A public key").fill(await published.text())
    await page.getByRole("button", { name: "Check again" }).click()
    await verdict.getByText("Authentic").waitFor()
    await world.visit.assertSound("share-verified")
    // Checked twice and saved once, downloaded once.
    await page.getByText("7 of 9").waitFor()

    assert.isAbove(asked.length, 10)
    for (const url of asked) assert.notInclude(url, link.token.slice(4))
    assert.deepStrictEqual([...new Set(cookies)], [""])
    assert.notInclude(await stored(page), link.token.slice(4))
    assert.notInclude(world.running.output(), link.token)
    assertQuiet()
    await signedIn.end()
  })

  it("shows the shared log, whoever is signed in in the same browser", async () => {
    const link = await makeLink({ filters: { actor_id: "user_1" } })
    await open("/")
    await world.visit.signIn(other)
    await world.visit.heading("Overview").waitFor()
    const { page } = world.visit
    const sent: Array<string | undefined> = []
    page.on("request", (request) => {
      if (request.url().includes("/v1/share")) sent.push(request.headers()["cookie"])
    })
    await world.visit.open(`/share#${link.token}`)
    await page.getByText("actor user_1").waitFor()
    await page.getByText("acme", { exact: true }).waitFor()
    await page.getByText("none: the conditions select events").waitFor()
    await page.getByText(`events #1 to #${COUNT} verified`).waitFor()
    assert.isAtLeast(sent.length, 2)
    assert.deepStrictEqual([...new Set(sent)], [undefined])
    assertQuiet()
  })

  it("is usable in every look", async () => {
    const where = `actor_id:"${HOSTILE.replaceAll('"', '\\"')}" outcome:success`
    const link = await makeLink({ from: "2026-01-01", filters: { where, q: "document" } })
    const page = await openShared(link)
    await page.getByText(`events #1 to #${COUNT} verified`).waitFor()
    await page.getByRole("button", { name: "Verify here" }).click()
    await page.getByText("Consistent, origin not checked").waitFor()
    assert.match(await page.title(), /^(\w+ · )?alk$/)
    await world.visit.assertSound("share")
    assertQuiet()
  })

  it("says where the chain is broken, and nothing calm beside it", async () => {
    const link = await makeLink()
    const page = await openShared(link)
    await page.getByText(`events #1 to #${COUNT} verified`).waitFor()
    await page.route("**/v1/share/verify", async (route) => {
      const lines = await (await route.fetch()).text()
      const report = JSON.parse(lines.trimEnd().split("\n").at(-1)!)
      const broken = { sequence_number: 7, event_id: null, reason: "content_mismatch" }
      const breaks = [{ ...broken, expected: "a".repeat(64), actual: "b".repeat(64) }]
      const body = { ...report, valid: false, status: "broken", breaks, breaks_total: 1 }
      const progress = { events_checked: 5, up_to_sequence: 5, of: COUNT, breaks_total: 0 }
      await route.fulfill({ body: `${JSON.stringify(progress)}\n${JSON.stringify(body)}\n` })
    })
    await page.getByRole("button", { name: "Verify again" }).click()
    await page.getByText("the chain of events is broken").waitFor()
    const row = page.getByRole("row", { name: /content_mismatch/ })
    for (const text of ["#7", "a".repeat(64), "b".repeat(64)]) await row.getByText(text).waitFor()
    assert.strictEqual(await page.locator(".state.good").count(), 0)
    await world.visit.assertSound("share-broken")
  })

  it("says what the service does not establish of the chain", async () => {
    const page = await openShared(await makeLink())
    await page.route("**/v1/share/verify", async (route) => {
      const lines = await (await route.fetch()).text()
      const report = JSON.parse(lines.trimEnd().split("\n").at(-1)!)
      await route.fulfill({ body: `${JSON.stringify({ ...report, notices: ["<b>lost"] })}\n` })
    })
    await page.getByRole("button", { name: "Verify again" }).click()
    await page.getByText("not established <b>lost").waitFor()
  })

  it("shows how far a verification is, and that it is not one when it is cut or refused", async () => {
    const link = await makeLink()
    let next = () => {}
    const isAsked = new Promise<void>((resolve) => (next = resolve))
    await open("/sign-in")
    const { page } = world.visit
    const bodies = [
      `${JSON.stringify({ events_checked: 9, up_to_sequence: 9, of: COUNT, breaks_total: 0 })}\n`
    ]
    await page.route("**/v1/share/verify", async (route) => {
      next()
      await route.fulfill({ body: bodies[0]! })
    })
    await world.visit.open(link.page_url.slice(world.running.url.length))
    await isAsked
    await page.getByText("the answer broke off").waitFor()
    await page.getByText("not verified", { exact: true }).waitFor()
    await page.unroute("**/v1/share/verify")
    const error = { code: "rate_limited", message: "this link has 1 under way", request_id: "x" }
    await page.route("**/v1/share/verify", (route) =>
      route.fulfill({ status: 429, body: JSON.stringify({ error }) })
    )
    await page.getByRole("button", { name: "Verify again" }).click()
    await page.getByText("One at a time is possible").waitFor()
    await page.unroute("**/v1/share/verify")
    await page.getByRole("button", { name: "Try again" }).click()
    await page.getByText(`events #1 to #${COUNT} verified`).waitFor()
  })
})

describe("the check in the browser", () => {
  const withPack = async (page: Page, change: (pack: PackEditor) => Buffer): Promise<void> => {
    await page.route("**/v1/share/export/evidence-pack*", async (route) => {
      const response = await route.fetch()
      await route.fulfill({ response, body: change(new PackEditor(await response.body())) })
    })
  }

  it("finds one byte of an event that was changed", async () => {
    const page = await openShared(await makeLink())
    await withPack(page, (pack) =>
      pack
        .edit("events.ndjson", (lines) => lines.with(6, lines[6]!.replace("doc-6", "doc-5")))
        .zip()
    )
    await page.getByRole("button", { name: "Verify here" }).click()
    const verdict = page.getByRole("region", { name: "Verdict of this browser" })
    await verdict.getByText("Tampered with").waitFor()
    const row = verdict.getByRole("row", { name: /content_mismatch/ })
    await row.getByText("#7").waitFor()
    await row.getByText("events.ndjson").waitFor()
    await verdict.getByText("Don’t rely on this pack").waitFor()
    await page.getByText("the pack that it sent does not hold").waitFor()
    assert.strictEqual(await page.locator(".state.good").count(), 0)
    await world.visit.assertSound("share-tampered")
    assertQuiet()
  })

  it("says of a pack that it can't read that there is no verdict", async () => {
    const page = await openShared(await makeLink())
    await withPack(page, () => Buffer.from("no ZIP at all"))
    await page.getByLabel("A public key").fill("no key at all")
    await page.getByRole("button", { name: "Verify here" }).click()
    await page.getByText("Unreadable", { exact: true }).waitFor()
    await page.getByText("holds no public key, so it was not used").waitFor()
    await world.visit.assertSound("share-unreadable")
    assertQuiet()
  })

  it("works with the last use of a link, whose page then stays as it is", async () => {
    const page = await openShared(await makeLink({ max_uses: 1 }))
    await page.getByText("Counts as one use.").waitFor()
    await page.getByRole("button", { name: "Verify here" }).click()
    await page.getByText("Consistent, origin not checked").waitFor()
    await page.getByText("This share link is used up").waitFor()
    await page.getByText("0 of 1").waitFor()
    await page.getByText("0 uses left").waitFor()
    await page.getByText(`${COUNT} links of the chain of acme`).waitFor()
    assert.isTrue(await page.getByRole("button", { name: "Download" }).isDisabled())
    await page.getByRole("button", { name: "Check again" }).click()
    await page.getByText("Consistent, origin not checked").waitFor()
    await world.visit.assertSound("share-last-use")
    await page.reload()
    await page.getByRole("heading", { name: "This share link is used up" }).waitFor()
    await page.getByText("each document counts as a use").waitFor()
  })
})

describe("a share link that opens nothing", () => {
  const heading = (name: string) => world.visit.page.getByRole("heading", { level: 2, name })

  it("is told apart: none, cut off, unknown, revoked, expired", async () => {
    const revoked = await makeLink({ label: "gone" })
    await api().call(`/v1/share/links/${revoked.id}`, { method: "DELETE" })
    const expired = await makeLink({ expires_in: 1 })
    const end = Date.parse(expired.expires_at)
    await eventuallyAsync(
      "its time is over",
      () => Date.now() - end,
      (milliseconds) => milliseconds > 0
    )
    await open("/share")
    await heading("This address has no share link in it").waitFor()
    assert.deepStrictEqual(await world.visit.faults(), [])
    const asked: Array<string> = []
    world.visit.page.on("request", (request) => asked.push(request.url()))
    await world.visit.open("/share#shr_cut")
    await heading("This share link is not complete").waitFor()
    assert.deepStrictEqual(asked, [])
    await world.visit.open(`/share#shr_${"x".repeat(43)}`)
    await heading("This share link is not known").waitFor()
    await world.visit.open(`/share#${revoked.token}`)
    await heading("This share link was revoked").waitFor()
    await world.visit.assertSound("share-revoked")
    await world.visit.open(`/share#${expired.token}`)
    await heading("This share link has expired").waitFor()
    assert.strictEqual(await world.visit.page.getByText("verified").count(), 0)
    assert.deepStrictEqual(world.visit.foreign, [])
  })

  it("is not what somebody sees who is offline: they can try again", async () => {
    const link = await makeLink()
    await open("/share")
    const { context, page } = world.visit
    await world.visit.heading(/./).waitFor()
    await context.setOffline(true)
    await world.visit.page.evaluate(`location.hash = "#${link.token}"`)
    await page.getByRole("alert").getByText("can't be reached").waitFor()
    await world.visit.assertSound("share-unreachable")
    await context.setOffline(false)
    await page.getByRole("button", { name: "Try again" }).click()
    await page.getByText(`events #1 to #${COUNT} verified`).waitFor()
    await context.setOffline(true)
    await page.getByRole("button", { name: "Verify again" }).click()
    await page.getByText("not verified", { exact: true }).waitFor()
    await page.getByRole("button", { name: "Download" }).first().click()
    await page.locator(".share-document").first().waitFor()
    await page.getByRole("alert").getByText("can't be reached").first().waitFor()
    assert.strictEqual(await page.locator(".state.good").count(), 0)
  })
})
