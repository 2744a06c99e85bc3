/**
 * Connects to a port every few milliseconds, asks once, and keeps book: whoever was let in has to be
 * answered, whatever the answer. Shares no code with the program.
 */
import { connect } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { assert } from "vitest"
import { eventuallyAsync } from "./Eventually.ts"

/** Milliseconds between two connections. */
const EVERY_MS = 10

/** Its place among all that the probe has seen, and the milliseconds of its clock. */
interface Moment {
  readonly place: number
  readonly at: number
}

interface Asked {
  readonly path: string
  readonly asked: Moment
  /** Its first byte; undefined: none came. */
  answered: Moment | undefined
  /** The end of the connection; undefined: it is open. */
  over: Moment | undefined
  status: number
}

/** What whoever is let in may wait, in milliseconds. */
export interface ProbeLimits {
  /** For an answer. */
  readonly answerMs: number
  /** To be sent away without one, because the server closes. */
  readonly awayMs: number
}

/** Of all servers here, on a machine that does nothing else. */
export const PROBE_LIMITS: ProbeLimits = { answerMs: 5_000, awayMs: 2_500 }

const PATHS = ["/readyz", "/healthz", "/metrics", "/v1/events"]

export class StartProbe {
  readonly #port: number
  readonly #asked: Array<Asked> = []
  #isEnding = false
  #answered = 0
  #moments = 0
  #running: Promise<void> = Promise.resolve()

  private constructor(port: number) {
    this.#port = port
  }

  static begin(port: number): StartProbe {
    const probe = new StartProbe(port)
    probe.#running = probe.#run()
    return probe
  }

  /** Count from here on. */
  begin(): void {
    this.#answered = 0
  }

  async #run(): Promise<void> {
    for (let n = 0; !this.#isEnding; n++) {
      this.#ask(PATHS[n % PATHS.length]!)
      await sleep(EVERY_MS)
    }
  }

  #now(): Moment {
    return { place: this.#moments++, at: performance.now() }
  }

  #ask(path: string): void {
    const socket = connect(this.#port, "127.0.0.1")
    let asked: Asked | undefined
    socket.on("connect", () => {
      asked = { path, asked: this.#now(), answered: undefined, over: undefined, status: 0 }
      this.#asked.push(asked)
      socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
    })
    socket.on("data", (data: Buffer) => {
      if (asked === undefined || asked.answered !== undefined) return
      asked.answered = this.#now()
      asked.status = Number(/^HTTP\/1\.1 (\d{3})/.exec(data.toString("latin1"))?.[1] ?? 0)
      this.#answered += 1
    })
    // Refused: nobody listens, and nobody has to answer.
    socket.on("error", () => {})
    socket.on("close", () => {
      if (asked !== undefined) asked.over = this.#now()
    })
  }

  /** Wait for so many answers. */
  async until(enough: (answered: number) => boolean): Promise<void> {
    await eventuallyAsync(
      "the probe has its answers",
      () => ({ answered: this.#answered, last: this.#asked.slice(-4) }),
      ({ answered }) => enough(answered)
    )
  }

  /** Connect no more; comes back when nobody waits. */
  async end(): Promise<void> {
    this.#isEnding = true
    await this.#running
    await eventuallyAsync(
      "everybody is answered or sent away",
      () =>
        this.#asked.filter(({ answered, over }) => answered === undefined && over === undefined),
      ({ length }) => length === 0
    )
  }

  /**
   * Whoever was let in has been answered. A server that closes sends away those that it has not let
   * in: nobody who came later has an answer by then.
   */
  assertAllAnswered(): void {
    assert.isAbove(this.#asked.length, 0)
    const passedOver: Array<Asked> = []
    /** When the first of those that came later was answered. */
    let next = Infinity
    for (const one of this.#asked.toReversed()) {
      const { answered, over } = one
      if (answered === undefined && (over?.place ?? Infinity) > next) passedOver.push(one)
      next = Math.min(next, answered?.place ?? Infinity)
    }
    assert.deepStrictEqual(passedOver, [])
  }

  /** None of them has waited for longer. */
  assertWithin({ answerMs, awayMs }: ProbeLimits): void {
    const late = this.#asked.filter(({ answered, asked, over }) =>
      answered === undefined
        ? (over?.at ?? Infinity) - asked.at > awayMs
        : answered.at - asked.at > answerMs
    )
    assert.deepStrictEqual(late, [])
  }
}
