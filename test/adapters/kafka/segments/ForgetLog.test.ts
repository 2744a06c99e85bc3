/**
 * Log folders as a broker leaves them, made up batch by batch: which records are rewritten, which stay
 * byte for byte, and that it comes to the same wherever it is ended on the way.
 */

import { randomUUID } from "node:crypto"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "vitest"
import { crc32c } from "../../../../src/adapters/kafka/protocol/Crc32c.ts"
import {
  type BatchRecord,
  encodeRecordBatch
} from "../../../../src/adapters/kafka/protocol/RecordBatch.ts"
import { recordsOf } from "../../../../src/adapters/kafka/segments/BatchRewrite.ts"
import {
  type ForgettingLog,
  forgetSegment,
  openJournal,
  planForgetting
} from "../../../../src/adapters/kafka/segments/ForgetLog.ts"
import { writeSegment } from "../../../../src/adapters/kafka/segments/ForgetPartition.ts"
import { JOURNAL_FILE, readJournal } from "../../../../src/adapters/kafka/segments/Journal.ts"
import { batchesOf, segmentsOf } from "../../../../src/adapters/kafka/segments/SegmentFile.ts"
import { ERASURE_ACTION, ERASURE_RESOURCE_TYPE } from "../../../../src/domain/events/Erasure.ts"
import { faultOf, recompute } from "../../../../src/domain/events/HashChain.ts"
import { parseEvent } from "../../../../src/domain/events/StoredEvent.ts"
import { COMMAND_FORMAT } from "../../../../src/domain/records/Command.ts"
import { encodeCommand } from "../../../../src/domain/records/CommandBytes.ts"
import { MAC_HEADER } from "../../../../src/domain/records/RecordHeaders.ts"
import { RecordMac } from "../../../../src/domain/records/RecordMac.ts"
import { FORMAT_HEADER } from "../../../../src/domain/records/Topics.ts"
import { ingestCommand } from "../../../support/Events.ts"
import { storedProgress } from "../../../support/StoredProgress.ts"
import { Chain } from "../../../verify/support/Chains.ts"

const SECRET = "a secret of the tests that is long enough"
const TIME = 1_795_000_000_000
const root = mkdtempSync(join(tmpdir(), "alk-forget-log-"))
let folders = 0

afterAll(() => rmSync(root, { recursive: true, force: true }))

/** Writes the segments of partition 0 of a topic. */
class Partition {
  readonly folder: string
  #offset = 0
  #bytes: Array<Buffer> = []
  #segmentAt = 0

  constructor(logDir: string, topic: string, firstOffset = 0) {
    this.folder = join(logDir, `${topic}-0`)
    mkdirSync(this.folder, { recursive: true })
    this.#offset = firstOffset
    this.#segmentAt = firstOffset
  }

  async batch(records: ReadonlyArray<BatchRecord>, producerId = -1n): Promise<this> {
    const batch = await encodeRecordBatch(records, {
      producerId,
      producerEpoch: 0,
      sequence: 0,
      transactional: producerId >= 0n,
      timestamp: TIME,
      compression: "zstd"
    })
    return this.#append(batch, records.length)
  }

  /** As somebody else may write it: with another codec in its head. */
  async foreign(codec: number): Promise<this> {
    const batch = await encodeRecordBatch([record("{}")], {
      producerId: -1n,
      producerEpoch: 0,
      sequence: 0,
      transactional: false,
      timestamp: TIME,
      compression: "none"
    })
    batch.writeInt16BE(codec, 21)
    return this.#append(batch, 1)
  }

  /** Ends the producer's transaction. */
  async end(producerId: bigint, outcome: "commit" | "abort"): Promise<this> {
    const key = Buffer.from([0, 0, 0, outcome === "commit" ? 1 : 0])
    const batch = await encodeRecordBatch([{ key, value: Buffer.alloc(6) }], {
      producerId,
      producerEpoch: 0,
      sequence: -1,
      transactional: true,
      timestamp: TIME,
      compression: "none"
    })
    batch.writeInt16BE(0x30, 21)
    return this.#append(batch, 1)
  }

  /** The next batch begins another segment. */
  roll(): this {
    const name = String(this.#segmentAt).padStart(20, "0")
    writeFileSync(join(this.folder, `${name}.log`), Buffer.concat(this.#bytes))
    for (const suffix of ["index", "timeindex", "txnindex", "snapshot"]) {
      writeFileSync(join(this.folder, `${name}.${suffix}`), suffix)
    }
    this.#bytes = []
    this.#segmentAt = this.#offset
    return this
  }

  #append(batch: Buffer, count: number): this {
    batch.writeBigInt64BE(BigInt(this.#offset), 0)
    batch.writeUInt32BE(crc32c(batch, 21), 17)
    this.#bytes.push(batch)
    this.#offset += count
    return this
  }
}

/** What a sequencer writes of how far it has come, as the record of `alk.state` at an offset. */
const progress = (command: number, secret = SECRET, offset = 0): BatchRecord =>
  stateRecord(
    "applied",
    storedProgress({ command_offset: command, events_next: 1_000, traces_next: 1_000 }),
    secret,
    offset
  )

const stateRecord = (key: string, content: object, secret = SECRET, offset = 0): BatchRecord => {
  const value = JSON.stringify(content)
  const one = { topic: "alk.state", partition: 0, offset, key, value, headers: {} }
  return { key, value, headers: { [MAC_HEADER]: new RecordMac(secret).of(one) } }
}

const freshLog = async (states: ReadonlyArray<BatchRecord> = [progress(-1)]) => {
  const logDir = join(root, String(folders++))
  mkdirSync(logDir, { recursive: true })
  const events = new Partition(logDir, "alk.events")
  const commands = new Partition(logDir, "alk.commands")
  const state = new Partition(logDir, "alk.state")
  const of = (folder: string) => new Map([[0, folder]])
  const log: ForgettingLog = {
    prefix: "alk",
    folders: {
      events: of(events.folder),
      traces: new Map(),
      commands: of(commands.folder),
      state: of(state.folder)
    },
    secret: SECRET,
    isWritten: false,
    progress: () => undefined
  }
  for (const one of states) await state.batch([one])
  state.roll()
  return { logDir, events, commands, state, log }
}

const record = (value: string, key = "acme"): BatchRecord => ({ key, value })

const erasing = (chain: Chain, sequence: number, more: Record<string, unknown> = {}): string => {
  const target = parseEvent(chain.bodies[sequence - 1]!)!
  return chain.append({
    action: ERASURE_ACTION,
    resource: { id: target.id, type: ERASURE_RESOURCE_TYPE },
    metadata: {
      reason: "asked for",
      sequence_number: sequence,
      content_hash: target.content_hash,
      ...more
    }
  })
}

const secretEvent = (id: string) => ({ id, metadata: { note: `geheim ${id}` } })

/** All records of a partition, as text by offset. */
const valuesOf = async (folder: string): Promise<ReadonlyMap<number, string>> => {
  const values = new Map<number, string>()
  for (const segment of segmentsOf(folder)) {
    for (const batch of batchesOf(segment)) {
      const records = await recordsOf(batch)
      if (typeof records === "string") values.set(batch.baseOffset, records)
      else for (const { offset, value } of records) values.set(offset, value?.toString() ?? "")
    }
  }
  return values
}

const countsOf = (plan: Awaited<ReturnType<typeof planForgetting>>) =>
  plan.partitions.map(({ kind, segments }) => [
    kind,
    segments.map(({ dropped, replaced, segment }) => [segment.baseOffset, replaced, dropped])
  ])

const applied = async (log: ForgettingLog, logDir: string) => {
  const plan = await planForgetting(log)
  const journal = openJournal(logDir, log)
  for (const partition of plan.partitions) {
    for (const segment of partition.segments) {
      await forgetSegment(log, partition, segment, journal)
    }
  }
  journal.end()
  return plan
}

describe("forgetting in events", () => {
  it("takes the details of erased events, and nothing else, in the segments that hold them", async () => {
    const { events, log, logDir } = await freshLog()
    const chain = new Chain("acme")
    const first = [1, 2, 3].map((n) => record(chain.append(secretEvent(`e-${n}`))))
    await events.batch(first, 7n)
    await events.end(7n, "commit")
    events.roll()
    await events.batch([record(chain.append({}))], 7n)
    await events.end(7n, "commit")
    events.roll()
    await events.batch([record(erasing(chain, 2))], 7n)
    await events.end(7n, "commit")
    events.roll()
    const before = await valuesOf(events.folder)
    const untouched = readFileSync(join(events.folder, "00000000000000000004.log"))

    const plan = await applied(log, logDir)
    assert.deepStrictEqual(countsOf(plan), [["events", [[0, 1, 0]]]])
    const after = await valuesOf(events.folder)
    assert.deepStrictEqual([...after.keys()], [...before.keys()])
    for (const [offset, value] of after) {
      if (offset !== 1) assert.strictEqual(value, before.get(offset))
    }
    const forgotten = recompute(after.get(1)!)!
    assert.isTrue(forgotten.exact)
    assert.isUndefined(faultOf(forgotten, undefined, true))
    assert.isUndefined(forgotten.event.metadata)
    assert.strictEqual(forgotten.event.hash, parseEvent(before.get(1)!)!.hash)
    assert.strictEqual(
      forgotten.event.erased_at,
      parseEvent(chain.bodies.at(-1)!)!.created_at,
      "the time of the erasure"
    )
    assert.deepStrictEqual(readFileSync(join(events.folder, "00000000000000000004.log")), untouched)
    assert.sameMembers(
      readdirSync(events.folder).filter((name) => name.startsWith("00000000000000000000")),
      ["log", "txnindex", "snapshot"].map((suffix) => `00000000000000000000.${suffix}`)
    )
    assert.include(readdirSync(events.folder), "00000000000000000004.index")
    assert.deepStrictEqual((await planForgetting(log)).partitions, [])
  })

  it("leaves batches that can't be read where they are, and names them", async () => {
    const said: Array<string> = []
    const { events, log: silent, logDir } = await freshLog()
    const log = { ...silent, progress: (line: () => string) => said.push(line()) }
    const chain = new Chain("acme")
    await events.batch([record(chain.append(secretEvent("e-1")))])
    // Snappy, and bytes that are no gzip.
    await events.foreign(2)
    await events.foreign(1)
    events.roll()
    await events.batch([record(erasing(chain, 1))])
    events.roll()
    const before = await valuesOf(events.folder)
    assert.deepStrictEqual(countsOf(await applied(log, logDir)), [["events", [[0, 1, 0]]]])
    const after = await valuesOf(events.folder)
    assert.deepStrictEqual([...after.keys()], [0, 1, 2, 3])
    assert.notInclude(after.get(0)!, "geheim")
    assert.deepStrictEqual(after.get(1), before.get(1))
    assert.match(after.get(1)!, /codec 2; alk reads zstd and gzip/)
    const named = said.filter((line) => line.startsWith("left as it is"))
    assert.match(
      named[0]!,
      /alk\.events-0, offsets 1 to 1: a record batch that is compressed with codec 2/
    )
    assert.lengthOf(named, 2)
    assert.deepStrictEqual((await planForgetting(log)).partitions, [])
  })

  it("believes no erasure that does not count", async () => {
    const { events, log } = await freshLog()
    const chain = new Chain("acme")
    await events.batch([record(chain.append(secretEvent("e-1")))])
    const head = chain.head
    const stray = erasing(chain, 1)
    chain.bodies.pop()
    chain.head = head
    // In a transaction that was aborted, and in one that is open.
    await events.batch([record(stray)], 7n)
    await events.end(7n, "abort")
    await events.batch([record(stray)], 8n)
    // Of another tenant's key; with another hash; of another content; not the next of its chain.
    await events.batch([record(stray, "other")])
    const wrong = stray.replace(
      /"hash":"([0-9a-f])/,
      (_, digit) => `"hash":"${digit === "0" ? "1" : "0"}`
    )
    await events.batch([record(wrong)])
    const other = new Chain("acme")
    for (let n = 1; n <= 5; n++) other.append(secretEvent(`e-${n}`))
    await events.batch([record(erasing(other, 1))])
    events.roll()
    assert.strictEqual((await planForgetting(log)).erasures, 0)
  })

  it("leaves an event whose content is not the one that was erased", async () => {
    const { events, log } = await freshLog()
    const chain = new Chain("acme")
    await events.batch([record(chain.append(secretEvent("e-1")))])
    await events.batch([record(erasing(chain, 1, { content_hash: "ab".repeat(32) }))])
    events.roll()
    assert.deepStrictEqual((await planForgetting(log)).partitions, [])
  })

  it("removes what a transaction tried that was aborted", async () => {
    const { events, log, logDir } = await freshLog()
    const chain = new Chain("acme")
    const tried = new Chain("acme")
    tried.append(secretEvent("e-9"))
    await events.batch([record(tried.append(secretEvent("e-1")))], 7n)
    await events.end(7n, "abort")
    await events.batch([record(chain.append(secretEvent("e-1"))), record(erasing(chain, 1))], 8n)
    await events.end(8n, "commit")
    events.roll()
    assert.deepStrictEqual(countsOf(await applied(log, logDir)), [["events", [[0, 1, 1]]]])
    const left = await valuesOf(events.folder)
    assert.deepStrictEqual([...left.keys()], [2, 3])
    assert.notInclude([...left.values()].join(), "geheim")
  })

  it("works where the start of the topic is gone", async () => {
    const { log, logDir } = await freshLog()
    const chain = new Chain("acme")
    for (let n = 1; n <= 5; n++) chain.append(secretEvent(`e-${n}`))
    const events = new Partition(logDir, "alk.events", 4)
    await events.batch([record(chain.bodies[4]!), record(erasing(chain, 5))])
    events.roll()
    assert.deepStrictEqual(countsOf(await applied(log, logDir)), [["events", [[4, 1, 0]]]])
  })

  it("is refused for a segment that is damaged, or ends within a batch", async () => {
    for (const damage of [
      (bytes: Buffer) => bytes.fill(bytes[70]! ^ 1, 70, 71),
      (bytes: Buffer) => bytes.subarray(0, -3)
    ]) {
      const { events, log } = await freshLog()
      const chain = new Chain("acme")
      await events.batch([record(chain.append(secretEvent("e-1"))), record(erasing(chain, 1))])
      events.roll()
      const [segment] = segmentsOf(events.folder)
      writeFileSync(segment!.path, damage(readFileSync(segment!.path)))
      let refusal: unknown
      await planForgetting(log).catch((error: unknown) => {
        refusal = error
      })
      assert.match(String(refusal), /checksum is wrong|ends within a batch/)
    }
  })
})

describe("forgetting in commands", () => {
  const commandOf = (ids: ReadonlyArray<string>): BatchRecord => {
    const [id] = ids
    const value = encodeCommand(ingestCommand("acme", 1, { id }))
    return { key: "acme", value, headers: { [FORMAT_HEADER]: String(COMMAND_FORMAT) } }
  }

  const withCommands = async (states: ReadonlyArray<BatchRecord>) => {
    const made = await freshLog(states)
    const { commands, events } = made
    const chain = new Chain("acme")
    await events.batch([record(chain.append(secretEvent("e-1"))), record(erasing(chain, 1))])
    await commands.batch([commandOf(["e-1"]), commandOf(["e-2"])])
    await commands.batch([commandOf(["e-1"])])
    for (const one of [events, commands]) one.roll()
    return made
  }

  it("removes those that were applied and hold an erased event", async () => {
    const { commands, log, logDir } = await withCommands([progress(0), progress(1, SECRET, 1)])
    await applied(log, logDir)
    assert.deepStrictEqual([...(await valuesOf(commands.folder)).keys()], [1, 2])
  })

  it("leaves the offsets of a batch of which nothing stays", async () => {
    const { commands, log, logDir } = await withCommands([progress(2)])
    await applied(log, logDir)
    const batches = segmentsOf(commands.folder).flatMap((segment) =>
      Array.from(batchesOf(segment), ({ baseOffset, count, lastOffset }) => [
        baseOffset,
        lastOffset,
        count
      ])
    )
    assert.deepStrictEqual(batches, [
      [0, 1, 1],
      [2, 2, 0]
    ])
  })

  it("forgets nothing where it can't be said which erasures are the service's", async () => {
    const left = { erasures: 0, partitions: [], unproven: [0] }
    for (const states of [
      [],
      [stateRecord("owner", { owner: randomUUID() })],
      [progress(2, "another secret that is long enough")]
    ]) {
      const { log } = await withCommands(states)
      assert.deepStrictEqual(await planForgetting(log), left)
    }
    const { log } = await withCommands([progress(2)])
    const folders = { ...log.folders, state: new Map<number, string>() }
    assert.deepStrictEqual(await planForgetting({ ...log, folders }), left)
  })
})

describe("forgetting that is ended", () => {
  const twoSegments = async () => {
    const made = await freshLog()
    const chain = new Chain("acme")
    for (const id of ["e-1", "e-2"]) {
      await made.events.batch([record(chain.append(secretEvent(id)))])
      made.events.roll()
    }
    await made.events.batch([record(erasing(chain, 1)), record(erasing(chain, 2))])
    made.events.roll()
    return made
  }

  /** Everything is gone, the counts are whole, and nothing is left of the attempt. */
  const assertDone = async ({ events, log, logDir }: Awaited<ReturnType<typeof twoSegments>>) => {
    await applied(log, logDir)
    assert.deepStrictEqual((await planForgetting(log)).partitions, [])
    assert.notInclude([...(await valuesOf(events.folder)).values()].join(), "geheim")
    assert.deepStrictEqual(
      readdirSync(events.folder).filter((name) => name.endsWith(".cleaned")),
      []
    )
    const [run, ...more] = readJournal(logDir)
    assert.deepStrictEqual(more, [])
    assert.isString(run!.ended_at)
    assert.deepStrictEqual(
      run!.segments.map(({ base_offset, is_replaced, records_replaced }) => [
        base_offset,
        is_replaced,
        records_replaced
      ]),
      [
        [0, true, 1],
        [1, true, 1]
      ]
    )
  }

  it("before a segment was replaced goes on with it", async () => {
    const made = await twoSegments()
    const plan = await planForgetting(made.log)
    const [partition] = plan.partitions
    await writeSegment(partition!, partition!.segments[0]!)
    assert.include(readdirSync(made.events.folder).join(), ".log.cleaned")
    await assertDone(made)
  })

  it("between two segments goes on with the second", async () => {
    const made = await twoSegments()
    const plan = await planForgetting(made.log)
    const [partition] = plan.partitions
    const journal = openJournal(made.logDir, made.log)
    await forgetSegment(made.log, partition!, partition!.segments[0]!, journal)
    await assertDone(made)
  })

  it.each([true, false])(
    "between the journal and its end knows whether the segment was replaced (%s)",
    async (isReplaced) => {
      const made = await twoSegments()
      const plan = await planForgetting(made.log)
      const [partition] = plan.partitions
      const journal = openJournal(made.logDir, made.log)
      const [first] = partition!.segments
      const old = readFileSync(first!.segment.path)
      await forgetSegment(made.log, partition!, first!, journal)
      const file = join(made.logDir, JOURNAL_FILE)
      const text = readFileSync(file, "utf8")
      writeFileSync(file, text.replace('"is_replaced":true', '"is_replaced":false'))
      if (!isReplaced) writeFileSync(first!.segment.path, old)
      await assertDone(made)
    }
  )

  it("writes no journal where there was nothing to do", async () => {
    const { events, log, logDir } = await freshLog()
    await events.batch([record(new Chain("acme").append({}))])
    events.roll()
    await applied(log, logDir)
    assert.notInclude(readdirSync(logDir), JOURNAL_FILE)
  })
})
