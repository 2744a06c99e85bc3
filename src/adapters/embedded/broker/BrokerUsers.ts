/**
 * The users of the embedded broker and what each may do, as Kafka's settings: the program may
 * everything, a subscriber may read the public topics. Their passwords are made once, and kept in
 * the broker's folder. Knows nothing of processes.
 */
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import { join } from "node:path"
import { Redacted, Schema } from "effect"
import { recordDecoder } from "../../../domain/json/RecordDecoder.ts"
import { writeWhole } from "../DataFolder.ts"

/** Names of the users. The broker's own is what it says to itself. */
export const PROGRAM = "alk"
export const SUBSCRIBER = "subscriber"
const BROKER = "broker"

const PASSWORD_BYTES = 32
const FILE = "users.json"

const Passwords = Schema.Struct({
  [BROKER]: Schema.String,
  [PROGRAM]: Schema.String,
  [SUBSCRIBER]: Schema.String
})
type Passwords = typeof Passwords.Type
const readPasswords = recordDecoder(Passwords, FILE)

/** Passwords by user: 43 letters, digits, dashes and underscores, which no settings file escapes. */
export type BrokerUsers = Redacted.Redacted<Passwords>

const newPassword = (): string => randomBytes(PASSWORD_BYTES).toString("base64url")

/** Those of an earlier start, or new ones. Throws if the file is damaged: others have copies. */
export const brokerUsers = (folder: string): BrokerUsers => {
  const file = join(folder, FILE)
  if (!fs.existsSync(file)) {
    const made: Passwords = {
      [BROKER]: newPassword(),
      [PROGRAM]: newPassword(),
      [SUBSCRIBER]: newPassword()
    }
    writeWhole(file, `${JSON.stringify(made)}\n`)
  }
  return Redacted.make(readPasswords(fs.readFileSync(file, "utf8")))
}

const LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"

/** How Java's clients sign in, and the broker to itself. */
const loginOf = (user: string, password: string): string =>
  `${LOGIN_MODULE} username="${user}" password="${password}"`

/** The part of `server.properties` that closes both listeners to everybody else. */
export const closedListeners = (users: BrokerUsers) => {
  const passwords = Redacted.value(users)
  const own = loginOf(BROKER, passwords[BROKER])
  const known = (names: ReadonlyArray<keyof Passwords>): string =>
    names.map((name) => ` user_${name}="${passwords[name]}"`).join("")
  return {
    "listener.security.protocol.map": "BROKER:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.broker.plain.sasl.jaas.config": `${own}${known([BROKER, PROGRAM, SUBSCRIBER])};`,
    "listener.name.controller.plain.sasl.jaas.config": `${own}${known([BROKER])};`,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": `User:${BROKER};User:${PROGRAM}`
  }
}

/** How a client of ours signs in. */
export interface SignIn {
  readonly mechanism: "plain"
  readonly username: string
  readonly password: string
}

export const signInOf = (
  users: BrokerUsers,
  username: typeof PROGRAM | typeof SUBSCRIBER
): SignIn => ({ mechanism: "plain", username, password: Redacted.value(users)[username] })

/** How another process reaches the broker, as its environment; without `signIn` it asks for none. */
export const brokerVariables = (
  bootstrap: string,
  signIn: SignIn | undefined
): Readonly<Record<string, string>> => ({
  KAFKA_BROKERS: bootstrap,
  ...(signIn === undefined
    ? {}
    : {
        KAFKA_SASL_MECHANISM: signIn.mechanism,
        KAFKA_SASL_USERNAME: signIn.username,
        KAFKA_SASL_PASSWORD: signIn.password
      })
})

/** A file of variables, as shells and `node --env-file` read it; no value needs quotes. */
export const variableLines = (variables: Readonly<Record<string, string>>): string =>
  Object.entries(variables)
    .map(([name, value]) => `${name}=${value}\n`)
    .join("")

/** Settings of other people's clients, and variables for their programs; `bootstrap` is host:port. */
export const clientSettings = (
  bootstrap: string,
  signIn: SignIn
): { readonly java: string; readonly librdkafka: string; readonly environment: string } => {
  const { password, username } = signIn
  const common = [
    `bootstrap.servers=${bootstrap}`,
    "security.protocol=SASL_PLAINTEXT",
    "sasl.mechanism=PLAIN",
    "isolation.level=read_committed"
  ]
  const lines = (all: ReadonlyArray<string>): string => `${all.join("\n")}\n`
  return {
    java: lines([...common, `sasl.jaas.config=${loginOf(username, password)};`]),
    librdkafka: lines([...common, `sasl.username=${username}`, `sasl.password=${password}`]),
    environment: variableLines(brokerVariables(bootstrap, signIn))
  }
}
