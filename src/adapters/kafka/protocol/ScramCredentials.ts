/**
 * What a broker keeps of a user for SCRAM, and the request that tells it (AlterUserScramCredentials,
 * version 0), which kafkajs does not have. The password itself is not sent.
 * Source: RFC 5802 and Kafka's protocol guide; the encoders are those of kafkajs.
 */
import { pbkdf2Sync, randomBytes } from "node:crypto"
import { createRequire } from "node:module"
import { type Encoder, NewEncoder } from "./FlexibleEncoder.ts"
import { errorOfCode, type KafkaSettings, makeCluster, type RawRequest } from "./KafkaClient.ts"

const require = createRequire(import.meta.url)

interface Decoder {
  readInt16(): number
  readInt32(): number
  readTaggedFields(): void
  readUVarIntArray<A>(read: (decoder: Decoder) => A): ReadonlyArray<A>
  readUVarIntString(): string | null
}
const NewDecoder = require("kafkajs/src/protocol/decoder") as new (payload: Buffer) => Decoder

const ALTER_USER_SCRAM_CREDENTIALS = 51
const SCRAM_SHA_256 = 1
/** The fewest that Kafka takes; the passwords are 256 random bits, which no number of them protects. */
const ITERATIONS = 4_096
const SALT_BYTES = 16
const DIGEST_BYTES = 32

export interface ScramCredential {
  readonly user: string
  readonly salt: Buffer
  readonly saltedPassword: Buffer
}

export const scramSha256 = (user: string, password: string): ScramCredential => {
  const salt = randomBytes(SALT_BYTES)
  const saltedPassword = pbkdf2Sync(password, salt, ITERATIONS, DIGEST_BYTES, "sha256")
  return { user, salt, saltedPassword }
}

const encoded = ({ salt, saltedPassword, user }: ScramCredential): Encoder =>
  new NewEncoder()
    .writeUVarIntString(user)
    .writeInt8(SCRAM_SHA_256)
    .writeInt32(ITERATIONS)
    .writeUVarIntBytes(salt)
    .writeUVarIntBytes(saltedPassword)
    .writeUVarIntBytes()

/** The code of each user, 0 for one that is kept. */
const codesIn = (payload: Buffer): ReadonlyArray<number> => {
  const decoder = new NewDecoder(payload)
  decoder.readTaggedFields()
  decoder.readInt32()
  return decoder.readUVarIntArray((one) => {
    one.readUVarIntString()
    const code = one.readInt16()
    one.readUVarIntString()
    one.readTaggedFields()
    return code
  })
}

const request = (
  credentials: ReadonlyArray<ScramCredential>
): RawRequest<ReadonlyArray<number>> => ({
  request: {
    apiKey: ALTER_USER_SCRAM_CREDENTIALS,
    apiVersion: 0,
    apiName: "AlterUserScramCredentials",
    encode: () =>
      Promise.resolve(
        new NewEncoder()
          .writeUVarIntBytes()
          // None is removed.
          .writeUVarIntArray([])
          .writeUVarIntArray(credentials.map(encoded))
          .writeUVarIntBytes()
      )
  },
  response: {
    decode: (payload) => Promise.resolve(codesIn(payload)),
    parse: (codes) => Promise.resolve(codes)
  }
})

/** Tells a cluster what it has to keep of its users. */
export const setScramCredentials = async (
  settings: KafkaSettings,
  credentials: ReadonlyArray<ScramCredential>
): Promise<void> => {
  const cluster = makeCluster(settings)
  try {
    await cluster.connect()
    await cluster.refreshMetadata()
    const broker = await cluster.findControllerBroker()
    const codes = await broker.connectionPool.send(request(credentials))
    const refused = codes.find((code) => code !== 0)
    if (refused !== undefined) throw errorOfCode(refused)
  } finally {
    await cluster.disconnect()
  }
}
