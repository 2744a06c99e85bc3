/**
 * One process of the service in a simulation: the real sequencers, projection, follower, ingest and
 * live feed on simulated ports. It crashes between any two calls of a port, and starts again.
 */
import {
  Cause,
  Context,
  Deferred,
  Effect,
  Fiber,
  Layer,
  Logger,
  Redacted,
  References
} from "effect"
import { type LiveFeed, layerLiveFeed } from "../../src/actors/feeds/LiveFeed.ts"
import { Keys } from "../../src/actors/follower/Keys.ts"
import { layerLogFollower } from "../../src/actors/follower/LogFollower.ts"
import type { Receipts } from "../../src/actors/follower/Receipts.ts"
import type { ProjectionProgress } from "../../src/actors/log/ProjectionProgress.ts"
import { runProjection } from "../../src/actors/projection/Projection.ts"
import { runSequencers } from "../../src/actors/sequencer/Sequencers.ts"
import { EventLog } from "../../src/ports/EventLog.ts"
import type { EventStore } from "../../src/ports/EventStore.ts"
import { layerCommandLog } from "../../src/services/commands/CommandLog.ts"
import { type Ingest, layerIngest } from "../../src/services/ingest/Ingest.ts"
import { checkpointSigner } from "../support/Signer.ts"
import type { Faults, Life } from "./Faults.ts"
import type { SimulatedLog } from "./SimulatedLog.ts"
import type { SimulatedStore } from "./SimulatedStore.ts"

export const SIMULATION_SECRET = "a-secret-of-the-simulation-long-enough"
const STREAMS_MAX = 100
/** Entries that a sequencer remembers: more than one run makes. */
const WINDOWS = { dedup: 10_000, idempotency: 10_000 }

/** What clients use of a process. */
type Api = Ingest | Receipts | LiveFeed | ProjectionProgress | EventLog | EventStore

/** What all processes share. */
export interface World {
  readonly faults: Faults
  readonly log: SimulatedLog
  readonly store: SimulatedStore
  readonly settleMs: number
}

const layerKeys = Layer.mock(Keys, {
  isAdmin: () => false,
  known: () => undefined,
  ended: () => Effect.never
})

const apiOf = layerLiveFeed(STREAMS_MAX).pipe(
  Layer.provideMerge(layerIngest(Redacted.make(SIMULATION_SECRET))),
  Layer.provideMerge(Layer.mergeAll(layerLogFollower, layerCommandLog, layerKeys))
)

class Lifetime implements Life {
  readonly name: string
  isDead = false
  frozenUntil = 0
  ordered = 0
  readonly died = Deferred.makeUnsafe<void>()
  api: Context.Context<Api> | undefined
  fiber: Fiber.Fiber<unknown, unknown> | undefined

  constructor(name: string) {
    this.name = name
  }
}

/** The process that a call was made to has ended, or has not started yet. */
export class ProcessGone extends Error {
  readonly _tag = "ProcessGone"
}

export class SimulatedProcess {
  readonly #name: string
  readonly #world: World
  #starts = 0
  #life: Lifetime | undefined

  constructor(name: string, world: World) {
    this.#name = name
    this.#world = world
    this.start()
  }

  get life(): Life | undefined {
    return this.#life
  }

  start(): void {
    if (this.#life !== undefined) return
    const { faults, log, settleMs, store } = this.#world
    this.#starts += 1
    const life = new Lifetime(`${this.#name}.${this.#starts}`)
    this.#life = life
    faults.log(`${life.name} starts`)
    const ports = Layer.merge(Layer.succeed(EventLog, log.port(life)), store.layer(life))
    const main = Effect.gen(function* () {
      const context = yield* Layer.build(ports)
      yield* runSequencers({ ...checkpointSigner, windows: WINDOWS }).pipe(
        Effect.provideContext(context)
      )
      yield* runProjection({ settleMs }).pipe(Effect.provideContext(context))
      const api = yield* Layer.build(apiOf).pipe(Effect.provideContext(context))
      life.api = Context.merge(context, api)
      return yield* Effect.never
    }).pipe(
      Effect.scoped,
      Effect.tapCause((cause) => Effect.logError("a process ends", { cause })),
      Effect.ensuring(Effect.sync(() => this.#ended(life))),
      Effect.provideService(
        References.CurrentLoggers,
        new Set([Logger.make(({ message }) => faults.log(`${life.name} ${textOf(message)}`))])
      )
    )
    life.fiber = faults.time.fork(main)
  }

  /** Its fibers end at once, and nobody else is told. */
  crash(): void {
    const life = this.#life
    if (life === undefined) return
    this.#world.faults.log(`${life.name} crashes`)
    this.#ended(life)
    this.#world.faults.time.fork(Effect.forkDetach(Fiber.interrupt(life.fiber!)))
  }

  /** It ends as it wants to. */
  stop(): void {
    const life = this.#life
    if (life === undefined) return
    this.#world.faults.log(`${life.name} stops`)
    this.#world.faults.time.fork(Effect.forkDetach(Fiber.interrupt(life.fiber!)))
  }

  /** Use the process; fails if it is not there, or ends before it has answered. */
  use<A, E>(effect: Effect.Effect<A, E, Api>): Effect.Effect<A, E | ProcessGone> {
    return Effect.suspend((): Effect.Effect<A, E | ProcessGone> => {
      const life = this.#life
      if (life?.api === undefined) return Effect.fail(new ProcessGone())
      const gone = Effect.andThen(Deferred.await(life.died), Effect.fail(new ProcessGone()))
      return Effect.raceFirst(Effect.provideContext(effect, life.api), gone).pipe(
        // What waits in a process that stops is interrupted with it.
        Effect.catchCauseIf(Cause.hasInterruptsOnly, () => Effect.fail(new ProcessGone()))
      )
    })
  }

  #ended(life: Lifetime): void {
    if (life.isDead) return
    life.isDead = true
    if (this.#life === life) this.#life = undefined
    this.#world.log.crashed(life)
    Deferred.doneUnsafe(life.died, Effect.void)
    const { chance, time } = this.#world.faults
    time.after(chance.between(10, 3_000), () => this.start())
  }
}

const textOf = (message: unknown): string =>
  (Array.isArray(message) ? message : [message])
    .map((part) => (typeof part === "string" ? part : JSON.stringify(part)))
    .join(" ")
