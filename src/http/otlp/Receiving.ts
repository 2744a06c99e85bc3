/**
 * How many messages of OTLP/gRPC are received at a time, by whom. Each is held as a whole, so only
 * as many as have room together; calls whose messages don't come delay others only briefly.
 */
import { Effect, Schedule, Semaphore } from "effect"
import { type ApiError, unavailable } from "../messages/ApiError.ts"

/** Milliseconds after which a message that has not arrived gives way when others wait for its turn. */
const SLOW_AFTER_MS = 5_000
const YIELD_POLL_MS = 100

const gaveWay = (): ApiError =>
  unavailable(
    `the message did not arrive within ${SLOW_AFTER_MS / 1_000} s while others waited; nothing of it`
      + " was stored, so try again"
  )

export interface Receiving {
  /** Receives a message of a tenant in its turn; fails when it takes long and others wait. */
  inTurn(tenantId: string, receive: Effect.Effect<void>): Effect.Effect<void, ApiError>
}

/** Turns, and how many wait for one. */
class Turns {
  readonly #semaphore: Semaphore.Semaphore
  waiting = 0

  constructor(atOnce: number) {
    this.#semaphore = Semaphore.makeUnsafe(atOnce)
  }

  take<E>(run: Effect.Effect<void, E>): Effect.Effect<void, E> {
    return Effect.suspend(() => {
      let isWaiting = true
      this.waiting += 1
      const waited = Effect.sync(() => {
        if (isWaiting) this.waiting -= 1
        isWaiting = false
      })
      const begun = Effect.andThen(waited, run)
      return this.#semaphore.withPermit(begun).pipe(Effect.ensuring(waited))
    })
  }
}

interface TenantRequests {
  readonly turns: Turns
  calls: number
}

/** So many messages at a time, half of them of one tenant at most. */
export const receivingOf = (atOnce: number): Receiving => {
  const all = new Turns(atOnce)
  const shares = new Map<string, TenantRequests>()
  const enter = (tenantId: string): TenantRequests => {
    const share = shares.get(tenantId) ?? {
      turns: new Turns(Math.max(1, Math.floor(atOnce / 2))),
      calls: 0
    }
    share.calls += 1
    shares.set(tenantId, share)
    return share
  }
  const leave = (tenantId: string, share: TenantRequests): void => {
    share.calls -= 1
    if (share.calls === 0) shares.delete(tenantId)
  }
  /** Fails when others wait for the turn that a slow one has. */
  const whenEvicted = ({ turns }: TenantRequests) =>
    Effect.sync(() => all.waiting + turns.waiting > 0).pipe(
      Effect.repeat({ until: (isAwaited) => isAwaited, schedule: Schedule.spaced(YIELD_POLL_MS) }),
      Effect.delay(SLOW_AFTER_MS),
      Effect.andThen(Effect.suspend(() => Effect.fail(gaveWay())))
    )
  return {
    inTurn: (tenantId, receive) =>
      Effect.acquireUseRelease(
        Effect.sync(() => enter(tenantId)),
        (share) => share.turns.take(all.take(Effect.raceFirst(receive, whenEvicted(share)))),
        (share) => Effect.sync(() => leave(tenantId, share))
      )
  }
}
