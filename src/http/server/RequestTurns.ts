/**
 * When requests begin: at once while this turn of the event loop has time for them, else in one of
 * the next. So those that arrive together, however many, keep the loop from other work for moments
 * only, and many of one client delay those of another by one at a time.
 */

/** Milliseconds of a turn in which requests begin; the one that is begun then is the last. */
const BEGIN_MS = 10

interface Line {
  readonly client: string
  readonly waiting: Array<() => void>
}

export class RequestTurns {
  /** Lines of clients with requests that wait, the one whose turn it is first. */
  readonly #order: Array<Line> = []
  readonly #lines = new Map<string, Line>()
  /** Milliseconds that this turn has left. */
  #left = BEGIN_MS
  #isScheduled = false

  /** Begin a request of a client now or later; what `begin` does before it returns is counted. */
  take(client: string, begin: () => void): void {
    if (this.#left > 0) this.#begin(begin)
    else this.#wait(client, begin)
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#turn())
  }

  #wait(client: string, begin: () => void): void {
    const line = this.#lines.get(client)
    if (line !== undefined) return void line.waiting.push(begin)
    const made = { client, waiting: [begin] }
    this.#lines.set(client, made)
    this.#order.push(made)
  }

  #begin(begin: () => void): void {
    const startedAt = performance.now()
    begin()
    this.#left -= performance.now() - startedAt
  }

  #turn(): void {
    this.#left = BEGIN_MS
    while (this.#left > 0) {
      const line = this.#order.shift()
      if (line === undefined) break
      const begin = line.waiting.shift()!
      if (line.waiting.length > 0) this.#order.push(line)
      else this.#lines.delete(line.client)
      this.#begin(begin)
    }
    this.#isScheduled = this.#order.length > 0
    if (this.#isScheduled) setImmediate(() => this.#turn())
  }
}
