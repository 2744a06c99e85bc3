/** How soon what is open with a key ends once the key has expired. */
import { rmSync } from "node:fs"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { Client } from "../support/Client.ts"
import { ADMIN_TOKEN, freshFolder, type Started, start, testKey } from "../support/Program.ts"

const folder = freshFolder("keys-limits")
/** Milliseconds after the end of the key. */
const END_MAX_MS = 2_000
let running: Started

beforeAll(async () => {
  running = await start({
    ALK_DATA_DIR: folder,
    ALK_ADMIN_TOKEN: ADMIN_TOKEN,
    ALK_BOOTSTRAP_KEYS: `${testKey("keys")}=acme:read`
  })
})
afterAll(async () => {
  await running.stop()
  rmSync(folder, { recursive: true, force: true })
})

describe("a key that expires", () => {
  it("ends its stream within two seconds", async () => {
    const admin = new Client(running.url, ADMIN_TOKEN)
    const { body } = await admin.call("/v1/admin/tenants/acme/keys", {
      body: { scopes: ["read"], expires_in: 4 }
    })
    const headers = { authorization: `Bearer ${body.key}` }
    const stream = await fetch(`${running.url}/v1/events/stream`, { headers })
    assert.strictEqual(stream.status, 200)
    await stream.text()
    assert.isBelow(Date.now() - Date.parse(body.expires_at), END_MAX_MS)
  })
})
