/**
 * What verification reads of traces: the rows of an execution as they are, with the columns that
 * disagree with their bytes, and the links of the tenant's chain. Judges nothing.
 */
import { Effect, Option, Stream } from "effect"
import type { FactLink, StoredFactRow, TraceStore } from "../../../ports/TraceStore.ts"
import { CHUNK_BYTES_MAX, CHUNK_ROWS_MAX } from "../client/Chunks.ts"
import { Parameters } from "../client/Parameters.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { disagreement, field, temporaries } from "./TraceColumns.ts"
import { ofExecution } from "./TraceSql.ts"

/** Links of one statement: each is a number in its text. */
const LINKS_AT_ONCE = 5_000
/** Sequences that are looked through at a time: a set of bits for each. */
const SEQUENCES_AT_ONCE = 20_000_000

type Store = TraceStore["Service"]

/**
 * All rows of as many sequences as fit into a chunk, so that rows which share a sequence come
 * together. Of a sequence with thousands of rows, enough to see that it has several.
 */
const rowsChunk = (store: StoreClient, tenantId: string, executionId: string, from: number) => {
  const parameters = new Parameters()
  const execution = ofExecution(tenantId, executionId, parameters)
  const beyond = `${execution} AND chain_sequence >= ${parameters.integer(from)}`
  const last =
    "SELECT max(chain_sequence) FROM (SELECT chain_sequence, sum(bytes) OVER"
    + " (ORDER BY chain_sequence ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    + " AS bytes_before FROM (SELECT chain_sequence, length(body) AS bytes"
    + ` FROM ${store.facts} WHERE ${beyond} ORDER BY chain_sequence LIMIT ${CHUNK_ROWS_MAX}))`
    + ` WHERE bytes_before < ${CHUNK_BYTES_MAX}`
  return store.read(
    {
      operation: "rows",
      parameters,
      isBulk: true,
      sql:
        "SELECT chain_sequence, version, body, groupUniqArrayArray(names) FROM ("
        + `WITH ${disagreement.with} SELECT chain_sequence, version, hash, body,`
        + ` ${disagreement.names} AS names FROM ${store.facts}`
        + ` WHERE ${beyond} AND chain_sequence <= (${last}))`
        + " GROUP BY chain_sequence, hash, version, body"
        + ` ORDER BY chain_sequence, hash, version, body LIMIT ${2 * CHUNK_ROWS_MAX}`
    },
    (row): StoredFactRow => ({
      chainSequence: row.uint64(),
      version: row.uint8(),
      body: row.string(),
      wrongColumns: [...row.list(() => row.string())].sort()
    })
  )
}

export const makeRows =
  (store: StoreClient): Store["rows"] =>
  (tenantId, executionId) =>
    Stream.paginate(0, (from) =>
      rowsChunk(store, tenantId, executionId, from).pipe(
        Effect.map((chunk) => {
          const last = chunk.at(-1)
          return last === undefined
            ? ([[], Option.none<number>()] as const)
            : ([[chunk], Option.some(last.chainSequence + 1)] as const)
        })
      )
    )

/** Taken from the bytes: a column that lies must not answer for a fact of another execution. */
const linksChunk = (store: StoreClient, tenantId: string, sequences: ReadonlyArray<number>) => {
  const parameters = new Parameters()
  const expressions = temporaries.map(([name, expression]) => `${expression} AS ${name}`)
  const values = ["chain_sequence", "prev_hash", "hash", "execution_id"].map(field)
  return store.read(
    {
      operation: "links",
      parameters,
      sql:
        `WITH ${expressions.join(", ")} SELECT DISTINCT ${values.join(", ")}, kafka_offset`
        + ` FROM ${store.facts} WHERE tenant_id = ${parameters.string(tenantId)}`
        + ` AND chain_sequence IN (${sequences.join(", ")}) ORDER BY 1, 3`
    },
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
) => {
  const parameters = new Parameters()
  const [from, to] = [parameters.integer(first), parameters.integer(last)]
  const expected = `SELECT groupBitmapState(number) FROM numbers(${from}, ${to} - ${from} + 1)`
  const stored =
    `SELECT groupBitmapState(chain_sequence) FROM ${store.facts}`
    + ` WHERE tenant_id = ${parameters.string(tenantId)}`
    + ` AND chain_sequence BETWEEN ${from} AND ${to}`
  return store.readOne(
    {
      operation: "missing",
      parameters,
      sql:
        "SELECT bitmapToArray(bitmapSubsetLimit("
        + `bitmapAndnot((${expected}), (${stored})), 0, ${parameters.integer(limit)}))`
    },
    (row) => row.list(() => row.uint64())
  )
}

export const makeMissing = (store: StoreClient): Store["missing"] =>
  Effect.fn("TraceStore.missing")(function* (tenantId, first, last, limit) {
    const missing: Array<number> = []
    for (let from = first; from <= last && missing.length < limit; from += SEQUENCES_AT_ONCE) {
      const to = Math.min(last, from + SEQUENCES_AT_ONCE - 1)
      missing.push(...(yield* missingIn(store, tenantId, from, to, limit - missing.length)))
    }
    return missing.sort((left, right) => left - right)
  })
