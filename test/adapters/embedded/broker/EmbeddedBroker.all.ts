import { randomUUID } from "node:crypto"
import { once } from "node:events"
import * as fs from "node:fs"
import { connect, createServer } from "node:net"
import { networkInterfaces } from "node:os"
import { join } from "node:path"
import { zstdCompressSync, zstdDecompressSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { CompressionCodecs, CompressionTypes, Kafka, logLevel } from "kafkajs"
import { beforeAll, onTestFinished } from "vitest"
import {
  type BrokerState,
  EmbeddedBroker
} from "../../../../src/adapters/embedded/broker/EmbeddedBroker.ts"
import { kafkaJars } from "../../../../src/adapters/embedded/broker/KafkaJars.ts"
import { DataFolder } from "../../../../src/adapters/embedded/DataFolder.ts"
import { identityOf } from "../../../../src/adapters/embedded/ProcessIdentity.ts"
import { eventually, eventuallyAsync } from "../../../support/Eventually.ts"
import { freePort } from "../../../support/FreePort.ts"
import { cacheDir, type Held, hold, temporaryFolder } from "../fixtures.ts"

// The broker unpacks a native library to read it, which depends on how it was started.
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: ({ buffer }: { readonly buffer: Buffer }) => Promise.resolve(zstdCompressSync(buffer)),
  decompress: (buffer: Buffer) => Promise.resolve(zstdDecompressSync(buffer))
})

const quiet = () => undefined
const runs = (pid: number) => identityOf(pid) !== undefined

const brokerLayer = (dataFolder: string, port: number) =>
  EmbeddedBroker.layer({ port, isOpen: true, cacheDir, report: quiet }).pipe(
    Layer.provide(DataFolder.layer(dataFolder))
  )

const pidOf = (state: BrokerState): number => {
  assert(state._tag === "Ready", state._tag)
  return state.pid
}

/** The launcher of a broker and the shell that watches for it. */
const guardsOf = (brokerPid: number): ReadonlyArray<number> => {
  const { parent } = parentAndSessionOf(brokerPid)
  const children = fs.readFileSync(`/proc/${parent}/task/${parent}/children`, "utf8")
  const watchers = children
    .trim()
    .split(" ")
    .map(Number)
    .filter((pid) => pid !== brokerPid)
  assert.isNotEmpty(watchers)
  return [parent, ...watchers]
}

/** Fields 4 and 6 of /proc/<pid>/stat. */
const parentAndSessionOf = (pid: number) => {
  const stat = fs.readFileSync(`/proc/${pid}/stat`, "utf8")
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return { parent: Number(fields[1]), session: Number(fields[3]) }
}

const clientOf = (bootstrap: string) =>
  new Kafka({
    brokers: [bootstrap],
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 50, retries: 20 }
  })

const settingsOf = async (bootstrap: string) => {
  const admin = clientOf(bootstrap).admin()
  await admin.connect()
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: [{ type: 4, name: "1" }]
  })
  await admin.disconnect()
  return new Map(
    resources[0]?.configEntries.map(({ configName, configValue }) => [configName, configValue])
  )
}

const produce = async (bootstrap: string, value: string) => {
  const client = clientOf(bootstrap)
  const admin = client.admin()
  await admin.connect()
  if (!(await admin.listTopics()).includes("kept")) {
    await admin.createTopics({ topics: [{ topic: "kept", numPartitions: 1 }] })
  }
  await admin.disconnect()
  const producer = client.producer()
  await producer.connect()
  await producer.send({
    topic: "kept",
    acks: -1,
    compression: CompressionTypes.ZSTD,
    messages: [{ value }]
  })
  await producer.disconnect()
}

const consume = async (bootstrap: string, count: number): Promise<ReadonlyArray<string>> => {
  const consumer = clientOf(bootstrap).consumer({
    groupId: `reader-${randomUUID()}`,
    maxWaitTimeInMs: 100
  })
  const values: Array<string> = []
  await consumer.connect()
  await consumer.subscribe({ topics: ["kept"], fromBeginning: true })
  await consumer.run({
    eachMessage: async ({ message }) => {
      values.push(String(message.value))
    }
  })
  await eventuallyAsync(
    `${count} records are read`,
    () => values,
    ({ length }) => length >= count
  )
  await consumer.disconnect()
  return values
}

const accepts = (port: number, host: string) =>
  new Promise<boolean>((resolve) => {
    const socket = connect({ port, host })
    socket.once("error", () => resolve(false))
    socket.once("connect", () => {
      socket.destroy()
      resolve(true)
    })
  })

const outerAddresses = () =>
  Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ family, internal }) => family === "IPv4" && !internal)
    .map(({ address }) => address)

const occupy = (port: number) =>
  Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>>((resume) => {
      const server = createServer()
      server.listen(port, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => server.close())
  )

const holdBroker = async (dataFolder: string) => {
  const held = await hold("holdBroker.ts", [dataFolder, cacheDir, "0"])
  const { bootstrap, state } = JSON.parse(held.line) as { bootstrap: string; state: BrokerState }
  return { ...held, bootstrap, brokerPid: pidOf(state) }
}

/** kill -9 of the whole process group, as a terminal or a supervisor does it. */
const killGroup = async ({ child, pid }: Held) => {
  process.kill(-pid, "SIGKILL")
  await once(child, "exit")
}

describe("EmbeddedBroker", () => {
  beforeAll(() => Effect.runPromise(kafkaJars(cacheDir, quiet)), 300_000)

  it.live("is a broker on the loopback address, and comes back when it is killed", () =>
    Effect.gen(function* () {
      process.env["ALK_SECRET"] = "not for the broker's eyes"
      onTestFinished(() => {
        delete process.env["ALK_SECRET"]
      })
      const { bootstrap, state } = yield* EmbeddedBroker
      const readyPid = Effect.map(state, pidOf)
      const port = Number(bootstrap.split(":")[1])
      const first = yield* readyPid

      const settings = yield* Effect.promise(() => settingsOf(bootstrap))
      assert.strictEqual(settings.get("message.max.bytes"), String(32 * 1_048_576))
      assert.strictEqual(settings.get("auto.create.topics.enable"), "false")
      assert.strictEqual(settings.get("group.initial.rebalance.delay.ms"), "0")
      assert.isTrue(yield* Effect.promise(() => accepts(port, "127.0.0.1")))
      for (const address of outerAddresses()) {
        assert.isFalse(yield* Effect.promise(() => accepts(port, address)), address)
      }
      assert.notInclude(fs.readFileSync(`/proc/${first}/environ`, "utf8"), "broker's eyes")
      assert.notStrictEqual(
        parentAndSessionOf(first).session,
        parentAndSessionOf(process.pid).session
      )

      yield* Effect.promise(() => produce(bootstrap, "before the kill"))
      process.kill(first, "SIGKILL")
      const becomes = (tag: BrokerState["_tag"]) =>
        eventually(`the broker is ${tag}`, state, (now) => now._tag === tag)
      yield* becomes("Restarting")
      yield* becomes("Ready")
      const second = yield* readyPid
      assert.notStrictEqual(second, first)
      assert.deepStrictEqual(yield* Effect.promise(() => consume(bootstrap, 1)), [
        "before the kill"
      ])

      process.kill(parentAndSessionOf(second).parent, "SIGKILL")
      yield* becomes("Restarting")
      assert.isFalse(runs(second))
      yield* becomes("Ready")
      return yield* readyPid
    }).pipe(
      Effect.provide(brokerLayer(join(temporaryFolder(), "with, comma and ü"), 0)),
      Effect.tap((pid) => Effect.sync(() => assert.isFalse(runs(pid)))),
      Effect.asVoid
    )
  )

  it.live("takes the next free port, and keeps its data from one start to the next", () =>
    Effect.gen(function* () {
      const dataFolder = temporaryFolder()
      const wanted = yield* Effect.promise(freePort)
      const metaPath = join(dataFolder, "kafka", "data", "meta.properties")
      const meta = () => fs.readFileSync(metaPath, "utf8")
      const formatted = yield* Effect.gen(function* () {
        const { bootstrap } = yield* EmbeddedBroker
        assert.isAbove(Number(bootstrap.split(":")[1]), wanted)
        yield* Effect.promise(() => produce(bootstrap, "from the first start"))
        return meta()
      }).pipe(
        Effect.provide(
          brokerLayer(dataFolder, wanted).pipe(Layer.provide(Layer.effectDiscard(occupy(wanted))))
        )
      )
      yield* Effect.gen(function* () {
        const { bootstrap } = yield* EmbeddedBroker
        assert.strictEqual(bootstrap, `127.0.0.1:${wanted}`)
        assert.deepStrictEqual(yield* Effect.promise(() => consume(bootstrap, 1)), [
          "from the first start"
        ])
        assert.strictEqual(meta(), formatted)
      }).pipe(Effect.provide(brokerLayer(dataFolder, wanted)))
    })
  )

  it.live("ends soon after its parent's process group was killed", () =>
    Effect.promise(async () => {
      const held = await holdBroker(temporaryFolder())
      const guards = guardsOf(held.brokerPid)
      await killGroup(held)
      await eventuallyAsync(
        "the broker and its guards are gone",
        () => [held.brokerPid, ...guards].filter(runs),
        ({ length }) => length === 0
      )
    })
  )

  it.live("starts over whatever an earlier start has left behind", () =>
    Effect.promise(async () => {
      const dataFolder = temporaryFolder()
      const first = await holdBroker(dataFolder)
      await produce(first.bootstrap, "one")
      await killGroup(first)

      const second = await holdBroker(dataFolder)
      assert.isFalse(runs(first.brokerPid))
      await produce(second.bootstrap, "two")
      for (const pid of guardsOf(second.brokerPid)) process.kill(pid, "SIGKILL")
      await killGroup(second)
      assert.isTrue(runs(second.brokerPid), "nobody is left to end it")

      const third = await holdBroker(dataFolder)
      assert.isFalse(runs(second.brokerPid))
      assert.deepStrictEqual(await consume(third.bootstrap, 2), ["one", "two"])
      third.child.kill("SIGTERM")
      await once(third.child, "exit")
      assert.isFalse(runs(third.brokerPid))
    })
  )

  it.live("leaves nothing running when its start is interrupted", () =>
    Effect.gen(function* () {
      const dataFolder = temporaryFolder()
      const record = join(dataFolder, "kafka", "broker.json")
      const fiber = yield* Effect.forkChild(Effect.scoped(Layer.build(brokerLayer(dataFolder, 0))))
      yield* eventually(
        "the broker runs",
        Effect.sync(() => fs.existsSync(record))
      )
      const { pid } = JSON.parse(fs.readFileSync(record, "utf8")).process
      yield* Fiber.interrupt(fiber)
      assert.isFalse(runs(pid))
    })
  )

  it.live("refuses a damaged log in one line, and does not format it again", () =>
    Effect.gen(function* () {
      const dataFolder = temporaryFolder()
      const data = join(dataFolder, "kafka", "data")
      fs.mkdirSync(join(data, "kept-0"), { recursive: true })
      for (const text of [undefined, "", "version=1\ncluster.id=\nnode.id=1\n"]) {
        if (text !== undefined) fs.writeFileSync(join(data, "meta.properties"), text)
        const error = yield* Effect.flip(Effect.scoped(Layer.build(brokerLayer(dataFolder, 0))))
        assert.strictEqual(error._tag, "BrokerNotStarted")
        assert.include(error.message, join(data, "meta.properties"))
        assert.include(error.message, "damaged")
        assert.notInclude(error.message, "\n")
      }
      assert.isTrue(fs.existsSync(join(data, "kept-0")))
    })
  )
})
