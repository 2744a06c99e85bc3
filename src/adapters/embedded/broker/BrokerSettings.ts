/**
 * The configuration of the embedded broker: its properties, its log configuration and its Java
 * options. Paths are relative to the broker's folder, so any character may be in the folder's own
 * path.
 */
import * as fs from "node:fs"
import { join } from "node:path"
import { MESSAGE_BYTES_MAX } from "../../../domain/records/Topics.ts"
import { LOOPBACK } from "../FreePort.ts"
import { type BrokerUsers, closedListeners, scramArguments } from "./BrokerUsers.ts"

export const NODE_ID = 1

/** Names below the broker's folder. */
export const brokerPaths = {
  /** The log directory, made by formatting. */
  data: "data",
  /** Where formatting happens before the result gets its name. */
  formatting: "data.formatting",
  /** Native libraries that the jars unpack; emptied at each start. */
  temporary: "tmp",
  logs: "logs",
  log: "logs/server.log",
  /** What Java itself prints, of the last start only. */
  console: "logs/console.log",
  properties: "server.properties",
  formatProperties: "format.properties",
  formatArguments: "format.arguments",
  logConfiguration: "log4j2.xml",
  /** Who the running broker is, for the next start. */
  record: "broker.json"
} as const

const MIB = 1_048_576
const SECOND = 1_000

/**
 * A broker that was killed may register again only when its old session has run out, so this is
 * what a restart after a kill costs (9 s by default). It has to outlast a pause of the process.
 */
const SESSION_MILLISECONDS = 2 * SECOND
const HEARTBEAT_MILLISECONDS = 250
/** Off: by default an idle broker writes to its metadata log, and to the disk, twice a second. */
const IDLE_RECORD_MILLISECONDS = 0
/** Largest value that Kafka takes, 24 days: an idle sequencer keeps its fencing epoch. */
const TRANSACTIONAL_ID_MILLISECONDS = 2_147_483_647
/**
 * For how long a transaction may stay open, and hold up all readers: a little more than those of alk,
 * and not the 15 minutes that a broker allows every program by default.
 */
const TRANSACTION_MAX_MILLISECONDS = 20 * SECOND
/** How late a transaction past its timeout may be aborted. */
const ABORT_CHECK_MILLISECONDS = SECOND
/** Heap of the requests that wait for a thread; the smallest value that Kafka takes. */
const QUEUED_REQUEST_BYTES_MAX = 100 * MIB
/** Of the few requests that this program has under way; by default there are 8 and 3. */
const REQUEST_THREADS = 3
const NETWORK_THREADS = 1
/** 1.2 million keys a pass; the default, 128 MiB, is a quarter of the heap. */
const CLEANER_BYTES = 32 * MIB
/** The default, 50 each, is for clusters and is most of the time of a first start. */
const INTERNAL_PARTITIONS = 4

const lines = (properties: Readonly<Record<string, string | number | boolean>>): string =>
  Object.entries(properties)
    .map(([name, value]) => `${name}=${value}\n`)
    .join("")

const roleProperties = (port: number, controllerPort: number) => ({
  "process.roles": "broker,controller",
  "node.id": NODE_ID,
  "controller.quorum.voters": `${NODE_ID}@${LOOPBACK}:${controllerPort}`,
  "controller.listener.names": "CONTROLLER",
  "inter.broker.listener.name": "BROKER",
  listeners: `BROKER://${LOOPBACK}:${port},CONTROLLER://${LOOPBACK}:${controllerPort}`,
  "advertised.listeners": `BROKER://${LOOPBACK}:${port}`,
  "listener.security.protocol.map": "BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT"
})

/**
 * The broker's `server.properties`. Both ports are on the loopback address only, and without
 * `users` a client that reaches them may do everything.
 */
export const serverProperties = (
  port: number,
  controllerPort: number,
  users: BrokerUsers | undefined
): string =>
  lines({
    ...roleProperties(port, controllerPort),
    ...(users === undefined ? {} : closedListeners(users)),
    "log.dirs": brokerPaths.data,
    "auto.create.topics.enable": false,
    "default.replication.factor": 1,
    "min.insync.replicas": 1,
    "message.max.bytes": MESSAGE_BYTES_MAX,
    "replica.fetch.max.bytes": MESSAGE_BYTES_MAX,
    "queued.max.request.bytes": QUEUED_REQUEST_BYTES_MAX,
    "num.io.threads": REQUEST_THREADS,
    "num.network.threads": NETWORK_THREADS,
    "log.cleaner.dedupe.buffer.size": CLEANER_BYTES,
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": INTERNAL_PARTITIONS,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.num.partitions": INTERNAL_PARTITIONS,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.max.timeout.ms": TRANSACTION_MAX_MILLISECONDS,
    "transactional.id.expiration.ms": TRANSACTIONAL_ID_MILLISECONDS,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": ABORT_CHECK_MILLISECONDS,
    "share.coordinator.state.topic.num.partitions": INTERNAL_PARTITIONS,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "broker.session.timeout.ms": SESSION_MILLISECONDS,
    "broker.heartbeat.interval.ms": HEARTBEAT_MILLISECONDS,
    "metadata.max.idle.interval.ms": IDLE_RECORD_MILLISECONDS
  })

/** What `StorageTool format` reads; its ports are never opened. */
export const formatProperties = (): string =>
  lines({ ...roleProperties(9_092, 9_093), "log.dirs": brokerPaths.formatting })

/** At most four files of 10 MB. */
const logConfiguration = `<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="error">
  <Appenders>
    <RollingFile name="file" fileName="${brokerPaths.log}" filePattern="${brokerPaths.log}.%i">
      <PatternLayout pattern="%d{yyyy-MM-dd'T'HH:mm:ss.SSS'Z'}{UTC} %p %c{1} %m%n"/>
      <SizeBasedTriggeringPolicy size="10 MB"/>
      <DefaultRolloverStrategy max="3"/>
    </RollingFile>
  </Appenders>
  <Loggers>
    <Root level="info"><AppenderRef ref="file"/></Root>
  </Loggers>
</Configuration>
`

/** Writes the settings of the next start into the broker's folder. */
export const writeSettings = (folder: string, propertiesName: string, text: string): void => {
  fs.rmSync(join(folder, brokerPaths.temporary), { recursive: true, force: true })
  for (const name of [brokerPaths.temporary, brokerPaths.logs]) {
    fs.mkdirSync(join(folder, name), { recursive: true })
  }
  // It holds passwords. One of an earlier version may have another mode.
  fs.rmSync(join(folder, propertiesName), { force: true })
  fs.writeFileSync(join(folder, propertiesName), text, { mode: 0o600 })
  fs.writeFileSync(join(folder, brokerPaths.logConfiguration), logConfiguration)
}

/** The argument by which a running broker of this data folder is known. */
export const folderArgument = (dataFolder: string): string => `-Dalk.data.folder=${dataFolder}`

const commonOptions = (jars: string): ReadonlyArray<string> => [
  "-XX:TieredStopAtLevel=1",
  "-XX:-UsePerfData",
  "-Djava.awt.headless=true",
  `-Djava.io.tmpdir=${brokerPaths.temporary}`,
  `-Dlog4j2.configurationFile=${brokerPaths.logConfiguration}`,
  "-cp",
  `${jars}/*`
]

/** What requests leave behind is gone with it: room for many of the largest. */
const YOUNG_GENERATION = "-Xmn96m"

/**
 * Arguments of the Java process that is the broker. Without the second compiler it starts with a
 * third less work, and its first 5 million records cost a third less too; later ones the same.
 */
export const brokerArguments = (jars: string, dataFolder: string): ReadonlyArray<string> => [
  "-Xms128m",
  "-Xmx512m",
  "-XX:+UseSerialGC",
  YOUNG_GENERATION,
  "-XX:+ExitOnOutOfMemoryError",
  `-XX:ErrorFile=${brokerPaths.logs}/java-error-%p.log`,
  folderArgument(dataFolder),
  ...commonOptions(jars),
  "kafka.Kafka",
  brokerPaths.properties
]

/** Of the Java process that formats the log directory. */
export const formatCommand = (jars: string): ReadonlyArray<string> => [
  "-Xmx128m",
  "-XX:+UseSerialGC",
  ...commonOptions(jars),
  `@${brokerPaths.formatArguments}`
]

/** The rest of it, which holds passwords: all users of a machine see the arguments of a process. */
export const formatArguments = (clusterId: string, users: BrokerUsers | undefined): string =>
  [
    "kafka.tools.StorageTool",
    "format",
    "--cluster-id",
    clusterId,
    "--config",
    brokerPaths.formatProperties,
    ...(users === undefined ? [] : scramArguments(users))
  ].join("\n")
