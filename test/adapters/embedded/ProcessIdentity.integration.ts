import { spawn } from "node:child_process"
import { once } from "node:events"
import { assert, describe, it, onTestFinished } from "vitest"
import {
  hasArgument,
  identityOf,
  isRunning,
  ProcessIdentity,
  signal
} from "../../../src/adapters/embedded/ProcessIdentity.ts"

const sleeper = () => {
  const child = spawn("/bin/sleep", ["60"], { stdio: "ignore" })
  onTestFinished(() => {
    child.kill("SIGKILL")
  })
  return { child, pid: child.pid ?? 0 }
}

describe("ProcessIdentity", () => {
  it("stays the same while the process runs and ends with it", async () => {
    const { child, pid } = sleeper()
    const identity = identityOf(pid)
    assert(identity !== undefined)
    assert.deepStrictEqual(identityOf(pid), identity)
    assert.isTrue(isRunning(identity))
    child.kill("SIGKILL")
    await once(child, "exit")
    assert.isFalse(isRunning(identity))
    assert.isUndefined(identityOf(pid))
  })

  it("tells a process from another one with the same number", () => {
    const { pid } = sleeper()
    const earlier = new ProcessIdentity({ pid, startedAt: "an earlier start" })
    assert.isFalse(isRunning(earlier))
    assert.isFalse(signal(earlier, "SIGKILL"))
    assert.isDefined(identityOf(pid))
  })

  it("knows whole arguments only", () => {
    const { pid } = sleeper()
    assert.isTrue(hasArgument(pid, "60"))
    assert.isFalse(hasArgument(pid, "6"))
  })
})
