/** The hand-written Produce request and answer, against the encoder and decoder of kafkajs. */
import { createRequire } from "node:module"
import { assert, describe, it } from "@effect/vitest"
import {
  decodeProduceResponse,
  encodeProduceRequest
} from "../../../../src/adapters/kafka/protocol/ProduceRequest.ts"

const require = createRequire(import.meta.url)

interface Encoder {
  readonly buffer: Buffer
  writeString(text: string | null): Encoder
  writeInt16(value: number): Encoder
  writeInt32(value: number): Encoder
  writeInt64(value: string): Encoder
  writeBytes(value: Buffer): Encoder
  writeArray(value: ReadonlyArray<Encoder>): Encoder
}
const Encoder = require("kafkajs/src/protocol/encoder") as new () => Encoder

const batches = [
  { topic: "alk.events", partition: 0, bytes: Buffer.from("first") },
  { topic: "alk.state", partition: 3, bytes: Buffer.from("second batch") },
  { topic: "alk.events", partition: 11, bytes: Buffer.alloc(0) }
]

const partition = (id: number, bytes: Buffer) => new Encoder().writeInt32(id).writeBytes(bytes)

/** As the protocol guide lays it out. */
const wanted = (transactionalId: string | null): Buffer =>
  new Encoder()
    .writeString(transactionalId)
    .writeInt16(-1)
    .writeInt32(10_000)
    .writeArray([
      new Encoder()
        .writeString("alk.events")
        .writeArray([partition(0, batches[0]!.bytes), partition(11, batches[2]!.bytes)]),
      new Encoder().writeString("alk.state").writeArray([partition(3, batches[1]!.bytes)])
    ]).buffer

describe("a Produce request", () => {
  it.each([null, "alk-sequencer-0", "ünï"])("of the transactional id %s", (transactionalId) => {
    assert.strictEqual(
      encodeProduceRequest(transactionalId, batches).toString("hex"),
      wanted(transactionalId).toString("hex")
    )
  })
})

describe("the answer to a Produce request", () => {
  it("tells the error, the offset and the append time of every partition", () => {
    const answer = (id: number, errorCode: number, baseOffset: string, appendTime = "-1") =>
      new Encoder()
        .writeInt32(id)
        .writeInt16(errorCode)
        .writeInt64(baseOffset)
        .writeInt64(appendTime)
        .writeInt64("17")
    const payload = new Encoder()
      .writeArray([
        new Encoder()
          .writeString("alk.events")
          .writeArray([answer(0, 0, "5000000000"), answer(11, 6, "-1")]),
        new Encoder().writeString("alk.state").writeArray([answer(3, 0, "4", "1795723268118")])
      ])
      .writeInt32(100).buffer
    assert.deepStrictEqual(decodeProduceResponse(payload), [
      {
        topic: "alk.events",
        partition: 0,
        errorCode: 0,
        baseOffset: 5_000_000_000,
        appendTime: -1
      },
      { topic: "alk.events", partition: 11, errorCode: 6, baseOffset: -1, appendTime: -1 },
      {
        topic: "alk.state",
        partition: 3,
        errorCode: 0,
        baseOffset: 4,
        appendTime: 1_795_723_268_118
      }
    ])
  })
})
