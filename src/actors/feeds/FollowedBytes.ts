/**
 * How many bytes the executions that are followed are known by together, in this process and of one
 * tenant. Above what a tenant may, its next one that grows is closed, and the next one that it asks
 * for is refused; above what all may, the largest of the tenant that follows the most makes room.
 */
import { Tally } from "../../domain/Tally.ts"
import type { TraceFact } from "../../domain/traces/TraceFact.ts"

const MIB = 1_048_576
/** Bytes of one execution, see ExecutionReplay. */
export const FOLLOWED_BYTES_MAX = 64 * MIB
/** Of all that a tenant follows. */
export const TENANT_FOLLOWED_BYTES_MAX = 2 * FOLLOWED_BYTES_MAX
/** Of all tenants. */
const ALL_FOLLOWED_BYTES_MAX = 4 * FOLLOWED_BYTES_MAX

/** Bytes of memory that a value takes beside its text. */
const VALUE_BYTES = 64

/** Values in a JSON value, itself among them. */
const valuesIn = (value: unknown): number => {
  if (typeof value !== "object" || value === null) return 1
  let values = 1
  for (const key in value) values += valuesIn((value as Readonly<Record<string, unknown>>)[key])
  return values
}

/** What a fact is counted for whose text has so many bytes: it is held as values. */
export const heldBytes = ({ details }: TraceFact, textBytes: number): number =>
  textBytes + VALUE_BYTES * valuesIn(details)

/** What one execution is counted for. */
export class Followed {
  readonly tenantId: string
  readonly #all: FollowedBytes
  readonly #makeRoom: () => void
  #bytes = 0
  #hasMadeRoom = false

  constructor(all: FollowedBytes, tenantId: string, makeRoom: () => void) {
    this.#all = all
    this.tenantId = tenantId
    this.#makeRoom = makeRoom
  }

  get bytes(): number {
    return this.#bytes
  }

  /** True if more is known of it than may be of one execution. */
  get isTooLarge(): boolean {
    return this.#bytes > FOLLOWED_BYTES_MAX
  }

  /** True if its tenant follows more than it may, or it had to make room for others. */
  get isOneTooMany(): boolean {
    return this.#hasMadeRoom || this.#all.of(this.tenantId) > TENANT_FOLLOWED_BYTES_MAX
  }

  /** Less for a number below zero. */
  add(bytes: number): void {
    this.#bytes += bytes
    this.#all.add(bytes, this)
  }

  /** It is no longer followed. */
  release(): void {
    this.add(-this.#bytes)
  }

  makeRoom(): void {
    this.#hasMadeRoom = true
    this.#makeRoom()
    this.release()
  }
}

export class FollowedBytes {
  readonly #bytesMax: number
  readonly #bytes = new Tally()
  readonly #followed = new Set<Followed>()

  constructor(bytesMax = ALL_FOLLOWED_BYTES_MAX) {
    this.#bytesMax = bytesMax
  }

  /** Of all tenants. */
  get bytes(): number {
    return this.#bytes.total
  }

  of(tenantId: string): number {
    return this.#bytes.of(tenantId)
  }

  /** `makeRoom` is called once what is known of the execution has to be dropped. */
  begin(tenantId: string, makeRoom: () => void): Followed {
    return new Followed(this, tenantId, makeRoom)
  }

  /** For what is followed only. */
  add(bytes: number, followed: Followed): void {
    this.#bytes.add(followed.tenantId, bytes)
    if (followed.bytes === 0) this.#followed.delete(followed)
    else this.#followed.add(followed)
    while (this.#bytes.total > this.#bytesMax) this.#largest()?.makeRoom()
  }

  /** Of the tenant that follows the most, what takes the most: small ones stay. */
  #largest(): Followed | undefined {
    let largest: Followed | undefined
    for (const one of this.#followed) {
      const more = this.of(one.tenantId) - this.of(largest?.tenantId ?? "")
      if (more > 0 || (more === 0 && one.bytes > (largest?.bytes ?? 0))) largest = one
    }
    return largest
  }
}
