/** The internals of kafkajs that alk uses are those of one version, and all of them are listed. */
import { readdirSync, readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import {
  errorOfCode,
  isLeaderMoving,
  protocolErrorOf
} from "../../../../src/adapters/kafka/protocol/KafkaClient.ts"

const VERSION = "2.2.4"
const FOLDER = "src/adapters/kafka/protocol"

const require = createRequire(import.meta.url)

const filesBelow = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => join(folder, name))

/** `file of kafkajs` in `file of src`. */
const imports = (): ReadonlyArray<readonly [string, string]> =>
  filesBelow("src").flatMap((file) =>
    [...readFileSync(file, "utf8").matchAll(/"(kafkajs\/[^"]+)"/g)].map(
      ([, name]) => [name!, file] as const
    )
  )

describe("kafkajs", () => {
  it(`is version ${VERSION}, whose internals alk was written against`, () => {
    const { version } = require("kafkajs/package.json") as { readonly version: string }
    assert.strictEqual(
      version,
      VERSION,
      `alk uses internals of kafkajs ${VERSION}: compare those that ${FOLDER}/README.md lists with`
        + ` kafkajs ${version}, run what its last section names, then change the version here`
    )
  })

  it("has the internals that the README lists, and no others are imported", () => {
    const rows = readFileSync(join(FOLDER, "README.md"), "utf8").matchAll(
      /^\| `(kafkajs\/[^`]+)` \| (\S+) \|/gm
    )
    const listed = [...rows].map(([, name, file]) => `${name} in ${join(FOLDER, file!)}`)
    assert.sameMembers(
      imports().map(([name, file]) => `${name} in ${file}`),
      listed
    )
    for (const [name] of imports()) assert.doesNotThrow(() => require.resolve(name))
  })
})

describe("an error of a broker", () => {
  const wrapped = (code: number) =>
    Object.assign(new Error("retries exceeded"), { cause: errorOfCode(code) })

  it("is named as the protocol does, wherever it is wrapped", () => {
    const names = [-1, 1, 6, 90].map((code) => protocolErrorOf(wrapped(code)))
    assert.deepStrictEqual(names, [
      "UNKNOWN_SERVER_ERROR",
      "OFFSET_OUT_OF_RANGE",
      "NOT_LEADER_FOR_PARTITION",
      "PRODUCER_FENCED"
    ])
  })

  it("passes where the brokers don't agree on a leader yet", () => {
    assert.deepStrictEqual(
      [3, 5, 6, 74, 75].map((code) => isLeaderMoving(wrapped(code))),
      [true, true, true, true, true]
    )
    assert.isFalse([-1, 1, 90].map(wrapped).some(isLeaderMoving))
    assert.isFalse(isLeaderMoving(new Error("anything else")))
  })
})
