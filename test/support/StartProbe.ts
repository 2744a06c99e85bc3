/**
 * Connects to a port every few milliseconds, asks once, and keeps book: whoever was let in has to be
 * answered, whatever the answer. Shares no code with the program.
 */
import { connect } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { assert } from "vitest"

/** Milliseconds between two connections. */
const EVERY_MS = 10
/** Milliseconds within which whoever is let in has an answer. */
const ANSWER_MS = 5_000
/** Milliseconds within which whoever gets no answer, because the server closes, is sent away. */
const AWAY_MS = 2_500

interface Asked {
  readonly path: string
  readonly at: number
  /** Milliseconds to the first byte; undefined: none came. */
  answeredAfter: number | undefined
  /** Milliseconds to the end of the connection; undefined: it is open. */
  overAfter: number | undefined
  status: number
}

const PATHS = ["/readyz", "/healthz", "/metrics", "/v1/events"]

export class StartProbe {
  readonly #port: number
  readonly #asked: Array<Asked> = []
  #isEnding = false
  #answered = 0
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

  #ask(path: string): void {
    const socket = connect(this.#port, "127.0.0.1")
    let asked: Asked | undefined
    socket.on("connect", () => {
      const at = performance.now()
      asked = { path, at, answeredAfter: undefined, overAfter: undefined, status: 0 }
      this.#asked.push(asked)
      socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
    })
    socket.on("data", (data: Buffer) => {
      if (asked === undefined || asked.answeredAfter !== undefined) return
      asked.answeredAfter = performance.now() - asked.at
      asked.status = Number(/^HTTP\/1\.1 (\d{3})/.exec(data.toString("latin1"))?.[1] ?? 0)
      this.#answered += 1
    })
    // Refused: nobody listens, and nobody has to answer.
    socket.on("error", () => {})
    socket.on("close", () => {
      if (asked !== undefined) asked.overAfter = performance.now() - asked.at
    })
  }

  /** Wait for so many answers. */
  async until(enough: (answered: number) => boolean): Promise<void> {
    const until = Date.now() + 30_000
    while (!enough(this.#answered)) {
      if (Date.now() > until) throw new Error(`no answers: ${JSON.stringify(this.#asked.at(-1))}`)
      await sleep(5)
    }
  }

  async end(): Promise<void> {
    this.#isEnding = true
    await this.#running
    const open = () =>
      this.#asked.filter(
        ({ answeredAfter, overAfter }) => answeredAfter === undefined && overAfter === undefined
      )
    const until = Date.now() + ANSWER_MS
    while (open().length > 0 && Date.now() < until) await sleep(50)
  }

  /** Whoever was let in has been answered in time; nobody waits who was not sent away. */
  assertAllAnswered(): void {
    assert.isAbove(this.#asked.length, 0)
    const late = this.#asked.filter(({ answeredAfter, overAfter = Infinity }) =>
      answeredAfter === undefined ? overAfter > AWAY_MS : answeredAfter > ANSWER_MS
    )
    assert.deepStrictEqual(late, [])
  }
}
