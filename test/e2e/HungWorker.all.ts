/** A worker that doesn't run any more and doesn't end either: another one takes its place. */
import { rmSync } from "node:fs"
import { assert, it } from "vitest"
import { event } from "../support/BlackBox.ts"
import { Client, type Json } from "../support/Client.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { freshFolder, start, testKey } from "../support/Program.ts"

/** Many times the 30 seconds after which a worker that does not answer is killed. */
const PATIENCE_MS = 300_000

it("is killed and started again, and its partition goes on", async () => {
  const folder = freshFolder("hung-worker")
  const running = await start({
    ALK_WORKERS: "1",
    ALK_PARTITIONS: "2",
    ALK_DATA_DIR: folder,
    ALK_BOOTSTRAP_KEYS: ["a", "b", "c", "d", "e"]
      .map((tenant) => `${testKey(tenant)}=${tenant}:read+write`)
      .join(",")
  })
  const pids = (): ReadonlyArray<number> =>
    running
      .output()
      .split("\n")
      .filter((line) => line.includes('"a worker listens"'))
      .map((line) => (JSON.parse(line) as Json)["pid"])
  try {
    const [hung] = pids()
    process.kill(hung!, "SIGSTOP")
    await eventuallyAsync(
      "another worker listens",
      pids,
      (listening) => listening.length > 1,
      PATIENCE_MS
    )
    assert.lengthOf(pids(), 2)
    assert.include(running.output(), "worker 1 has not answered for 30 seconds: it is killed")
    for (const tenant of ["a", "b", "c", "d", "e"]) {
      // Its partition may still be taken over: a 503 is asked again.
      const client = new Client(running.url, testKey(tenant), true, 60)
      const { status, text } = await client.call("/v1/events?sync=true", { body: event(1) })
      assert.strictEqual(status, 201, text)
    }
  } finally {
    await running.stop()
    rmSync(folder, { recursive: true, force: true })
  }
})
