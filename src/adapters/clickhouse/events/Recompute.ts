/**
 * Recomputes chains where their bytes are: all rows of a range in one pass over the table, one
 * answer per block. Judges nothing; RecomputeSql says how a row is recomputed.
 */
import { randomBytes } from "node:crypto"
import { Effect, Layer } from "effect"
import { ERASURE_ACTION } from "../../../domain/events/Erasure.ts"
import {
  BLOCK_EVENTS,
  ChainRecompute,
  type RecomputedBlock,
  type RecomputeQuery,
  SAMPLE_ROWS_MAX,
  type SequenceRange
} from "../../../ports/ChainRecompute.ts"
import { ClickHouseConnection } from "../client/ClickHouseConnection.ts"
import type { Parameters } from "../client/Parameters.ts"
import { StoreClient } from "../client/StoreClient.ts"
import { RECOMPUTE_SETTINGS, recomputedRows } from "./RecomputeSql.ts"
import { readStoredEvents } from "./StoredRows.ts"

type Recompute = ChainRecompute["Service"]

/** Levels of the hash tree within a block. */
const BLOCK_LEVELS = Math.log2(BLOCK_EVENTS)

const LEAF_PREFIX = "char(0)"
const NODE_PREFIX = "char(1)"

/**
 * RFC 9162, section 2.1.1: leaves from event hashes, then level by level up to the subtree's root,
 * the nodes of a level cut into pairs. Nodes are hex digits on the way: bytes that end in zeros
 * would lose them.
 */
const subtree = (hashes: string): string => {
  const leaves = `arrayMap(hash -> hex(SHA256(concat(${LEAF_PREFIX}, unhex(hash)))), ${hashes})`
  return Array.from({ length: BLOCK_LEVELS }).reduce<string>(
    (below) =>
      `arrayMap(pair -> hex(SHA256(concat(${NODE_PREFIX}, unhex(pair)))),`
      + ` reinterpret(arrayStringConcat(${below}), 'Array(FixedString(128))'))`,
    leaves
  )
}

/**
 * Order has no say in a sum, so rows need no sorting to be linked: the sum over what each row names
 * as its predecessor equals the sum over what each row is, but for the two ends. The key of the
 * hash is drawn for each query; rows that would add up by design can't be made without knowing it.
 */
const keyedHash = (key: string, number: string, text: string): string =>
  `sipHash64Keyed(${key}, ${number}, ${text})`

const randomKey = (): string => {
  const key = randomBytes(16)
  return `(toUInt64(${key.readBigUInt64LE(0)}), toUInt64(${key.readBigUInt64LE(8)}))`
}

/** The statement for the blocks of a range. */
const blocksStatement = (
  table: string,
  { from, fromSequence, tenantId, to, toSequence, tree }: RecomputeQuery,
  bind: Parameters
): string => {
  const key = randomKey()
  const range = `${bind.tenant(tenantId)} AND ${bind.between("sequence_number", fromSequence, toSequence)}`
  const rows = recomputedRows(table, bind.string(tenantId), range)
  const inBounds = `timestamp BETWEEN ${bind.time(from)} AND ${bind.time(to)}`
  const ordered = tree
    ? "arrayMap(pair -> pair.2, arraySort(groupArray((sequence_number, hash))))"
    : "emptyArrayString()"
  const perBlock =
    `SELECT intDiv(sequence_number - 1, ${BLOCK_EVENTS}) AS block,`
    + " count() AS rows,"
    + " min(sequence_number) AS first, max(sequence_number) AS last, min(perfect) AS each,"
    + " argMin(stored_prev, sequence_number) AS prev_hash,"
    + " argMax(hash, sequence_number) AS last_hash,"
    + ` sumWithOverflow(${keyedHash(key, "sequence_number", "stored_prev")}) AS wanted,`
    + ` sumWithOverflow(${keyedHash(key, "sequence_number + 1", "hash")}) AS found,`
    + ` countIf(${inBounds}) AS in_bounds,`
    + ` minIf(sequence_number, ${inBounds}) AS in_first,`
    + ` maxIf(sequence_number, ${inBounds}) AS in_last,`
    + " groupArrayIf((sequence_number, id, stored_content, erased_time), erased_time != '')"
    + " AS erased,"
    + ` ${ordered} AS hashes FROM (${rows}) GROUP BY block`
  const linked =
    `wanted - ${keyedHash(key, "first", "prev_hash")}`
    + ` = found - ${keyedHash(key, "last + 1", "last_hash")}`
  const perfect = `each AND rows = last - first + 1 AND ${linked}`
  const whole = `rows = ${BLOCK_EVENTS} AND length(hashes) = ${BLOCK_EVENTS}`
  return (
    `WITH ${perfect} AS perfect, ${whole} AS whole`
    + " SELECT block, rows, toUInt8(perfect), first, last, prev_hash, last_hash, in_bounds,"
    + " in_first, in_last,"
    + " erased,"
    + ` lower(arrayElement(${subtree("if(perfect AND whole, hashes, [])")}, 1)),`
    + " if(perfect AND NOT whole, hashes, [])"
    + ` FROM (${perBlock}) ORDER BY block`
  )
}

/** The least and the greatest of nothing are 0. */
const spanOf = (first: number, last: number): SequenceRange | undefined =>
  first === 0 ? undefined : { first, last }

const makeBlocks =
  (store: StoreClient): Recompute["blocks"] =>
  (query) =>
    store.read(
      "recompute",
      (bind) => blocksStatement(store.events, query, bind),
      (row): RecomputedBlock => ({
        block: row.uint64(),
        rows: row.uint64(),
        perfect: row.uint8() === 1,
        first: row.uint64(),
        last: row.uint64(),
        prevHash: row.string(),
        lastHash: row.string(),
        inBounds: row.uint64(),
        span: spanOf(row.uint64(), row.uint64()),
        erased: row.list(() => ({
          sequenceNumber: row.uint64(),
          id: row.string(),
          contentHash: row.string(),
          erasedAt: row.string()
        })),
        subtree: row.string() || undefined,
        hashes: row.list(() => row.string())
      }),
      { settings: RECOMPUTE_SETTINGS }
    )

/** Numbers of ours, so they need no binding. */
const listOf = (sequenceNumbers: ReadonlyArray<number>): string => {
  if (sequenceNumbers.length > SAMPLE_ROWS_MAX || !sequenceNumbers.every(Number.isSafeInteger)) {
    throw new RangeError(`${sequenceNumbers.length} sequence numbers in one question`)
  }
  return sequenceNumbers.join(", ")
}

const makeSample =
  (store: StoreClient): Recompute["sample"] =>
  (tenantId, sequenceNumbers) =>
    sequenceNumbers.length === 0
      ? Effect.succeed([])
      : readStoredEvents(store, {
          operation: "sample",
          condition: (bind) =>
            `${bind.tenant(tenantId)} AND sequence_number IN (${listOf(sequenceNumbers)})`,
          limit: 2 * SAMPLE_ROWS_MAX
        })

const makeErasures =
  (store: StoreClient): Recompute["erasures"] =>
  (tenantId, sequenceNumbers) =>
    sequenceNumbers.length === 0
      ? Effect.succeed([])
      : store.read(
          "erasures",
          (bind) =>
            `SELECT DISTINCT sequence_number, json FROM ${store.events} WHERE ${bind.tenant(tenantId)}`
            + ` AND action = ${bind.string(ERASURE_ACTION)}`
            + ` AND JSONExtractUInt(metadata, 'sequence_number') IN (${listOf(sequenceNumbers)})`
            + ` LIMIT ${2 * SAMPLE_ROWS_MAX}`,
          (row) => ({ sequenceNumber: row.uint64(), body: row.string() })
        )

/** The recomputation of the port. */
export const layerRecompute = Layer.effect(
  ChainRecompute,
  Effect.map(ClickHouseConnection, (connection) => {
    const store = new StoreClient(connection)
    return ChainRecompute.of({
      blocks: makeBlocks(store),
      sample: makeSample(store),
      erasures: makeErasures(store),
      tenants: Effect.suspend(() =>
        store.read(
          "tenants",
          () => `SELECT DISTINCT tenant_id FROM ${store.events} ORDER BY tenant_id`,
          (row) => row.string()
        )
      )
    })
  })
)
