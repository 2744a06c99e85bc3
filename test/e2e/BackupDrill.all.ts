/**
 * Everything lost but the backup: the program under a small load, backups of it, kill -9, a new folder,
 * and a check against what was kept outside, by programs that share no code with it.
 */
import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { zstdCompressSync } from "node:zlib"
import { Kafka, logLevel } from "kafkajs"
import { afterAll, assert, describe, it } from "vitest"
import { verifierFiles } from "../../src/adapters/esbuild/PackVerifiersBundle.ts"
import type { BackupHead, BackupPart } from "../../src/domain/backup/BackupManifest.ts"
import { segmentName } from "../../src/domain/backup/BackupPlan.ts"
import { SegmentWriter } from "../../src/domain/backup/BackupSegment.ts"
import { makeCheckpoint } from "../../src/domain/chain/Checkpoint.ts"
import { Frontier } from "../../src/domain/chain/MerkleTree.ts"
import { sha256Hex } from "../../src/domain/Identifiers.ts"
import { RecordMac } from "../../src/domain/records/RecordMac.ts"
import { BackupFolder } from "../../src/exports/backup/BackupFolder.ts"
import { begin, type Ended, endCommands } from "../cli/CommandRuns.ts"
import { Client } from "../support/Client.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { freshFolder, type Started, start, testKey } from "../support/Program.ts"
import { checkpointSigner } from "../support/Signer.ts"

const key = testKey("drill")
const root = freshFolder("drill")
const backups = join(root, "backup")
const witness = join(root, "witness")
const keptFile = join(witness, "events.ndjson")

/** Milliseconds: every look is a program that starts. */
const PATIENCE_MS = 240_000

const environment = (data: string): Record<string, string> => ({
  ALK_DATA_DIR: join(root, data),
  ALK_KAFKA_PORT: "0",
  ALK_PARTITIONS: "2",
  ALK_BOOTSTRAP_KEYS: `${key}=acme:read+write`
})

let running: Started | undefined
afterAll(async () => {
  endCommands()
  await running?.stop()
  rmSync(root, { recursive: true, force: true })
})

const eventsOf = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => ({
    id: `e-${from + index}`,
    actor: { id: "alice", type: "human" },
    action: "document.read",
    resource: { id: `doc-${from + index}`, type: "document" },
    outcome: "success"
  }))

/** Numbers [from, to] of the tenant's chain, waited for. */
const record = async (api: Client, from: number, to: number): Promise<void> => {
  const { body } = await api.call("/v1/events/batch?sync=true", {
    body: { events: eventsOf(from, to) }
  })
  assert.strictEqual(body.status, "committed", JSON.stringify(body))
}

const alk = async (
  variables: Readonly<Record<string, string>>,
  ...args: ReadonlyArray<string>
): Promise<Ended> => {
  const { HOME, JAVA_HOME } = process.env
  const own = { ...(HOME && { HOME }), ...(JAVA_HOME && { JAVA_HOME }), LOG_LEVEL: "error" }
  return begin(args, { ...own, ...variables }).ended
}

const manifest = () => JSON.parse(readFileSync(join(backups, "manifest.json"), "utf8"))

const filesOf = (topics: RegExp): ReadonlyArray<string> =>
  manifest()
    .parts.flatMap(({ segments }: any) => segments.map(({ file }: any) => file))
    .filter((file: string) => topics.test(file))

const reach = (tenant: string): number =>
  manifest().heads.find(
    (head: { tenant_id: string; chain: string }) =>
      head.tenant_id === tenant && head.chain === "events"
  )?.sequence_number

/** Sends events one by one, in the background, until it is stopped; the last number acknowledged. */
const load = (api: Client, from: number) => {
  let number = from - 1
  let isStopped = false
  const running = (async () => {
    while (!isStopped) {
      await record(api, number + 1, number + 1)
      number += 1
    }
  })()
  return {
    last: () => number,
    stop: async (): Promise<number> => {
      isStopped = true
      await running
      return number
    }
  }
}

/** Keeps the newest signed checkpoint as soon as it covers so many events; its note. */
const keep = async (url: string, size: number): Promise<string> => {
  const last = await eventuallyAsync(
    `a checkpoint of ${size} events is kept`,
    async () => {
      const variables = { ALK_URL: url, ALK_API_KEY: key }
      const { end, errors } = await alk(variables, "chain", "keep", witness, "--json")
      assert.strictEqual(end, 0, errors)
      return keptLines().at(-1)
    },
    (line) => line !== undefined && line.tree_size >= size,
    PATIENCE_MS
  )
  return last!.note
}

const keptLines = (): ReadonlyArray<{ readonly tree_size: number; readonly note: string }> =>
  existsSync(keptFile)
    ? readFileSync(keptFile, "utf8")
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line))
    : []

/** Files without a record for the next offsets of what no chain authenticates; their paths. */
const plantEmpty = (): ReadonlyArray<string> => {
  const bytes = zstdCompressSync(new SegmentWriter().finish())
  const parts: ReadonlyArray<BackupPart> = manifest().parts
  return parts
    .filter(({ topic }) => /^(?:checkpoints|receipts|quarantine|commands)$/.test(topic))
    .flatMap(({ partition, to, topic }) =>
      Array.from({ length: 60 }, (_, index) => {
        const from = to + index
        const place = { topic, partition, from, to: from + 1, sha256: sha256Hex(bytes) }
        const file = `segments/${segmentName(place)}`
        writeFileSync(join(backups, file), bytes)
        return file
      })
    )
}

/** A client that may write what the program may. */
const clientOf = ({ kafka }: Started, data: string): Kafka => {
  const users = JSON.parse(readFileSync(join(data, "kafka/users.json"), "utf8"))
  return new Kafka({
    brokers: [kafka],
    clientId: "by-hand",
    logLevel: logLevel.NOTHING,
    sasl: { mechanism: "scram-sha-256", username: "alk", password: users.alk }
  })
}

/** A record on each partition that says that it is beyond every cut; their offsets by topic. */
const forgeBeyond = async (started: Started, data: string) => {
  const { serviceName, signer } = checkpointSigner
  const tree = Frontier.empty()
  for (let leaf = 1; leaf <= 9_999; leaf++) tree.append(sha256Hex(`another event ${leaf}`))
  const time = "2026-11-25T12:00:00.000000Z"
  const checkpoint = makeCheckpoint(signer, serviceName, "acme", tree, time)
  const producer = clientOf(started, data).producer()
  await producer.connect()
  const timestamp = String(Date.now() + 600_000)
  const answer = { key: "acme", value: "{}", headers: { "alk-command": "999999" }, timestamp }
  const signed = { key: "acme", value: JSON.stringify(checkpoint), timestamp }
  const written = await producer.sendBatch({
    topicMessages: Object.entries({
      receipts: answer,
      quarantine: answer,
      checkpoints: signed
    }).map(([topic, record]) => ({
      topic: `alk.${topic}`,
      messages: [0, 1].map((partition) => ({ ...record, partition }))
    }))
  })
  await producer.disconnect()
  return written.map(({ baseOffset, partition, topicName }) => ({
    topic: topicName.slice("alk.".length),
    partition,
    offset: Number(baseOffset)
  }))
}

/** A transaction on alk.receipts that is open until it is released, written as the program may. */
const openTransaction = async (started: Started, data: string, partition: number) => {
  const producer = clientOf(started, data).producer({
    transactionalId: "by-hand",
    transactionTimeout: 20_000,
    maxInFlightRequests: 1
  })
  await producer.connect()
  const transaction = await producer.transaction()
  const messages = [{ key: "open", value: "{}", partition }]
  await transaction.send({ topic: "alk.receipts", messages })
  return async () => {
    await transaction.abort()
    await producer.disconnect()
  }
}

describe("a drill", () => {
  let variables: Record<string, string>
  let note = ""
  let acknowledged = 0
  let backedUp = 0
  let waiting = 0
  let firstReceipt: unknown

  it("backs up a service that runs, and again only what is new, under load", async () => {
    variables = environment("data")
    running = await start(variables)
    const api = new Client(running.url, key)
    await record(api, 1, 30)
    const first = await alk(variables, "backup", "-o", backups, "--json")
    assert.strictEqual(first.end, 0, first.errors)
    assert.isTrue(JSON.parse(first.output).is_first)
    assert.strictEqual(reach("acme"), 30)
    assert.include(first.errors, "who reads it can act as the service")
    assert.strictEqual(statSync(join(backups, "keys/secret")).mode & 0o777, 0o600)
    const once = await api.call("/v1/events?sync=true", {
      body: { ...eventsOf(31, 31)[0], id: undefined },
      headers: { "idempotency-key": "once" }
    })
    firstReceipt = once.body.receipt_id
    note = await keep(running.url, 31)
    const files = filesOf(/events|receipts/)
    const planted = plantEmpty()
    const sending = load(api, 32)
    const second = await alk(variables, "backup", "-o", backups, "--json")
    assert.strictEqual(second.end, 0, second.errors)
    assert.isFalse(JSON.parse(second.output).is_first)
    const at = await sending.stop()
    const named = new Set(filesOf(/./))
    assert.deepStrictEqual(
      planted.filter((file) => named.has(file) || existsSync(join(backups, file))),
      []
    )
    backedUp = reach("acme")
    assert.isAtLeast(backedUp, 31)
    assert.isAtMost(backedUp, at)
    for (const file of files) assert.isTrue(existsSync(join(backups, file)), `${file} stays`)
    acknowledged = at + 20
    await record(api, at + 1, acknowledged)
    await keep(running.url, acknowledged)
  })

  it("goes on where a run was killed", async () => {
    const folder = join(root, "killed")
    const { url } = running!
    await new Client(url, "").call("/readyz")
    // The backup waits for this transaction after it has written partition 0.
    const release = await openTransaction(running!, variables["ALK_DATA_DIR"]!, 1)
    const { HOME, PATH } = process.env
    const command = ["src/main.ts", "backup", "-o", folder, "--quiet"]
    const killed = spawn(process.execPath, command, { env: { HOME, PATH, ...variables } })
    const ended = once(killed, "exit")
    const segments = join(folder, "segments")
    const left = (): ReadonlyArray<string> =>
      existsSync(segments)
        ? readdirSync(segments)
            .filter((file) => /^(?:events|receipts)-0-.*\.mac$/.test(file))
            .map((file) => file.slice(0, -".mac".length))
        : []
    const inode = (file: string) => statSync(join(segments, file)).ino
    await eventuallyAsync(
      "it has written what is before the transaction",
      () => {
        assert.strictEqual(killed.exitCode, null, "the backup waits")
        return left()
      },
      (files) => files.some((file) => file.startsWith("receipts")),
      PATIENCE_MS
    )
    killed.kill("SIGKILL")
    await ended
    assert.isFalse(existsSync(join(folder, "manifest.json")))
    const files = left().map((file) => [file, inode(file)] as const)
    await release()
    const again = await alk(variables, "backup", "-o", folder, "--json")
    assert.strictEqual(again.end, 0, again.errors)
    const { parts } = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8"))
    const named = parts.flatMap((part: any) => part.segments.map((one: any) => one.file)).sort()
    for (const [file, before] of files) {
      assert.include(named, `segments/${file}`)
      assert.strictEqual(inode(file), before, `${file} is not written again`)
    }
    assert.deepStrictEqual(
      readdirSync(segments)
        .map((file) => `segments/${file}`)
        .sort(),
      named
    )
    const checked = await alk(variables, "restore", folder, "--check", "--json")
    assert.strictEqual(checked.end, 0, checked.errors)
    assert.isFalse(JSON.parse(checked.output).restored)
  })

  it("goes on behind records that others have forged", async () => {
    const folder = join(root, "behind-forged")
    const forged = await forgeBeyond(running!, variables["ALK_DATA_DIR"]!)
    const taken = await alk(variables, "backup", "-o", folder, "--json")
    assert.strictEqual(taken.end, 0, taken.errors)
    const { parts } = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8"))
    assert.lengthOf(forged, 6)
    for (const { offset, ...place } of forged) {
      const part = parts.find(
        (one: any) => one.topic === place.topic && one.partition === place.partition
      )
      assert.isAbove(part.to, offset, JSON.stringify(place))
    }
    const checked = await alk(variables, "restore", folder, "--check", "--json")
    assert.strictEqual(checked.end, 0, checked.errors)
  })

  it("loses everything but the backup, and says exactly what is missing", async () => {
    await running!.kill()
    running = undefined
    // The broker notices a moment later that its program is gone.
    rmSync(variables["ALK_DATA_DIR"]!, { recursive: true, maxRetries: 100, retryDelay: 100 })
    variables = environment("restored")
    const args = ["restore", backups, "--checkpoint", keptFile, "--json"]
    const { end, errors, output } = await alk(variables, ...args)
    assert.strictEqual(end, 0, errors)
    const report = JSON.parse(output)
    assert.isTrue(report.restored)
    assert.isAbove(report.checkpoints_checked, 0)
    waiting = report.waiting.find((one: any) => one.tenant_id === "acme")?.commands ?? 0
    const [gap, ...others] = report.gaps
    assert.deepStrictEqual(others, [])
    assert.deepInclude(gap, {
      tenant_id: "acme",
      chain: "events",
      reaches: backedUp,
      kept: acknowledged,
      missing: acknowledged - backedUp,
      verdict: "consistent"
    })
    assert.include(gap.compared, 31)
  })

  it("goes on with the next number, and knows what was sent before", async () => {
    running = await start(variables)
    const api = new Client(running.url, key)
    const { body: again } = await api.call("/v1/events/batch?sync=true", {
      body: { events: eventsOf(5, 5) }
    })
    assert.strictEqual(again.duplicates[0].sequence_number, 5, JSON.stringify(again))
    const { body: repeated } = await api.call("/v1/events?sync=true", {
      body: { ...eventsOf(31, 31)[0], id: undefined },
      headers: { "idempotency-key": "once" }
    })
    assert.strictEqual(repeated.receipt_id, firstReceipt)
    const { body: next } = await api.call("/v1/events?sync=true", {
      body: { ...eventsOf(0, 0)[0], id: "after" }
    })
    // Each command of the load has one event.
    assert.strictEqual(next.sequence_number, backedUp + waiting + 1, JSON.stringify(next))
    const { body: verdict } = await api.call("/v1/verify")
    assert.strictEqual(verdict.status, "valid", JSON.stringify(verdict))
  })

  it("is what was signed, by a verifier and a key that the service did not supply", async () => {
    const pack = join(root, "pack.zip")
    const exported = await alk(
      { ALK_URL: running!.url, ALK_API_KEY: key },
      ...["export", "pack", "--no-pdf", "-o", pack]
    )
    assert.strictEqual(exported.end, 0, exported.errors)
    const kept = join(root, "kept.txt")
    writeFileSync(kept, note)
    const [vkey] = JSON.parse(readFileSync(join(witness, "keys.json"), "utf8"))
    const ownVerifier = join(root, "verify.mjs")
    writeFileSync(ownVerifier, (await verifierFiles()).program)
    for (const [program, file] of [
      ["node", ownVerifier],
      ["python3", "src/exports/verifiers/verify.py"]
    ] as const) {
      const args = [file, pack, "--json", "--public-key", vkey, "--checkpoint", kept]
      const answer = JSON.parse(execFileSync(program, args).toString())
      assert.strictEqual(answer.verdict, "authentic", `${program}: ${JSON.stringify(answer)}`)
    }
  })

  it("refuses a folder that holds something, and says which", async () => {
    const { end, errors } = await alk(variables, "restore", backups)
    assert.strictEqual(end, 1)
    assert.match(errors, /the data folder .*restored is not empty \(it holds \S+\)/)
  })

  it("refuses a backup in which a byte was flipped, and names the file", async () => {
    const [file] = filesOf(/events/)
    const path = join(backups, file!)
    const whole = readFileSync(path)
    const flipped = Buffer.from(whole)
    flipped[flipped.length >> 1]! ^= 1
    writeFileSync(path, flipped)
    const fresh = environment("refused")
    const { end, errors } = await alk(fresh, "restore", backups)
    assert.strictEqual(end, 1)
    assert.include(errors, `${file} is damaged`)
    assert.isFalse(existsSync(fresh["ALK_DATA_DIR"]!))
    writeFileSync(path, whole)
  })

  it("refuses a backup that was edited, with its own secret too", async () => {
    const edited = join(root, "edited")
    cpSync(backups, edited, { recursive: true })
    const folder = new BackupFolder(edited)
    const { content_sha256, mac, ...content } = folder.manifest()!
    const isLeft = (head: BackupHead) => head.tenant_id !== "acme" || head.chain !== "events"
    const without = (part: BackupPart): BackupPart => {
      const writer = new SegmentWriter()
      for (const record of part.segments.flatMap((segment) => folder.records(segment))) {
        if (String(record.key) !== "acme") writer.append(record)
      }
      const { records } = writer
      return { ...part, segments: [folder.write(part, writer.finish(), records)] }
    }
    const parts = content.parts.map((part) => (part.topic === "events" ? without(part) : part))
    const own = new RecordMac(readFileSync(join(edited, "keys/secret"), "utf8").trim())
    for (const [by, refusal] of [
      [new RecordMac("the secret of somebody else"), "or the backup was edited"],
      [own, "the chains are not those with which alk.state ends"]
    ] as const) {
      folder.complete({ ...content, parts, heads: content.heads.filter(isLeft) }, by)
      const { end, errors } = await alk(environment("edited"), "restore", edited, "--check")
      assert.strictEqual(end, 1)
      assert.include(errors, refusal)
    }
  })

  it("refuses a backup whose tree is not the one that was kept", async () => {
    const forged = join(root, "forged")
    mkdirSync(forged)
    const { serviceName, signer } = checkpointSigner
    const tree = Frontier.empty()
    for (let leaf = 1; leaf <= 31; leaf++) tree.append(sha256Hex(`another event ${leaf}`))
    const time = "2026-11-25T12:00:00.000000Z"
    const { note: other } = makeCheckpoint(signer, serviceName, "acme", tree, time)
    writeFileSync(join(forged, "keys.json"), JSON.stringify([signer.vkey]))
    writeFileSync(join(forged, "note.txt"), other)
    const fresh = environment("contradicted")
    const args = ["restore", backups, "--checkpoint", join(forged, "note.txt"), "--json"]
    const { end, output } = await alk(fresh, ...args)
    assert.strictEqual(end, 1, output)
    const report = JSON.parse(output)
    assert.isFalse(report.restored)
    assert.strictEqual(report.gaps[0].verdict, "contradicts")
    assert.isFalse(existsSync(fresh["ALK_DATA_DIR"]!))
  })
})
