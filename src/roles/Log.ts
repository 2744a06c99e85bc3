/**
 * The log of a process: the embedded broker or a cluster elsewhere, and the client with which all of
 * its roles read and write, internal records authenticated.
 */

import { join } from "node:path"
import { Context, Effect, Layer, Redacted } from "effect"
import {
  clientSettings,
  PROGRAM,
  type SignIn,
  SUBSCRIBER,
  signInOf
} from "../adapters/embedded/broker/BrokerUsers.ts"
import { EmbeddedBroker } from "../adapters/embedded/broker/EmbeddedBroker.ts"
import { grantSubscriber } from "../adapters/embedded/broker/SubscriberAccess.ts"
import { DataFolder } from "../adapters/embedded/DataFolder.ts"
import { loadGroups } from "../adapters/kafka/GroupCoordinator.ts"
import { layerKafka } from "../adapters/kafka/KafkaEventLog.ts"
import type { KafkaSettings } from "../adapters/kafka/protocol/KafkaClient.ts"
import type { Config, KafkaConfig } from "../config/Config.ts"
import { defined } from "../domain/Defined.ts"
import { RecordMac } from "../domain/records/RecordMac.ts"
import { EventLog } from "../ports/EventLog.ts"
import { refuseNewerData } from "../services/administration/DataVersions.ts"
import { checkPartitions } from "../services/administration/PartitionCounts.ts"
import { authenticated } from "../services/commands/AuthenticatedLog.ts"
import { checkInstallation } from "../services/commands/InstallationMarker.ts"
import { sharesOf } from "./PartitionAssignment.ts"
import { contentOf } from "./TlsContent.ts"
import { embedsBroker } from "./Topology.ts"

const kafkaTls = Effect.fnUntraced(function* (kafka: KafkaConfig) {
  if (kafka._tag === "Embedded" || kafka.tls === undefined) return {}
  const { ca, certificate, key } = yield* contentOf("KAFKA", kafka.tls)
  return { tls: defined({ ca, cert: certificate, key }) } satisfies Pick<KafkaSettings, "tls">
})

const kafkaSasl = (kafka: KafkaConfig): Partial<Pick<KafkaSettings, "sasl">> => {
  if (kafka._tag === "Embedded" || kafka.sasl === undefined) return {}
  const { mechanism, password, username } = kafka.sasl
  return { sasl: { mechanism, username, password: Redacted.value(password) } }
}

/** How the log of this process is reached. */
export interface Brokers {
  readonly addresses: ReadonlyArray<string>
  /** At a broker of our own; that of a cluster elsewhere is in the configuration. */
  readonly signIn?: SignIn
  /** Where its password is for other processes of the program. */
  readonly passwordFile?: string
  /** What a subscriber of a broker of our own needs to know, as a file for Java's clients. */
  readonly subscriberFile?: string
}

/** kafkajs logs outside of Effect: its lines become debug lines of ours. */
const kafkaLog = Effect.gen(function* () {
  const context = yield* Effect.context()
  return (message: string, detail: object) => {
    Effect.runForkWith(context)(Effect.logDebug(message, detail))
  }
})

/** How a client of this configuration connects. */
export const kafkaSettings = Effect.fnUntraced(function* (
  config: Config,
  { addresses, signIn }: Brokers
) {
  return {
    brokers: addresses,
    // The lock of the data folder says that no other program has this broker as its own.
    clientId: embedsBroker(config) ? `${config.serviceName}-with-broker` : config.serviceName,
    isClientIdOwn: embedsBroker(config),
    log: yield* kafkaLog,
    ...(yield* kafkaTls(config.kafka)),
    ...(signIn === undefined ? kafkaSasl(config.kafka) : { sasl: signIn })
  } satisfies KafkaSettings
})

/** A line for a person while something takes long. */
export type Report = (line: string) => void

/** Name of the file with the program's password at a broker of our own. */
const PASSWORD_FILE = "kafka.password"

/** Names of the files with which others sign in to a broker of our own. */
const SUBSCRIBER_FILES = {
  java: "subscriber.properties",
  librdkafka: "subscriber.librdkafka.properties",
  environment: "subscriber.env"
} as const

/** The subscriber's rights, and the files of those who connect, with the port of this start. */
const admitOthers = Effect.fnUntraced(function* (
  config: Config,
  folder: DataFolder["Service"],
  brokers: Brokers & { readonly signIn: SignIn },
  subscriber: SignIn
) {
  const settings = yield* kafkaSettings(config, brokers)
  yield* grantSubscriber(settings, config.topics.prefix, folder.kafka)
  const [bootstrap = ""] = brokers.addresses
  const { environment, java, librdkafka } = clientSettings(bootstrap, subscriber)
  yield* folder.file(PASSWORD_FILE).write(`${brokers.signIn.password}\n`)
  yield* folder.file(SUBSCRIBER_FILES.java).write(java)
  yield* folder.file(SUBSCRIBER_FILES.librdkafka).write(librdkafka)
  yield* folder.file(SUBSCRIBER_FILES.environment).write(environment)
})

/** A broker of our own, which is started, or a cluster elsewhere. */
export const bootstrapOf = Effect.fnUntraced(function* (
  config: Config,
  folder: DataFolder["Service"] | undefined,
  report: Report
) {
  const { cacheDir, kafka } = config
  if (kafka._tag === "External") return { addresses: kafka.brokers } satisfies Brokers
  if (folder === undefined) return yield* Effect.die(new Error("a broker without a data folder"))
  const broker = yield* Layer.build(
    EmbeddedBroker.layer({ port: kafka.port, isOpen: kafka.isOpen, cacheDir, report }).pipe(
      Layer.provide(Layer.succeed(DataFolder, folder))
    )
  )
  const { bootstrap, users } = Context.get(broker, EmbeddedBroker)
  const addresses = [bootstrap]
  if (users === undefined) return { addresses } satisfies Brokers
  const signIn = signInOf(users, PROGRAM)
  yield* admitOthers(config, folder, { addresses, signIn }, signInOf(users, SUBSCRIBER))
  return {
    addresses,
    signIn,
    passwordFile: join(folder.path, PASSWORD_FILE),
    subscriberFile: join(folder.path, SUBSCRIBER_FILES.java)
  } satisfies Brokers
})

/** The log, its internal records authenticated with the secret. */
export const logOf = Effect.fnUntraced(function* (
  config: Config,
  brokers: Brokers,
  secret: Redacted.Redacted
) {
  const kafka = yield* kafkaSettings(config, brokers)
  const log = Context.get(yield* Layer.build(layerKafka(kafka, config.topics)), EventLog)
  if (sharesOf(config) !== undefined) {
    yield* Effect.forkScoped(loadGroups(kafka, config.topics.prefix))
  }
  const mac = new RecordMac(Redacted.value(secret))
  const { prefix } = config.topics
  yield* checkInstallation({ log, mac, prefix })
  const own = authenticated(log, { mac, prefix })
  yield* refuseNewerData(own)
  yield* checkPartitions(own, config.topics)
  return own
})

/** The secret of the configuration, or the one that is kept in the data folder. */
export const secretOf = Effect.fnUntraced(function* (
  { secret }: Config,
  folder: DataFolder["Service"] | undefined
) {
  if (secret !== undefined) return secret
  if (folder !== undefined) return yield* folder.secret
  return yield* Effect.die(new Error("neither ALK_SECRET nor a data folder"))
})
