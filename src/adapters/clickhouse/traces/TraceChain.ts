/**
 * A tenant's chain of trace facts in its own order, whatever execution a fact is of: in pieces of
 * bounded size. First the sizes of what comes next, then the texts of as many as fit.
 */
import { Effect, Stream } from "effect"
import type { ChainQuery, TraceStore } from "../../../ports/TraceStore.ts"
import { chunkEnd } from "../client/Chunks.ts"
import type { Parameters } from "../client/Parameters.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { textSet } from "../client/TextSets.ts"
import { inWindows, nextSequence } from "./ChainWindows.ts"
import { overlappingExecutions } from "./ExecutionSql.ts"
import { type NamedExecutions, namedExecutions } from "./NamedExecutions.ts"
import { newestBy } from "./TraceSql.ts"

/** Bytes at the end of a stored fact that hold all its chain members, and some more. */
const SUFFIX_BYTES = 1_024

/** Facts of the tenant, and of executions that count, whatever their sequence. */
const conditionOf = (
  store: StoreClient,
  { last, overlapping, tenantId }: ChainQuery,
  bind: Parameters,
  named: ReadonlyArray<string> = []
): string => {
  const tenant = bind.tenant(tenantId)
  if (overlapping === undefined) return tenant
  const facts = `${tenant} AND chain_sequence <= ${bind.integer(last)}`
  const executions = overlappingExecutions(store, overlapping.from, overlapping.to, facts, bind)
  const ran = `execution_id IN (SELECT id FROM (${executions}))`
  if (named.length === 0) return `${tenant} AND ${ran}`
  return `${tenant} AND (${ran} OR execution_id IN ${textSet(named)})`
}

const chunk = (
  store: StoreClient,
  query: ChainQuery,
  named: NamedExecutions,
  from: number,
  to: number
) =>
  store.read(
    "chain",
    (bind) => {
      const condition =
        `${conditionOf(store, query, bind, named.within(from, to))}`
        + ` AND ${bind.between("chain_sequence", from, to)}`
      const text = query.isSuffix === true ? `right(body, ${SUFFIX_BYTES})` : "body"
      const end = chunkEnd(store.facts, "chain_sequence", condition, `length(${text})`)
      return (
        `SELECT chain_sequence, ${text} FROM ${store.facts}`
        + ` WHERE ${condition} AND chain_sequence <= (${end}) ${newestBy("chain_sequence, hash")}`
      )
    },
    (row) => ({ sequence: row.uint64(), body: row.string() }),
    { isBulk: true }
  )

/** The first sequence at or after one that may have a fact: those before it have none. */
const next = (store: StoreClient, query: ChainQuery, named: NamedExecutions, from: number) =>
  Effect.map(
    nextSequence(store, from, query.last, (bind) => conditionOf(store, query, bind)),
    (ran) => {
      const other = named.next(from)
      return ran === undefined || other === undefined ? (ran ?? other) : Math.min(ran, other)
    }
  )

const bodiesOf = (store: StoreClient, query: ChainQuery, named: NamedExecutions) =>
  inWindows({
    first: query.first,
    last: query.last,
    rows: (from, end) => chunk(store, query, named, from, end),
    sequenceOf: ({ sequence }) => sequence,
    next: (from) => next(store, query, named, from)
  }).pipe(Stream.map((rows) => rows.map(({ body }) => body)))

export const makeChain =
  (store: StoreClient): TraceStore["Service"]["chain"] =>
  (query) =>
    Stream.unwrap(
      Effect.map(namedExecutions(store, query), (named) => bodiesOf(store, query, named))
    )
