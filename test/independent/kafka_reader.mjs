/**
 * A direct subscriber as anybody could write one: plain kafkajs, no code of alk. Reads a topic from
 * its beginning to the last stable offset, read_committed, and prints a line of JSON per record.
 *
 *   node test/independent/kafka_reader.mjs <bootstrap> <topic> [--tenant <tenant>]
 *
 * <bootstrap> is host:port, or a file of settings as Java's clients take them, with SASL PLAIN.
 * A line is {partition, offset, key, headers, value}. Bytes that are no UTF-8 stand as base64 in
 * key_base64 or value_base64. Exit code: 0 read to the end, 1 failed, 2 wrong arguments.
 */
import { randomUUID } from "node:crypto"
import { once } from "node:events"
import { existsSync, readFileSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"
import { promisify } from "node:util"
import zlib from "node:zlib"
import kafkajs from "kafkajs"

/** Milliseconds that a fetch waits at the end of the log. */
const FETCH_WAIT_MS = 250
/** Answers in a row without a record, from every broker: what is missing was compacted away. */
const EMPTY_ANSWERS = 3
/** Milliseconds that an answer such as "not the leader" is asked for again, and in between. */
const RETRY_MS = 10_000
const RETRY_WAIT_MS = 100
/** Milliseconds in which nothing at all happens before the reader gives up. */
const STALLED_MS = 30_000

const { CompressionCodecs, CompressionTypes, Kafka, logLevel } = kafkajs
const compress = promisify(zlib.zstdCompress)
const decompress = promisify(zlib.zstdDecompress)
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: (encoder) => compress(encoder.buffer),
  decompress: (buffer) => decompress(buffer)
})

/** How the brokers are reached. */
const connectionOf = (bootstrap) => {
  if (!existsSync(bootstrap)) return { brokers: bootstrap.split(",") }
  const text = readFileSync(bootstrap, "utf8")
  const found = (pattern) => pattern.exec(text)?.[1] ?? ""
  const [username, password] = [found(/ username="([^"]*)"/), found(/ password="([^"]*)"/)]
  return {
    brokers: found(/^bootstrap\.servers=(.*)$/m).split(","),
    sasl: { mechanism: found(/^sasl\.mechanism=(.*)$/m).toLowerCase(), username, password }
  }
}

const readArguments = (given) => {
  const [bootstrap, topic, flag, tenant, ...more] = given
  const rightFlag = flag === undefined || (flag === "--tenant" && tenant !== undefined)
  if (bootstrap === undefined || topic === undefined || !rightFlag || more.length > 0) {
    process.stderr.write("usage: kafka_reader.mjs <bootstrap> <topic> [--tenant <tenant>]\n")
    process.exit(2)
  }
  return { connection: connectionOf(bootstrap), topic, tenant }
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const asText = (name, bytes) => {
  if (bytes === null || bytes === undefined) return { [name]: null }
  try {
    return { [name]: utf8.decode(bytes) }
  } catch {
    return { [`${name}_base64`]: bytes.toString("base64") }
  }
}

const line = (partition, { headers, key, offset, value }) =>
  JSON.stringify({
    partition,
    offset: Number(offset),
    ...asText("key", key),
    headers: Object.fromEntries(
      Object.entries(headers ?? {}).map(([name, bytes]) => [name, bytes.toString()])
    ),
    ...asText("value", value)
  })

const print = async (lines) => {
  if (lines.length === 0) return
  if (!process.stdout.write(`${lines.join("\n")}\n`)) await once(process.stdout, "drain")
}

/** Again, while the brokers say that it is worth it: a new topic has no leader yet. */
const patiently = async (ask) => {
  const giveUpAt = Date.now() + RETRY_MS
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      if (!error.retriable || Date.now() > giveUpAt) throw error
      await sleep(RETRY_WAIT_MS)
    }
  }
}

/**
 * Where each partition has to be read up to. kafkajs asks for offsets read_committed, so `high` is
 * the last stable offset: everything before it is decided.
 */
const endsOf = async (admin, topic) => {
  const offsets = await patiently(() => admin.fetchTopicOffsets(topic))
  return new Map(
    offsets
      .filter(({ high, low }) => Number(high) > Number(low))
      .map(({ high, partition }) => [partition, Number(high)])
  )
}

/**
 * Resolves once every partition is read. kafkajs calls nobody for what it filtered out, but reports
 * it as END_BATCH_PROCESS; and it asks a broker again only when it has dealt with the answer
 * before, so an answer was empty if a FETCH (of some partitions; none is a failure) and the next
 * FETCH_START have no such report between them.
 */
const untilRead = (consumer, ends) =>
  new Promise((resolve, reject) => {
    /** By broker: answers in a row that were empty, and whether the last one is still undecided. */
    const answers = new Map()
    let stalled
    const alive = () => {
      clearTimeout(stalled)
      stalled = setTimeout(() => reject(new Error("the brokers stopped answering")), STALLED_MS)
    }
    const finish = () => {
      clearTimeout(stalled)
      resolve()
    }
    const { CRASH, END_BATCH_PROCESS, FETCH, FETCH_START } = consumer.events
    consumer.on(FETCH, ({ payload: { nodeId, numberOfBatches } }) => {
      alive()
      const empty = answers.get(nodeId)?.empty ?? 0
      if (numberOfBatches > 0) answers.set(nodeId, { empty, undecided: true })
      else if (answers.has(nodeId)) answers.set(nodeId, { empty: 0, undecided: false })
    })
    consumer.on(END_BATCH_PROCESS, ({ payload: { lastOffset, partition } }) => {
      alive()
      for (const node of answers.keys()) answers.set(node, { empty: 0, undecided: false })
      if (Number(lastOffset) + 1 >= ends.get(partition)) ends.delete(partition)
      if (ends.size === 0) finish()
    })
    consumer.on(FETCH_START, ({ payload: { nodeId } }) => {
      const answer = answers.get(nodeId)
      if (!answer?.undecided) return
      answers.set(nodeId, { empty: answer.empty + 1, undecided: false })
      if ([...answers.values()].every(({ empty }) => empty >= EMPTY_ANSWERS)) finish()
    })
    consumer.on(CRASH, ({ payload }) => reject(payload.error))
    alive()
  })

const read = async ({ connection, tenant, topic }) => {
  const client = { clientId: "independent-reader", logLevel: logLevel.NOTHING }
  const kafka = new Kafka({ ...connection, ...client })
  const admin = kafka.admin()
  const groupId = `independent-reader-${randomUUID()}`
  const consumer = kafka.consumer({
    groupId,
    readUncommitted: false,
    maxWaitTimeInMs: FETCH_WAIT_MS
  })
  await admin.connect()
  try {
    const ends = await endsOf(admin, topic)
    if (ends.size === 0) return
    await consumer.connect()
    const done = untilRead(consumer, ends)
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    await consumer.run({
      autoCommit: false,
      eachBatch: async ({ batch: { messages, partition } }) => {
        const wanted = messages.filter(
          ({ key }) => tenant === undefined || key?.toString() === tenant
        )
        await print(wanted.map((message) => line(partition, message)))
      }
    })
    await done
    await consumer.disconnect()
    // Who may only read may not.
    if (connection.sasl === undefined) await admin.deleteGroups([groupId])
  } finally {
    await consumer.disconnect()
    await admin.disconnect()
  }
}

// kafkajs arms a timer with a negative delay, which Node 24 warns of.
const emitWarning = process.emitWarning.bind(process)
process.emitWarning = (warning, ...rest) => {
  if (rest[0] !== "TimeoutNegativeWarning") emitWarning(warning, ...rest)
}

try {
  await read(readArguments(process.argv.slice(2)))
} catch (error) {
  process.stderr.write(`${error.stack}\n`)
  process.exitCode = 1
}
