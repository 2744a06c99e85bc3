/**
 * How much memory requests may take together once their bodies have been read: what is made of a
 * body is many times its size. A request waits for its turn, those of a tenant among themselves
 * first; what waits holds no more than the bytes of its body.
 */
import { Effect } from "effect"
import { unavailable } from "./ApiError.ts"
import type { BodyAccount } from "./BodyBudget.ts"

const MIB = 1_048_576
/** Bytes that all requests of this process may take, as estimated. */
const DECODED_BYTES_MAX = 256 * MIB
/** The part of it that is one tenant's: half. */
const TENANT_SHARE = 2
/** Estimated bytes for a byte of a body: honest ones take less, the most hostile ones three times that. */
const BYTES_OF_JSON = 6
const BYTES_OF_OTHERS = 20
/** Milliseconds that a request waits for its turn. */
const WAIT_MS = 10_000

interface Waiting {
  readonly tenantId: string
  readonly bytes: number
  readonly grant: () => void
}

export class DecodedMemory {
  readonly #bytesMax: number
  readonly #tenants = new Map<string, number>()
  /** In their order. */
  readonly #waiting = new Set<Waiting>()
  #bytes = 0

  constructor(bytesMax = DECODED_BYTES_MAX) {
    this.#bytesMax = bytesMax
  }

  /** What requests that have their turn take, as estimated. */
  get bytes(): number {
    return this.#bytes
  }

  /** Waits until a body of so many bytes may be decoded; its account gives the memory back. */
  turn(
    tenantId: string,
    body: { readonly mediaType: string; readonly bytes: Buffer },
    account: BodyAccount
  ) {
    const times = body.mediaType.endsWith("json") ? BYTES_OF_JSON : BYTES_OF_OTHERS
    // One that is larger still comes alone.
    const bytes = Math.min(body.bytes.length * times, this.#bytesMax / TENANT_SHARE)
    const wait = Effect.callback<void>((resume) => {
      const waiting: Waiting = {
        tenantId,
        bytes,
        grant: () => {
          this.#add(tenantId, bytes)
          account.whenOver(() => this.#put(tenantId, bytes))
          resume(Effect.void)
        }
      }
      if (this.#fits(waiting)) return void waiting.grant()
      this.#waiting.add(waiting)
      return Effect.sync(() => this.#waiting.delete(waiting))
    })
    return Effect.timeoutOrElse(wait, {
      duration: WAIT_MS,
      orElse: () =>
        Effect.fail(unavailable("requests that came before take all the memory; try again"))
    })
  }

  #fits({ bytes, tenantId }: Waiting): boolean {
    const own = this.#tenants.get(tenantId) ?? 0
    return own + bytes <= this.#bytesMax / TENANT_SHARE && this.#bytes + bytes <= this.#bytesMax
  }

  #add(tenantId: string, bytes: number): void {
    this.#bytes += bytes
    const own = (this.#tenants.get(tenantId) ?? 0) + bytes
    if (own === 0) this.#tenants.delete(tenantId)
    else this.#tenants.set(tenantId, own)
  }

  #put(tenantId: string, bytes: number): void {
    this.#add(tenantId, -bytes)
    for (const waiting of this.#waiting) {
      if (!this.#fits(waiting)) continue
      this.#waiting.delete(waiting)
      waiting.grant()
    }
  }
}

/** That of this process. */
export const decodedMemory = new DecodedMemory()
