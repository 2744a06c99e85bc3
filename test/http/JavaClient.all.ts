/**
 * The client of Java's standard library, as many services have it: every request of it is answered,
 * though it offers HTTP/2 with the first one of each connection.
 */
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { Effect } from "effect"
import { afterEach, assert, describe, it } from "vitest"
import { findJava } from "../../src/adapters/embedded/broker/Java.ts"
import { OTHER_KEY } from "./support/Doubles.ts"
import { TestApi } from "./support/TestApi.ts"

const REQUESTS = 600
const CONNECTIONS = 8
/** Milliseconds after which it hangs. */
const MS_MAX = 500_000

describe("Java's HttpClient", () => {
  let api: TestApi
  afterEach(() => api.stop())

  it("gets the right status for every request: GET, POST, streamed POST", async () => {
    api = await TestApi.start()
    const program = "test/support/JavaClient.java"
    const given = [program, api.url, OTHER_KEY, String(REQUESTS), String(CONNECTIONS)]
    const java = await Effect.runPromise(findJava)
    const { stdout } = await promisify(execFile)(java, given, { timeout: MS_MAX })
    assert.deepStrictEqual(stdout.trim().split("\n").sort(), [
      "200 get 200",
      "200 post 200",
      "200 stream 200"
    ])
    assert.strictEqual(api.world.bodies.length, (REQUESTS / 3) * 2)
  })
})
