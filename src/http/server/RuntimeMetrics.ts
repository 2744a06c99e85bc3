/**
 * What Node says of a process while it runs, for `/metrics`: how late its event loop is, and what
 * collecting garbage takes. Measured in windows of a fixed length, however often it is read.
 */
import { monitorEventLoopDelay, type PerformanceEntry, PerformanceObserver } from "node:perf_hooks"
import { Effect, Metric, Schedule, type Scope } from "effect"
import { gaugeOf, histogramOf } from "../../domain/metrics/Metrics.ts"

/** The usual time between two scrapes: a longer one misses what a shorter one shows. */
const WINDOW = "15 seconds"
/** Milliseconds between two looks at the loop: finer ones cost more than they show. */
const RESOLUTION_MS = 20
const NANOS_OF_SECOND = 1e9
const MILLIS_OF_SECOND = 1_000
const P99 = 99

const lagMean = gaugeOf("nodejs_eventloop_lag_mean_seconds")
const lagP99 = gaugeOf("nodejs_eventloop_lag_p99_seconds")
const lagMax = gaugeOf("nodejs_eventloop_lag_max_seconds")
const gcSeconds = histogramOf("nodejs_gc_duration_seconds")

/** Names of the kinds that Node numbers. */
const gcKinds: Readonly<Record<number, string>> = {
  1: "minor",
  2: "minor",
  4: "major",
  8: "incremental",
  16: "weak_callbacks"
}

/** What Node says of a collection beside its duration. */
interface GcDetail {
  readonly kind: number
}

/** Collections since the last look. */
const collections = Effect.acquireRelease(
  Effect.sync(() => {
    let seen: Array<{ readonly kind: string; readonly seconds: number }> = []
    const observer = new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) {
        const { detail, duration } = entry as PerformanceEntry & { readonly detail: GcDetail }
        const { kind } = detail
        seen.push({ kind: gcKinds[kind] ?? "other", seconds: duration / MILLIS_OF_SECOND })
      }
    })
    observer.observe({ entryTypes: ["gc"] })
    const take = () => {
      const taken = seen
      seen = []
      return taken
    }
    return { take, observer }
  }),
  ({ observer }) => Effect.sync(() => observer.disconnect())
)

const loopDelay = Effect.acquireRelease(
  Effect.sync(() => {
    const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
    histogram.enable()
    return histogram
  }),
  (histogram) => Effect.sync(() => histogram.disable())
)

/** Without the time that a look waits by itself; 0 where nothing was measured. */
const secondsLate = (nanos: number): number => {
  const late = nanos / NANOS_OF_SECOND - RESOLUTION_MS / MILLIS_OF_SECOND
  return late > 0 ? late : 0
}

/** Measures this process for as long as the scope is open. */
export const watchRuntime: Effect.Effect<void, never, Scope.Scope> = Effect.gen(function* () {
  const { take } = yield* collections
  const delay = yield* loopDelay
  const look = Effect.gen(function* () {
    yield* Metric.update(lagMean, secondsLate(delay.mean))
    yield* Metric.update(lagP99, secondsLate(delay.percentile(P99)))
    yield* Metric.update(lagMax, secondsLate(delay.max))
    delay.reset()
    for (const { kind, seconds } of take()) {
      yield* Metric.update(Metric.withAttributes(gcSeconds, { kind }), seconds)
    }
  })
  yield* Effect.forkScoped(Effect.repeat(look, Schedule.spaced(WINDOW)))
})
