/**
 * Three Kafka brokers, each a controller too, from the jars of the embedded broker: a cluster on one
 * machine whose brokers can be killed, frozen, cut off and robbed of their disks. Shares no code with
 * the program.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { closeSync, mkdirSync, openSync, rmSync, writeFileSync, writeSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { Kafka, logLevel } from "kafkajs"
import { KAFKA_VERSION } from "../../src/adapters/embedded/broker/KafkaJars.ts"
import { cacheDir } from "../adapters/embedded/fixtures.ts"
import { until } from "../faults/Parts.ts"
import { freePort } from "../support/FreePort.ts"
import { freshFolder } from "../support/Program.ts"
import { Link } from "./Link.ts"

const CLASS_PATH = join(cacheDir, `kafka-${KAFKA_VERSION}`, "*")
const CLUSTER_ID = "alkTestClusterAAAAAAAA"
const BROKERS = 3
/** A broker that was killed reads its logs again before it starts. */
const START_MS = 300_000
/** As `alk` sends them at most, and some room. */
const MESSAGE_BYTES = 16 * 1_048_576
const JAVA = ["-Xmx320m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", CLASS_PATH]

/** What a disk is filled with, one after the other. */
const PIECE = Buffer.alloc(65_536)

/** With FAULT_LOGS, a folder: what the brokers say, for whoever looks for a cause. */
const LOGS = process.env["FAULT_LOGS"]

const run = promisify(execFile)

export interface Broker {
  readonly id: number
  /** Where clients, and where the other brokers, reach it. */
  readonly clients: Link
  readonly peers: Link
  process: ChildProcess
}

/** As it is paused and resumed. */
export const processOf = ({ process: { pid } }: Broker) => ({ pid: pid! })

interface Place {
  readonly id: number
  readonly ports: Readonly<Record<"clients" | "peers" | "controller", number>>
  readonly clients: Link
  readonly peers: Link
}

const properties = (place: Place, voters: string, data: string): string =>
  Object.entries({
    "process.roles": "broker,controller",
    "node.id": place.id,
    "controller.quorum.voters": voters,
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PEERS",
    listeners: [
      `CLIENTS://127.0.0.1:${place.ports.clients}`,
      `PEERS://127.0.0.1:${place.ports.peers}`,
      `CONTROLLER://127.0.0.1:${place.ports.controller}`
    ].join(","),
    "advertised.listeners": [
      `CLIENTS://127.0.0.1:${place.clients.port}`,
      `PEERS://127.0.0.1:${place.peers.port}`
    ].join(","),
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT,PEERS:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "log.dirs": data,
    "auto.create.topics.enable": false,
    "message.max.bytes": MESSAGE_BYTES,
    "replica.fetch.max.bytes": MESSAGE_BYTES,
    "replica.lag.time.max.ms": 5_000,
    "broker.session.timeout.ms": 4_000,
    "broker.heartbeat.interval.ms": 500,
    "unclean.leader.election.enable": false,
    "offsets.topic.num.partitions": 4,
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.num.partitions": 4,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
    "group.initial.rebalance.delay.ms": 0,
    "controlled.shutdown.enable": true
  })
    .map(([name, value]) => `${name}=${value}\n`)
    .join("")

export class Brokers {
  readonly all: Array<Broker> = []
  readonly #folder = freshFolder("cluster")
  readonly #places: Array<Place> = []
  readonly #kafka: () => Kafka

  private constructor() {
    this.#kafka = () =>
      new Kafka({ brokers: this.bootstrap.split(","), logLevel: logLevel.NOTHING })
  }

  static async start(): Promise<Brokers> {
    const brokers = new Brokers()
    for (let id = 1; id <= BROKERS; id++) {
      const ports = {
        clients: await freePort(),
        peers: await freePort(),
        controller: await freePort()
      }
      brokers.#places.push({
        id,
        ports,
        clients: await Link.to(ports.clients),
        peers: await Link.to(ports.peers)
      })
    }
    await Promise.all(brokers.#places.map((place) => brokers.#format(place)))
    for (const place of brokers.#places) {
      const { clients, id, peers } = place
      brokers.all.push({ id, clients, peers, process: brokers.#spawn(place) })
    }
    await brokers.whole()
    return brokers
  }

  get bootstrap(): string {
    return this.#places.map(({ clients }) => `127.0.0.1:${clients.port}`).join(",")
  }

  /** SIGKILL, as a machine that loses its power. */
  async kill(broker: Broker): Promise<void> {
    await this.#end(broker, "SIGKILL")
  }

  /** SIGTERM: it hands its partitions over before it ends. */
  async stop(broker: Broker): Promise<void> {
    await this.#end(broker, "SIGTERM")
  }

  /** What it has stored is gone; it comes back as an empty disk of the same broker. */
  async loseDisk(broker: Broker): Promise<void> {
    const place = this.#placeOf(broker)
    rmSync(this.#dataOf(place.id), { recursive: true, force: true })
    await this.#format(place)
  }

  /** Where it stores what it has: its only log folder. */
  folderOf(broker: Broker): string {
    return this.#dataOf(broker.id)
  }

  begin(broker: Broker): void {
    broker.process = this.#spawn(this.#placeOf(broker))
  }

  /** The same with what it has stored on a disk of its own of so many bytes, which ends with it. */
  beginOnSmallDisk(broker: Broker, bytes: number): void {
    broker.process = this.#spawn(this.#placeOf(broker), bytes)
  }

  /** Fills up the small disk of a broker. */
  fillDisk({ id, process: { pid } }: Broker): void {
    const data = this.#dataOf(id)
    // Only the broker and what it starts see the disk there; everybody else sees it here.
    const file = openSync(join(`/proc/${pid}/root`, data, "filler"), "w")
    try {
      for (;;) writeSync(file, PIECE)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error
    } finally {
      closeSync(file)
    }
  }

  /** Until a broker has ended by itself. */
  async ended({ process: { exitCode, signalCode }, process }: Broker): Promise<void> {
    if (exitCode === null && signalCode === null) await once(process, "exit")
  }

  /** Until every broker answers and every partition has all of its replicas in sync. */
  async whole(): Promise<void> {
    await until(
      "all replicas are in sync",
      async () => {
        const admin = this.#kafka().admin()
        try {
          await admin.connect()
          const { brokers } = await admin.describeCluster()
          const { topics } = await admin.fetchTopicMetadata()
          const partitions = topics.flatMap((topic) => topic.partitions)
          return (
            brokers.length === BROKERS
            && partitions.every(
              ({ isr, leader, replicas }) => leader >= 0 && isr.length === replicas.length
            )
          )
        } catch {
          return false
        } finally {
          await admin.disconnect().catch(() => undefined)
        }
      },
      START_MS
    )
  }

  /** Every partition of a topic to these brokers, the first of them its leader. */
  async reassign(
    topic: string,
    partitions: number,
    replicas: ReadonlyArray<number>
  ): Promise<void> {
    const admin = this.#kafka().admin()
    await admin.connect()
    try {
      await admin.alterPartitionReassignments({
        topics: [
          {
            topic,
            partitionAssignment: Array.from({ length: partitions }, (_, partition) => ({
              partition,
              replicas: [...replicas]
            }))
          }
        ]
      })
    } finally {
      await admin.disconnect()
    }
  }

  /** Brokers that hold a copy of a partition, as the cluster says it. */
  async replicasOf(topic: string): Promise<ReadonlyArray<ReadonlyArray<number>>> {
    const admin = this.#kafka().admin()
    await admin.connect()
    try {
      const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
      return topics[0]!.partitions.map(({ replicas }) => [...replicas].sort())
    } finally {
      await admin.disconnect()
    }
  }

  async end(): Promise<void> {
    await Promise.all(this.all.map((broker) => this.kill(broker)))
    for (const { clients, peers } of this.#places) {
      clients.close()
      peers.close()
    }
    rmSync(this.#folder, { recursive: true, force: true })
  }

  async #end({ process: { exitCode, signalCode }, process }: Broker, signal: NodeJS.Signals) {
    if (exitCode !== null || signalCode !== null) return
    const ended = once(process, "exit")
    // One that is frozen hears no SIGTERM.
    process.kill("SIGCONT")
    process.kill(signal)
    await ended
  }

  #placeOf({ id }: Broker): Place {
    return this.#places.find((place) => place.id === id)!
  }

  #dataOf(id: number): string {
    return join(this.#folder, `data-${id}`)
  }

  #settings(place: Place): string {
    const voters = this.#places
      .map(({ id, ports }) => `${id}@127.0.0.1:${ports.controller}`)
      .join(",")
    const file = join(this.#folder, `${place.id}.properties`)
    writeFileSync(file, properties(place, voters, this.#dataOf(place.id)))
    return file
  }

  async #format(place: Place): Promise<void> {
    mkdirSync(this.#dataOf(place.id), { recursive: true })
    const file = this.#settings(place)
    const format = ["format", "--cluster-id", CLUSTER_ID, "--config", file]
    await run("java", [...JAVA, "kafka.tools.StorageTool", ...format])
  }

  #spawn(place: Place, diskBytes?: number): ChildProcess {
    const java = ["java", ...JAVA, "kafka.Kafka", this.#settings(place)]
    const data = this.#dataOf(place.id)
    const onSmallDisk = `cp -a ${data} ${data}.before && mount -t tmpfs -o size=${diskBytes} tmpfs ${data}
      cp -a ${data}.before/. ${data} && rm -r ${data}.before && exec "$@"`
    const [command = "", ...rest] =
      diskBytes === undefined
        ? java
        : ["unshare", "--map-root-user", "--mount", "sh", "-ec", onSmallDisk, "sh", ...java]
    const log = openSync(join(LOGS ?? this.#folder, `broker-${place.id}.log`), "a")
    const stdio = ["ignore", log, log] as const
    const running = spawn(command, rest, { stdio: [...stdio] })
    closeSync(log)
    return running
  }
}
