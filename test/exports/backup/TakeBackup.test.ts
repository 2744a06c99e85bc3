/** Which files of a folder a backup goes on with: those that it has left there itself, no others. */
import {
  copyFileSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { zstdCompressSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { afterAll } from "vitest"
import { type BackupTopic, partOf } from "../../../src/domain/backup/BackupManifest.ts"
import { segmentName } from "../../../src/domain/backup/BackupPlan.ts"
import { SegmentWriter } from "../../../src/domain/backup/BackupSegment.ts"
import { sha256Hex } from "../../../src/domain/Identifiers.ts"
import { RecordMac } from "../../../src/domain/records/RecordMac.ts"
import { BackupFolder } from "../../../src/exports/backup/BackupFolder.ts"
import { takeBackup } from "../../../src/exports/backup/TakeBackup.ts"
import type { BackupSource } from "../../../src/ports/BackupLog.ts"
import type { LogReader, LogRecord } from "../../../src/ports/EventLog.ts"
import { freshFolder } from "../../support/Program.ts"

const root = freshFolder("take-backup")
afterAll(() => rmSync(root, { recursive: true, force: true }))

const NOW = 1_800_000_000_000
/** What no chain authenticates. */
const topics = ["checkpoints", "receipts", "quarantine", "commands"] as const
type Topic = (typeof topics)[number]

const record = (offset: number, value: string): LogRecord => ({
  offset,
  timestamp: NOW,
  key: Buffer.from("acme"),
  value: Buffer.from(value),
  headers: {}
})

/** A log of one partition, and the offsets that were read of it. */
class TestLog {
  readonly records = new Map<string, ReadonlyArray<LogRecord>>()
  readonly read = new Map<string, ReadonlyArray<number>>()

  /** Appends one record to each of the topics. */
  append(value: string): void {
    for (const topic of topics) {
      const before = this.of(topic)
      this.records.set(topic, [...before, record(before.length, value)])
    }
  }

  of(topic: string): ReadonlyArray<LogRecord> {
    return this.records.get(topic) ?? []
  }

  source(): BackupSource {
    const ends: BackupSource["writtenEnds"] = (places) =>
      Effect.succeed(places.map(({ topic }) => this.of(topic).length))
    const fetch: LogReader["fetch"] = ([position], { maxBytes }) => {
      const { offset, topic } = position!
      const records = this.of(topic).slice(offset, maxBytes === 1 ? offset + 1 : undefined)
      const read = this.read.get(topic) ?? []
      this.read.set(topic, [...read, ...records.map((one) => one.offset)])
      const nextOffset = offset + records.length
      return Effect.succeed([{ ...position!, records, nextOffset }] as never)
    }
    const log = {
      partitions: 1,
      partitionOf: () => 0,
      ends,
      bounds: (topic: string) => Effect.succeed({ start: 0, end: this.of(topic).length }),
      reader: Effect.succeed({ fetch })
    }
    return { log: log as unknown as BackupSource["log"], writtenEnds: ends }
  }
}

const about = { alk_version: "0.1.0", service_name: "alk", topic_prefix: "alk" }
const mac = new RecordMac("the secret of the service")

/** A run, which breaks off after so many files. */
const take = (
  log: TestLog,
  folder: BackupFolder,
  filesMax = Number.POSITIVE_INFINITY,
  keys: Parameters<typeof takeBackup>[0]["keys"] = []
) => {
  let files = 0
  const progress = () => {
    files += 1
    if (files === filesMax) throw new Error("broken off")
  }
  const { release } = folder.open()
  return takeBackup({
    ...{ source: log.source(), folder, about, keys, mac, progress },
    isGenuine: () => true
  }).pipe(Effect.ensuring(Effect.sync(release)))
}

/** The values in the backup, by topic. */
const heldBy = (folder: BackupFolder) => {
  const manifest = folder.manifest()!
  const held = (topic: BackupTopic) =>
    partOf(manifest, topic, 0)!
      .segments.flatMap((segment) => folder.records(segment))
      .map(({ offset, value }) => `${offset} ${value}`)
  return Object.fromEntries(topics.map((topic) => [topic, held(topic)]))
}

const all = (...values: ReadonlyArray<string>) =>
  Object.fromEntries(
    topics.map((topic) => [topic, values.map((value, offset) => `${offset} ${value}`)])
  )

const segmentsOf = (folder: BackupFolder) => join(folder.path, "segments")

/** A file as an attacker without the secret writes it; its name. */
const plant = (
  folder: BackupFolder,
  place: { readonly topic: Topic; readonly from: number; readonly to: number },
  ...records: ReadonlyArray<LogRecord>
): string => {
  const writer = new SegmentWriter()
  for (const one of records) writer.append(one)
  const bytes = zstdCompressSync(writer.finish())
  const name = segmentName({ ...place, partition: 0, sha256: sha256Hex(bytes) })
  writeFileSync(join(segmentsOf(folder), name), bytes)
  return name
}

describe("a backup goes on", () => {
  it.effect("with what a run that broke off has left, of which it reads the last record", () =>
    Effect.gen(function* () {
      const folder = new BackupFolder(join(root, "left"))
      const log = new TestLog()
      log.append("zero")
      log.append("one")
      const ended = yield* Effect.exit(take(log, folder, 2))
      assert.strictEqual(ended._tag, "Failure")
      assert.isUndefined(folder.manifest())
      log.append("two")
      log.read.clear()
      yield* take(log, folder)
      assert.deepStrictEqual(heldBy(folder), all("zero", "one", "two"))
      assert.deepStrictEqual(
        topics.map((topic) => log.read.get(topic)),
        [
          [1, 2],
          [1, 2],
          [0, 1, 2],
          [0, 1, 2]
        ]
      )
      const named = folder
        .manifest()!
        .parts.flatMap(({ segments }) => segments.map(({ file }) => file))
      const there = readdirSync(segmentsOf(folder)).map((file) => `segments/${file}`)
      assert.deepStrictEqual(there.sort(), [...named].sort())
    })
  )

  for (const isFirst of [true, false]) {
    const after = isFirst ? "no manifest" : "a manifest"
    it.effect(`without empty files that were planted after ${after}`, () =>
      Effect.gen(function* () {
        const folder = new BackupFolder(join(root, `empty-${isFirst}`))
        const log = new TestLog()
        log.append("one")
        if (isFirst) folder.open().release()
        else yield* take(log, folder)
        for (const topic of topics) {
          for (let from = 0; from < 5; from++) plant(folder, { topic, from, to: from + 1 })
        }
        log.append("two")
        log.append("three")
        yield* take(log, folder)
        assert.deepStrictEqual(heldBy(folder), all("one", "two", "three"))
      })
    )
  }

  it.effect("without what it has left of a log in whose place a restored one is", () =>
    Effect.gen(function* () {
      const folder = new BackupFolder(join(root, "restored"))
      const lost = new TestLog()
      lost.append("one")
      yield* take(lost, folder)
      lost.append("lost")
      yield* Effect.exit(take(lost, folder, 4))
      const log = new TestLog()
      log.append("one")
      log.append("after the restore")
      log.append("three")
      yield* take(log, folder)
      assert.deepStrictEqual(heldBy(folder), all("one", "after the restore", "three"))
    })
  )

  it.effect("without forged records, though they have the MAC file of a genuine segment", () =>
    Effect.gen(function* () {
      const folder = new BackupFolder(join(root, "forged"))
      const log = new TestLog()
      log.append("one")
      yield* Effect.exit(take(log, folder, 4))
      const genuine = readdirSync(segmentsOf(folder)).filter((file) => file.endsWith(".mac"))
      for (const topic of topics) {
        const forged = plant(folder, { topic, from: 1, to: 2 }, record(1, "forged"))
        const of = genuine.find((file) => file.startsWith(topic))
        if (of !== undefined) {
          copyFileSync(join(segmentsOf(folder), of), join(segmentsOf(folder), `${forged}.mac`))
        }
      }
      log.append("two")
      yield* take(log, folder)
      assert.deepStrictEqual(heldBy(folder), all("one", "two"))
    })
  )
})

describe("a backup writes into its own folder alone", () => {
  const keys = [{ name: "secret", content: "the secret of the service" }]
  const log = new TestLog()
  log.append("one")

  it.effect("where links were put in the place of files that it makes", () =>
    Effect.gen(function* () {
      const first = new BackupFolder(join(root, "without-links"))
      yield* take(log, first, undefined, keys)
      const names = ["segments", "keys"].flatMap((part) =>
        readdirSync(join(first.path, part)).map((name) => join(part, name))
      )
      const folder = new BackupFolder(join(root, "links"))
      const outside = join(root, "outside")
      writeFileSync(outside, "as it was")
      folder.open().release()
      for (const name of names) {
        for (const end of ["", ".part", ".mac", ".mac.part"]) {
          symlinkSync(outside, join(folder.path, `${name}${end}`))
        }
      }
      symlinkSync(outside, join(folder.path, "manifest.json.part"))
      yield* take(log, folder, undefined, keys)
      assert.strictEqual(readFileSync(outside, "utf8"), "as it was")
      assert.deepStrictEqual(heldBy(folder), heldBy(first))
      for (const name of [...names, "manifest.json"]) {
        assert.isTrue(lstatSync(join(folder.path, name)).isFile(), name)
      }
    })
  )

  for (const name of ["segments", "keys", "lock"]) {
    it(`and refuses one whose ${name} is a link`, () => {
      const folder = new BackupFolder(join(root, `link-${name}`))
      const outside = join(root, `outside-${name}`)
      mkdirSync(folder.path)
      if (name === "lock") writeFileSync(outside, "")
      else mkdirSync(outside)
      symlinkSync(outside, join(folder.path, name))
      assert.throws(() => folder.open(), new RegExp(`${name} is a link`))
    })
  }
})
