/** Secrets from files: which are read, what is said of those that can't be, and what is never said. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Redacted, Result } from "effect"
import { configHelp } from "../../src/config/ConfigHelp.ts"
import { parseConfig } from "../../src/config/ParseConfig.ts"
import { fileNameOf, readSecretFiles, secretNames } from "../../src/config/SecretFiles.ts"

const folder = mkdtempSync(join(tmpdir(), "alk-secret-files-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const file = (name: string, content: string, mode = 0o600): string => {
  const path = join(folder, name)
  writeFileSync(path, content)
  chmodSync(path, mode)
  return path
}

const surroundings = {
  workingDirectory: folder,
  homeDirectory: "/home/you",
  terminal: false,
  cores: 2,
  platform: "linux"
}
const configOf = (environment: Readonly<Record<string, string>>) =>
  parseConfig(environment, surroundings, readSecretFiles(environment, folder))

const problemsOf = (environment: Readonly<Record<string, string>>): ReadonlyArray<string> => {
  const parsed = configOf(environment)
  assert(Result.isFailure(parsed), "the environment was accepted")
  return parsed.failure.problems
}

const KEY = `alk_live_${"A1b2".repeat(8)}`
const values: Readonly<Record<string, string>> = {
  ALK_SECRET: "0123456789abcdef0123456789abcdef",
  ALK_ADMIN_TOKEN: "an-admin-token-of-24-char",
  ALK_BOOTSTRAP_KEYS: `${KEY}=acme:read`,
  KAFKA_SASL_PASSWORD: " kafka password ",
  CLICKHOUSE_PASSWORD: "store password"
}
const places = {
  KAFKA_BROKERS: "kafka-1:9092",
  KAFKA_SASL_MECHANISM: "scram-sha-512",
  KAFKA_SASL_USERNAME: "alk",
  CLICKHOUSE_URL: "https://clickhouse:8443"
}

describe("a secret", () => {
  it("is any setting whose value is not shown, each of them tested here", () => {
    assert.sameMembers([...secretNames], Object.keys(values))
    const help = configHelp()
    for (const name of secretNames) assert.include(help, `or in a file: ${fileNameOf(name)}`)
  })

  it("comes from the file that is named, without the line break at its end", () => {
    const named = Object.fromEntries(
      Object.entries(values).map(([name, value]) => {
        file(name, `${value}\n`)
        return [fileNameOf(name), name]
      })
    )
    const { adminToken, bootstrapKeys, clickhouse, kafka, secret, secrets } = Result.getOrThrow(
      configOf({ ...places, ...named })
    )
    assert(kafka._tag === "External" && clickhouse._tag === "External")
    const read = [
      secret,
      adminToken,
      bootstrapKeys[0]?.key,
      kafka.sasl?.password,
      clickhouse.password
    ]
    assert.deepStrictEqual(
      read.map((one) => one && Redacted.value(one)),
      [
        values["ALK_SECRET"],
        values["ALK_ADMIN_TOKEN"],
        KEY,
        values["KAFKA_SASL_PASSWORD"],
        values["CLICKHOUSE_PASSWORD"]
      ]
    )
    assert.deepStrictEqual(secrets, { variables: {}, openFiles: [] })
  })

  it("that is a variable still counts, and is told apart from one of a file", () => {
    const { secrets } = Result.getOrThrow(
      configOf({ ALK_SECRET: values["ALK_SECRET"]!, ALK_ADMIN_TOKEN_FILE: "ALK_ADMIN_TOKEN" })
    )
    assert.deepStrictEqual(Object.keys(secrets.variables), ["ALK_SECRET"])
  })

  it("of a file that every user of the machine may read is named", () => {
    file("open", values["ALK_SECRET"]!, 0o644)
    const { secrets } = Result.getOrThrow(configOf({ ALK_SECRET_FILE: "open" }))
    assert.deepStrictEqual(secrets.openFiles, ["ALK_SECRET_FILE"])
  })
})

describe("a file of a secret that can't be used", () => {
  const secret = values["ALK_SECRET"]!
  const refused: ReadonlyArray<readonly [string, Readonly<Record<string, string>>, RegExp]> = [
    [
      "is not there",
      { ALK_SECRET_FILE: "missing" },
      /^ALK_SECRET_FILE names a file that can't be read \(ENOENT\); name one that is there/
    ],
    [
      "is the secret itself, by mistake",
      { ALK_SECRET_FILE: secret },
      /^ALK_SECRET_FILE names a file that can't be read/
    ],
    ["is a folder", { ALK_SECRET_FILE: "." }, /^ALK_SECRET_FILE names .* \(EISDIR\)/],
    ["is empty", { ALK_SECRET_FILE: file("empty", "\n") }, /names an empty file: write the secret/],
    [
      "is too large",
      { ALK_BOOTSTRAP_KEYS_FILE: file("large", "k".repeat(300_000)) },
      /^ALK_BOOTSTRAP_KEYS_FILE names a file of 300000 bytes/
    ],
    [
      "is named beside its variable",
      { ALK_SECRET_FILE: file("both", secret), ALK_SECRET: secret },
      /^ALK_SECRET_FILE and ALK_SECRET are both set: unset one of them$/
    ],
    [
      "holds what is no such secret",
      { ALK_ADMIN_TOKEN_FILE: file("short", "too short") },
      /^ALK_ADMIN_TOKEN has a space .*\(its value is not shown\)/
    ],
    [
      "is missing in a cluster",
      { KAFKA_BROKERS: "h:1", ALK_SECRET_FILE: "missing" },
      /^ALK_SECRET_FILE names a file that can't be read/
    ],
    ["is misspelled", { ALK_SECRET_FIEL: "both" }, /did you mean ALK_SECRET_FILE\?$/],
    [
      "is misspelled without the prefix",
      { CLICKHOUSE_PASWORD_FILE: "both" },
      /did you mean CLICKHOUSE_PASSWORD_FILE\?/
    ]
  ]
  it.each(refused)("%s: one line says so, without value and path", (_, environment, expected) => {
    const problems = problemsOf(environment)
    assert.lengthOf(problems, 1, problems.join("\n"))
    assert.match(problems[0]!, expected)
    for (const hidden of [secret, folder, "too short"]) assert.notInclude(problems[0]!, hidden)
  })
})
