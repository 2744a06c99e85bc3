/** kafkajs's encoder, as far as requests of the flexible kind need it that kafkajs does not have. */
import { createRequire } from "node:module"

const require = createRequire(import.meta.url)

export interface Encoder {
  writeInt8(value: number): Encoder
  writeInt32(value: number): Encoder
  writeUVarIntArray(items: ReadonlyArray<Encoder>): Encoder
  /** Without bytes it is what stands for no tagged fields. */
  writeUVarIntBytes(bytes?: Buffer): Encoder
  writeUVarIntString(text: string): Encoder
}

export const NewEncoder = require("kafkajs/src/protocol/encoder") as new () => Encoder
