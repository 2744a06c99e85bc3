import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import { join } from "node:path"
import { onTestFinished } from "vitest"
import { endOrphan, writeRecord } from "../../../src/adapters/embedded/BrokerRecord.ts"
import { identityOf, ProcessIdentity } from "../../../src/adapters/embedded/ProcessIdentity.ts"
import { temporaryFolder } from "./fixtures.ts"

/** A process with the arguments given, which stands for a broker or for somebody else. */
const processWith = (...args: ReadonlyArray<string>): ProcessIdentity => {
  const script = "while :; do sleep 1; done"
  const child = spawn("/bin/sh", ["-c", script, "sh", ...args], { stdio: "ignore" })
  onTestFinished(() => {
    child.kill("SIGKILL")
  })
  const identity = identityOf(child.pid ?? 0)
  assert(identity !== undefined)
  return identity
}

const record = (process: ProcessIdentity) => ({
  process,
  dataFolder: "/the/folder",
  port: 1,
  since: "2026-01-01T00:00:00.000Z"
})

const runs = ({ pid }: ProcessIdentity) => identityOf(pid) !== undefined
const quiet = () => undefined

describe("endOrphan", () => {
  it.live("ends the broker of this folder that an earlier start left", () =>
    Effect.gen(function*() {
      const folder = temporaryFolder()
      const orphan = processWith("-Dalk.data.folder=/the/folder")
      writeRecord(folder, record(orphan))
      const lines: Array<string> = []
      yield* endOrphan(folder, (line) => lines.push(line))
      assert.isFalse(runs(orphan))
      assert.include(lines.join("\n"), `process ${orphan.pid}`)
    }))

  it.live("leaves a process alone that got the number of a broker", () =>
    Effect.gen(function*() {
      const folder = temporaryFolder()
      const other = processWith("-Dalk.data.folder=/the/folder")
      writeRecord(folder, record(new ProcessIdentity({ pid: other.pid, startedAt: "earlier" })))
      yield* endOrphan(folder, quiet)
      assert.isTrue(runs(other))
    }))

  it.live("leaves a process alone that is no broker of this folder", () =>
    Effect.gen(function*() {
      const folder = temporaryFolder()
      const other = processWith("-Dalk.data.folder=/the/folder/of/another")
      writeRecord(folder, record(other))
      yield* endOrphan(folder, quiet)
      assert.isTrue(runs(other))
    }))

  it.live("has nothing to do without a record, or with a damaged one", () =>
    Effect.gen(function*() {
      const folder = temporaryFolder()
      yield* endOrphan(folder, assert.fail)
      for (const text of ["", "{", "{\"process\":{\"pid\":1}}", "[]"]) {
        fs.writeFileSync(join(folder, "broker.json"), text)
        yield* endOrphan(folder, assert.fail)
      }
    }))
})
