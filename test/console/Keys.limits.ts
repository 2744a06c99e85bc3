/** How soon what is open with a key ends once the key has expired. */
import { rmSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { Client, type Json } from "../support/Client.ts"
import { ADMIN_TOKEN, freshFolder, type Started, start, testKey } from "../support/Program.ts"

const folder = freshFolder("keys-limits")
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

/** Milliseconds in which all that is open with a key ends after its own end, where nothing else runs. */
const END_MAX_MS = 1_000

const admin = () => new Client(running.url, ADMIN_TOKEN)

const makeKey = async (expires_in?: number) => {
  const body = { scopes: ["read"], expires_in }
  return (await admin().call("/v1/admin/tenants/acme/keys", { body })).body
}

/** Signs in with the key, and gives what the browser sends from then on. */
const sessionOf = async (key: string): Promise<Record<string, string>> => {
  const { headers, status } = await new Client(running.url, "").call("/v1/session", {
    body: { key }
  })
  assert.strictEqual(status, 201)
  return { cookie: headers.get("set-cookie")!.split(";")[0]! }
}

const ends = [
  [
    "it expires",
    4,
    ({ expires_at }: Json) => sleep(Math.max(0, Date.parse(expires_at) - Date.now()))
  ],
  [
    "it is revoked",
    undefined,
    async ({ id }: Json) => {
      const path = `/v1/admin/tenants/acme/keys/${id}`
      assert.strictEqual((await admin().call(path, { method: "DELETE" })).status, 204)
    }
  ]
] as const

describe("the end of a key", () => {
  for (const [end, expires_in, endOf] of ends) {
    it(`closes its streams and its sessions within a second when ${end}`, async () => {
      const made = await makeKey(expires_in)
      const session = await sessionOf(made.key)
      const streams = await Promise.all(
        [{ authorization: `Bearer ${made.key}` }, session].map((headers) =>
          fetch(`${running.url}/v1/events/stream`, { headers })
        )
      )
      assert.deepStrictEqual(
        streams.map(({ status }) => status),
        [200, 200]
      )
      await endOf(made)
      const since = Date.now()
      await Promise.all(streams.map((stream) => stream.text()))
      const { status } = await fetch(`${running.url}/v1/me`, { headers: session })
      assert.strictEqual(status, 401)
      assert.isBelow(Date.now() - since, END_MAX_MS)
    })
  }
})
