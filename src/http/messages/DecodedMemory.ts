/**
 * How much memory requests may take together once their bodies have been read: what is made of a
 * body is many times its size. A request waits for its turn, which the tenant that has taken the least
 * gets first; what waits holds no more than the bytes of its body.
 */
import { Effect } from "effect"
import { Tally } from "../../domain/Tally.ts"
import { unavailable } from "./ApiError.ts"
import { type BodyAccount, SMALL_BODY_BYTES } from "./BodyBudget.ts"

const MIB = 1_048_576
/** Bytes that all requests of this process may take, as estimated. */
const DECODED_BYTES_MAX = 256 * MIB
/** The part of it that is one tenant's: half. */
const TENANT_SHARE = 2
/** The part that only small bodies get, so that large ones of two tenants leave room: one eighth. */
const SMALL_SHARE = 8
/** Estimated bytes for a byte of a body: honest ones take less, the most hostile ones three times that. */
const BYTES_OF_JSON = 6
const BYTES_OF_OTHERS = 20
/** Milliseconds that a request waits for its turn. */
const WAIT_MS = 10_000

interface Wanted {
  readonly tenantId: string
  readonly bytes: number
  readonly isSmall: boolean
}

interface Waiting extends Wanted {
  readonly grant: () => void
}

export class DecodedMemory {
  readonly #bytesMax: number
  /** Of requests that have their turn, by tenant. */
  readonly #taken = new Tally()
  /** In their order. */
  readonly #waiting = new Set<Waiting>()

  constructor(bytesMax = DECODED_BYTES_MAX) {
    this.#bytesMax = bytesMax
  }

  /** What requests that have their turn take, as estimated. */
  get bytes(): number {
    return this.#taken.total
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
    const wanted = { tenantId, bytes, isSmall: body.bytes.length <= SMALL_BODY_BYTES }
    const take = () => {
      this.#taken.add(tenantId, bytes)
      account.whenOver(() => this.#put(tenantId, bytes))
    }
    return Effect.suspend(() => {
      if (!this.#fits(wanted)) return this.#wait(wanted, take)
      take()
      return Effect.void
    })
  }

  #wait(wanted: Wanted, take: () => void) {
    const granted = Effect.callback<void>((resume) => {
      const grant = () => {
        take()
        resume(Effect.void)
      }
      const waiting: Waiting = { ...wanted, grant }
      this.#waiting.add(waiting)
      return Effect.sync(() => this.#waiting.delete(waiting))
    })
    return Effect.timeoutOrElse(granted, {
      duration: WAIT_MS,
      orElse: () =>
        Effect.fail(unavailable("requests that came before take all the memory; try again"))
    })
  }

  #fits({ bytes, isSmall, tenantId }: Wanted): boolean {
    const own = this.#taken.of(tenantId)
    const share = isSmall ? 0 : this.#bytesMax / SMALL_SHARE
    const isOfTenant = own + bytes <= this.#bytesMax / TENANT_SHARE
    return isOfTenant && this.bytes + bytes <= this.#bytesMax - share
  }

  /** Of those that fit, the first of the tenant that has taken the least. */
  #next(): Waiting | undefined {
    let next: Waiting | undefined
    let least = Infinity
    for (const waiting of this.#waiting) {
      const taken = this.#taken.of(waiting.tenantId)
      if (taken >= least || !this.#fits(waiting)) continue
      next = waiting
      least = taken
    }
    return next
  }

  #put(tenantId: string, bytes: number): void {
    this.#taken.add(tenantId, -bytes)
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      this.#waiting.delete(next)
      next.grant()
    }
  }
}

/** That of this process. */
export const decodedMemory = new DecodedMemory()
