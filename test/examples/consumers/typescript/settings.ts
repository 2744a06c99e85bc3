/**
 * What the examples are told: broker and credentials by environment variables, the topic and where
 * to stop by arguments. Knows no client.
 */
import { readFileSync } from "node:fs"
import { parseArgs } from "node:util"

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { "until-end": { type: "boolean" }, partial: { type: "boolean" } }
})

const { env } = process

export const topic = positionals[0] ?? "alk.events"
/** Stop where the topic ends now, instead of waiting for more. */
export const untilEnd = values["until-end"] ?? false
/** The topic has lost its beginning to ALK_EVENTS_RETENTION. */
export const isPartial = values.partial ?? false

export const brokers = (env["KAFKA_BROKERS"] ?? "127.0.0.1:9092").split(",")

/** Without a file the authorities that Node knows are trusted. */
export const tls =
  env["KAFKA_TLS"] === "true"
    ? env["KAFKA_TLS_CA_FILE"]
      ? { ca: readFileSync(env["KAFKA_TLS_CA_FILE"], "utf8") }
      : {}
    : undefined

const mechanisms = ["plain", "scram-sha-256", "scram-sha-512"] as const

export const sasl =
  env["KAFKA_SASL_USERNAME"] === undefined
    ? undefined
    : {
        mechanism: mechanisms.find((name) => name === env["KAFKA_SASL_MECHANISM"]) ?? "plain",
        username: env["KAFKA_SASL_USERNAME"],
        password: env["KAFKA_SASL_PASSWORD"] ?? ""
      }
