/**
 * A broker that asks its readers for TLS, SASL and rights, as a cluster would, and on a listener of its
 * own also for a certificate: started from the jars of the embedded broker, with a certificate made
 * for the test. Its third listener, for the test itself, is open.
 */
import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { copyFileSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import {
  AclOperationTypes,
  AclPermissionTypes,
  AclResourceTypes,
  type Admin,
  Kafka,
  logLevel,
  ResourcePatternTypes
} from "kafkajs"
import { KAFKA_VERSION } from "../../src/adapters/embedded/broker/KafkaJars.ts"
import { MESSAGE_BYTES_MAX } from "../../src/domain/records/Topics.ts"
import { cacheDir } from "../adapters/embedded/fixtures.ts"
import { eventuallyAsync } from "../support/Eventually.ts"
import { freePort } from "../support/FreePort.ts"
import { freshFolder } from "../support/Program.ts"

const USER = "reader"
/** May everything. */
const WRITER = "writer"
/** With what other forms than this one would have to escape. */
const PASSWORD = 'a-"password"=of;the tests'
const CLASS_PATH = join(cacheDir, `kafka-${KAFKA_VERSION}`, "*")
const CLUSTER_ID = "alkTestClusterAAAAAAAA"
/** The group that the examples join, if they join one. */
const GROUP_PREFIX = "chain-check-"
/** Milliseconds that a broker may take to start. */
const START_MS = 120_000

const run = promisify(execFile)

export interface SecuredBroker {
  /** For the test itself. */
  readonly open: string
  /** What a reader needs to know. */
  readonly environment: Readonly<Record<string, string>>
  /** What a program needs to know that may everything, where it has to show a certificate. */
  readonly mutual: Readonly<Record<string, string>>
  readonly stop: () => Promise<void>
}

const makeCertificate = async (folder: string): Promise<void> => {
  const [key, authority] = [join(folder, "key.pem"), join(folder, "ca.pem")]
  const names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
  const files = ["-keyout", key, "-out", authority]
  await run("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", ...files, ...names])
  copyFileSync(key, join(folder, "server.pem"))
  writeFileSync(join(folder, "server.pem"), readFileSync(authority), { flag: "a" })
}

/** Of a listener with TLS and SASL. */
const secured = (folder: string, name: string) => ({
  [`listener.name.${name}.sasl.enabled.mechanisms`]: "SCRAM-SHA-512,PLAIN",
  [`listener.name.${name}.plain.sasl.jaas.config`]:
    "org.apache.kafka.common.security.plain.PlainLoginModule required"
    + ` user_${USER}="${PASSWORD.replaceAll('"', '\\\\"')}";`,
  [`listener.name.${name}.scram-sha-512.sasl.jaas.config`]:
    "org.apache.kafka.common.security.scram.ScramLoginModule required;",
  [`listener.name.${name}.ssl.keystore.type`]: "PEM",
  [`listener.name.${name}.ssl.keystore.location`]: join(folder, "server.pem")
})

const properties = (
  folder: string,
  [open, readers, mutual, controller]: ReadonlyArray<number>
): string =>
  Object.entries({
    "process.roles": "broker,controller",
    "node.id": 1,
    "controller.quorum.voters": `1@127.0.0.1:${controller}`,
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "OPEN",
    listeners: [
      `OPEN://127.0.0.1:${open}`,
      `READERS://127.0.0.1:${readers}`,
      `MUTUAL://127.0.0.1:${mutual}`,
      `CONTROLLER://127.0.0.1:${controller}`
    ].join(","),
    "advertised.listeners": [
      `OPEN://127.0.0.1:${open}`,
      `READERS://localhost:${readers}`,
      `MUTUAL://localhost:${mutual}`
    ].join(","),
    "listener.security.protocol.map":
      "OPEN:PLAINTEXT,READERS:SASL_SSL,MUTUAL:SASL_SSL,CONTROLLER:PLAINTEXT",
    ...secured(folder, "readers"),
    ...secured(folder, "mutual"),
    "listener.name.mutual.ssl.client.auth": "required",
    "listener.name.mutual.ssl.truststore.type": "PEM",
    "listener.name.mutual.ssl.truststore.location": join(folder, "ca.pem"),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": `User:ANONYMOUS;User:${WRITER}`,
    "message.max.bytes": MESSAGE_BYTES_MAX,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 1,
    "group.initial.rebalance.delay.ms": 0,
    "log.dirs": join(folder, "data")
  })
    .map(([name, value]) => `${name}=${value}\n`)
    .join("")

/** The right to read the topics that begin so, and to join the groups of the examples. */
const grant = async (admin: Admin, topicPrefix: string): Promise<void> => {
  const rights = [
    [AclResourceTypes.TOPIC, topicPrefix],
    [AclResourceTypes.GROUP, GROUP_PREFIX]
  ] as const
  await admin.createAcls({
    acl: rights.map(([resourceType, resourceName]) => ({
      resourceType,
      resourceName,
      resourcePatternType: ResourcePatternTypes.PREFIXED,
      principal: `User:${USER}`,
      host: "*",
      operation: AclOperationTypes.READ,
      permissionType: AclPermissionTypes.ALLOW
    }))
  })
}

const untilUp = async (bootstrap: string, topicPrefix: string): Promise<void> => {
  const kafka = new Kafka({
    brokers: [bootstrap],
    logLevel: logLevel.NOTHING,
    retry: { retries: 0 }
  })
  await eventuallyAsync(
    "the broker answers",
    async () => {
      const admin = kafka.admin()
      try {
        await admin.connect()
        await grant(admin, topicPrefix)
        return "it has granted the rights"
      } catch (error) {
        return error
      } finally {
        await admin.disconnect()
      }
    },
    (answer) => !(answer instanceof Error),
    START_MS
  )
}

/** `topicPrefix`: how the names of the topics begin that the reader may read. */
export const startSecuredBroker = async (topicPrefix: string): Promise<SecuredBroker> => {
  const folder = freshFolder("secured-broker")
  // A broker tells its clients where it is, so that has to be known before it starts.
  const ports = [await freePort(), await freePort(), await freePort(), await freePort()]
  await makeCertificate(folder)
  const file = join(folder, "server.properties")
  writeFileSync(file, properties(folder, ports))
  const users = [USER, WRITER].flatMap((name) => [
    "--add-scram",
    `SCRAM-SHA-512=[name=${name},password=${PASSWORD}]`
  ])
  const format = ["format", "--cluster-id", CLUSTER_ID, "--config", file, ...users]
  await run("java", ["-cp", CLASS_PATH, "kafka.tools.StorageTool", ...format])
  const broker = spawn("java", ["-Xmx512m", "-cp", CLASS_PATH, "kafka.Kafka", file], {
    stdio: "ignore"
  })
  const open = `127.0.0.1:${ports[0]}`
  await untilUp(open, topicPrefix)
  const signIn = (port: number, user: string) => ({
    KAFKA_BROKERS: `localhost:${port}`,
    KAFKA_TLS: "true",
    KAFKA_TLS_CA_FILE: join(folder, "ca.pem"),
    KAFKA_SASL_MECHANISM: "scram-sha-512",
    KAFKA_SASL_USERNAME: user,
    KAFKA_SASL_PASSWORD: PASSWORD
  })
  return {
    open,
    environment: signIn(ports[1]!, USER),
    mutual: {
      ...signIn(ports[2]!, WRITER),
      KAFKA_TLS_CERT_FILE: join(folder, "ca.pem"),
      KAFKA_TLS_KEY_FILE: join(folder, "key.pem")
    },
    stop: async () => {
      const ended = once(broker, "exit")
      broker.kill("SIGTERM")
      await ended
      rmSync(folder, { recursive: true, force: true })
    }
  }
}
