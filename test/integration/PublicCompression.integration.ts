/**
 * What the setting does on a real broker: batches of the public topics have the codec that was asked
 * for, those of the other topics zstd. A reader that shares no code with alk looks at the batches.
 */
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { inject } from "vitest"
import { layerKafka } from "../../src/adapters/kafka/KafkaEventLog.ts"
import {
  type Compression,
  compressions,
  publicTopics,
  type TopicKind,
  topicName
} from "../../src/domain/records/Topics.ts"
import { EventLog, type NewRecord } from "../../src/ports/EventLog.ts"
import { freshPrefix, logLayer, readAll, settled } from "../support/Log.ts"

const run = promisify(execFile)

/** Large enough to be compressed. */
const VALUE = "one value of many ".repeat(200)

const recordOf = (topic: TopicKind): NewRecord => ({
  topic,
  partition: 0,
  key: "acme",
  value: VALUE
})

const log = (prefix: string, publicCompression: Compression) =>
  layerKafka(
    { brokers: [inject("bootstrap")], clientId: "codecs", log: () => undefined },
    {
      prefix,
      partitions: 1,
      replication: 1,
      minInSyncReplicas: 1,
      eventsRetentionMs: "forever",
      publicCompression
    }
  )

/** One transaction over public topics and two of the others, until it can be read. */
const write = Effect.gen(function* () {
  const writer = yield* EventLog.use((found) => found.writer("codecs"))
  yield* writer.commit([recordOf("events")], () =>
    (["traces", "checkpoints", "state", "receipts"] as const).map(recordOf)
  )
  yield* settled("codecs")
}).pipe(Effect.scoped)

const codecsOf = (prefix: string, topic: TopicKind) =>
  Effect.promise(async () => {
    const given = [inject("bootstrap"), topicName(prefix, topic), "0"]
    const { stdout } = await run("python3", ["test/independent/batch_codecs.py", ...given])
    return stdout
      .trim()
      .split("\n")
      .map((line) => line.split(" ")[1])
  })

describe("the compression of the public topics", () => {
  it.live.each([...compressions])("is %s if that is set", (compression) => {
    const prefix = freshPrefix()
    return Effect.gen(function* () {
      yield* write
      for (const topic of publicTopics) {
        assert.deepStrictEqual(yield* codecsOf(prefix, topic), [compression], topic)
        const [record] = yield* readAll(topic)
        assert.strictEqual(record?.value?.toString(), VALUE)
      }
      assert.deepStrictEqual(yield* codecsOf(prefix, "state"), ["zstd"])
      assert.deepStrictEqual(yield* codecsOf(prefix, "receipts"), ["zstd"])
    }).pipe(Effect.provide(log(prefix, compression)))
  })

  it.live("is zstd if nothing is set, and may change between two starts", () => {
    const prefix = freshPrefix()
    return Effect.gen(function* () {
      yield* write.pipe(Effect.provide(Layer.fresh(logLayer(prefix))))
      yield* write.pipe(Effect.provide(Layer.fresh(log(prefix, "gzip"))))
      assert.deepStrictEqual(yield* codecsOf(prefix, "events"), ["zstd", "gzip"])
      const read = readAll("events").pipe(Effect.provide(logLayer(prefix)))
      assert.strictEqual((yield* read).length, 2)
    })
  })
})
