/**
 * Where a command writes: results on standard output or into a file, everything else on standard
 * error. Decides between tables for a person and JSON for a program.
 */
import { once } from "node:events"
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { onInterrupt } from "./Interrupts.ts"
import { type Column, table, tablePages } from "./Table.ts"

/** Columns of a terminal that says nothing of its own. */
const WIDTH = 100

/** Rows that a table shows at once, where there are more than memory should hold. */
const PAGE_ROWS = 1_000

/** Options that all commands with a result have. */
export interface OutputOptions {
  readonly json?: boolean
  readonly quiet?: boolean
  /** A path, or `-` for standard output. */
  readonly output?: string
}

/** The results of one command. */
export class Output {
  /** True for a person at a terminal. */
  readonly isHuman: boolean
  readonly width = process.stdout.columns ?? WIDTH
  readonly #isQuiet: boolean
  readonly #file:
    | { readonly path: string; readonly temporary: string; readonly fd: number }
    | undefined

  constructor({ json, output, quiet }: OutputOptions) {
    const toFile = output !== undefined && output !== "-"
    this.isHuman = json !== true && !toFile && process.stdout.isTTY === true
    this.#isQuiet = quiet === true
    if (!toFile) return
    // What is there stays until the new file is whole.
    const temporary = `${output}.${process.pid}.part`
    this.#file = { path: output, temporary, fd: openSync(temporary, "w") }
  }

  /** Write as fast as the reader takes it. */
  async write(data: string | Uint8Array): Promise<void> {
    if (this.#file !== undefined) {
      writeFileSync(this.#file.fd, data)
      return
    }
    if (!process.stdout.write(data)) await once(process.stdout, "drain")
  }

  /** One JSON document on a line. */
  document(value: unknown): Promise<void> {
    return this.write(`${JSON.stringify(value)}\n`)
  }

  /** A list: a table for a person, else a line of JSON each. */
  async list<Row>(columns: ReadonlyArray<Column<Row>>, rows: ReadonlyArray<Row>): Promise<void> {
    if (this.isHuman) return this.write(table(columns, rows, this.width))
    for (const row of rows) await this.document(row)
  }

  /** A list of any length: each row as it comes, and for a person a table page by page. */
  async rows<Row>(columns: ReadonlyArray<Column<Row>>, rows: AsyncIterable<Row>): Promise<void> {
    if (!this.isHuman) {
      for await (const row of rows) await this.document(row)
      return
    }
    const print = tablePages(columns, this.width)
    let page: Array<Row> = []
    let isBegun = false
    for await (const row of rows) {
      page.push(row)
      if (page.length < PAGE_ROWS) continue
      await this.write(print(page))
      page = []
      isBegun = true
    }
    if (page.length > 0 || !isBegun) await this.write(print(page))
  }

  /** A line for the person who waits; nothing with `--quiet`. */
  note(line: string): void {
    if (!this.#isQuiet) process.stderr.write(`${line}\n`)
  }

  /** The file of the result; undefined for standard output. */
  get path(): string | undefined {
    return this.#file?.path
  }

  /** The file is whole. */
  finish(): void {
    if (this.#file === undefined) return
    const { fd, path, temporary } = this.#file
    fsyncSync(fd)
    closeSync(fd)
    renameSync(temporary, path)
  }

  /** The file stays as it was. */
  abandon(): void {
    if (this.#file !== undefined) rmSync(this.#file.temporary, { force: true })
  }
}

/** Removes the part of a file that is there, says so, and ends the program. */
const endInterrupted = (output: Output, exitCode: number): never => {
  output.abandon()
  const left = output.path === undefined ? "" : `; ${output.path} was not written`
  // What shows progress may have left its line open.
  process.stderr.write(`${process.stderr.isTTY === true ? "\n" : ""}alk: interrupted${left}\n`)
  process.exit(exitCode)
}

export interface WithOutput {
  /** The command listens to Ctrl-C and SIGTERM itself, and what it has written by then is whole. */
  readonly endsBySignal?: boolean
}

/** Runs a command with its output; the file of `-o` is there once it succeeds, and not before. */
export const withOutput = async <A>(
  options: OutputOptions,
  body: (output: Output) => Promise<A>,
  { endsBySignal = false }: WithOutput = {}
): Promise<A> => {
  const output = new Output(options)
  const stopListening = endsBySignal
    ? undefined
    : onInterrupt((exitCode) => endInterrupted(output, exitCode))
  try {
    const result = await body(output)
    output.finish()
    return result
  } catch (error) {
    output.abandon()
    throw error
  } finally {
    stopListening?.()
  }
}
