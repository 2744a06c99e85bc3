/** `npm start` as a user runs it, and every signal that may end it. */
import { execFileSync } from "node:child_process"
import { rmSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { eventuallyAsync } from "../support/Eventually.ts"
import { freePort } from "../support/FreePort.ts"
import { freshFolder, start } from "../support/Program.ts"

/** Milliseconds: what is on the way is answered, and the broker stops in its own time. */
const PATIENCE_MS = 120_000

const processesOf = (folder: string): ReadonlyArray<string> =>
  execFileSync("ps", ["-eo", "pid,args"], { encoding: "utf8" })
    .split("\n")
    .filter((line) => line.includes(folder))

const isListening = async (url: string): Promise<boolean> =>
  fetch(`${url}/healthz`).then(
    () => true,
    () => false
  )

const assertGone = async (end: (npm: number) => void): Promise<void> => {
  const folder = freshFolder("npm")
  try {
    // Nobody else listens there when it is gone.
    const port = String(await freePort())
    const started = await start({ ALK_DATA_DIR: folder, PORT: port }, ["npm", "start"])
    assert.isTrue(await isListening(started.url))
    assert.isAbove(processesOf(folder).length, 0)
    end(started.pid)
    await started.ended
    await eventuallyAsync(
      "everything is gone, the broker too",
      async () => ({ left: processesOf(folder), listening: await isListening(started.url) }),
      ({ left, listening }) => left.length === 0 && !listening,
      PATIENCE_MS
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
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
