/**
 * Rewrites the events of earlier versions into columns, in the background and while everything else
 * goes on: a row is read from its bytes or from its columns, whichever it has. ClickHouse does it as
 * mutations, which go on after a kill. What was done is kept in the table `upgrades`.
 */
import { Effect, Schema } from "effect"
import { recordDecoder } from "../../../domain/json/RecordDecoder.ts"
import type { EventStore } from "../../../ports/EventStore.ts"
import type { StoreClient } from "../client/StoreClient.ts"
import { isErased } from "../topics/SetAside.ts"
import { literal, ownColumns, textOf } from "./EventText.ts"

const NAME = "event_columns"
const OPERATION = "upgrade"

/** Indexes that a version has added: rows of parts without one are found by reading all of them. */
const INDEXES = ["text_actor_id", "text_resource_id", "by_erased_at", "by_kafka_offset"]

const member = (type: "Raw" | "String", ...path: ReadonlyArray<string>): string =>
  `JSONExtract${type}(body, ${path.map(literal).join(", ")})`

const raw = (path: string, bytes: number): string =>
  `toFixedString(substring(unhex(${member("String", path)}), 1, ${bytes}), ${bytes})`

/** What the columns of a row become, by its bytes. */
export const fromBytes = {
  actor_email: member("Raw", "actor", "email"),
  resource_name: member("Raw", "resource", "name"),
  metadata: member("Raw", "metadata"),
  details_salt: raw("details_salt", 16),
  details_hash: raw("details_hash", 32),
  content_hash: raw("content_hash", 32),
  prev_hash: raw("prev_hash", 32),
  erased_at: `parseDateTime64BestEffortOrZero(${member("String", "erased_at")}, 6, 'UTC')`
}

/** Rows that keep their bytes, and whose columns would give back every one of them. */
export const REWRITABLE = `body != '' AND version = 0 AND ${textOf(fromBytes)} = body`

const REWRITE =
  `UPDATE ${ownColumns.map((name) => `${name} = ${fromBytes[name]}`).join(", ")}, body = ''`
  + ` WHERE ${REWRITABLE}`

/** Offsets whose rows are read at a time. */
const OFFSETS_AT_ONCE = 1_000_000

/** What the rows below some offsets say, each once. */
const Fingerprint = Schema.Struct({
  /** The offset after the last one, by partition. */
  ends: Schema.Record(Schema.String, Schema.Int),
  rows: Schema.Int,
  /** Events without their details. */
  erased: Schema.Int,
  /** Sum of 64-bit hashes of their JSON, in decimal digits. */
  sum: Schema.String
})
type Fingerprint = typeof Fingerprint.Type

const readFingerprint = recordDecoder(Fingerprint, "fingerprint")

const endsOf = (store: StoreClient) =>
  store
    .read(
      OPERATION,
      () =>
        `SELECT toString(kafka_partition), max(kafka_offset) + 1 FROM ${store.events}`
        + " WHERE kafka_offset < 9007199254740991 GROUP BY kafka_partition",
      (row) => [row.string(), row.uint64()] as const
    )
    .pipe(Effect.map((ends) => Object.fromEntries(ends)))

const fingerprintOf = Effect.fnUntraced(function* (store: StoreClient, ends: Fingerprint["ends"]) {
  let [rows, erased, sum] = [0, 0, 0n]
  for (const [partition, end] of Object.entries(ends)) {
    for (let from = 0; from < end; from += OFFSETS_AT_ONCE) {
      const part = yield* store.readOne(
        OPERATION,
        (bind) =>
          `SELECT count(), countIf(${isErased("json")}),`
          + " toString(sumWithOverflow(sipHash64(json)))"
          + ` FROM ${store.eventsOf(true)} WHERE ${bind.partition(Number(partition))}`
          + ` AND kafka_offset >= ${bind.integer(from)}`
          + ` AND kafka_offset < ${bind.integer(Math.min(end, from + OFFSETS_AT_ONCE))}`,
        (row) => ({ rows: row.uint64(), erased: row.uint64(), sum: row.string() })
      )
      rows += part.rows
      erased += part.erased
      sum = BigInt.asUintN(64, sum + BigInt(part.sum))
    }
  }
  return { ends, rows, erased, sum: String(sum) } satisfies Fingerprint
})

/** In the order in which the last word is sought. */
type State = "damaged" | "done" | "started"

const readState = (store: StoreClient) =>
  store.readFirst(
    OPERATION,
    (bind) =>
      `SELECT state, details FROM ${store.upgrades} FINAL WHERE name = ${bind.string(NAME)}`
      + " ORDER BY state LIMIT 1",
    (row) => ({ state: row.string() as State, details: row.string() })
  )

const writeState = (store: StoreClient, state: State, details: string) =>
  store.copy(
    OPERATION,
    (bind) =>
      `INSERT INTO ${store.upgrades} (name, state, details)`
      + ` SELECT ${bind.string(NAME)}, ${bind.string(state)}, ${bind.string(details)}`
  )

const countKept = (store: StoreClient) =>
  store.readOne(
    OPERATION,
    () => `SELECT count() FROM ${store.events} WHERE body != ''`,
    (row) => row.uint64()
  )

/** What the rows said before anything was rewritten; undefined if there is nothing to do. */
const begin = Effect.fnUntraced(function* (store: StoreClient) {
  const state = yield* readState(store)
  if (state?.state === "done") return undefined
  if (state?.state === "damaged") {
    yield* Effect.logError(
      "the stored events were rewritten in the background, and not all of them say what they said:"
        + " verify them, or let them be built again from the topics",
      { what: state.details }
    )
    return undefined
  }
  if (state !== undefined) return readFingerprint(state.details)
  if ((yield* countKept(store)) === 0) {
    yield* writeState(store, "done", "{}")
    return undefined
  }
  const before = yield* fingerprintOf(store, yield* endsOf(store))
  yield* writeState(store, "started", JSON.stringify(before))
  return before
})

/** Why the rows don't say any more what they said; undefined if they do. */
const damage = (before: Fingerprint, after: Fingerprint): string | undefined => {
  if (after.rows !== before.rows) return `${before.rows} rows became ${after.rows}`
  return after.erased === before.erased && after.sum !== before.sum
    ? "some rows give back other JSON than before"
    : undefined
}

/** Rewrites what has to be rewritten, and compares what the rows say before and after it. */
export const makeUpgrade = (store: StoreClient): EventStore["Service"]["upgrade"] =>
  Effect.gen(function* () {
    const before = yield* begin(store)
    if (before === undefined) return
    yield* Effect.logInfo("the stored events are rewritten in the background", {
      events: before.rows
    })
    yield* store.mutate(OPERATION, store.events, () => REWRITE)
    for (const index of INDEXES) {
      yield* store.mutate(OPERATION, store.events, () => `MATERIALIZE INDEX ${index}`)
    }
    const after = yield* fingerprintOf(store, before.ends)
    const damaged = damage(before, after)
    if (damaged !== undefined) {
      yield* writeState(store, "damaged", damaged)
      yield* begin(store)
      return
    }
    const kept = yield* countKept(store)
    yield* writeState(store, "done", JSON.stringify({ ...after, kept }))
    yield* Effect.logInfo("the stored events are rewritten and compared", {
      events: after.rows,
      keptAsBytes: kept,
      erasedMeanwhile: after.erased - before.erased
    })
  })
