/**
 * The log of a process: the embedded broker or a cluster elsewhere, and the client with which all of
 * its roles read and write, internal records authenticated.
 */

import { readFileSync } from "node:fs"
import { Context, Effect, Layer, Redacted } from "effect"
import { EmbeddedBroker } from "../adapters/embedded/broker/EmbeddedBroker.ts"
import { DataFolder } from "../adapters/embedded/DataFolder.ts"
import { loadGroups } from "../adapters/kafka/GroupCoordinator.ts"
import { layerKafka } from "../adapters/kafka/KafkaEventLog.ts"
import type { KafkaSettings } from "../adapters/kafka/protocol/KafkaClient.ts"
import type { Config, KafkaConfig } from "../config/Config.ts"
import { RecordMac } from "../domain/records/RecordMac.ts"
import { EventLog } from "../ports/EventLog.ts"
import { authenticated } from "../services/commands/AuthenticatedLog.ts"
import { takeOver } from "../services/commands/TakeOver.ts"
import { sharesOf } from "./Shares.ts"
import { embedsBroker } from "./Topology.ts"

const kafkaTls = (kafka: KafkaConfig): Partial<Pick<KafkaSettings, "tls">> => {
  if (kafka._tag === "Embedded" || kafka.tls === undefined) return {}
  const { caFile } = kafka.tls
  return { tls: caFile === undefined ? {} : { ca: readFileSync(caFile) } }
}

const kafkaSasl = (kafka: KafkaConfig): Partial<Pick<KafkaSettings, "sasl">> => {
  if (kafka._tag === "Embedded" || kafka.sasl === undefined) return {}
  const { mechanism, password, username } = kafka.sasl
  return { sasl: { mechanism, username, password: Redacted.value(password) } }
}

const kafkaSettings = (
  config: Config,
  brokers: ReadonlyArray<string>,
  log: KafkaSettings["log"]
): KafkaSettings => ({
  brokers,
  // The lock of the data folder says that no other program has this broker as its own.
  clientId: embedsBroker(config) ? `${config.serviceName}-with-broker` : config.serviceName,
  isClientIdOwn: embedsBroker(config),
  log,
  ...kafkaTls(config.kafka),
  ...kafkaSasl(config.kafka)
})

/** kafkajs logs outside of Effect: its lines become debug lines of ours. */
const kafkaLog = Effect.gen(function* () {
  const context = yield* Effect.context()
  return (message: string, detail: object) => {
    Effect.runForkWith(context)(Effect.logDebug(message, detail))
  }
})

/** A line for a person while something takes long. */
export type Report = (line: string) => void

/** Addresses of a broker of our own, which is started, or of a cluster elsewhere. */
export const bootstrapOf = Effect.fnUntraced(function* (
  config: Config,
  folder: DataFolder["Service"] | undefined,
  report: Report
) {
  const { cacheDir, kafka } = config
  if (kafka._tag === "External") return kafka.brokers
  if (folder === undefined) return yield* Effect.die(new Error("a broker without a data folder"))
  const broker = yield* Layer.build(
    EmbeddedBroker.layer({ port: kafka.port, cacheDir, report }).pipe(
      Layer.provide(Layer.succeed(DataFolder, folder))
    )
  )
  return [Context.get(broker, EmbeddedBroker).bootstrap]
})

/** Name of the file with the copy of the marker from which on records are authenticated. */
const MARKER_FILE = "authenticated-from.json"

/** The log, its internal records authenticated with the secret. */
export const logOf = Effect.fnUntraced(function* (
  config: Config,
  brokers: ReadonlyArray<string>,
  secret: Redacted.Redacted,
  folder: DataFolder["Service"] | undefined
) {
  const kafka = kafkaSettings(config, brokers, yield* kafkaLog)
  const log = Context.get(yield* Layer.build(layerKafka(kafka, config.topics)), EventLog)
  if (sharesOf(config) !== undefined) {
    yield* Effect.forkScoped(loadGroups(kafka, config.topics.prefix))
  }
  const mac = new RecordMac(Redacted.value(secret))
  const { prefix } = config.topics
  const takenOver = yield* takeOver({ log, mac, prefix, copy: folder?.file(MARKER_FILE) })
  return authenticated(log, { mac, prefix, takenOver })
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
