/**
 * A tenant's chain of trace facts in its own order, whatever execution a fact is of: in pieces of
 * bounded size. First the sizes of what comes next, then the texts of as many as fit.
 */
import { Stream } from "effect"
import type { ChainQuery, TraceStore } from "../../../ports/TraceStore.ts"
import { CHUNK_BYTES_MAX, CHUNK_ROWS_MAX } from "../client/Chunks.ts"
import { Parameters } from "../client/Parameters.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { inWindows, nextSequence } from "./ChainWindows.ts"
import { overlappingExecutions } from "./ExecutionSql.ts"

/** Bytes at the end of a stored fact that hold all its chain members, and some more. */
const SUFFIX_BYTES = 1_024

/** Each fact once, the newest version of it. */
const IN_ORDER = "ORDER BY chain_sequence, hash, version DESC LIMIT 1 BY chain_sequence, hash"

/** Facts of the tenant, and of executions that count, whatever their sequence. */
const conditionOf = (
  store: StoreClient,
  { last, overlapping, tenantId }: ChainQuery,
  parameters: Parameters
): string => {
  const tenant = `tenant_id = ${parameters.string(tenantId)}`
  if (overlapping === undefined) return tenant
  const upTo = `chain_sequence <= ${parameters.integer(last)}`
  const { from: start, to } = overlapping
  const executions = overlappingExecutions(store, start, to, `${tenant} AND ${upTo}`, parameters)
  return `${tenant} AND execution_id IN (SELECT id FROM (${executions}))`
}

const chunk = (store: StoreClient, query: ChainQuery, from: number, to: number) => {
  const parameters = new Parameters()
  const condition =
    conditionOf(store, query, parameters)
    + ` AND chain_sequence BETWEEN ${parameters.integer(from)} AND ${parameters.integer(to)}`
  const text = query.isSuffix === true ? `right(body, ${SUFFIX_BYTES})` : "body"
  // The last sequence before which less than a chunk's bytes come: one fact always does.
  const end =
    "SELECT max(chain_sequence) FROM (SELECT chain_sequence, sum(bytes) OVER"
    + " (ORDER BY chain_sequence ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    + ` AS bytes_before FROM (SELECT chain_sequence, length(${text}) AS bytes`
    + ` FROM ${store.facts} WHERE ${condition} ORDER BY chain_sequence LIMIT ${CHUNK_ROWS_MAX}))`
    + ` WHERE bytes_before < ${CHUNK_BYTES_MAX}`
  return store.read(
    {
      operation: "chain",
      parameters,
      isBulk: true,
      sql:
        `SELECT chain_sequence, ${text} FROM ${store.facts}`
        + ` WHERE ${condition} AND chain_sequence <= (${end}) ${IN_ORDER}`
    },
    (row) => ({ sequence: row.uint64(), body: row.string() })
  )
}

export const makeChain =
  (store: StoreClient): TraceStore["Service"]["chain"] =>
  (query) =>
    inWindows({
      first: query.first,
      last: query.last,
      rows: (from, end) => chunk(store, query, from, end),
      sequenceOf: ({ sequence }) => sequence,
      next: (from) =>
        nextSequence(store, from, query.last, (parameters) => conditionOf(store, query, parameters))
    }).pipe(Stream.map((rows) => rows.map(({ body }) => body)))
