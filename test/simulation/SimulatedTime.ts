/**
 * The time of a simulation, and the one loop that runs it: all fibers until each of them waits, then
 * the next timer. Nothing real passes, so a run is as fast as its computing, and its order is fixed.
 */
import {
  Clock,
  Duration,
  Effect,
  type Exit,
  type Fiber,
  Random,
  References,
  Scheduler
} from "effect"
import type { Chance } from "./Chance.ts"

interface Timer {
  readonly at: number
  readonly order: number
  readonly run: () => void
  cancelled: boolean
}

/** When simulated time begins, milliseconds since 1970. */
const START_MS = Date.parse("2026-01-01T00:00:00Z")

const isBefore = (left: Timer, right: Timer): boolean =>
  left.at < right.at || (left.at === right.at && left.order < right.order)

/** What a run ends with if nothing more can happen, or too much time has passed. */
export class NoEnd extends Error {}

export class SimulatedTime {
  /** Milliseconds since the start; only ever grows. */
  now = 0
  /** What the wall clock says beside that: it can be set. */
  skew = 0
  readonly #heap: Array<Timer> = []
  #order = 0
  #tasks: Array<() => void> = []
  readonly #chance: Chance

  constructor(chance: Chance) {
    this.#chance = chance
  }

  get wall(): number {
    return START_MS + Math.floor(this.now) + this.skew
  }

  /** Run something later; what comes back cancels it. */
  after(milliseconds: number, run: () => void): () => void {
    const timer = { at: this.now + milliseconds, order: this.#order++, run, cancelled: false }
    this.#push(timer)
    return () => {
      timer.cancelled = true
    }
  }

  sleep(milliseconds: number): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      const cancel = this.after(milliseconds, () => resume(Effect.void))
      return Effect.sync(cancel)
    })
  }

  /** Run an effect in simulated time, at once. */
  run<A, E>(effect: Effect.Effect<A, E>, endMs: number): Exit.Exit<A, E> {
    const { now: wallNow } = Date
    const { now: fineNow } = performance
    const { stackTraceLimit } = Error
    // Faults are errors, and their stacks would cost more than all the rest.
    Error.stackTraceLimit = 0
    Date.now = () => this.wall
    performance.now = () => this.now
    try {
      const fiber = Effect.runFork(this.#provided(effect))
      for (;;) {
        this.#runTasks()
        const exit = fiber.pollUnsafe()
        if (exit !== undefined) return exit
        const timer = this.#pop()
        if (timer === undefined) throw new NoEnd("everything waits for ever")
        if (timer.at > endMs) throw new NoEnd(`no end within ${endMs} ms`)
        if (timer.cancelled) continue
        this.now = Math.max(this.now, timer.at)
        timer.run()
      }
    } finally {
      Date.now = wallNow
      performance.now = fineNow
      Error.stackTraceLimit = stackTraceLimit
    }
  }

  /** Run an effect beside the others. */
  fork<A, E>(effect: Effect.Effect<A, E>): Fiber.Fiber<A, E> {
    return Effect.runFork(this.#provided(effect))
  }

  #provided<A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> {
    const later = (task: () => void) => {
      this.#tasks.push(task)
      return () => {
        this.#tasks = this.#tasks.filter((one) => one !== task)
      }
    }
    const nanos = () => BigInt(Math.floor(this.now * 1_000_000))
    const wallNanos = () => BigInt(this.wall) * 1_000_000n
    return effect.pipe(
      Effect.provideService(References.CurrentLoggers, new Set()),
      Effect.provideService(Scheduler.Scheduler, new Scheduler.MixedScheduler("async", later)),
      Effect.provideService(Clock.Clock, {
        currentTimeMillisUnsafe: () => this.wall,
        currentTimeMillis: Effect.sync(() => this.wall),
        currentTimeNanosUnsafe: wallNanos,
        currentTimeNanos: Effect.sync(wallNanos),
        monotonicTimeNanosUnsafe: nanos,
        monotonicTimeNanos: Effect.sync(nanos),
        sleep: (duration: Duration.Duration) => {
          const milliseconds = Duration.toMillis(duration)
          return Number.isFinite(milliseconds) ? this.sleep(milliseconds) : Effect.never
        }
      } as unknown as Clock.Clock),
      Effect.provideService(Random.Random, {
        nextDoubleUnsafe: () => this.#chance.next(),
        nextIntUnsafe: () => this.#chance.between(0, 0x7fffffff)
      })
    )
  }

  #runTasks(): void {
    while (this.#tasks.length > 0) {
      const tasks = this.#tasks
      this.#tasks = []
      for (const task of tasks) task()
    }
  }

  #push(timer: Timer): void {
    const heap = this.#heap
    let at = heap.push(timer) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!isBefore(timer, heap[parent]!)) break
      heap[at] = heap[parent]!
      at = parent
    }
    heap[at] = timer
  }

  #pop(): Timer | undefined {
    const heap = this.#heap
    const [first] = heap
    const last = heap.pop()
    if (first === undefined || last === undefined || heap.length === 0) return first
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child += 1
      if (!isBefore(heap[child]!, last)) break
      heap[at] = heap[child]!
      at = child
    }
    heap[at] = last
    return first
  }
}
