/**
 * What the service says of itself, read now and then while the page is in use: the last minutes of
 * its metrics, and whether its parts are ready. A reading that failed is known as such.
 */
import { signal } from "@preact/signals"
import type { Readiness } from "../../client/gen/Api.d.ts"
import { failureOf } from "../api/Answer.ts"
import { ApiFailure, call, callText } from "../api/Client.ts"
import { isPresent } from "../api/Presence.ts"
import { type Metrics, parseMetrics, type Reading } from "./Prometheus.ts"

export interface ReadinessReading {
  readonly at: number
  readonly body: Readiness
}

export const READ_EVERY_MS = 5_000
/** Five minutes. */
const READINGS_MAX = 61
/** A look at the parts sends a probe through every partition: not at every reading. */
const READINESS_EVERY = 3

const isReadiness = (body: unknown): body is Readiness =>
  typeof (body as Partial<Readiness> | undefined)?.kafka === "object"

/** Every process says since when it runs: a text without that is something else. */
const SIGN = "process_start_time_seconds"

const readMetrics = (text: string): Metrics => {
  const metrics = parseMetrics(text)
  if (metrics.has(SIGN)) return metrics
  throw new ApiFailure(200, "unreadable", "GET /metrics does not answer with metrics of alk")
}

/** 503 says which part is not ready, or, without parts, that the process does not answer for them. */
const askReadiness = async (): Promise<Readiness> => {
  const body = await call<unknown>("/readyz", { answers: [503] })
  if (isReadiness(body)) return body
  throw new ApiFailure(
    503,
    "unavailable",
    "the service starts or stops: it says nothing of its parts"
  )
}

export class HealthReadings {
  /** Oldest first. */
  readonly readings = signal<ReadonlyArray<Reading>>([])
  readonly readiness = signal<ReadinessReading | undefined>(undefined)
  /** Of the last attempt. */
  readonly failure = signal<ApiFailure | undefined>(undefined)
  #count = 0
  #isReading = false
  readonly #timer: ReturnType<typeof setInterval>

  constructor() {
    void this.read()
    this.#timer = setInterval(() => {
      if (isPresent()) void this.read()
    }, READ_EVERY_MS)
  }

  end(): void {
    clearInterval(this.#timer)
  }

  async read(): Promise<void> {
    if (this.#isReading) return
    this.#isReading = true
    try {
      const [text] = await Promise.all([callText("/metrics"), this.#readReadiness()])
      const reading = { at: Date.now(), metrics: readMetrics(text) }
      this.readings.value = [...this.readings.peek(), reading].slice(-READINGS_MAX)
      this.failure.value = undefined
    } catch (error) {
      this.failure.value = failureOf(error)
    } finally {
      this.#isReading = false
    }
  }

  async #readReadiness(): Promise<void> {
    const isDue = this.#count % READINESS_EVERY === 0 || this.failure.peek() !== undefined
    this.#count += 1
    if (isDue) this.readiness.value = { body: await askReadiness(), at: Date.now() }
  }
}
