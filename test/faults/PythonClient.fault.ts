/** The Python client through restart after restart of the service, as a follower and as a writer. */
import { setTimeout as sleep } from "node:timers/promises"
import { assert, describe, it } from "vitest"
import { clientEnvironment, jsonOf, type Running, startProgram } from "../clients/PythonPrograms.ts"
import { freePort } from "../support/FreePort.ts"
import { withEmbedded } from "./Embedded.ts"
import { keyOf, withParts } from "./Parts.ts"
import { RestartingProxy } from "./RestartingProxy.ts"
import { REPEATS } from "./Scenarios.ts"

/** 1,000 take ten minutes. */
const RESTARTS = Number(process.env["FAULT_RESTARTS"] ?? 100)
const AWAY_MS = 200
const UP_MS = 400
/** Milliseconds between two events. */
const PAUSE_MS = 5
const COUNT = Math.ceil((RESTARTS * (AWAY_MS + UP_MS)) / PAUSE_MS)
/** Events that are logged over the kills. */
const KILLED_COUNT = 2_000 * REPEATS
const KILL_MS = 60_000

/** Everything was stored once, in order, in a chain that holds, and was followed so. */
const assertAll = async (
  count: number,
  follower: Running,
  environment: Readonly<Record<string, string>>
): Promise<void> => {
  const { breaks, numbers } = await jsonOf(startProgram("reader", [], environment))
  const all = Array.from({ length: count }, (_, index) => index)
  assert.deepStrictEqual(breaks, [])
  assert.deepStrictEqual(numbers, all)
  assert.deepStrictEqual((await jsonOf(follower)).numbers, all)
}

describe("the Python client", () => {
  it(
    `loses and doubles nothing while the API is killed ${REPEATS} times`,
    withParts(1, async (parts) => {
      const port = String(await freePort())
      let api = await parts.startRole("api", { PORT: port })
      const environment = clientEnvironment(api.url, keyOf("ada"))
      const writer = startProgram("writer", [KILLED_COUNT, 500, 0.002], environment)
      const follower = startProgram("follower", [KILLED_COUNT], environment)
      for (let n = 0; n < REPEATS; n++) {
        await sleep(500 + Math.random() * 1_000)
        await api.kill()
        api = await parts.startRole("api", { PORT: port })
      }
      const { code, output } = await writer.ended
      assert.strictEqual(code, 0, output)
      await assertAll(KILLED_COUNT, follower, environment)
    }),
    REPEATS * KILL_MS + 120_000
  )

  it(
    `loses and doubles nothing over ${RESTARTS} restarts of ${AWAY_MS} ms`,
    withEmbedded(async ({ program }) => {
      const proxy = await RestartingProxy.start(program.url)
      const environment = clientEnvironment(proxy.url, keyOf("ada"))
      const writer = startProgram("writer", [COUNT, COUNT, PAUSE_MS / 1_000], environment)
      const follower = startProgram("follower", [COUNT], environment)
      for (let n = 0; n < RESTARTS; n++) {
        await sleep(UP_MS)
        await proxy.restart(AWAY_MS)
      }
      const { code, output } = await writer.ended
      assert.strictEqual(code, 0, output)
      await assertAll(COUNT, follower, environment)
      await proxy.stop()
    }),
    RESTARTS * (AWAY_MS + UP_MS) * 3 + 120_000
  )
})
