import { spawn } from "node:child_process"
import * as fs from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { onTestFinished } from "vitest"
import {
  endOrphan,
  endProcess,
  writeRecord
} from "../../../../src/adapters/embedded/broker/BrokerRecord.ts"
import { identityOf, ProcessIdentity } from "../../../../src/adapters/embedded/ProcessIdentity.ts"
import { eventually } from "../../../support/Eventually.ts"
import { temporaryFolder } from "../fixtures.ts"

const LOOP = "while :; do sleep 0.1; done"

const processOf = (script: string, ...args: ReadonlyArray<string>): ProcessIdentity => {
  const child = spawn("/bin/sh", ["-c", script, "sh", ...args], { stdio: "ignore" })
  onTestFinished(() => {
    child.kill("SIGKILL")
  })
  const identity = identityOf(child.pid ?? 0)
  assert(identity !== undefined)
  return identity
}

/** A process with the argument given, which stands for a broker or for somebody else. */
const processWith = (argument: string) => processOf(LOOP, argument)

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
    Effect.gen(function* () {
      const folder = temporaryFolder()
      const orphan = processWith("-Dalk.data.folder=/the/folder")
      writeRecord(folder, record(orphan))
      const lines: Array<string> = []
      yield* endOrphan(folder, "/the/folder", (line) => lines.push(line))
      assert.isFalse(runs(orphan))
      assert.include(lines.join("\n"), `process ${orphan.pid}`)
    })
  )

  it.live("leaves a process alone that got the number of a broker", () =>
    Effect.gen(function* () {
      const folder = temporaryFolder()
      const other = processWith("-Dalk.data.folder=/the/folder")
      writeRecord(folder, record(new ProcessIdentity({ pid: other.pid, startedAt: "earlier" })))
      yield* endOrphan(folder, "/the/folder", quiet)
      assert.isTrue(runs(other))
    })
  )

  it.live("leaves a process alone that is no broker of this folder", () =>
    Effect.gen(function* () {
      const folder = temporaryFolder()
      const other = processWith("-Dalk.data.folder=/the/folder/of/another")
      writeRecord(folder, record(other))
      yield* endOrphan(folder, "/the/folder", quiet)
      assert.isTrue(runs(other))
    })
  )

  it.live("leaves the broker of the original alone where the folder is a copy", () =>
    Effect.gen(function* () {
      const copy = temporaryFolder()
      const original = processWith("-Dalk.data.folder=/the/folder")
      writeRecord(copy, record(original))
      yield* endOrphan(copy, copy, quiet)
      assert.isTrue(runs(original))
    })
  )

  it.live("has nothing to do without a record, or with a damaged one", () =>
    Effect.gen(function* () {
      const folder = temporaryFolder()
      yield* endOrphan(folder, "/the/folder", assert.fail)
      for (const text of ["", "{", '{"process":{"pid":1}}', "[]"]) {
        fs.writeFileSync(join(folder, "broker.json"), text)
        yield* endOrphan(folder, "/the/folder", assert.fail)
      }
    })
  )
})

describe("endProcess", () => {
  it.live("kills a process that does not want to end", () =>
    Effect.gen(function* () {
      const ready = join(temporaryFolder(), "ready")
      const stubborn = processOf(`trap '' TERM; : > "$1"; ${LOOP}`, ready)
      yield* eventually(
        "the trap is set",
        Effect.sync(() => fs.existsSync(ready))
      )
      yield* endProcess(stubborn, 1)
      assert.isFalse(runs(stubborn))
    })
  )
})
