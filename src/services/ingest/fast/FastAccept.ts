/**
 * Hot path: measured in test/bench/Accept.ts. Gives the bytes of a request to the module compiled
 * of `assembly`, and takes the events that it made of them. The module answers "done" or "not mine":
 * every error and warning is made by StrictJson and Prepare.
 *
 * The module's memory grows to the largest request it has read, 24 MiB at most, and stays so. A
 * request is read synchronously, so that one memory is enough for all of them; nothing of the
 * answer lies in it.
 */
import { randomFillSync } from "node:crypto"
import { EVENT_ENTRY_BYTES, type EventBatch } from "../../../domain/records/EventBatch.ts"
import {
  type Exported,
  instantiate,
  madeOnce,
  type WithMemory
} from "../../../domain/WasmModule.ts"
import type { PrepareLimits } from "../Prepare.ts"
import { ACCEPT_MODULE } from "./gen/AcceptModule.ts"

/** What a request consists of: `{"events":[…]}` or `[…]`, one item a line, one item. */
export type RequestForm = "batch" | "lines" | "single"

/** What the events of a request share. */
export interface FastOptions {
  readonly itemsMax: number
  readonly limits: PrepareLimits
  /** Canonical microsecond form; the timestamp of an event without one. */
  readonly acceptedAt: string
  /** Keeps fingerprints from being computed by others. */
  readonly secret: string
  /** What is hashed for a dedup key, before the id. */
  readonly dedupStart: string
  /** What is hashed for a derived id, before the length of the index; undefined: ids are new. */
  readonly derivedStart: string | undefined
}

/** An item that is not done: its bytes are left to StrictJson. */
export interface RestItem {
  readonly index: number
  readonly bytes: Buffer
}

export interface FastResult {
  /** Items of the request. */
  readonly count: number
  readonly done: EventBatch
  /** In the order of the request. */
  readonly rest: ReadonlyArray<RestItem>
}

/** What the module exports, as src/services/ingest/fast/assembly/Accept.ts says. */
interface AcceptExports extends WithMemory {
  readonly REQUEST: Exported
  readonly ACCEPTED_AT: Exported
  readonly SECRET: Exported
  readonly DEDUP_START: Exported
  readonly DERIVED_START: Exported
  readonly SHARED_BYTES_MAX: Exported
  readonly RANDOM: Exported
  readonly REST: Exported
  readonly entries: Exported
  readonly bodies: Exported
  readonly bodiesEnd: Exported
  readonly events: Exported
  readonly rest: Exported
  makeRoom(length: number): number
  itemsIn(length: number): number
  setLimits(count: number, event: number, action: number, metadata: number): void
  accept(
    form: number,
    length: number,
    secret: number,
    dedup: number,
    derived: number,
    now: number
  ): number
}

const FORMS: Readonly<Record<RequestForm, number>> = { batch: 0, lines: 1, single: 2 }
/** Bytes of the place of an item that is not done: index, start, length. */
const REST_BYTES = 12
/** Random bytes of an event, for id and salt. */
const RANDOM_BYTES = 32
/** Limits are numbers of 32 bits there. */
const LIMIT_MAX = 0x7fffffff

/**
 * The one of this process, made when it is first asked for; undefined where V8 can't run the module,
 * such as on processors without its instructions.
 */
export const fastAccept = madeOnce(() => new FastAccept())

/** The module with its memory. */
export class FastAccept {
  readonly #module = instantiate<AcceptExports>(ACCEPT_MODULE)
  #memory = Buffer.alloc(0)

  /** Bytes of the memory; it never shrinks. */
  get memoryBytes(): number {
    return this.#module.memory.buffer.byteLength
  }

  /** Read a request, which has to be UTF-8. Undefined if it is not for the module as a whole. */
  read(body: Buffer, form: RequestForm, options: FastOptions): FastResult | undefined {
    const module = this.#module
    const { limits } = options
    if (module.makeRoom(body.length) === 0) return undefined
    if (this.#memory.buffer !== module.memory.buffer) {
      this.#memory = Buffer.from(module.memory.buffer)
    }
    const secret = this.#share(options.secret, module.SECRET)
    const dedup = this.#share(options.dedupStart, module.DEDUP_START)
    const derived = this.#share(options.derivedStart ?? "", module.DERIVED_START)
    if (secret === undefined || dedup === undefined || derived === undefined) return undefined
    module.setLimits(
      options.itemsMax,
      Math.min(limits.eventBytesMax, LIMIT_MAX),
      Math.min(limits.actionLengthMax, LIMIT_MAX),
      Math.min(limits.metadataBytesMax, LIMIT_MAX)
    )
    this.#memory.write(options.acceptedAt, module.ACCEPTED_AT.value, "latin1")
    body.copy(this.#memory, module.REQUEST.value)
    const random = module.itemsIn(body.length) * RANDOM_BYTES
    randomFillSync(this.#memory, module.RANDOM.value, random)
    const count = module.accept(FORMS[form], body.length, secret, dedup, derived, Date.now())
    return count < 0 ? undefined : { count, done: this.#done(), rest: this.#rest(body) }
  }

  /** Put a text where the module finds it: its bytes, or undefined if it is too long. */
  #share(text: string, { value: at }: Exported): number | undefined {
    const bytesMax = this.#module.SHARED_BYTES_MAX.value
    // A UTF-16 unit has three bytes at most.
    if (text.length * 3 > bytesMax && Buffer.byteLength(text) > bytesMax) return undefined
    return this.#memory.write(text, at)
  }

  #done(): EventBatch {
    const { bodies, bodiesEnd, entries, events } = this.#module
    const entryBytes = events.value * EVENT_ENTRY_BYTES
    const bytes = Buffer.allocUnsafe(entryBytes + bodiesEnd.value - bodies.value)
    this.#memory.copy(bytes, 0, entries.value, entries.value + entryBytes)
    this.#memory.copy(bytes, entryBytes, bodies.value, bodiesEnd.value)
    return {
      count: events.value,
      entries: bytes.subarray(0, entryBytes),
      bodies: bytes.subarray(entryBytes)
    }
  }

  #rest(body: Buffer): ReadonlyArray<RestItem> {
    const { REST, rest } = this.#module
    return Array.from({ length: rest.value }, (_, item) => {
      const at = REST.value + item * REST_BYTES
      const start = this.#memory.readUInt32LE(at + 4)
      const length = this.#memory.readUInt32LE(at + 8)
      return {
        index: this.#memory.readUInt32LE(at),
        bytes: body.subarray(start, start + length)
      }
    })
  }
}
