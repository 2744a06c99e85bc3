/** Backup and restore of a cluster elsewhere, with keys that the configuration names. */
import { existsSync, readdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { Kafka, logLevel } from "kafkajs"
import { afterAll, assert, describe, inject, it } from "vitest"
import { begin, type Ended, endCommands } from "../cli/CommandRuns.ts"
import { Client } from "../support/Client.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import {
  ADMIN_TOKEN,
  freshFolder,
  type Started,
  start,
  TEST_SECRET,
  testKey
} from "../support/Program.ts"
import { signingKeyIn } from "../support/SigningKeyFile.ts"

const key = testKey("cluster")
const root = freshFolder("backup-cluster")
const backups = join(root, "backup")
const prefix = `backup${process.pid}`
const signingKey = signingKeyIn(root)

const environment = (more: Readonly<Record<string, string>> = {}): Record<string, string> => ({
  KAFKA_BROKERS: inject("bootstrap"),
  ALK_TOPIC_PREFIX: prefix,
  ALK_PARTITIONS: "2",
  ALK_REPLICATION: "1",
  ALK_SECRET: TEST_SECRET,
  ALK_SIGNING_KEY_FILE: signingKey,
  ALK_DATA_DIR: join(root, "data"),
  ...more
})

const ofService = () =>
  environment({
    ALK_ADMIN_TOKEN: ADMIN_TOKEN,
    ALK_BOOTSTRAP_KEYS: `${key}=acme:read+write`
  })

let running: Started | undefined
afterAll(async () => {
  endCommands()
  await running?.stop()
  rmSync(root, { recursive: true, force: true })
})

const alk = (
  variables: Readonly<Record<string, string>>,
  ...args: ReadonlyArray<string>
): Promise<Ended> => {
  const { HOME } = process.env
  return begin(args, { ...(HOME && { HOME }), LOG_LEVEL: "error", ...variables }).ended
}

const send = async (count: number): Promise<number> => {
  const { body } = await new Client(running!.url, key).call("/v1/events/batch?sync=true", {
    body: {
      events: Array.from({ length: count }, (_, index) => ({
        actor: { id: "alice", type: "human" },
        action: "document.read",
        resource: { id: `doc-${index}`, type: "document" },
        outcome: "success"
      }))
    }
  })
  assert.strictEqual(body.status, "committed", JSON.stringify(body))
  return body.last_sequence_number
}

/** All topics of the service are gone. */
const loseTopics = async (): Promise<void> => {
  const admin = new Kafka({
    brokers: [inject("bootstrap")],
    clientId: "by-hand",
    logLevel: logLevel.NOTHING
  }).admin()
  await admin.connect()
  const own = async () => (await admin.listTopics()).filter((name) => name.startsWith(prefix))
  await admin.deleteTopics({ topics: await own() })
  await eventuallyAsync("the topics are gone", own, ({ length }) => length === 0)
  await admin.disconnect()
}

describe("a backup of a cluster", () => {
  let last = 0

  it("leaves keys out where that is asked for, and says so", async () => {
    running = await start(ofService())
    last = await send(25)
    const { end, errors, output } = await alk(
      environment(),
      ...["backup", "-o", backups, "--no-keys", "--quiet"]
    )
    assert.strictEqual(end, 0, errors)
    assert.include(errors, "THE BACKUP HAS NO KEYS")
    assert.isFalse(JSON.parse(output).keys)
    assert.deepStrictEqual(readdirSync(join(backups, "keys")), [])
    await running.stop()
    running = undefined
  })

  it("is not written over records, nor by another secret or to other topics", async () => {
    const over = await alk(environment(), "restore", backups)
    assert.strictEqual(over.end, 1)
    assert.match(over.errors, new RegExp(`${prefix}\\.\\w+ holds records already`))
    const other = environment({ ALK_SECRET: "another-secret-that-is-long-enough-too" })
    const foreign = await alk(other, "restore", backups)
    assert.strictEqual(foreign.end, 1)
    assert.include(foreign.errors, "ALK_SECRET is not the one that the service had")
    const wider = await alk(environment({ ALK_PARTITIONS: "3" }), "restore", backups)
    assert.strictEqual(wider.end, 1)
    assert.include(wider.errors, "set ALK_PARTITIONS=2")
  })

  it("is not continued by a log that is another one", async () => {
    const others = environment({ ALK_TOPIC_PREFIX: `${prefix}other` })
    running = await start({ ...ofService(), ...others, ALK_DATA_DIR: join(root, "other") })
    const { end, errors } = await alk(others, "backup", "-o", backups)
    assert.strictEqual(end, 1)
    assert.include(errors, `is the backup of the service alk with topics ${prefix}.*`)
    await running.stop()
    running = undefined
  })

  it("is the log again once the topics are lost; the store that is left fits to it", async () => {
    await loseTopics()
    const { end, errors, output } = await alk(environment(), "restore", backups, "--json")
    assert.strictEqual(end, 0, errors)
    assert.isTrue(JSON.parse(output).restored)
    running = await start(ofService())
    assert.isTrue(existsSync(join(root, "data")))
    const api = new Client(running.url, key)
    const { body: verdict } = await api.call("/v1/verify")
    assert.strictEqual(verdict.status, "valid", JSON.stringify(verdict))
    assert.notInclude(running.output(), "set aside")
    assert.notInclude(running.output(), "rebuilding the sequencer's state")
    assert.strictEqual(await send(1), last + 1)
    const more = await alk(environment(), "backup", "-o", backups, "--no-keys", "--json")
    assert.strictEqual(more.end, 0, more.errors)
    assert.isFalse(JSON.parse(more.output).is_first)
  })
})
