/**
 * What every store behind the ports `CheckpointStore` and `HashTree` has to do, as tests: run on
 * the engine in this process and on the same engine behind HTTP in another.
 */
import { hash } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { layerCheckpointStore } from "../../../../src/adapters/clickhouse/checkpoints/CheckpointStoreClickHouse.ts"
import { layerHashTree } from "../../../../src/adapters/clickhouse/checkpoints/HashTreeClickHouse.ts"
import { ClickHouseConnection } from "../../../../src/adapters/clickhouse/client/ClickHouseConnection.ts"
import { layerClickHouse } from "../../../../src/adapters/clickhouse/EventStoreClickHouse.ts"
import { layerStoredTopics } from "../../../../src/adapters/clickhouse/StoredTopicsClickHouse.ts"
import type { CheckpointRecord } from "../../../../src/domain/chain/Checkpoint.ts"
import {
  consistencyParts,
  Frontier,
  hashesOf,
  inclusionParts,
  leafHash,
  rootPart,
  verifyConsistency,
  verifyInclusion
} from "../../../../src/domain/chain/MerkleTree.ts"
import { sha256Hex } from "../../../../src/domain/Identifiers.ts"
import { type CheckpointRow, CheckpointStore } from "../../../../src/ports/CheckpointStore.ts"
import { EventStore, StoreUnavailable } from "../../../../src/ports/EventStore.ts"
import { HashTree } from "../../../../src/ports/HashTree.ts"
import { StoredTopics } from "../../../../src/ports/TopicRows.ts"

const database = "alk_checkpoints"

const recordOf = (tenantId: string, size: number, keyId = "0a1b2c3d"): CheckpointRecord => ({
  tenant_id: tenantId,
  tree_size: size,
  root_hash: hash("sha256", `${tenantId} ${size} ${keyId}`, "hex"),
  created_at: "2026-01-01T00:00:00.000000Z",
  key_id: keyId,
  note: `alk/${tenantId}\n${size}\n=\n\n— alk ÄÖ\\ "${keyId}"\n`
})

const rowOf = (record: CheckpointRecord, offset: number, partition = 0): CheckpointRow => ({
  partition,
  offset,
  tenantId: record.tenant_id,
  treeSize: record.tree_size,
  body: Buffer.from(JSON.stringify(record))
})

/** What somebody with access to the database could do. */
const tamper = (sql: string) =>
  ClickHouseConnection.use(({ client }) => Effect.promise(() => client.command({ query: sql })))

/** `hash` of the event `sequence` of a tenant, as the statement below makes it. */
const eventHash = (tenantId: string, sequence: number) =>
  hash("sha256", `${tenantId} ${sequence}`, "hex")

/** Events of a tenant as far as trees need them. */
const fill = (
  tenantId: string,
  from: number,
  to: number,
  hashed = `concat('${tenantId} ', toString(number))`
) =>
  tamper(
    `INSERT INTO ${database}.events (kafka_partition, kafka_offset, tenant_id,`
      + " sequence_number, hash, version)"
      + ` SELECT 0, number, '${tenantId}', number, lower(hex(SHA256(${hashed}))), 0`
      + ` FROM numbers(${from}, ${to - from + 1})`
  )

const frontierOf = (tenantId: string, size: number): Frontier => {
  const frontier = Frontier.empty()
  for (let sequence = 1; sequence <= size; sequence++) {
    frontier.append(eventHash(tenantId, sequence))
  }
  return frontier
}

const rootOf = Effect.fnUntraced(function* (tenantId: string, size: number) {
  const tree = yield* HashTree
  const part = rootPart(size)
  const stored = yield* tree.nodes(tenantId, part)
  return hashesOf([part], stored.node)[0]!.toString("hex")
})

/** What the store makes of the event's proof, verified against the root. */
const proves = Effect.fnUntraced(function* (
  tenantId: string,
  sequence: number,
  size: number,
  root: Buffer
) {
  const tree = yield* HashTree
  const index = sequence - 1
  const parts = inclusionParts(index, size)
  const stored = yield* tree.nodes(tenantId, [{ level: 0, index }, ...parts.flat()])
  const leaf = leafHash(stored.eventHash(index))
  return verifyInclusion({ leaf, index, size, root, proof: hashesOf(parts, stored.node) })
})

/** `large`: events of the largest tree of these tests. */
export const checkpointContract = (
  name: string,
  large: number,
  connectionTo: (database: string) => Layer.Layer<ClickHouseConnection, unknown>
): void => {
  const connection = connectionTo(database)
  const stores = Layer.mergeAll(
    layerClickHouse,
    layerCheckpointStore,
    layerHashTree,
    layerStoredTopics
  )
  const migrated = Layer.effectDiscard(Effect.flatMap(EventStore, ({ migrate }) => migrate)).pipe(
    Layer.provideMerge(stores),
    Layer.provideMerge(connection)
  )

  layer(migrated, { excludeTestServices: true })(name, (it) => {
    it.effect("finds checkpoints by the size of their tree", () =>
      Effect.gen(function* () {
        const store = yield* CheckpointStore
        const sizes = [1, 5, 1_000, 2 ** 40]
        const records = sizes.map((size) => recordOf("sizes", size))
        yield* store.insert([
          ...records.map((record, offset) => rowOf(record, offset)),
          rowOf(recordOf("sizes-other", 7), 4)
        ])
        const newest = records.toReversed()
        assert.deepStrictEqual(yield* store.latest("sizes"), records[3])
        assert.isUndefined(yield* store.latest("nobody"))
        assert.deepStrictEqual(yield* store.ofSize("sizes", 1_000), [records[2]!])
        assert.deepStrictEqual(yield* store.ofSize("sizes", 7), [])
        assert.deepStrictEqual(yield* store.atOrBelow("sizes", 1_000), records[2])
        assert.deepStrictEqual(yield* store.atOrBelow("sizes", 999), records[1])
        assert.isUndefined(yield* store.atOrBelow("sizes", 0))
        assert.deepStrictEqual(yield* store.list("sizes", { limit: 10 }), newest)
        assert.deepStrictEqual(yield* store.list("sizes", { limit: 2 }), newest.slice(0, 2))
        assert.deepStrictEqual(
          yield* store.list("sizes", { beforeSize: 1_000, limit: 2 }),
          newest.slice(2)
        )
        assert.deepStrictEqual(yield* store.list("sizes", { beforeSize: 1, limit: 2 }), [])
        assert.deepStrictEqual(yield* store.list("sizes' OR 1=1 --", { limit: 2 }), [])
      })
    )

    it.effect("shows each size once, however often the topic is replayed, and its newest", () =>
      Effect.gen(function* () {
        const store = yield* CheckpointStore
        const [first, rotated] = [recordOf("twice", 5), recordOf("twice", 5, "ffffffff")]
        const rows = [rowOf(first, 100), rowOf(rotated, 101), rowOf(recordOf("twice", 9), 102)]
        for (let replay = 0; replay < 3; replay++) yield* store.insert(rows)
        const listed = yield* store.list("twice", { limit: 10 })
        assert.deepStrictEqual(listed, [recordOf("twice", 9), rotated])
        assert.deepStrictEqual(yield* store.ofSize("twice", 5), [rotated, first])
        yield* store.insert([])
      })
    )

    it.effect("says where the view of a partition ends, and sets it aside", () =>
      Effect.gen(function* () {
        const store = yield* CheckpointStore
        const rows = (yield* StoredTopics).of("checkpoints")
        assert.isUndefined(yield* rows.highest(7))
        const [first, second] = [recordOf("ends", 1), recordOf("ends-too", 1)]
        yield* store.insert([rowOf(first, 40, 7)])
        yield* store.insert([rowOf(second, 41, 7), rowOf(recordOf("elsewhere", 3), 90, 8)])
        assert.strictEqual(yield* rows.highest(7), 41)
        assert.deepStrictEqual(yield* rows.rows(7, 41, 42), [
          { offset: 41, digest: sha256Hex(JSON.stringify(second)), body: undefined }
        ])
        assert.deepStrictEqual(yield* store.outside(7, { start: 0, end: 41 }), [second])
        assert.deepStrictEqual(yield* store.outside(7, { start: 0, end: 42 }), [])
        assert.deepStrictEqual(yield* store.outside(7, { start: 41, end: 42 }), [first])
        const ofTraces = { ...recordOf("ends", 5), chain: "traces" as const }
        yield* store.insert([rowOf(ofTraces, 42, 7)])
        yield* rows.setAside(7, { from: 0, confirmed: [], end: 99 })
        assert.isUndefined(yield* rows.highest(7))
        assert.isUndefined(yield* store.latest("ends"))
        const aside = yield* store.outside(7, { start: 0, end: 99 })
        assert.deepInclude(aside, ofTraces)
        assert.sameDeepMembers([...aside], [ofTraces, first, second])
        assert.deepStrictEqual(yield* store.latest("elsewhere"), recordOf("elsewhere", 3))
      })
    )

    it.effect("gives back what somebody wrote into the table as what it is: signed by nobody", () =>
      Effect.gen(function* () {
        const store = yield* CheckpointStore
        const long = JSON.stringify(recordOf("forged", 6)).padEnd(20_000)
        for (const [index, body] of ["", "{}", "[]", "null", '{"tree_size":9}', long].entries()) {
          yield* tamper(
            `INSERT INTO ${database}.checkpoints`
              + ` VALUES (9, ${index}, 'forged', ${index + 1}, '${body}')`
          )
          const found = yield* store.latest("forged")
          assert.deepInclude(found, { tenant_id: "forged", tree_size: index + 1, note: "" })
        }
      })
    )

    it.effect("makes roots and proofs of stored events, as the domain does", () =>
      Effect.gen(function* () {
        const sizes = [1, 2, 255, 256, 257, 511, 513, 1_000, 2_049]
        yield* fill("small", 1, 2_049)
        for (const size of sizes) {
          const root = frontierOf("small", size).root()
          assert.strictEqual(yield* rootOf("small", size), root.toString("hex"), `size ${size}`)
          for (const sequence of new Set([1, Math.ceil(size / 2), size])) {
            assert.isTrue(yield* proves("small", sequence, size, root), `${sequence} of ${size}`)
          }
        }
        const tree = yield* HashTree
        for (const [first, second] of [
          [1, 2_049],
          [256, 1_000],
          [1_000, 2_049]
        ] as const) {
          const parts = consistencyParts(first, second)
          const stored = yield* tree.nodes("small", parts.flat())
          assert.isTrue(
            verifyConsistency({
              first,
              firstRoot: frontierOf("small", first).root(),
              second,
              secondRoot: frontierOf("small", second).root(),
              proof: hashesOf(parts, stored.node)
            })
          )
        }
      })
    )

    it.effect("keeps the same nodes in the table as the program computes", () =>
      Effect.gen(function* () {
        const { client } = yield* ClickHouseConnection
        yield* fill("large", 1, large)
        const frontier = Frontier.empty()
        const blocks: Array<string> = []
        let block = Frontier.empty()
        for (let sequence = 1; sequence <= large; sequence++) {
          const one = eventHash("large", sequence)
          frontier.append(one)
          block.append(one)
          if (block.size < 256) continue
          blocks.push(block.root().toString("hex"))
          block = Frontier.empty()
        }
        const root = frontier.root()
        assert.isTrue(yield* proves("large", 1, large, root))
        // The last sequences make the store compute all of it.
        for (const sequence of [large, large - 300, Math.floor(large / 2), 65_536, 65_537]) {
          assert.isTrue(yield* proves("large", sequence, large, root), `event ${sequence}`)
        }
        const answer = yield* Effect.promise(() =>
          client.query({
            query:
              `SELECT lower(hex(hash)) AS h FROM ${database}.subtrees FINAL`
              + " WHERE tree = 'large' AND level = 8 ORDER BY node_index",
            format: "JSONEachRow"
          })
        )
        const kept = yield* Effect.promise(() => answer.json<{ readonly h: string }>())
        assert.isAbove(kept.length, 256)
        assert.deepStrictEqual(
          kept.map(({ h }) => h),
          blocks.slice(0, kept.length)
        )
        // A hash that ends in zeros is one that shorter texts would lose.
        assert.isTrue(kept.some(({ h }) => h.endsWith("00")))
        const highest = yield* Effect.promise(() =>
          client.query({
            query:
              `SELECT lower(hex(hash)) AS h FROM ${database}.subtrees FINAL`
              + " WHERE tree = 'large' AND level = 16 AND node_index = 0",
            format: "JSONEachRow"
          })
        )
        const [top] = yield* Effect.promise(() => highest.json<{ readonly h: string }>())
        assert.strictEqual(top?.h, frontierOf("large", 65_536).root().toString("hex"))
      })
    )

    it.effect("goes on with what it kept while the chain grows", () =>
      Effect.gen(function* () {
        let end = 0
        for (const size of [100, 256, 600, 5_000, 5_001, 140_000]) {
          yield* fill("growing", end + 1, size)
          end = size
          const root = frontierOf("growing", size).root()
          for (const sequence of [1, Math.ceil(size / 3), size]) {
            assert.isTrue(yield* proves("growing", sequence, size, root), `${sequence} of ${size}`)
          }
        }
      })
    )

    it.effect("is the same with rows that stand in the store twice", () =>
      Effect.gen(function* () {
        yield* tamper(`SYSTEM STOP MERGES ${database}.events`)
        yield* fill("doubled", 1, 700)
        yield* fill("doubled", 200, 700)
        const root = frontierOf("doubled", 700).root()
        for (const sequence of [1, 250, 699]) {
          assert.isTrue(yield* proves("doubled", sequence, 700, root))
        }
        yield* tamper(`SYSTEM START MERGES ${database}.events`)
      })
    )

    it.effect("refuses to guess where an event is missing, forged or unreadable", () =>
      Effect.gen(function* () {
        const tree = yield* HashTree
        const failing = (tenantId: string, sequence: number) =>
          Effect.gen(function* () {
            const parts = inclusionParts(sequence - 1, 1_000)
            const wanted = [{ level: 0, index: sequence - 1 }, ...parts.flat()]
            const failure = yield* Effect.flip(tree.nodes(tenantId, wanted))
            if (failure._tag !== "TreeUnbuildable") return yield* Effect.fail(failure)
            return failure
          })
        yield* fill("missing", 1, 299)
        yield* fill("missing", 301, 1_000)
        const near = yield* failing("missing", 310)
        assert.deepInclude(near, { firstSequence: 300, lastSequence: 300 })
        const far = yield* failing("missing", 900)
        assert.deepInclude(far, { firstSequence: 257, lastSequence: 512 })

        yield* fill("forged", 1, 1_000)
        yield* fill("forged", 300, 300, "'forged'")
        assert.deepInclude(yield* failing("forged", 900), { firstSequence: 257, lastSequence: 512 })
        assert.deepInclude(yield* failing("forged", 310), { firstSequence: 300, lastSequence: 300 })

        // One too many, and one too few: as many rows as there have to be.
        yield* fill("swapped", 1, 300)
        yield* fill("swapped", 302, 1_000)
        yield* fill("swapped", 300, 300, "'forged'")
        assert.deepInclude(yield* failing("swapped", 900), {
          firstSequence: 257,
          lastSequence: 512
        })

        yield* tamper(
          `INSERT INTO ${database}.events (kafka_partition, kafka_offset, tenant_id,`
            + " sequence_number, hash, version) VALUES (0, 1001, 'short', 1, 'abc', 0)"
        )
        const short = yield* Effect.flip(tree.nodes("short", [{ level: 0, index: 0 }]))
        assert.strictEqual(short._tag, "TreeUnbuildable")
        yield* fill("behind", 1, 1_000)
        const behind = yield* Effect.flip(tree.nodes("behind", [{ level: 8, index: 3 }]))
        assert.deepInclude(behind, { firstSequence: 769, lastSequence: 1_024 })
      })
    )

    it.effect("reads leaves as they are stored now, whatever it remembers", () =>
      Effect.gen(function* () {
        const tree = yield* HashTree
        yield* fill("leaves", 1, 600)
        const expected = (first: number, end: number) =>
          Array.from({ length: end - first }, (_, place) => eventHash("leaves", first + place + 1))
        for (const [first, end] of [
          [0, 1],
          [0, 256],
          [256, 512],
          [512, 600]
        ] as const) {
          assert.deepStrictEqual(yield* tree.leaves("leaves", first, end), expected(first, end))
        }
        assert.isTrue(yield* proves("leaves", 300, 600, frontierOf("leaves", 600).root()))
        const unbuildable = (first: number, end: number) =>
          Effect.flip(tree.leaves("leaves", first, end))
        assert.deepInclude(yield* unbuildable(512, 601), { firstSequence: 601, lastSequence: 601 })
        yield* fill("leaves", 300, 300, "'forged'")
        assert.deepInclude(yield* unbuildable(256, 512), { firstSequence: 300, lastSequence: 300 })
        assert.deepStrictEqual(yield* tree.leaves("leaves", 256, 299), expected(256, 299))
      })
    )

    it.effect("computes anew what somebody has changed, once it is told to forget", () =>
      Effect.gen(function* () {
        const tree = yield* HashTree
        const wrong = (tenantId: string) =>
          tamper(
            `INSERT INTO ${database}.subtrees SELECT '${tenantId}', 8, number,`
              + " reinterpretAsFixedString(SHA256('wrong')) FROM numbers(3)"
          )
        yield* fill("changed", 1, 1_000)
        yield* wrong("changed")
        const root = frontierOf("changed", 1_000).root()
        assert.isFalse(yield* proves("changed", 900, 1_000, root))
        yield* tree.forget("changed")
        assert.isTrue(yield* proves("changed", 900, 1_000, root))
        // What is kept in memory stands, whatever the table says; other tenants keep theirs.
        yield* wrong("changed")
        assert.isTrue(yield* proves("changed", 900, 1_000, root))
        yield* fill("kept", 1, 1_000)
        yield* wrong("kept")
        yield* tree.forget("changed")
        assert.isTrue(yield* proves("changed", 900, 1_000, root))
        assert.isFalse(yield* proves("kept", 900, 1_000, frontierOf("kept", 1_000).root()))
      })
    )

    it.effect("computes once for many who ask at the same time", () =>
      Effect.gen(function* () {
        yield* fill("many", 1, 3_000)
        const root = frontierOf("many", 3_000).root()
        const proven = yield* Effect.forEach(
          Array.from({ length: 20 }, (_, index) => 1 + index * 150),
          (sequence) => proves("many", sequence, 3_000, root),
          { concurrency: "unbounded" }
        )
        assert.isTrue(proven.every((one) => one))
        const { client } = yield* ClickHouseConnection
        const answer = yield* Effect.promise(() =>
          client.query({
            query:
              `SELECT count() AS n, uniqExact(node_index) AS u FROM ${database}.subtrees`
              + " WHERE tree = 'many' AND level = 8",
            format: "JSONEachRow"
          })
        )
        const [counted] = yield* Effect.promise(() =>
          answer.json<{ readonly n: string; readonly u: string }>()
        )
        assert.strictEqual(Number(counted?.n), Number(counted?.u))
      })
    )

    it.effect("says that the store is not there where it is not", () =>
      Effect.gen(function* () {
        yield* tamper(`RENAME TABLE ${database}.subtrees TO ${database}.away`)
        const tree = yield* HashTree
        const failure = yield* Effect.flip(tree.nodes("nobody", [{ level: 8, index: 0 }]))
        yield* tamper(`RENAME TABLE ${database}.away TO ${database}.subtrees`)
        assert.instanceOf(failure, StoreUnavailable)
      })
    )
  })
}
