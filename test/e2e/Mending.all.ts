/** What the console says to do about a changed row does help: the view is built again from the log. */
import { rmSync } from "node:fs"
import { createClient } from "@clickhouse/client"
import { afterAll, assert, describe, it } from "vitest"
import { Client } from "../support/Client.ts"
import { freshFolder, type Started, start, testKey } from "../support/Program.ts"

const key = testKey("mending")
const folder = freshFolder("mending")
const AT = 8

const events = Array.from({ length: 12 }, (_, n) => ({
  id: `e-${n}`,
  actor: { id: `u_${n}`, type: "human" },
  action: "document.read",
  resource: { id: `doc-${n}`, type: "document" },
  outcome: "success"
}))

const changeRow = async ({ store }: Started): Promise<void> => {
  const intruder = createClient({ url: store })
  await intruder.command({
    query: "ALTER TABLE alk.events UPDATE outcome = 'failure'" + ` WHERE sequence_number = ${AT}`,
    clickhouse_settings: { mutations_sync: "1" }
  })
  await intruder.close()
}

let running: Started | undefined
afterAll(async () => {
  await running?.stop()
  rmSync(folder, { recursive: true, force: true })
})

describe("a view in a database of another name", () => {
  it("is what the log holds, and the changed rows stay in the old one", async () => {
    const environment = {
      ALK_DATA_DIR: folder,
      ALK_ROLES: "api,sequencer,projection,store",
      ALK_EMBEDDED_OPEN: "true",
      ALK_BOOTSTRAP_KEYS: `${key}=acme:read+write`
    }
    const verify = async (variables: Readonly<Record<string, string>>, change = false) => {
      running = await start({ ...environment, ...variables })
      const api = new Client(running.url, key)
      if (change) {
        await api.call("/v1/events/batch?sync=true", { body: { events } })
        await changeRow(running)
      }
      const { body } = await api.call("/v1/verify")
      const shown = await api.call(`/v1/events?sequence_number=${AT}`)
      await running.stop()
      running = undefined
      return { status: body.status, outcome: shown.body.events[0].outcome }
    }
    const changed = { status: "broken", outcome: "failure" }
    assert.deepStrictEqual(await verify({}, true), changed)
    const mended = await verify({ CLICKHOUSE_DATABASE: "alk_mended" })
    assert.deepStrictEqual(mended, { status: "valid", outcome: "success" })
    assert.deepStrictEqual(await verify({}), changed)
  })
})
