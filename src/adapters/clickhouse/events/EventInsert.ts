/**
 * Hot path: measured in test/bench/Bench.ts (projection). Inserts records of alk.events: as blocks of
 * columns where these are the event, with their bytes elsewhere.
 */
import { Context, Effect } from "effect"
import { type EventRow, type EventStore, StoreUnavailable } from "../../../ports/EventStore.ts"
import { nativeBlock, structureOf } from "../client/NativeBlock.ts"
import { holdsMark } from "../client/RawRows.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { insertRows } from "../topics/TopicTable.ts"
import { EventBlock } from "./EventBlock.ts"
import type { FastSplit } from "./fast/FastSplit.ts"

/** Whether the module cuts rows, where V8 can run it; else TypeScript does it all. */
export const UsesFastSplit: Context.Reference<boolean> = Context.Reference<boolean>(
  "alk/adapters/clickhouse/UsesFastSplit",
  { defaultValue: () => true }
)

/** One at a time: a block is built synchronously. */
const block = new EventBlock()

const names = block.columns.map(({ name }) => name)

const structure = structureOf(block.columns)
/** The columns of the block, and those that have defaults for rows with a body. */
const columns = ["body", "version", ...names] as const
const values = [
  "''",
  "0",
  ...names.map((name) => (name === "search" ? `lowerUTF8(${name})` : name))
]

/** Runs of rows of one kind in one insert; with more of them, all rows go in by their bytes. */
const RUNS_MAX = 16

interface Run {
  readonly rows: ReadonlyArray<EventRow>
  /** Undefined for rows that keep their bytes. */
  readonly block: Buffer | undefined
}

/**
 * Rows one after the other, as blocks where they have the form for it. With the module and without
 * it, the blocks are the same.
 */
export const runsOf = (
  rows: ReadonlyArray<EventRow>,
  fast: FastSplit | undefined
): ReadonlyArray<Run> => {
  const runs: Array<Run> = []
  let first = 0
  block.clear()
  fast?.begin(rows)
  const end = (at: number, isBlock: boolean): void => {
    if (at === first) return
    const own = rows.slice(first, at)
    runs.push({ rows: own, block: isBlock ? nativeBlock(block.columns, own.length) : undefined })
    block.clear()
    first = at
  }
  for (let at = 0; at < rows.length && runs.length <= RUNS_MAX; at++) {
    if (fast !== undefined) at = block.addCut(fast, rows, at)
    if (at === rows.length || block.add(rows[at]!)) continue
    end(at, true)
    end(at + 1, false)
  }
  end(rows.length, true)
  fast?.begin([])
  return runs.length > RUNS_MAX ? [{ rows, block: undefined }] : runs
}

/** A row whose bytes can't be inserted: with control characters, which no block has, they are no JSON. */
const wrongRow = (runs: ReadonlyArray<Run>): EventRow | undefined => {
  for (const { block: bytes, rows } of runs) {
    const wrong = bytes === undefined ? rows.find(({ body }) => holdsMark(body)) : undefined
    if (wrong !== undefined) return wrong
  }
  return undefined
}

/** Rows in their order; nothing is inserted if some of them can't be. */
export const makeInsertEvents = (
  store: StoreClient,
  fast: FastSplit | undefined
): EventStore["Service"]["insertEvents"] => {
  const operation = "insertEvents"
  const table = store.events
  const insertRun = ({ block: bytes, rows }: Run) =>
    bytes === undefined
      ? insertRows(store, operation, table, rows)
      : store.insert({
          operation,
          table,
          columns,
          values,
          structure,
          rows: rows.length,
          bytes: () => bytes
        })
  return (rows) =>
    Effect.suspend(() => {
      const runs = runsOf(rows, fast)
      const wrong = wrongRow(runs)
      if (wrong === undefined) return Effect.forEach(runs, insertRun, { discard: true })
      const cause = new Error(`the body at offset ${wrong.offset} holds a raw control character`)
      return Effect.fail(new StoreUnavailable({ operation, cause }))
    })
}
