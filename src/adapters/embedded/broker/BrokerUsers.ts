/**
 * The users of the embedded broker and what each may do, as Kafka's settings: the program may
 * everything, a subscriber may read the public topics. Their passwords are made once, and kept in
 * the broker's folder.
 */
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import { join } from "node:path"
import { Redacted, Schema } from "effect"
import { recordDecoder } from "../../../domain/json/RecordDecoder.ts"
import { type ScramCredential, scramSha256 } from "../../kafka/protocol/ScramCredentials.ts"
import { writeWhole } from "../DataFolder.ts"

/** Names of the users. The broker's own is what it says to itself. */
export const PROGRAM = "alk"
export const SUBSCRIBER = "subscriber"
const BROKER = "broker"

const PASSWORD_BYTES = 32
const FILE = "users.json"

/** How users sign in: each side proves that it has the password, and neither sends it. */
const SCRAM = "scram-sha-256"

const Users = Schema.Struct({
  [BROKER]: Schema.String,
  [PROGRAM]: Schema.String,
  [SUBSCRIBER]: Schema.String,
  /** Without it the broker's log was made before it kept what SCRAM asks for. */
  mechanism: Schema.optionalKey(Schema.Literal(SCRAM))
})
type Users = typeof Users.Type
const readUsers = recordDecoder(Users, FILE)

const names = [BROKER, PROGRAM, SUBSCRIBER] as const
type UserName = (typeof names)[number]

/** Passwords by user: 43 letters, digits, dashes and underscores, which no settings file escapes. */
export type BrokerUsers = Redacted.Redacted<Users>

const newPassword = (): string => randomBytes(PASSWORD_BYTES).toString("base64url")

const keep = (folder: string, users: Users): BrokerUsers => {
  writeWhole(join(folder, FILE), `${JSON.stringify(users)}\n`)
  return Redacted.make(users)
}

/** Those of an earlier start, or new ones. Throws if the file is damaged: others have copies. */
export const brokerUsers = (folder: string): BrokerUsers => {
  const file = join(folder, FILE)
  return fs.existsSync(file)
    ? Redacted.make(readUsers(fs.readFileSync(file, "utf8")))
    : keep(folder, {
        [BROKER]: newPassword(),
        [PROGRAM]: newPassword(),
        [SUBSCRIBER]: newPassword()
      })
}

/** Whether the broker's log keeps what SCRAM asks for, so that no client has to send a password. */
export const hasScram = (users: BrokerUsers): boolean => Redacted.value(users).mechanism === SCRAM

/** Once the broker's log keeps it. */
export const withScram = (folder: string, users: BrokerUsers): BrokerUsers =>
  keep(folder, { ...Redacted.value(users), mechanism: SCRAM })

/** What the tool that formats the log is told of the users. */
export const scramArguments = (users: BrokerUsers): ReadonlyArray<string> =>
  names.flatMap((name) => [
    "--add-scram",
    `${SCRAM.toUpperCase()}=[name=${name},password=${Redacted.value(users)[name]}]`
  ])

/** The same for a broker that runs. */
export const scramCredentials = (users: BrokerUsers): ReadonlyArray<ScramCredential> =>
  names.map((user) => scramSha256(user, Redacted.value(users)[user]))

const PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
const SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required"

/** How Java's clients sign in, and the broker to itself. */
const loginOf = (module: string, user: string, password: string): string =>
  `${module} username="${user}" password="${password}"`

/** Whom a listener for passwords lets in. */
const letIn = (users: Users, taken: ReadonlyArray<UserName>): string =>
  taken.map((name) => ` user_${name}="${users[name]}"`).join("")

/**
 * A listener for passwords: the controller's, which can't do SCRAM without the log that it has yet to
 * read, and the broker's on a log of an earlier version.
 */
const plainListener = (listener: string, users: Users, taken: ReadonlyArray<UserName>) => ({
  [`listener.name.${listener}.plain.sasl.jaas.config`]: `${loginOf(PLAIN_MODULE, BROKER, users[BROKER])}${letIn(users, taken)};`
})

/**
 * Only a subscriber that can't do otherwise sends a password: librdkafka before 2.6.1, which many
 * kcat come with, fails with SCRAM on Kafka 4.
 */
const scramListener = (users: Users) => ({
  "listener.name.broker.sasl.enabled.mechanisms": `${SCRAM.toUpperCase()},PLAIN`,
  [`listener.name.broker.${SCRAM}.sasl.jaas.config`]: `${loginOf(SCRAM_MODULE, BROKER, users[BROKER])};`,
  "listener.name.broker.plain.sasl.jaas.config": `${PLAIN_MODULE}${letIn(users, [SUBSCRIBER])};`,
  "sasl.mechanism.inter.broker.protocol": SCRAM.toUpperCase()
})

/** The part of `server.properties` that closes both listeners to all others. */
export const closedListeners = (redacted: BrokerUsers) => {
  const users = Redacted.value(redacted)
  return {
    "listener.security.protocol.map": "BROKER:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    ...plainListener("controller", users, [BROKER]),
    ...(hasScram(redacted)
      ? scramListener(users)
      : {
          "sasl.mechanism.inter.broker.protocol": "PLAIN",
          ...plainListener("broker", users, names)
        }),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": `User:${BROKER};User:${PROGRAM}`
  }
}

/** How a client of ours signs in. */
export type SignIn = { readonly username: string; readonly password: string } & (
  | { readonly mechanism: "plain" }
  | { readonly mechanism: typeof SCRAM }
)

export const signInOf = (
  users: BrokerUsers,
  username: typeof PROGRAM | typeof SUBSCRIBER
): SignIn => {
  const who = { username, password: Redacted.value(users)[username] }
  return hasScram(users) ? { mechanism: SCRAM, ...who } : { mechanism: "plain", ...who }
}

/**
 * How another process reaches the broker, as its environment: without `signIn` it asks for none, and
 * with `passwordFile` the password is there.
 */
export const brokerVariables = (
  bootstrap: string,
  signIn: SignIn | undefined,
  passwordFile?: string
): Readonly<Record<string, string>> => ({
  KAFKA_BROKERS: bootstrap,
  ...(signIn === undefined
    ? {}
    : {
        KAFKA_SASL_MECHANISM: signIn.mechanism,
        KAFKA_SASL_USERNAME: signIn.username,
        ...(passwordFile === undefined
          ? { KAFKA_SASL_PASSWORD: signIn.password }
          : { KAFKA_SASL_PASSWORD_FILE: passwordFile })
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
  const { mechanism, password, username } = signIn
  const common = (own: string): ReadonlyArray<string> => [
    `bootstrap.servers=${bootstrap}`,
    "security.protocol=SASL_PLAINTEXT",
    `sasl.mechanism=${own.toUpperCase()}`,
    "isolation.level=read_committed"
  ]
  const login = loginOf(mechanism === SCRAM ? SCRAM_MODULE : PLAIN_MODULE, username, password)
  const lines = (all: ReadonlyArray<string>): string => `${all.join("\n")}\n`
  return {
    java: lines([...common(mechanism), `sasl.jaas.config=${login};`]),
    librdkafka: lines([
      ...common("plain"),
      `sasl.username=${username}`,
      `sasl.password=${password}`
    ]),
    environment: variableLines(brokerVariables(bootstrap, signIn))
  }
}
