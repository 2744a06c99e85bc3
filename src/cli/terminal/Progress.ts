/** How far a command is, on standard error: a line that is written anew, or one now and then. */

/** Milliseconds between two lines on a terminal, where each takes the place of the one before. */
const TERMINAL_MS = 200
/** Milliseconds between two lines of a log. */
const LOG_MS = 10_000

/** `1,234,567`. */
export const count = (value: number): string => Math.round(value).toLocaleString("en-US")

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"] as const

/** `12.3 MiB`. */
export const bytes = (value: number): string => {
  let size = value
  let unit = 0
  while (size >= 1_024 && unit < UNITS.length - 1) {
    size /= 1_024
    unit += 1
  }
  return `${unit === 0 ? size : size.toFixed(1)} ${UNITS[unit]}`
}

/** Tells a person how far something is. Nothing is written if it is quiet. */
export class Progress {
  readonly #isQuiet: boolean
  readonly #isTerminal = process.stderr.isTTY === true
  #saidAt = performance.now()
  #isLineOpen = false

  constructor(isQuiet: boolean) {
    this.#isQuiet = isQuiet
  }

  /** Say it if the last line is old enough. */
  at(line: () => string): void {
    if (this.#isQuiet) return
    const now = performance.now()
    if (now - this.#saidAt < (this.#isTerminal ? TERMINAL_MS : LOG_MS)) return
    this.#saidAt = now
    if (this.#isTerminal) process.stderr.write(`\r\u001b[K${line()}`)
    else process.stderr.write(`${line()}\n`)
    this.#isLineOpen = this.#isTerminal
  }

  /** The last line, which stays. */
  end(line?: string): void {
    if (this.#isLineOpen) process.stderr.write("\r\u001b[K")
    this.#isLineOpen = false
    if (line !== undefined && !this.#isQuiet) process.stderr.write(`${line}\n`)
  }
}
