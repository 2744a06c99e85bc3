/**
 * Hot path: measured in test/bench/Bench.ts (projection). Inserts records of alk.events as blocks of the
 * columns that these are a function of.
 */
import { Context, Effect } from "effect"
import type { EventRow, EventStore } from "../../../ports/EventStore.ts"
import { nativeBlock, structureOf } from "../client/NativeBlock.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { EventBlock } from "./EventBlock.ts"
import type { FastSplit } from "./fast/FastSplit.ts"

/** Whether the module cuts rows, where V8 can run it; else TypeScript does it all. */
export const UsesFastSplit: Context.Reference<boolean> = Context.Reference<boolean>(
  "alk/adapters/clickhouse/UsesFastSplit",
  { defaultValue: () => true }
)

/** One at a time: a block is built synchronously. */
const block = new EventBlock()

const [first, ...others] = block.columns.map(({ name }) => name)
const names = [first!, ...others] as const
const structure = structureOf(block.columns)
const values = names.map((name) => (name === "search" ? `lowerUTF8(${name})` : name))

interface CutRows {
  readonly bytes: Buffer
  /** Rows of the block, in their order. */
  readonly count: number
  /** Those whose bytes no columns give back. */
  readonly others: ReadonlyArray<EventRow>
}

/** Rows as a block. With the module and without it, it is the same. */
export const cutRows = (rows: ReadonlyArray<EventRow>, fast: FastSplit | undefined): CutRows => {
  const others: Array<EventRow> = []
  block.clear()
  fast?.begin(rows)
  for (let at = 0; at < rows.length; at++) {
    if (fast !== undefined) at = block.addCut(fast, rows, at)
    const row = rows[at]
    if (row !== undefined && !block.add(row)) others.push(row)
  }
  fast?.begin([])
  const count = rows.length - others.length
  return { bytes: nativeBlock(block.columns, count), count, others }
}

export const makeInsertEvents =
  (store: StoreClient, fast: FastSplit | undefined): EventStore["Service"]["insertEvents"] =>
  (rows) =>
    Effect.suspend(() => {
      const { bytes, count, others } = cutRows(rows, fast)
      if (count === 0) return Effect.succeed(others)
      const insert = store.insert({
        operation: "insertEvents",
        table: store.events,
        columns: names,
        values,
        structure,
        rows: count,
        bytes: () => bytes
      })
      return Effect.as(insert, others)
    })
