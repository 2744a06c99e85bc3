/**
 * How many bytes the executions that are followed are known by together, in this process and of one
 * tenant. Above that the next one that grows is closed, and the next one that is asked for is refused.
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
export interface Followed {
  readonly bytes: number
  /** True if more is known of it than may be of one execution. */
  readonly isTooLarge: boolean
  /** True if all that are followed, or those of its tenant, are known by more than they may be. */
  readonly isOneTooMany: boolean
  /** Less for a number below zero. */
  readonly add: (bytes: number) => void
  /** It is no longer followed. */
  readonly release: () => void
}

export class FollowedBytes {
  readonly #bytes = new Tally()

  #isFull(tenantId: string): boolean {
    const { total } = this.#bytes
    return this.#bytes.of(tenantId) > TENANT_FOLLOWED_BYTES_MAX || total > ALL_FOLLOWED_BYTES_MAX
  }

  begin(tenantId: string): Followed {
    let own = 0
    const add = (bytes: number) => {
      own += bytes
      this.#bytes.add(tenantId, bytes)
    }
    const isFull = () => this.#isFull(tenantId)
    return {
      get bytes() {
        return own
      },
      get isTooLarge() {
        return own > FOLLOWED_BYTES_MAX
      },
      get isOneTooMany() {
        return isFull()
      },
      add,
      release: () => add(-own)
    }
  }
}
