/** Keys, tenants and settings as an administrator works with them: made, used, expired, revoked. */
import { assert, describe, it } from "vitest"
import { Client } from "../support/Client.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { ADMIN_TOKEN, testKey } from "../support/Program.ts"
import { consoleWorld } from "./ConsoleWorld.ts"

const key = testKey("keys")
const HOSTILE = '<img src=x onerror="document.title=1">'

const world = consoleWorld("keys", `${key}=acme:read+write`, async ({ url }) => {
  const admin = new Client(url, ADMIN_TOKEN)
  await admin.call("/v1/admin/tenants/acme/keys", {
    body: { scopes: ["read"], label: HOSTILE, expires_in: 86_400 }
  })
})
const { assertQuiet, open } = world

const page = () => world.visit.page

const openAdmin = async (token = ADMIN_TOKEN) => {
  await page().getByLabel("Admin token").fill(token)
  await page().getByRole("button", { name: "Open an admin session" }).click()
}

/** Signs in with the key, and opens the admin session on a page below /keys. */
const asAdmin = async (path: string, options = {}) => {
  await open(path, options)
  await world.visit.signIn(key)
  await world.visit.heading("Keys and tenants").waitFor()
  await openAdmin()
  await page().getByRole("button", { name: "End the admin session" }).waitFor()
}

/** All that the browser keeps and shows, in which no key may be. */
const traces = async () =>
  String(
    await page().evaluate(
      "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href, "
        + "document.documentElement.outerHTML, "
        + "[...document.querySelectorAll('input')].map((one) => one.value)])"
    )
  )

const row = (name: string | RegExp) =>
  page().getByRole("region", { name: "Keys, as a table" }).getByRole("row", { name })

/** The use of a key is written a moment later, in the background. */
const seenUsed = (name: string) =>
  eventuallyAsync(
    `the key "${name}" is shown as used`,
    async () => {
      await page().getByRole("button", { name: "Load again" }).click()
      return row(name).allTextContents()
    },
    (rows) => rows.some((text) => text.includes("within the last hour"))
  )

const goTo = (title: string) =>
  page().getByRole("navigation", { name: "Pages" }).getByRole("link", { name: title }).click()

describe("the page of keys", () => {
  it("shows the own key, and asks for the admin token for everything else", async () => {
    await open("/keys")
    await world.visit.signIn(key)
    const own = page().getByRole("region", { name: "Your key" })
    await own.getByText(key.slice(0, 13)).waitFor()
    await own.getByText("read and write").waitFor()
    await page().getByLabel("Admin token").waitFor()
    assert.strictEqual(await page().getByText("New tenant").count(), 0)
    await world.visit.assertSound("keys-closed")
    // An API key is not taken for the token: it would replace the session.
    await openAdmin(key)
    await page().getByRole("alert").getByText("not the token in ALK_ADMIN_TOKEN").waitFor()
    world.visit.errors.length = 0
    await world.visit.assertSound("keys-refused")
    await openAdmin()
    await page().getByRole("link", { name: "Log of acts" }).waitFor()
    assert.notInclude(await traces(), ADMIN_TOKEN)
    // Of the two sessions the page's own goes on to be the key's.
    await goTo("Overview")
    await world.visit.heading("Welcome").waitFor()
    await goTo("Keys")
    await page().getByRole("button", { name: "End the admin session" }).click()
    await page().getByLabel("Admin token").waitFor()
    await own.getByText(key.slice(0, 13)).waitFor()
    assertQuiet()
  })

  it("makes a tenant and a key that is shown once, used, and revoked", async () => {
    await asAdmin("/keys")
    await page().getByText("New tenant").click()
    await page().getByLabel("Id", { exact: true }).fill("Initech!")
    await page().getByRole("button", { name: "Create the tenant" }).click()
    await page().getByRole("alert").getByText("id: must be of the form").waitFor()
    await page().getByLabel("Id", { exact: true }).fill("acme")
    await page().getByRole("button", { name: "Create the tenant" }).click()
    await page().getByRole("alert").getByText("exists already").waitFor()
    world.visit.errors.length = 0
    await world.visit.assertSound("keys-tenant-refused")
    await page().getByLabel("Id", { exact: true }).fill("initech")
    await page().getByLabel("Name", { exact: true }).fill("Initech Inc.")
    await page().getByRole("button", { name: "Create the tenant" }).click()
    await page().getByRole("heading", { name: "Keys of initech" }).waitFor()
    await page().getByText("No keys yet").waitFor()
    assert.include(page().url(), "tenant=initech")

    await page().getByText("New key").click()
    await page().getByLabel("Label").fill("ingest of the shop")
    await page().getByLabel("Expires").selectOption("30")
    await page().getByRole("button", { name: "Create the key" }).click()
    const dialog = page().getByRole("dialog", { name: /The key ingest of the shop/ })
    await dialog.waitFor()
    const made = String(await dialog.locator(".keys-secret code").textContent())
    assert.match(made, /^alk_live_[0-9A-Za-z]{43}$/)
    assert.include(await dialog.locator("pre").textContent(), `export ALK_API_KEY='${made}'`)
    await world.visit.assertSound("keys-shown-once")
    // Esc would lose it.
    await page().keyboard.press("Escape")
    assert.isTrue(await dialog.isVisible())
    await dialog.getByRole("button", { name: "I have kept it" }).click()
    // Closed it has no role any more; it has to leave the page.
    await page().locator(".keys-secret").waitFor({ state: "detached" })
    assert.notInclude(await traces(), made)

    const shop = new Client(world.running.url, made)
    assert.strictEqual((await shop.call("/v1/me")).status, 200)
    await row("ingest of the shop").getByText("not known").waitFor()
    await seenUsed("ingest of the shop")

    await row("ingest of the shop")
      .getByRole("button", { name: /Revoke/ })
      .click()
    const asked = page().getByRole("dialog", { name: "Revoke ingest of the shop?" })
    await asked.getByText("live streams are closed").waitFor()
    await world.visit.assertSound("keys-revoke")
    await asked.getByRole("button", { name: "Revoke the key" }).click()
    await page().getByText("ingest of the shop is revoked").waitFor()
    await row("ingest of the shop").getByText("revoked").waitFor()
    assert.strictEqual((await shop.call("/v1/me")).status, 401)

    await page().getByRole("link", { name: "Log of acts" }).click()
    const acts = page().getByRole("region", { name: "Acts, as a table" })
    await acts
      .getByRole("row", { name: /api_key\.revoked/ })
      .first()
      .waitFor()
    await acts.getByRole("row", { name: /tenant\.created tenant initech/ }).waitFor()
    await page().getByLabel("What").selectOption("api_key.created")
    await acts.getByRole("row", { name: /label ingest of the shop/ }).waitFor()
    assert.strictEqual(await acts.getByText("api_key.revoked").count(), 0)
    assert.include(page().url(), "action=api_key.created")
    assertQuiet()
  })

  it("says that an admin session has ended, and goes on when it is opened again", async () => {
    await asAdmin("/keys?tenant=acme")
    await row(/<img src=x/).waitFor()
    await world.visit.context.clearCookies({ name: "alk_admin" })
    await page().getByRole("button", { name: "Load again" }).click()
    await page().getByText("The admin session has ended").waitFor()
    assert.strictEqual(await page().getByRole("region", { name: "Keys, as a table" }).count(), 0)
    world.visit.errors.length = 0
    await world.visit.assertSound("keys-ended")
    await openAdmin()
    await row(/<img src=x/)
      .getByText("expires soon")
      .waitFor()
    await seenUsed("from ALK_BOOTSTRAP_KEYS")
    assertQuiet()
  })

  it("says how the admin token is set where there is none", async () => {
    await open("/sign-in")
    await page().route("**/v1/me", async (route) => {
      const answer = await route.fetch()
      await route.fulfill({ json: { ...(await answer.json()), has_admin_token: false } })
    })
    await world.visit.signIn(key)
    await goTo("Keys")
    await page().getByText("no admin token is set").waitFor()
    assert.strictEqual(await page().getByLabel("Admin token").count(), 0)
    await world.visit.assertSound("keys-no-token")
    await page().unroute("**/v1/me")
    assertQuiet()
  })

  it("is all there is to see for who has signed in with the admin token alone", async () => {
    await open("/keys?show=log")
    await world.visit.signIn(ADMIN_TOKEN)
    await page().getByRole("region", { name: "Acts, as a table" }).waitFor()
    assert.strictEqual(await page().getByRole("region", { name: "Your key" }).count(), 0)
    await page().getByRole("button", { name: "End the admin session" }).click()
    await page().getByLabel("API key").waitFor()
    assertQuiet()
  })

  it("is usable in every look", async () => {
    await asAdmin("/keys?tenant=acme")
    const pages = {
      keys: async () => {
        await world.visit.open("/keys?tenant=acme")
        await row(/<img src=x/).waitFor()
        await page().getByText("New key").click()
        await page().getByLabel("Expires").selectOption("date")
      },
      "keys-log": async () => {
        await world.visit.open("/keys?show=log")
        await page().getByRole("region", { name: "Acts, as a table" }).waitFor()
      },
      settings: async () => {
        await goTo("Settings")
        await page().getByText("Version of the API").waitFor()
        await page().getByText("One event").waitFor()
      }
    }
    for (const [what, show] of Object.entries(pages)) {
      await show()
      await world.visit.assertSound(what)
    }
    assert.match(await page().title(), /^(\w+ · )?alk$/)
    assertQuiet()
  })
})

describe("a key that expires", () => {
  it("ends its stream and its sessions, and is refused with the time of its end", async () => {
    const admin = new Client(world.running.url, ADMIN_TOKEN)
    await open("/settings")
    let seconds = 2
    const { body, stream } = await eventuallyAsync(
      "somebody has signed in with a key before it expires",
      async () => {
        // Each lasts longer than the one before, until the machine is quick enough for it.
        seconds *= 2
        const made = await admin.call("/v1/admin/tenants/acme/keys", {
          body: { scopes: ["read"], label: "short", expires_in: seconds }
        })
        assert.strictEqual(made.status, 201, made.text)
        const headers = { authorization: `Bearer ${made.body.key}` }
        const opened = await fetch(`${world.running.url}/v1/events/stream`, { headers })
        await world.visit.context.clearCookies()
        await world.visit.open("/settings")
        await world.visit.signIn(made.body.key)
        const signedIn = page().getByText("short may")
        const refused = page().getByText(/has expired at|session has ended/)
        await signedIn.or(refused).first().waitFor()
        const isSignedIn = await signedIn.isVisible()
        return { body: made.body, isSignedIn, status: opened.status, stream: opened }
      },
      ({ isSignedIn, status }) => isSignedIn && status === 200
    )
    await stream.text()
    // Timers of Node may fire a millisecond early.
    assert.isAtLeast(Date.now(), Date.parse(body.expires_at) - 2)
    const refused = await eventuallyAsync(
      "the key is refused",
      () => new Client(world.running.url, body.key).call("/v1/me"),
      ({ status }) => status === 401
    )
    assert.include(refused.body.error.message, `has expired at ${body.expires_at}`)
    await goTo("Keys")
    await page().getByText("Your session has ended").waitFor()
    await world.visit.signIn(body.key)
    await page().getByRole("alert").getByText("has expired at").waitFor()
    assert.deepStrictEqual(world.visit.foreign, [])
  })
})

describe("settings", () => {
  it("change the looks, say who is signed in, and forget what the browser keeps", async () => {
    await open("/events")
    await world.visit.signIn(key)
    await page().getByText("Saved views").click()
    await page().getByRole("textbox", { name: "Name" }).fill("failures")
    await page().getByRole("button", { name: "Save this view" }).click()
    await goTo("Settings")
    const looks = page().getByRole("region", { name: "How it looks" })
    await looks.getByLabel("dark").check()
    const back = await page().evaluate("getComputedStyle(document.body).backgroundColor")
    assert.strictEqual(back, "rgb(20, 24, 29)")
    await looks.getByLabel(/Europe\/Berlin/).check()
    const keptHere = page().getByRole("region", { name: "Kept in this browser" })
    await keptHere.getByRole("link", { name: "failures" }).waitFor()
    await keptHere.getByText("alk.views").waitFor()
    await keptHere.getByRole("button", { name: "Forget failures" }).click()
    await keptHere.getByText("None: the page of events").waitFor()
    await keptHere.getByRole("button", { name: "Forget all settings" }).click()
    await keptHere.getByRole("button", { name: "Forget it" }).click()
    await looks.getByLabel("as the system has them").and(page().locator(":checked")).waitFor()
    assert.isTrue(await looks.getByLabel("UTC", { exact: true }).isChecked())
    const signedIn = page().getByRole("region", { name: "Signed in" })
    await signedIn.getByText("after 60 minutes").waitFor()
    await signedIn.getByRole("button", { name: "Sign out" }).click()
    await page().getByLabel("API key").waitFor()
    assertQuiet()
  })
})
