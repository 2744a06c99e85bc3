/**
 * Transactions of thousands of events on a real broker: each event is there once, in its place, for
 * our reader and for a plain client, in few batches; a restart goes on after them.
 */
import { execFile } from "node:child_process"
import { randomBytes } from "node:crypto"
import { promisify } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { inject } from "vitest"
import { runSequencer } from "../../src/actors/sequencer/Sequencer.ts"
import { linkOf } from "../../src/domain/chain/ChainLink.ts"
import { GENESIS_HASH } from "../../src/domain/chain/Chains.ts"
import { toBatch } from "../../src/domain/records/EventBatch.ts"
import { topicName } from "../../src/domain/records/Topics.ts"
import type { NewRecord } from "../../src/ports/EventLog.ts"
import { commandRecord, ingestCommand, preparedEvent } from "../support/Events.ts"
import { eventually } from "../support/Eventually.ts"
import { append, decidedEnd, readAll, withLog } from "../support/Log.ts"
import { checkpointSigner } from "../support/Signer.ts"

const run = promisify(execFile)
const OUTPUT_BYTES_MAX = 64 * 1_048_576
const TENANT = "acme"
/** Commands of 3 MB, in more than one transaction. */
const COMMANDS = 7
/** Milliseconds in which a busy machine applies 21 MB, or reads a topic of thousands of records. */
const BUSY_MS = 240_000
const settings = { ...checkpointSigner, windows: { dedup: 1_000, idempotency: 100 } }

/** Run a sequencer until the newest receipt is that of the command at this offset. */
const applyUpTo = (commandOffset: number) => {
  const newest = Effect.map(readAll("receipts"), (records) =>
    Number(records.at(-1)?.headers["alk-command"]?.toString())
  )
  const what = `the receipt of the command at ${commandOffset}`
  return Effect.raceFirst(
    runSequencer(0, settings, () => Effect.void),
    eventually(what, newest, (offset) => offset >= commandOffset, BUSY_MS)
  )
}

const assertChain = Effect.fnUntraced(function* (length: number) {
  const records = yield* readAll("events")
  assert.strictEqual(records.length, length)
  let prevHash = GENESIS_HASH
  for (const [at, { headers, value }] of records.entries()) {
    const link = linkOf(value!)!
    assert.deepStrictEqual([link.sequenceNumber, link.prevHash], [at + 1, prevHash])
    assert.strictEqual(headers["ce_id"]!.toString(), String(at + 1))
    prevHash = link.hash
  }
  return records
})

/** A broker that has just been started may not take members of a group yet. */
const plainReader = (topic: string) =>
  eventually(
    "a plain client reads the topic",
    Effect.result(
      Effect.tryPromise(() =>
        run(process.execPath, ["test/independent/kafka_reader.mjs", inject("bootstrap"), topic], {
          maxBuffer: OUTPUT_BYTES_MAX
        })
      )
    ),
    Result.isSuccess,
    BUSY_MS
  ).pipe(Effect.flatMap(Effect.fromResult))

const commandsOf = (count: number, events: number): ReadonlyArray<NewRecord> =>
  Array.from({ length: count }, () => commandRecord(ingestCommand(TENANT, events)))

const noisyCommand = (count: number): NewRecord => {
  const events = Array.from({ length: count }, (_, index) => {
    const noise = randomBytes(22_000).toString("base64")
    return preparedEvent(TENANT, index, { metadata: { noise } })
  })
  return commandRecord({ ...ingestCommand(TENANT, 0), events: toBatch(events) })
}

describe("a transaction of thousands of events", () => {
  it.live(
    "has each once and in its place, for a plain client too, and the next one goes on after it",
    () =>
      withLog((prefix) =>
        Effect.gen(function* () {
          yield* append(commandsOf(12, 1_000))
          yield* applyUpTo(11)
          const records = yield* assertChain(12_000)
          // One transaction for 10,000 events, one for the rest: two markers.
          assert.strictEqual(yield* decidedEnd("events"), 12_002)
          assert.strictEqual(records[9_999]!.offset, 9_999)
          assert.strictEqual(records[10_000]!.offset, 10_001)
          const { stdout } = yield* plainReader(topicName(prefix, "events"))
          const lines = stdout.trim().split("\n")
          assert.deepStrictEqual(
            lines.map((line) => {
              const { offset, value } = JSON.parse(line)
              return [offset, value]
            }),
            records.map(({ offset, value }) => [offset, value!.toString()])
          )
          yield* append(commandsOf(1, 3))
          yield* applyUpTo(12)
          yield* assertChain(12_003)
        })
      )
  )

  it.live("takes as many batches as events that can't be compressed need", () =>
    withLog(() =>
      Effect.gen(function* () {
        // Random bytes as text: about 30 KB an event, 3 MB a command.
        for (let n = 0; n < COMMANDS; n++) yield* append([noisyCommand(100)])
        yield* applyUpTo(COMMANDS - 1)
        yield* assertChain(COMMANDS * 100)
      })
    )
  )
})
