/**
 * Where the secrets of a running program can be seen: in no output, whatever is wrong with them, and,
 * where they come from files, in no environment and no command line of its processes.
 */
import { execFile } from "node:child_process"
import { readdirSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, assert, describe, it } from "vitest"
import { event } from "../support/BlackBox.ts"
import { Client } from "../support/Client.ts"
import {
  ADMIN_TOKEN,
  freshFolder,
  type Started,
  start,
  TEST_SECRET,
  testKey
} from "../support/Program.ts"
import { inFiles } from "../support/SecretFiles.ts"

const execute = promisify(execFile)

const key = testKey("secrets")
const given = {
  ALK_SECRET: TEST_SECRET,
  ALK_ADMIN_TOKEN: ADMIN_TOKEN,
  ALK_BOOTSTRAP_KEYS: `${key}=secrets:read+write`
}
const folder = freshFolder("secrets")
const programs: Array<Started> = []
afterAll(async () => {
  for (const one of programs.toReversed()) await one.stop()
  rmSync(folder, { recursive: true, force: true })
})

const started = async (environment: Readonly<Record<string, string>>): Promise<Started> => {
  const one = await start(environment)
  programs.push(one)
  return one
}

/** What a file of a process holds; nothing of one that has ended. */
const ofProcess = (pid: number | string, name: string): string => {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "latin1")
  } catch {
    return ""
  }
}

const parentOf = (pid: string): number =>
  Number(
    ofProcess(pid, "stat")
      .replace(/^.*\) /s, "")
      .split(" ")[1]
  )

const allProcesses = (): ReadonlyArray<string> =>
  readdirSync("/proc").filter((name) => /^\d+$/.test(name))

/** A process and all that it has started. */
const familyOf = (pid: number): ReadonlyArray<number> => {
  const parents = new Map(allProcesses().map((one) => [Number(one), parentOf(one)]))
  const below = (one: number): ReadonlyArray<number> => [
    one,
    ...[...parents].filter(([, parent]) => parent === one).flatMap(([child]) => below(child))
  ]
  return below(pid)
}

/** Passwords that the program has made, and its secret if that was not given. */
const made = (): ReadonlyArray<string> => [
  ...(
    Object.values(
      JSON.parse(readFileSync(join(folder, "kafka/users.json"), "utf8"))
    ) as Array<string>
  ).filter((one) => one.length > 40),
  readFileSync(join(folder, "store.password"), "utf8").trim()
]

const assertShowsNone = (text: string, secrets: ReadonlyArray<string>, where: string): void => {
  for (const secret of secrets) assert.isFalse(text.includes(secret), `${where} shows a secret`)
}

const warningsOf = ({ output }: Started): ReadonlyArray<string> =>
  output()
    .split("\n")
    .filter((line) => line.includes('"level":"warn"'))

describe("a program with its secrets in files", () => {
  it("shows none of them, nor those that it makes, in what its processes show of themselves", async () => {
    // Arguments are seen by every user of the machine: those of the tool that formats the log too.
    const seen = new Set<string>()
    const watch = setInterval(() => {
      for (const pid of allProcesses()) seen.add(ofProcess(pid, "cmdline"))
    }, 50)
    const program = await started({
      ...inFiles(given),
      ALK_DATA_DIR: folder,
      ALK_ROLES: "api,sequencer,projection,store",
      ALK_WORKERS: "1"
    }).finally(() => clearInterval(watch))
    const api = new Client(program.url, key)
    const sync = { headers: { "x-service-sync": "true" } }
    assert.strictEqual((await api.batch([event(1)], sync)).status, 200)
    const secrets = [TEST_SECRET, ADMIN_TOKEN, key, ...made()]
    assert.isAtLeast(secrets.length, 7)
    const family = familyOf(program.pid)
    // The first process, a worker, the launcher of the broker, the broker.
    assert.isAtLeast(family.length, 4)
    for (const pid of family) {
      const name = ofProcess(pid, "cmdline").replaceAll("\0", " ").slice(0, 80)
      assertShowsNone(ofProcess(pid, "environ"), secrets, `the environment of ${name}`)
    }
    assert.isTrue([...seen].some((line) => line.includes("format.arguments")))
    assertShowsNone([...seen].join("\n"), secrets, "a command line")
    assertShowsNone(program.output(), secrets, "the output")
    assert.deepStrictEqual(warningsOf(program), [])
  })

  it("lets an administrator sign in at a terminal with the same file", async () => {
    const [program] = programs
    const files = inFiles({ ALK_ADMIN_TOKEN: ADMIN_TOKEN })
    const { PATH = "", HOME = "" } = process.env
    const alk = (more: Readonly<Record<string, string>>) =>
      execute(process.execPath, ["src/cli/alk.mjs", "tenants", "list"], {
        env: { PATH, HOME, ALK_URL: program!.url, ...more }
      })
    assert.include((await alk(files)).stdout, "secrets")
    const refused = await alk({ ...files, ALK_ADMIN_TOKEN: ADMIN_TOKEN }).then(
      ({ stdout }) => stdout,
      ({ stderr }: { readonly stderr: string }) => stderr
    )
    assert.match(refused, /ALK_ADMIN_TOKEN_FILE and ALK_ADMIN_TOKEN are both set/)
  })
})

describe("a program with its secrets in variables", () => {
  it("works, and warns once, by name, where SQL runs in it", async () => {
    const own = freshFolder("secrets-variables")
    const program = await start({ ...given, ALK_DATA_DIR: own, ALK_WORKERS: "1" })
    assert.strictEqual((await new Client(program.url, key).call("/v1/me")).status, 200)
    await program.stop()
    rmSync(own, { recursive: true, force: true })
    const warnings = warningsOf(program).filter((line) => line.includes("/proc/self/environ"))
    assert.lengthOf(warnings, 1)
    for (const name of Object.keys(given)) assert.include(warnings[0], `${name}_FILE`)
    assertShowsNone(program.output(), [TEST_SECRET, ADMIN_TOKEN, key], "the output")
  })
})

describe("a start with a wrong secret", () => {
  const WRONG = "wrong-secret-7f3a9c-that-nobody-may-see"
  /** Of another process on the embedded parts of the first program. */
  const beside = (): Record<string, string> => ({
    ...Object.fromEntries(
      readFileSync(join(folder, "processes.env"), "utf8")
        .trim()
        .split("\n")
        .map((line) => line.split("=") as [string, string])
    ),
    ...inFiles({ ALK_SECRET: TEST_SECRET }),
    ALK_ROLES: "api"
  })
  const without = (name: string): Record<string, string> =>
    Object.fromEntries(Object.entries(beside()).filter(([one]) => one !== `${name}_FILE`))

  const wrong: ReadonlyArray<readonly [string, () => Record<string, string>, RegExp]> = [
    ["ALK_SECRET", () => ({ ALK_SECRET: `${WRONG} spaced` }), /ALK_SECRET has a space/],
    [
      "ALK_ADMIN_TOKEN",
      () => ({ ALK_ADMIN_TOKEN: WRONG.slice(0, 23) }),
      /ALK_ADMIN_TOKEN has only/
    ],
    [
      "ALK_BOOTSTRAP_KEYS",
      () => ({ ALK_BOOTSTRAP_KEYS: `${WRONG}=acme:read` }),
      /ALK_BOOTSTRAP_KEYS/
    ],
    ["ALK_SECRET_FILE", () => ({ ALK_SECRET_FILE: WRONG }), /ALK_SECRET_FILE names a file/],
    [
      "KAFKA_SASL_PASSWORD",
      () => ({ ...without("KAFKA_SASL_PASSWORD"), KAFKA_SASL_PASSWORD: WRONG }),
      /Kafka/
    ],
    [
      "KAFKA_SASL_MECHANISM",
      () => ({
        ...without("KAFKA_SASL_PASSWORD"),
        KAFKA_SASL_PASSWORD: WRONG,
        KAFKA_SASL_MECHANISM: "plain"
      }),
      /Kafka/
    ],
    [
      "CLICKHOUSE_PASSWORD",
      () => ({ ...without("CLICKHOUSE_PASSWORD"), CLICKHOUSE_PASSWORD: WRONG }),
      /ClickHouse/
    ],
    ["another ALK_SECRET", () => ({ ...without("ALK_SECRET"), ALK_SECRET: WRONG }), /ALK_SECRET/]
  ]
  it.each(wrong)("(%s) ends and never shows it", async (name, environment, reason) => {
    const own = freshFolder("secrets-wrong")
    const ended = await start({ ALK_DATA_DIR: own, LOG_LEVEL: "debug", ...environment() }).then(
      async (program) => `started: ${await program.stop()}`,
      (error: Error) => error.message
    )
    rmSync(own, { recursive: true, force: true })
    assert.match(ended, /ended with 1 before it was ready/, name)
    assert.match(ended, reason)
    for (const hidden of [WRONG, WRONG.slice(0, 23), Buffer.from(WRONG).toString("base64")]) {
      assert.notInclude(ended, hidden)
    }
  })
})
