/** `npm start` as a user runs it, and every signal that may end it. */
import { execFileSync } from "node:child_process"
import { rmSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"
import { assert, describe, it } from "vitest"
import { freePort } from "../support/FreePort.ts"
import { freshFolder, start } from "../support/Program.ts"

/** Seconds until everything must be gone, the broker too. */
const GONE_SECONDS_MAX = 40

const processesOf = (folder: string): ReadonlyArray<string> =>
  execFileSync("ps", ["-eo", "pid,args"], { encoding: "utf8" })
    .split("\n")
    .filter((line) => line.includes(folder))

const isListening = async (url: string): Promise<boolean> =>
  fetch(`${url}/healthz`).then(
    () => true,
    () => false
  )

const withNpm = async (
  end: (npm: number) => void
): Promise<{ readonly left: ReadonlyArray<string>; readonly listening: boolean }> => {
  const folder = freshFolder("npm")
  try {
    const started = await start(
      { ALK_DATA_DIR: folder, ALK_KAFKA_PORT: String(await freePort()) },
      ["npm", "start"]
    )
    assert.isTrue(await isListening(started.url))
    assert.isAbove(processesOf(folder).length, 0)
    end(started.pid)
    await started.ended
    for (let left = GONE_SECONDS_MAX * 4; left > 0; left--) {
      await sleep(250)
      if (processesOf(folder).length === 0 && !(await isListening(started.url))) break
    }
    return { left: processesOf(folder), listening: await isListening(started.url) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const assertGone = async (end: (npm: number) => void): Promise<void> => {
  const { left, listening } = await withNpm(end)
  assert.deepStrictEqual(left, [])
  assert.isFalse(listening)
}

describe("npm start", () => {
  it("ends whole on SIGTERM to npm alone", () => assertGone((npm) => process.kill(npm, "SIGTERM")))
  it("ends whole on Ctrl-C, which reaches the group", () =>
    assertGone((npm) => process.kill(-npm, "SIGINT")))
  it("ends whole when npm is killed with -9", () =>
    assertGone((npm) => process.kill(npm, "SIGKILL")))
  it("leaves no broker behind when the whole group is killed with -9", () =>
    assertGone((npm) => process.kill(-npm, "SIGKILL")))
})
