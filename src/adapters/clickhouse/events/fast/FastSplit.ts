/**
 * Hot path: measured in test/bench/Bench.ts (projection). Gives the bodies of rows to the module
 * compiled of `assembly`, a piece at a time, and says where the columns are that it made of them.
 * The module answers "done" or "not mine", row by row: EventSplit.ts is the definition.
 *
 * Rows are cut synchronously, so that one memory is enough for all inserts; its size is fixed.
 */
import { isUtf8 } from "node:buffer"
import {
  type Exported,
  instantiate,
  madeOnce,
  type WithMemory
} from "../../../../domain/WasmModule.ts"
import { SPLIT_MODULE } from "./gen/SplitModule.ts"

/** What the module exports, as src/adapters/clickhouse/events/fast/assembly/Split.ts says. */
interface SplitExports extends WithMemory {
  readonly COLUMNS: Exported
  readonly PIECE: Exported
  readonly PIECE_BYTES_MAX: Exported
  readonly ROWS: Exported
  readonly ROWS_MAX: Exported
  split(first: number, rows: number): number
}

/** Bytes of the place of a column: start, end. */
const COLUMN_BYTES = 8

interface Row {
  readonly body: Buffer
}

/** The one of this process; undefined where V8 can't run the module. */
export const fastSplit = madeOnce(() => new FastSplit())

/** The module with its memory. */
export class FastSplit {
  readonly #module = instantiate<SplitExports>(SPLIT_MODULE)
  /** Its size is fixed, so that this stays the memory of the module. */
  readonly memory = Buffer.from(this.#module.memory.buffer)
  readonly #piece = this.#module.PIECE.value
  readonly #ends = new Uint32Array(this.#module.memory.buffer, this.#module.ROWS.value)
  readonly #columns = new Uint32Array(this.#module.memory.buffer, this.#module.COLUMNS.value)
  #rows: ReadonlyArray<Row> = []
  /** Rows of the piece in memory: from the first one up to the last one, without it. */
  #first = 0
  #last = 0
  #isText = false

  /** Rows are cut next; none lets the last ones go. */
  begin(rows: ReadonlyArray<Row>): void {
    this.#rows = rows
    this.#first = this.#last = 0
  }

  /**
   * Cut the rows from `at` on, in order: how many are done. If there are any, the columns hold them
   * until the next call. The row after them is not for the module, or it is in the next piece.
   */
  split(at: number): number {
    if (at >= this.#last) this.#load(at)
    return this.#isText ? this.#module.split(at - this.#first, this.#last - this.#first) : 0
  }

  /** True if rows from `at` on are in memory, so that those before them were not the last ones. */
  isLoaded(at: number): boolean {
    return at < this.#last
  }

  /** Where a column begins in the memory, and where it ends. */
  startOf(column: number): number {
    return this.#columns[(column * COLUMN_BYTES) / 4]!
  }

  endOf(column: number): number {
    return this.#columns[(column * COLUMN_BYTES) / 4 + 1]!
  }

  /** Put as many bodies into memory as there is room for; of one that is too long none. */
  #load(first: number): void {
    const { PIECE_BYTES_MAX, ROWS_MAX } = this.#module
    const last = Math.min(this.#rows.length, first + ROWS_MAX.value)
    let end = 0
    let at = first
    for (; at < last; at++) {
      const { body } = this.#rows[at]!
      if (end + body.length > PIECE_BYTES_MAX.value) break
      body.copy(this.memory, this.#piece + end)
      end += body.length
      this.#ends[at - first] = end
    }
    this.#first = first
    this.#last = Math.max(at, first + 1)
    // A row that is done begins and ends with a byte that is a character: with all of them it is
    // UTF-8 itself.
    this.#isText = at > first && isUtf8(this.memory.subarray(this.#piece, this.#piece + end))
  }
}
