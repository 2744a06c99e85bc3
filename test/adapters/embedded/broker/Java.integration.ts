import * as fs from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { afterEach, vi } from "vitest"
import { findJava } from "../../../../src/adapters/embedded/broker/Java.ts"
import { temporaryFolder } from "../fixtures.ts"

describe("findJava", () => {
  afterEach(() => {
    vi.unstubAllEnvs()
  })

  const javaThatSays = (line: string) => {
    const home = temporaryFolder()
    fs.mkdirSync(join(home, "bin"))
    fs.writeFileSync(join(home, "bin", "java"), `#!/bin/sh\necho '${line}' >&2\n`, { mode: 0o755 })
    vi.stubEnv("JAVA_HOME", home)
    return join(home, "bin", "java")
  }

  it.live("prefers JAVA_HOME over the PATH", () =>
    Effect.gen(function* () {
      const java = javaThatSays('openjdk version "21.0.1" 2023-10-17')
      assert.strictEqual(yield* findJava, java)
      vi.stubEnv("JAVA_HOME", "")
      assert.strictEqual(yield* findJava, "java")
    })
  )

  it.live.each(['java version "1.8.0_292"', 'openjdk version "11.0.2" 2019-01-15', "hello"])(
    "refuses %s in one line",
    (line) =>
      Effect.gen(function* () {
        const java = javaThatSays(line)
        const { message } = yield* Effect.flip(findJava)
        assert.include(message, java)
        assert.include(message, "install Java 17")
        assert.notInclude(message, "\n")
      })
  )

  it.live("says in one line that there is none", () =>
    Effect.gen(function* () {
      vi.stubEnv("JAVA_HOME", "")
      vi.stubEnv("PATH", temporaryFolder())
      const { message } = yield* Effect.flip(findJava)
      assert.include(message, "Java was not found")
      vi.stubEnv("JAVA_HOME", "/nowhere")
      const wrongHome = yield* Effect.flip(findJava)
      assert.include(wrongHome.message, "JAVA_HOME is /nowhere")
    })
  )
})
