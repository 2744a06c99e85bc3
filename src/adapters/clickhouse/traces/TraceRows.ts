/**
 * What verification reads of traces: the rows of an execution as they are, with the columns that
 * disagree with their bytes, and the links of the tenant's chain. Judges nothing.
 */
import { Effect } from "effect"
import type { FactLink, TraceStore } from "../../../ports/TraceStore.ts"
import { inChunks } from "../client/Chunks.ts"
import { aliases, field } from "../client/JsonColumns.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { readChunk } from "../topics/ChainTable.ts"
import { disagreement, temporaries } from "./TraceColumns.ts"
import { ofExecution } from "./TraceSql.ts"

/** Links of one statement: each is a number in its text. */
const LINKS_AT_ONCE = 5_000
/** Sequences that are looked through at a time: a set of bits for each. */
const SEQUENCES_AT_ONCE = 20_000_000

type Store = TraceStore["Service"]

export const makeRows =
  (store: StoreClient): Store["rows"] =>
  (tenantId, executionId) =>
    inChunks((last) =>
      readChunk(
        store,
        {
          operation: "rows",
          table: store.facts,
          sequence: "chain_sequence",
          text: "body",
          disagreement,
          condition: (bind) =>
            `${ofExecution(tenantId, executionId, bind)} AND chain_sequence`
            + ` >= ${bind.integer(last === undefined ? 0 : last.sequenceNumber + 1)}`
        },
        { isBulk: true }
      )
    )

/** Taken from the bytes: a wrong column must not answer for a fact of another execution. */
const linksChunk = (store: StoreClient, tenantId: string, sequences: ReadonlyArray<number>) => {
  const values = ["chain_sequence", "prev_hash", "hash", "execution_id"].map((name) => field(name))
  return store.read(
    "links",
    (bind) =>
      `WITH ${aliases(temporaries)} SELECT DISTINCT ${values.join(", ")}, kafka_offset`
      + ` FROM ${store.facts} WHERE ${bind.tenant(tenantId)}`
      + ` AND chain_sequence IN (${sequences.join(", ")}) ORDER BY 1, 3`,
    (row): FactLink => ({
      chainSequence: row.uint64(),
      prevHash: row.string(),
      hash: row.string(),
      executionId: row.string(),
      offset: row.uint64()
    })
  )
}

export const makeLinks = (store: StoreClient): Store["links"] =>
  Effect.fn("TraceStore.links")(function* (tenantId, sequences) {
    const wanted = sequences.filter((sequence) => Number.isSafeInteger(sequence) && sequence >= 0)
    const links: Array<FactLink> = []
    for (let at = 0; at < wanted.length; at += LINKS_AT_ONCE) {
      const part = wanted.slice(at, at + LINKS_AT_ONCE)
      links.push(...(yield* linksChunk(store, tenantId, part)))
    }
    return links
  })

/** Sequences of a range without a row, the lowest first. */
const missingIn = (
  store: StoreClient,
  tenantId: string,
  first: number,
  last: number,
  limit: number
) =>
  store.readOne(
    "missing",
    (bind) => {
      const [from, to] = [bind.integer(first), bind.integer(last)]
      const expected = `SELECT groupBitmapState(number) FROM numbers(${from}, ${to} - ${from} + 1)`
      const stored =
        `SELECT groupBitmapState(chain_sequence) FROM ${store.facts}`
        + ` WHERE ${bind.tenant(tenantId)} AND ${bind.between("chain_sequence", first, last)}`
      return (
        "SELECT bitmapToArray(bitmapSubsetLimit("
        + `bitmapAndnot((${expected}), (${stored})), 0, ${bind.integer(limit)}))`
      )
    },
    (row) => row.list(() => row.uint64())
  )

export const makeMissing = (store: StoreClient): Store["missing"] =>
  Effect.fn("TraceStore.missing")(function* (tenantId, first, last, limit) {
    const missing: Array<number> = []
    for (let from = first; from <= last && missing.length < limit; from += SEQUENCES_AT_ONCE) {
      const to = Math.min(last, from + SEQUENCES_AT_ONCE - 1)
      missing.push(...(yield* missingIn(store, tenantId, from, to, limit - missing.length)))
    }
    return missing.sort((left, right) => left - right)
  })
