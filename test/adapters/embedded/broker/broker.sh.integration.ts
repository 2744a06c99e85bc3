import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { assert, describe, it, onTestFinished } from "vitest"
import { identityOf } from "../../../../src/adapters/embedded/ProcessIdentity.ts"

const launcher = fileURLToPath(
  new URL("../../../../src/adapters/embedded/broker/broker.sh", import.meta.url)
)

/** Launches a shell script in the place of the broker; ends when that script says it is ready. */
const launch = async (script: string): Promise<{ child: ChildProcess; pid: number }> => {
  const child = spawn("/bin/sh", [launcher, "1", "/bin/sh", "-c", `${script}`], {
    stdio: ["pipe", "pipe", "pipe"]
  })
  onTestFinished(() => {
    child.stdin.destroy()
  })
  const [line] = await once(createInterface({ input: child.stdout }), "line")
  if (script.includes("echo ready")) await once(child.stderr, "data")
  return { child, pid: Number(line) }
}

const LOOP = "echo ready; while :; do sleep 0.1; done"

describe("broker.sh", () => {
  it("ends with the exit code of the broker", async () => {
    const { child } = await launch("exit 7")
    assert.deepStrictEqual(await once(child, "exit"), [7, null])
  })

  it("reports the signal that ended the broker", async () => {
    const { child, pid } = await launch(LOOP)
    process.kill(pid, "SIGKILL")
    assert.deepStrictEqual(await once(child, "exit"), [137, null])
  })

  it("asks the broker to end when its standard input closes", async () => {
    const { child } = await launch(`trap 'exit 5' TERM; ${LOOP}`)
    child.stdin?.end()
    assert.deepStrictEqual(await once(child, "exit"), [5, null])
  })

  it("kills a broker that does not want to end", async () => {
    const { child, pid } = await launch(`trap '' TERM; ${LOOP}`)
    child.stdin?.end()
    assert.deepStrictEqual(await once(child, "exit"), [137, null])
    assert.isUndefined(identityOf(pid))
  })

  it("passes a signal on and waits for the broker", async () => {
    const { child, pid } = await launch(`trap 'sleep 0.3; exit 5' TERM; ${LOOP}`)
    child.kill("SIGTERM")
    assert.deepStrictEqual(await once(child, "exit"), [5, null])
    assert.isUndefined(identityOf(pid))
  })
})
