/** The lock and one as Kafka's broker takes it, by POSIX on the whole file, exclude each other. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "vitest"
import { isHeldElsewhere, lockFile } from "../../src/adapters/FileLock.ts"

const folder = mkdtempSync(join(tmpdir(), "alk-file-lock-"))
const file = join(folder, ".lock")
writeFileSync(file, "")
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Takes the lock and keeps it until its input ends; says whether it got it. */
const PROGRAM = `
import fcntl, sys
file = open(sys.argv[1], "r+")
try:
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    print("got", flush=True)
    sys.stdin.read()
except OSError:
    print("refused", flush=True)
`

const other = async () => {
  const child = spawn("python3", ["-c", PROGRAM, file], { stdio: ["pipe", "pipe", "inherit"] })
  const [said] = await once(child.stdout, "data")
  const ended = once(child, "exit")
  return {
    said: String(said).trim(),
    end: async () => {
      child.stdin.end()
      await ended
    }
  }
}

describe("a locked file", () => {
  it("is refused to a broker", async () => {
    const held = lockFile(file)
    const refused = await other()
    assert.strictEqual(refused.said, "refused")
    await refused.end()
    held.close()
    const got = await other()
    assert.strictEqual(got.said, "got")
    await got.end()
    assert.strictEqual(readFileSync(file, "utf8"), "", "nothing is written to it")
  })

  it("is not got while a broker has it", async () => {
    const { end, said } = await other()
    assert.strictEqual(said, "got")
    let refusal: unknown
    try {
      lockFile(file).close()
    } catch (cause) {
      refusal = cause
    }
    assert.isTrue(isHeldElsewhere(refusal))
    await end()
    lockFile(file).close()
  })
})
