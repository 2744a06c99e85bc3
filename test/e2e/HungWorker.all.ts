/** A worker that doesn't run any more and doesn't end either: another one takes its place. */
import { rmSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"
import { assert, it } from "vitest"
import { event } from "../support/BlackBox.ts"
import { Client, type Json } from "../support/Client.ts"
import { freePort } from "../support/FreePort.ts"
import { freshFolder, start, testKey } from "../support/Program.ts"

it("is killed and started again, and its partition goes on", async () => {
  const folder = freshFolder("hung-worker")
  const running = await start({
    ALK_WORKERS: "1",
    ALK_PARTITIONS: "2",
    ALK_DATA_DIR: folder,
    ALK_KAFKA_PORT: String(await freePort()),
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
    for (let left = 900; left > 0 && pids().length < 2; left--) await sleep(100)
    assert.lengthOf(pids(), 2)
    assert.include(running.output(), "worker 1 has not answered for 30 seconds: it is killed")
    for (const tenant of ["a", "b", "c", "d", "e"]) {
      const client = new Client(running.url, testKey(tenant))
      const { status, text } = await client.call("/v1/events?sync=true", { body: event(1) })
      assert.strictEqual(status, 201, text)
    }
  } finally {
    await running.stop()
    rmSync(folder, { recursive: true, force: true })
  }
})
