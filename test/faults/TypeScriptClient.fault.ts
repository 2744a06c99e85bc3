/** The TypeScript client through restart after restart of the service, as a writer and as a follower. */
import { setTimeout as sleep } from "node:timers/promises"
import { assert, describe, it } from "vitest"
import { ChainVerifier, createClient } from "../../src/client/index.ts"
import { withEmbedded } from "./Embedded.ts"
import { keyOf } from "./Parts.ts"
import { RestartingProxy } from "./RestartingProxy.ts"

/** 1,000 take ten minutes. */
const RESTARTS = Number(process.env["FAULT_RESTARTS"] ?? 100)
const AWAY_MS = 200
const UP_MS = 400
/** Milliseconds between two events. */
const PAUSE_MS = 5

describe("the TypeScript client", () => {
  it(
    `loses and doubles nothing over ${RESTARTS} restarts of ${AWAY_MS} ms`,
    withEmbedded(async ({ program }) => {
      const proxy = await RestartingProxy.start(program.url)
      const client = createClient({ url: proxy.url, key: keyOf("ada"), onWarning: () => {} })
      const logged: Array<string> = []
      const tailed: Array<string> = []
      const numbered = (action: string) =>
        ({
          actor: { id: "ada", type: "human" },
          action,
          resource: { id: String(logged.length), type: "number" }
        }) as const
      const following = (async () => {
        for await (const { action, id } of client.tail({}, { after: 0 })) {
          tailed.push(id)
          if (action === "number.last") return
        }
      })()
      let isOver = false
      const writing = (async () => {
        while (!isOver) {
          logged.push(client.log(numbered("number.counted")))
          await sleep(PAUSE_MS)
        }
      })()
      for (let restart = 0; restart < RESTARTS; restart++) {
        await sleep(UP_MS)
        await proxy.restart(AWAY_MS)
      }
      isOver = true
      await writing
      await client.flush({ timeoutMs: 60_000 })
      // Once this one can be read, all before it can.
      logged.push((await client.record(numbered("number.last"))).id)
      const chain = new ChainVerifier()
      const stored: Array<string> = []
      for await (const event of client.events({ order: "asc" })) {
        assert.isUndefined(await chain.add(event))
        stored.push(event.id)
      }
      assert.deepStrictEqual(stored, logged)
      await following
      assert.deepStrictEqual(tailed, logged)
      await client.close()
      await proxy.stop()
    }),
    RESTARTS * (AWAY_MS + UP_MS) * 3 + 120_000
  )
})
