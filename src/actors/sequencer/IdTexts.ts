/**
 * Hot path: measured in test/bench/Sequencing.ts. The ids of a receipt as a list of JSON, put
 * together from the bytes of the events: no text is made of any of them.
 */
import { parseJson } from "../../domain/json/Json.ts"
import {
  bodyOffsetAt,
  type EventBatch,
  ID_AT,
  idLengthAt
} from "../../domain/records/EventBatch.ts"

const LEFT_BRACKET = 0x5b
const RIGHT_BRACKET = 0x5d
const COMMA = 0x2c
/** Two quotes and what separates an id from the next. */
const FRAME_BYTES = 3
const BRACKETS_BYTES = 2

const bytesOf = (batch: EventBatch): number => {
  let bytes = BRACKETS_BYTES
  for (let event = 0; event < batch.count; event++) bytes += idLengthAt(batch, event) + FRAME_BYTES
  return bytes
}

export class IdTexts {
  readonly #batch: EventBatch
  readonly #bytes: Buffer
  #end = 1
  #length = 0

  /** For ids of events of this batch, each once at most. */
  constructor(batch: EventBatch) {
    this.#batch = batch
    this.#bytes = Buffer.allocUnsafe(bytesOf(batch))
    this.#bytes[0] = LEFT_BRACKET
  }

  get length(): number {
    return this.#length
  }

  add(event: number): void {
    const { bodies } = this.#batch
    const bytes = this.#bytes
    let at = this.#end
    if (this.#length > 0) bytes[at++] = COMMA
    const start = bodyOffsetAt(this.#batch, event) + ID_AT - 1
    const end = start + idLengthAt(this.#batch, event) + 2
    for (let from = start; from < end; from++) bytes[at++] = bodies[from]!
    this.#end = at
    this.#length += 1
  }

  /** The list as JSON. */
  get json(): Buffer {
    this.#bytes[this.#end] = RIGHT_BRACKET
    return this.#bytes.subarray(0, this.#end + 1)
  }

  toJSON(): ReadonlyArray<string> {
    return parseJson(this.json.toString()) as ReadonlyArray<string>
  }

  *[Symbol.iterator](): Iterator<string> {
    yield* this.toJSON()
  }
}
