/**
 * The store's recomputation against the program's, on the real engine: rows that the sequencer
 * would write, whatever stands in them, are perfect; and no row is that the program finds fault
 * with.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import fc from "fast-check"
import {
  RECOMPUTE_SETTINGS,
  recomputedRows
} from "../../../../src/adapters/clickhouse/events/RecomputeSql.ts"
import { leafHash, nodeHash } from "../../../../src/domain/chain/MerkleTree.ts"
import { recompute } from "../../../../src/domain/events/HashChain.ts"
import { HISTORY_FROM, HISTORY_TO } from "../../../../src/domain/Timestamp.ts"
import { ChainRecompute } from "../../../../src/ports/ChainRecompute.ts"
import { EventStore } from "../../../../src/ports/EventStore.ts"
import { Erasures } from "../../../../src/verify/Erasures.ts"
import { faultsOf } from "../../../../src/verify/EventSource.ts"
import { freshPrefix } from "../../../support/Log.ts"
import { intruder, tamper } from "../../../support/Store.ts"
import { Chain, type Fields } from "../../../verify/support/Chains.ts"
import { LogWorld } from "../../../verify/support/LogWorld.ts"
import { store, storeChain, verifierLayer } from "../../../verify/support/StoredChains.ts"
import { anyEvents } from "../support/Generators.ts"

const TENANT = "acme"

/** Texts that mean something to one of the languages on the way. */
const hostile: ReadonlyArray<string> = [
  "'",
  '"',
  "\\",
  "\\\\",
  '\\"',
  "\\u0041",
  "a\nb",
  "\t",
  "\u0001",
  "\u001f",
  "\u007f",
  "\u0085",
  "\u2028",
  "\ufeff",
  "é",
  "e\u0301",
  "İ",
  "ΟΔΟΣ",
  "日本語",
  "\u{1F600}",
  "\u{10FFFF}",
  "\uFFFD",
  "{}",
  "[1]",
  '","email":"x',
  '},"action":"document.read","resource":{"id":',
  '},"outcome":"success"',
  ',"tenant_id":"acme","sequence_number":1',
  '"erased_at":"',
  "a/b",
  "%",
  "x".repeat(250),
  ""
]

/** Ids hold no control characters. */
const plain = (text: string): string => text.replaceAll(/[\u0000-\u001f]/g, "~")

const hostileFields = (text: string): Fields => ({
  actor: { id: plain(text), type: "agent", email: text },
  resource: { id: plain(text), type: plain(text), name: text },
  metadata: {
    [text]: [text, { [text]: text }],
    actor: { id: text, type: "human", email: text },
    action: "document.read",
    content_hash: "0".repeat(64),
    details_salt: text,
    hash: text,
    metadata: { metadata: {} },
    outcome: "success",
    prev_hash: text,
    sequence_number: 5,
    tenant_id: "other",
    erased_at: text
  }
})

/** Whether each row is perfect by the store's word, by sequence. */
const perfection = (database: string) =>
  Effect.promise(async () => {
    const client = intruder()
    const rows = recomputedRows(`${database}.events`, `'${TENANT}'`, `tenant_id = '${TENANT}'`)
    const answer = await client.query({
      query: `SELECT sequence_number, perfect FROM (${rows}) SETTINGS ${RECOMPUTE_SETTINGS}`,
      format: "JSONCompactEachRow"
    })
    const read = await answer.json<[number, number]>()
    await client.close()
    return new Map(read.map(([sequence, perfect]) => [Number(sequence), perfect === 1]))
  })

/** Whether the program finds nothing wrong with each row by itself. */
const programsWord = Effect.gen(function* () {
  const events = yield* EventStore
  const chunks = yield* Stream.runCollect(events.rows(TENANT, 1, 1_000_000))
  return new Map(
    chunks.flat().map((row) => {
      const found = recompute(row.body)
      const isFine =
        found !== undefined && faultsOf(TENANT, row, found, new Erasures()).length === 0
      return [row.sequenceNumber, isFine]
    })
  )
})

const withDatabase = <A, E>(
  test: (database: string, world: LogWorld) => Effect.Effect<A, E, ChainRecompute | EventStore>
) => {
  const database = freshPrefix()
  const world = new LogWorld()
  // Databases nest here, and their layers must not be shared.
  return test(database, world).pipe(Effect.provide(verifierLayer(database, world), { local: true }))
}

/** Columns that hold texts. */
const texts = [
  "id",
  "actor_id",
  "actor_type",
  "action",
  "resource_id",
  "resource_type",
  "outcome",
  "metadata",
  "search",
  "actor_email",
  "resource_name",
  "hash"
]

/**
 * The other columns of an event, and how each can be changed. Not whether it is erased: of such rows
 * the store only says which they are.
 */
const others: Readonly<Record<string, string>> = {
  version: "toUInt8(1)",
  sequence_number: "sequence_number + 100000",
  timestamp: "timestamp + 1",
  created_at: "created_at + 1",
  details_salt: "reverse(details_salt)",
  details_hash: "reverse(details_hash)",
  content_hash: "reverse(content_hash)",
  prev_hash: "toFixedString(unhex(repeat('ab', 32)), 32)"
}

const names = ["kafka_partition", "kafka_offset", "tenant_id", ...texts, ...Object.keys(others)]

/** Copy the rows of one database into another, with some columns made differently. */
const copyRows = (from: string, to: string, changed: Readonly<Record<string, string>>) =>
  tamper(
    `INSERT INTO ${to}.events (${names.join(", ")}) SELECT ${names
      .map((name) => changed[name] ?? name)
      .join(", ")} FROM ${from}.events`
  )

/** Rows on which the store is content and the program is not. */
const wronglyPerfect = Effect.fnUntraced(function* (database: string) {
  const byStore = yield* perfection(database)
  const byProgram = yield* programsWord
  assert.deepStrictEqual([...byStore.keys()].sort(), [...byProgram.keys()].sort())
  return [...byProgram].filter(([at, isFine]) => !isFine && byStore.get(at) === true)
})

/** A chain of everything that generators and hostility come up with. */
const strangeChain = (events: number, seed: number): Chain => {
  const chain = new Chain(TENANT)
  for (const text of hostile) chain.append(hostileFields(text))
  const samples = fc.sample(anyEvents, { numRuns: Math.ceil(events / 200), seed }).flat()
  for (const sample of samples.slice(0, events)) chain.append(sample as Fields)
  chain.append({ resource: { id: "bare", type: "document" }, actor: { id: "bare", type: "human" } })
  return chain
}

/**
 * An integer beyond 64 bits, which the store's parser refuses: the program goes through such rows.
 */
const hasLongDigits = (body: string): boolean =>
  /[0-9]{19,}/.test(body.replaceAll(/"(?:[^"\\]|\\.)*"/g, ""))

describe("recomputation in the store", () => {
  it.live("finds every row perfect that the sequencer would write", () =>
    withDatabase((database, world) =>
      Effect.gen(function* () {
        const chain = strangeChain(600, 1)
        yield* storeChain(world, chain)
        const ordinary = [...(yield* perfection(database))]
          .map(([at, perfect]) => ({ body: chain.bodies[at - 1]!, perfect }))
          .filter(({ body }) => !hasLongDigits(body))
        assert.isAbove(ordinary.length, 400)
        assert.deepStrictEqual(ordinary.filter(({ perfect }) => !perfect).slice(0, 5), [])
        assert.deepStrictEqual(
          [...(yield* programsWord)].filter(([, isFine]) => !isFine),
          []
        )
      })
    )
  )

  it.live("is never content with a row that has a text changed anywhere", () =>
    withDatabase((source, world) =>
      Effect.gen(function* () {
        yield* storeChain(world, strangeChain(200, 2))
        for (const [salt, column] of texts.entries()) {
          yield* withDatabase((database) =>
            Effect.gen(function* () {
              const text = `toString(${column})`
              const at = `(1 + sipHash64(sequence_number, ${salt}) % greatest(1, length(${text})))`
              const bit = `bitShiftLeft(1, toUInt8(sipHash64(sequence_number, ${salt}, 'bit') % 8))`
              const flipped = `char(bitXor(reinterpretAsUInt8(substring(${text}, ${at}, 1)), ${bit}))`
              const changed = [
                `concat(substring(${text}, 1, ${at} - 1), ${flipped}, substring(${text}, ${at} + 1))`,
                `concat(substring(${text}, 1, ${at} - 1), substring(${text}, ${at} + 1))`,
                `concat(substring(${text}, 1, ${at} - 1), ' ', substring(${text}, ${at}))`
              ]
              const value = changed[salt % changed.length]!
              yield* copyRows(source, database, {
                // Where there is nothing to change, one is put there.
                [column]: `if(empty(${column}), '"x"', ${value})`
              })
              const byStore = yield* perfection(database)
              assert.isAbove(byStore.size, 200, column)
              assert.deepStrictEqual(
                [...byStore].filter(([, perfect]) => perfect),
                [],
                column
              )
              assert.deepStrictEqual(yield* wronglyPerfect(database), [], column)
            })
          )
        }
      })
    )
  )

  it.live("is never content with a row that has another column changed", () =>
    withDatabase((source, world) =>
      Effect.gen(function* () {
        const chain = new Chain(TENANT).extend(200)
        yield* storeChain(world, chain)
        for (const [column, value] of Object.entries(others)) {
          yield* withDatabase((database) =>
            Effect.gen(function* () {
              yield* copyRows(source, database, { [column]: value })
              const byStore = yield* perfection(database)
              assert.strictEqual(byStore.size, 200, column)
              assert.deepStrictEqual(
                [...byStore].filter(([, perfect]) => perfect),
                [],
                column
              )
              assert.deepStrictEqual(yield* wronglyPerfect(database), [], column)
            })
          )
        }
      })
    )
  )

  it.live("is never content with the same bytes cut into other columns", () =>
    withDatabase((source, world) =>
      Effect.gen(function* () {
        const fields: Fields = {
          actor: { id: "a", type: "human", email: "a@b" },
          resource: { id: "r", type: "t", name: "n" },
          metadata: { a: "b" }
        }
        yield* storeChain(
          world,
          new Chain(TENANT).extend(3, () => fields)
        )
        const cuts: ReadonlyArray<Readonly<Record<string, string>>> = [
          { actor_email: `concat(actor_email, ',"metadata":', metadata)`, metadata: "''" },
          { metadata: `concat(metadata, ',"resource_name":', resource_name)`, resource_name: "''" },
          { actor_type: `concat(actor_type, '","email":"a@b')`, actor_email: "''" }
        ]
        for (const cut of cuts) {
          yield* withDatabase((database) =>
            Effect.gen(function* () {
              yield* copyRows(source, database, cut)
              const byStore = yield* perfection(database)
              assert.deepStrictEqual([...byStore.values()], [false, false, false])
              assert.deepStrictEqual(yield* wronglyPerfect(database), [])
            })
          )
        }
      })
    )
  )

  it.live("makes of a whole block its RFC 9162 subtree, of a part the hashes", () =>
    withDatabase((_, world) =>
      Effect.gen(function* () {
        const chain = new Chain(TENANT).extend(2_500)
        yield* storeChain(world, chain)
        const port = yield* ChainRecompute
        const bounds = { from: HISTORY_FROM, to: HISTORY_TO, tenantId: TENANT }
        const blocks = yield* port.blocks({
          ...bounds,
          fromSequence: 1,
          toSequence: 2_200,
          tree: true
        })
        assert.deepStrictEqual(
          blocks.map(({ first, last, perfect, rows }) => [first, last, perfect, rows]),
          [
            [1, 1_024, true, 1_024],
            [1_025, 2_048, true, 1_024],
            [2_049, 2_200, true, 152]
          ]
        )
        const hashes = chain.bodies.map((body) => JSON.parse(body).hash as string)
        let level = hashes.slice(1_024, 2_048).map(leafHash)
        while (level.length > 1) {
          level = level.flatMap((node, at) =>
            at % 2 === 0 ? [nodeHash(node, level[at + 1]!)] : []
          )
        }
        assert.strictEqual(blocks[1]!.subtree, level[0]!.toString("hex"))
        assert.deepStrictEqual(blocks[2]!.hashes, hashes.slice(2_048, 2_200))
        assert.strictEqual(blocks[1]!.prevHash, hashes[1_023])
        assert.strictEqual(blocks[1]!.lastHash, hashes[2_047])
        const without = yield* port.blocks({
          ...bounds,
          fromSequence: 10,
          toSequence: 20,
          tree: false
        })
        assert.deepStrictEqual(without[0]!.hashes, [])
        assert.isUndefined(without[0]!.subtree)
      })
    )
  )

  it.live("sees a link within a block that does not hold, and a row too many or too few", () =>
    withDatabase((database, world) =>
      Effect.gen(function* () {
        const chain = new Chain(TENANT).extend(40)
        const other = new Chain(TENANT).extend(40, () => ({ action: "document.deleted" }))
        // Each row is right by itself; together they are no chain.
        yield* store(chain.bodies.map((body, at) => (at === 19 ? other.bodies[19]! : body)))
        world.heads.set(TENANT, chain.head!)
        const port = yield* ChainRecompute
        const block = (from: number, to: number) =>
          port
            .blocks({
              tenantId: TENANT,
              fromSequence: from,
              toSequence: to,
              from: HISTORY_FROM,
              to: HISTORY_TO,
              tree: false
            })
            .pipe(Effect.map(([one]) => one!.perfect))
        assert.isTrue([...(yield* perfection(database)).values()].every(Boolean))
        assert.isTrue(yield* block(1, 19))
        assert.isFalse(yield* block(1, 20))
        assert.isTrue(yield* block(20, 20))
        assert.isFalse(yield* block(20, 21))
        assert.isTrue(yield* block(21, 40))
        yield* tamper(`ALTER TABLE ${database}.events DELETE WHERE sequence_number = 30`)
        assert.isFalse(yield* block(21, 40))
        yield* store([chain.bodies[34]!])
        assert.isFalse(yield* block(31, 40))
      })
    )
  )
})
