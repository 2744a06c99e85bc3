/**
 * What every store behind the port `EventStore` has to do, as tests: run on the engine in this
 * process and on the same engine behind HTTP in another.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Stream } from "effect"
import fc from "fast-check"
import { ClickHouseConnection } from "../../../../src/adapters/clickhouse/client/ClickHouseConnection.ts"
import { layerClickHouse } from "../../../../src/adapters/clickhouse/EventStoreClickHouse.ts"
import { storedText } from "../../../../src/adapters/clickhouse/events/EventText.ts"
import { layerStoredTopics } from "../../../../src/adapters/clickhouse/StoredTopicsClickHouse.ts"
import { type AuditEvent, outcomes } from "../../../../src/domain/events/AuditEvent.ts"
import { memberAt, whereFields, whereNames } from "../../../../src/domain/events/EventFields.ts"
import { type EventFilter, emptyFilter } from "../../../../src/domain/events/EventFilter.ts"
import { eraseEvent, faultOf, recompute } from "../../../../src/domain/events/HashChain.ts"
import type { Expression } from "../../../../src/domain/events/where/Expression.ts"
import { printWhere } from "../../../../src/domain/events/where/Print.ts"
import { sha256Hex } from "../../../../src/domain/Identifiers.ts"
import type { JsonObject } from "../../../../src/domain/json/Json.ts"
import {
  type EventPageQuery,
  EventStore,
  type Numbers,
  type StatsGroup,
  type StatsQuery,
  type StoredRow
} from "../../../../src/ports/EventStore.ts"
import {
  type DeniedReason,
  type StoredTopic,
  StoredTopics
} from "../../../../src/ports/TopicRows.ts"
import { matches } from "../../../support/Matches.ts"
import { runs } from "../../../support/Runs.ts"
import { Chain } from "../../../verify/support/Chains.ts"
import { anyEvents, anyFilter, anyPath, anyWhere } from "./Generators.ts"
import { hostileTexts } from "./HostileTexts.ts"
import {
  bodyOf,
  chainOf,
  rowsOf,
  type Sample,
  storedEvent,
  textsOf,
  timeAt
} from "./StoredBodies.ts"

const database = "alk_contract"

/** Values of events, which may hold anything. */
const allTexts: ReadonlyArray<string> = [
  ...hostileTexts,
  "a\nb",
  "a\r\nb",
  "a\tb",
  "\u0001",
  "\u001f",
  "\u007f",
  "ẞ",
  "ΟΔΟΣ",
  "ǅ",
  "\u{1F468}\u200D\u{1F469}",
  "x".repeat(250)
]

/** The highest offset of a partition that is stored of a topic. */
const highest = (topic: StoredTopic, partition: number) =>
  StoredTopics.use((topics) => topics.of(topic).highest(partition))

const everythingOf = (tenantId: string, over: Partial<EventPageQuery> = {}): EventPageQuery => ({
  tenantId,
  filter: emptyFilter,
  order: "asc",
  offset: 0,
  limit: 1000,
  ...over
})

const found = (tenantId: string, filter: Partial<EventFilter>, final = false) =>
  EventStore.use((store) =>
    store.page(everythingOf(tenantId, { filter: { ...emptyFilter, ...filter } }), final)
  )

/** The answer is exactly the given events, in their order. */
const assertFinds = Effect.fnUntraced(function* (
  tenantId: string,
  filter: Partial<EventFilter>,
  expected: ReadonlyArray<AuditEvent>
) {
  const { bodies, total } = yield* found(tenantId, filter)
  assert.deepStrictEqual(bodies, textsOf(expected), JSON.stringify(filter))
  assert.strictEqual(total, expected.length, JSON.stringify(filter))
})

const stored = (events: ReadonlyArray<AuditEvent>, partition = 0, firstOffset = 0) =>
  EventStore.use((store) => store.insertEvents(rowsOf(events, partition, firstOffset)))

/** Statement on the tables themselves: what somebody with access to the database could do. */
const tamper = (sql: string) =>
  ClickHouseConnection.use(({ client }) => Effect.promise(() => client.command({ query: sql })))

/** What is inserted meanwhile stays in parts of its own. */
const withoutMerges = <A, E, R>(use: Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    tamper(`SYSTEM STOP MERGES ${database}.events`),
    () => use,
    () => tamper(`SYSTEM START MERGES ${database}.events`)
  )

const rowsInRange = (tenantId: string, from: number, to: number) =>
  EventStore.use((store) =>
    Stream.runCollect(store.rows(tenantId, from, to)).pipe(Effect.map((chunks) => chunks.flat()))
  )

/** What the two parts of the contract need. */
const storesOf = <E>(connection: (database: string) => Layer.Layer<ClickHouseConnection, E>) =>
  Layer.effectDiscard(EventStore.use((store) => store.migrate)).pipe(
    Layer.provideMerge(Layer.mergeAll(layerClickHouse, layerStoredTopics)),
    Layer.provideMerge(connection(database))
  )

export const storeContract = <E>(
  name: string,
  /** Generated filters to try; those of the two suites differ. */
  filters: number,
  connection: (database: string) => Layer.Layer<ClickHouseConnection, E>
): void => {
  layer(storesOf(connection), { excludeTestServices: true })(name, (it) => {
    it.effect("gives back every byte, on every way out", () =>
      Effect.gen(function* () {
        const lows = [0x21, 0xa9, 0x3b1, 0xfff, 0xfffd]
        const planes = Array.from({ length: 17 }, (_, plane) =>
          String.fromCodePoint(...lows.map((low) => plane * 0x10000 + low))
        )
        const texts = [...planes, ...allTexts]
        const events = texts.map((text, index) =>
          storedEvent("bytes", index + 1, {
            // No id holds control characters.
            actor: { id: text.replaceAll(/[\0-\x1f]/g, " "), type: "agent", email: text },
            resource: { id: "r", type: text.replaceAll(/[\0-\x1f]/g, " "), name: text },
            metadata: { [text]: [text, { [text]: text }], nested: text.repeat(3) }
          })
        )
        yield* stored(events, 7, 1_000)
        const expected = textsOf(events)
        const store = yield* EventStore
        const { bodies, total } = yield* store.page(everythingOf("bytes"), false)
        assert.deepStrictEqual(bodies, expected)
        assert.strictEqual(total, events.length)
        const scanned = yield* Stream.runCollect(store.scan(everythingOf("bytes"), false))
        assert.deepStrictEqual(scanned.flat(), expected)
        const rows = yield* rowsInRange("bytes", 1, events.length)
        assert.deepStrictEqual(
          rows.map(({ body }) => body),
          expected
        )
        assert.deepStrictEqual(
          rows.flatMap(({ wrongColumns }) => wrongColumns),
          []
        )
        for (const event of events.slice(0, 5)) {
          const body = (yield* store.byId("bytes", event.id, undefined, false))?.body
          assert.strictEqual(body, bodyOf(event).toString())
        }
        const last = 1_000 + events.length - 1
        assert.strictEqual(yield* highest("events", 7), last)
        const [row] = yield* StoredTopics.use((topics) =>
          topics.of("events").rows(7, last, last + 1)
        )
        assert.strictEqual(row?.digest, sha256Hex(expected.at(-1)!))
      })
    )

    it.effect("pages by number and by sequence, with the exact total", () =>
      Effect.gen(function* () {
        const store = yield* EventStore
        const events = chainOf("pages", 25, (n) => ({
          outcome: n % 5 === 0 ? "failure" : "success"
        }))
        yield* stored(events)
        const expected = textsOf(events)
        const newest = [...expected].reverse()
        const page = (over: Partial<EventPageQuery>) =>
          store.page(everythingOf("pages", { order: "desc", limit: 10, ...over }), false)
        assert.deepStrictEqual(yield* page({}), { bodies: newest.slice(0, 10), total: 25 })
        assert.deepStrictEqual(yield* page({ offset: 20 }), { bodies: newest.slice(20), total: 25 })
        assert.deepStrictEqual(yield* page({ offset: 30 }), { bodies: [], total: 25 })
        assert.deepStrictEqual(yield* page({ order: "asc", afterSequence: 20 }), {
          bodies: expected.slice(20),
          total: 25
        })
        assert.deepStrictEqual(yield* page({ beforeSequence: 4 }), {
          bodies: newest.slice(22),
          total: 25
        })
        const failures = { ...emptyFilter, outcome: "failure" as const }
        assert.deepStrictEqual(yield* page({ filter: failures, limit: 2, offset: 1 }), {
          bodies: [newest[5]!, newest[10]!],
          total: 5
        })
        assert.deepStrictEqual(yield* found("nobody", {}), { bodies: [], total: 0 })
        const around = (over: Partial<EventPageQuery>, tenantId = "pages") =>
          store.keysetPages(everythingOf(tenantId, { order: "asc", limit: 10, ...over }), false)
        const pages = (previous: number | undefined, last: number | undefined) => ({
          previous,
          last
        })
        assert.deepStrictEqual(yield* around({ afterSequence: 0 }), pages(undefined, 15))
        assert.deepStrictEqual(yield* around({ afterSequence: 7 }), pages(0, 15))
        assert.deepStrictEqual(yield* around({ afterSequence: 20 }), pages(10, 15))
        assert.deepStrictEqual(yield* around({ afterSequence: 99 }), pages(15, 15))
        assert.deepStrictEqual(
          yield* around({ afterSequence: 12, beforeSequence: 20 }),
          pages(2, 9)
        )
        assert.deepStrictEqual(
          yield* around({ order: "desc", beforeSequence: 9, afterSequence: 3 }),
          pages(19, 14)
        )
        assert.deepStrictEqual(
          yield* around({ filter: failures, limit: 2, afterSequence: 20 }),
          pages(14, 19)
        )
        assert.deepStrictEqual(
          yield* around({ afterSequence: 5 }, "nobody"),
          pages(undefined, undefined)
        )
      })
    )

    it.effect("bounds times, sequences and actions as it says", () =>
      Effect.gen(function* () {
        const events = [
          storedEvent("bounds", 1, { timestamp: "1970-01-01T00:00:00.000000Z", action: "a.b" }),
          storedEvent("bounds", 2, { timestamp: "1970-01-01T00:00:00.000001Z", action: "a.bc" }),
          storedEvent("bounds", 3, { timestamp: "2038-01-19T03:14:08.000000Z", action: "a.b.c" }),
          storedEvent("bounds", 4, { timestamp: "2106-02-07T06:28:16.999999Z", action: "A.b.c" }),
          storedEvent("bounds", 5, { timestamp: "2261-12-31T23:59:59.999999Z", action: "a-b.c" })
        ]
        yield* stored(events)
        const times = events.map(({ timestamp }) => timestamp)
        for (const [index, time] of times.entries()) {
          yield* assertFinds("bounds", { from: time }, events.slice(index))
          yield* assertFinds("bounds", { to: time }, events.slice(0, index + 1))
          yield* assertFinds("bounds", { from: time, to: time }, [events[index]!])
        }
        yield* assertFinds("bounds", { fromSequence: 2, toSequence: 3 }, events.slice(1, 3))
        yield* assertFinds("bounds", { actionPrefix: "a.b." }, [events[2]!])
        yield* assertFinds("bounds", { actionPrefix: "a." }, events.slice(0, 3))
      })
    )

    it.effect("means the same by a filter as the domain does", () =>
      Effect.gen(function* () {
        const [samples = []] = fc.sample(anyEvents, 1)
        const events = samples.map((sample, index) => storedEvent("law", index + 1, sample))
        yield* stored(events)
        const context = yield* Effect.context<EventStore>()
        yield* Effect.promise(() =>
          fc.assert(
            fc.asyncProperty(anyFilter, (filter) =>
              Effect.runPromiseWith(context)(
                assertFinds(
                  "law",
                  filter,
                  events.filter((event) => matches(filter, event))
                )
              )
            ),
            { numRuns: runs(filters) }
          )
        )
      })
    )

    it.effect("means the same by an expression as the domain does", () =>
      Effect.gen(function* () {
        const [samples = []] = fc.sample(anyEvents, 1)
        const events = samples.map((sample, index) => storedEvent("where", index + 1, sample))
        yield* stored(events, 41)
        const context = yield* Effect.context<EventStore>()
        const law = (expression: Expression) => {
          const where = printWhere(expression)
          const filter = { ...emptyFilter, where }
          const expected = events.filter((event) => matches(filter, event))
          return assertFinds("where", { where }, expected)
        }
        yield* Effect.promise(() =>
          fc.assert(
            fc.asyncProperty(anyWhere, (expression) =>
              Effect.runPromiseWith(context)(law(expression))
            ),
            { numRuns: runs(filters) }
          )
        )
      })
    )

    it.effect("keeps an event with integers beyond 64 bits findable by everything", () =>
      Effect.gen(function* () {
        const event = storedEvent("large", 1, {
          id: "12345678901234567890123",
          actor: { id: "98765432109876543210", type: "system", email: "11111111111111111111@x" },
          metadata: { n: 1e20, m: [-1e20, 2 ** 64], s: "55555555555555555555", k: { t: '"6\\' } }
        })
        yield* stored([event])
        for (const filter of [
          { id: event.id },
          { actorId: event.actor.id },
          { q: "11111111111111111111@X" },
          { q: "55555555555555555555" },
          { q: '"6\\' },
          { metadata: [{ path: "n", value: "100000000000000000000" }] },
          { metadata: [{ path: "m", value: "18446744073709552000" }] },
          { metadata: [{ path: "s", value: "55555555555555555555" }] },
          { from: event.timestamp, to: event.timestamp }
        ])
          yield* assertFinds("large", filter, [event])
        yield* assertFinds("large", { q: "100000000000000000000" }, [])
        assert.deepStrictEqual((yield* rowsInRange("large", 1, 1))[0]?.wrongColumns, [])
      })
    )

    it.effect("counts groups and buckets as plain arithmetic does", () =>
      Effect.gen(function* () {
        const store = yield* EventStore
        const [samples = []] = fc.sample(anyEvents, 1)
        const events = samples.map((sample, index) =>
          storedEvent("stats", index + 1, { ...sample, timestamp: timeAt(index * 1_801) })
        )
        yield* stored(events)
        const lengths = { minute: 16, hour: 13, day: 10 } as const
        const endings = { minute: ":00.000000Z", hour: ":00:00.000000Z", day: "T00:00:00.000000Z" }
        const filter = { ...emptyFilter, fromSequence: 3 }
        const matching = events.filter((event) => matches(filter, event))
        const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))
        const byNumber = (a: string, b: string) => Number(a) - Number(b)
        for (const groupBy of whereNames) {
          const byKey = whereFields[groupBy].kind === "integer" ? byNumber : byBytes
          const statisticOf = (event: AuditEvent) =>
            memberAt(event, whereFields[groupBy].path) as string | undefined
          const counted = matching.filter((event) => statisticOf(event) !== undefined)
          const keyOf = (event: AuditEvent) => String(statisticOf(event))
          const missing = matching.length - counted.length
          for (const interval of ["minute", "hour", "day"] as const) {
            const limit = 2
            const groups = [...Map.groupBy(counted, keyOf)]
              .map(([key, members]) => ({ keys: [key], count: members.length }))
              .sort((a, b) => b.count - a.count || byKey(a.keys[0]!, b.keys[0]!))
              .slice(0, limit)
            const shown = new Set(groups.map(({ keys }) => keys[0]!))
            const buckets = [
              ...Map.groupBy(
                counted.filter((event) => shown.has(keyOf(event))),
                (event) =>
                  `${event.timestamp.slice(0, lengths[interval])}${endings[interval]} ${keyOf(event)}`
              )
            ]
              .map(([key, members]) => ({
                start: key.slice(0, 27),
                keys: [key.slice(28)],
                count: members.length
              }))
              .sort((a, b) => byBytes(a.start, b.start) || byKey(a.keys[0]!, b.keys[0]!))
            const other = groups.reduce((rest, { count }) => rest - count, counted.length)
            assert.deepStrictEqual(
              yield* store.stats(
                { tenantId: "stats", filter, groupBy: [groupBy], interval, limit },
                false
              ),
              { groups, other, buckets, missing, total: matching.length }
            )
          }
        }
        const nobody = {
          tenantId: "nobody",
          filter: emptyFilter,
          groupBy: ["action"],
          interval: "day",
          limit: 5
        } as const
        assert.deepStrictEqual(yield* store.stats(nobody, true), {
          groups: [],
          other: 0,
          buckets: [],
          missing: 0,
          total: 0
        })
      })
    )

    it.effect("counts by long values as far as one answer has room for them", () =>
      Effect.gen(function* () {
        const store = yield* EventStore
        const a = "x".repeat(30_000)
        const b = Array.from({ length: 40 }, (_, n) => `b${n}`)
        const events = chainOf("long-keys", 20, (n) => ({
          timestamp: `2026-03-01T00:${String(n).padStart(2, "0")}:00.000000Z`,
          metadata: { a, b }
        }))
        yield* stored(events)
        const query = {
          tenantId: "long-keys",
          filter: emptyFilter,
          groupBy: ["metadata.a", "metadata.b"],
          limit: 1_000
        } as const
        const counted = yield* store.stats(query, false)
        assert.strictEqual(counted.groups.length, 40)
        const refused = yield* Effect.flip(store.stats({ ...query, interval: "minute" }, false))
        assert.strictEqual(refused._tag, "StatsTooLarge")
        const daily = yield* store.stats({ ...query, interval: "day" }, false)
        assert.strictEqual(daily.buckets?.length, 40)
      })
    )

    it.effect("shows rows that came twice once, by FINAL, and merges them when asked", () =>
      Effect.gen(function* () {
        const store = yield* EventStore
        const events = chainOf("twice", 12, (n) => ({ action: n % 2 === 0 ? "even.x" : "odd.x" }))
        const expected = textsOf(events)
        const answers = (final: boolean) =>
          Effect.gen(function* () {
            const { bodies, total } = yield* found("twice", {}, final)
            assert.deepStrictEqual(bodies, expected)
            assert.strictEqual(total, 12)
            const filtered = yield* found("twice", { action: "odd.x", q: "DOC_1" }, final)
            assert.strictEqual(filtered.total, 6)
            const scanned = yield* Stream.runCollect(store.scan(everythingOf("twice"), final))
            assert.deepStrictEqual(scanned.flat(), expected)
            const { groups } = yield* store.stats(
              { tenantId: "twice", filter: emptyFilter, groupBy: ["action"], limit: 5 },
              final
            )
            const six = (key: string) => ({ keys: [key], count: 6 })
            assert.deepStrictEqual(groups, [six("even.x"), six("odd.x")])
          })
        yield* withoutMerges(
          Effect.gen(function* () {
            yield* stored(events, 21, 100)
            assert.isFalse(yield* store.hasDuplicates(21, 0))
            yield* stored(events.slice(4, 8), 21, 104)
            assert.isTrue(yield* store.hasDuplicates(21, 0))
            assert.isTrue(yield* store.hasDuplicates(21, 107))
            assert.isFalse(yield* store.hasDuplicates(21, 108))
            assert.isFalse(yield* store.hasDuplicates(22, 0))
            yield* answers(true)
            assert.strictEqual((yield* found("twice", {}, false)).total, 12)
            const rows = yield* rowsInRange("twice", 1, 100)
            assert.deepStrictEqual(
              rows.map(({ body }) => body),
              expected
            )
          })
        )
        yield* store.mergeDuplicates
        assert.isFalse(yield* store.hasDuplicates(21, 0))
        yield* answers(false)
      })
    )

    it.effect("never hides a second row with another hash, nor calls it a duplicate", () =>
      Effect.gen(function* () {
        const store = yield* EventStore
        const events = chainOf("forged", 3)
        const forged = storedEvent("forged", 2, { hash: "f".repeat(64), action: "forged.row" })
        yield* stored(events, 23)
        yield* stored([forged], 23, 1)
        assert.isFalse(yield* store.hasDuplicates(23, 0))
        const rows = yield* rowsInRange("forged", 1, 3)
        assert.deepStrictEqual(
          rows.map(({ sequenceNumber }) => sequenceNumber),
          [1, 2, 2, 3]
        )
        assert.isTrue(rows.some(({ body }) => body === bodyOf(forged).toString()))
        yield* store.mergeDuplicates
        assert.strictEqual((yield* found("forged", {}, true)).total, 4)
        // Of the two rows of sequence 2 a page shows those that the filter means.
        const others = storedEvent("forged", 2, {
          hash: "e".repeat(64),
          actor: { id: "somebody-else", type: "human" }
        })
        yield* stored([others], 23, 3)
        const [first] = events
        for (const filter of [{ actorId: first!.actor.id }, { actorId: "somebody-else" }]) {
          const expected = [...events, forged, others].filter(
            ({ actor }) => actor.id === filter.actorId
          )
          const { bodies, total } = yield* found("forged", filter)
          assert.sameMembers([...bodies], [...textsOf(expected)])
          assert.strictEqual(total, expected.length)
        }
      })
    )

    it.effect("lets an erased event win over its replayed details", () =>
      Effect.gen(function* () {
        const store = yield* EventStore
        const told = storedEvent("erased", 1, { metadata: { name: "Jane Secret" } })
        const erased = JSON.parse(eraseEvent(told, timeAt(99))) as AuditEvent
        yield* stored([erased], 24)
        yield* stored([told], 24)
        assert.deepStrictEqual((yield* found("erased", {}, true)).bodies, textsOf([erased]))
        assert.strictEqual((yield* found("erased", { q: "secret" }, true)).total, 0)
        const named = { metadata: [{ path: "name", value: "Jane Secret" }] }
        assert.strictEqual((yield* found("erased", named, true)).total, 0)
        yield* store.mergeDuplicates
        assert.deepStrictEqual((yield* found("erased", {}, false)).bodies, textsOf([erased]))
        const rows = yield* rowsInRange("erased", 1, 1)
        assert.deepStrictEqual(
          rows.map(({ version }) => version),
          [1]
        )
      })
    )

    it.effect("names what does not follow from the columns that are the event", () =>
      Effect.gen(function* () {
        yield* stored(
          chainOf("columns", 20, () => ({ metadata: { a: "b" } })),
          25
        )
        yield* tamper(
          `ALTER TABLE ${database}.events UPDATE search = '' WHERE tenant_id = 'columns'`
            + " AND sequence_number = 1 SETTINGS mutations_sync = 2"
        )
        // Key columns can't be updated: a row is put beside the true one instead.
        for (const version of [1, 7]) {
          yield* tamper(
            `INSERT INTO ${database}.events SELECT * REPLACE (${version} AS version, 'x' AS hash)`
              + ` FROM ${database}.events WHERE tenant_id = 'columns'`
              + ` AND sequence_number = ${version + 1}`
          )
        }
        const rows = yield* rowsInRange("columns", 1, 1_000)
        const wrong = rows
          .filter(({ wrongColumns }) => wrongColumns.length > 0)
          .map(({ sequenceNumber, wrongColumns }) => [sequenceNumber, ...wrongColumns])
        assert.deepStrictEqual(wrong, [
          [1, "search"],
          [2, "version"],
          [8, "version"]
        ])
      })
    )

    it.effect("has no column of an event that can be changed unseen", () =>
      Effect.gen(function* () {
        const lies: ReadonlyArray<readonly [string, string]> = [
          ["id", "'another'"],
          ["timestamp", "timestamp + 1"],
          ["created_at", "created_at + 1"],
          ["actor_id", "'another'"],
          ["actor_type", "'agent'"],
          ["actor_email", `'"other@example.com"'`],
          ["action", "'another'"],
          ["resource_id", "'another'"],
          ["resource_type", "'another'"],
          ["resource_name", `'"another"'`],
          ["outcome", "'error'"],
          ["metadata", "'{}'"],
          ["metadata", "''"],
          ["search", "''"],
          ["search", "concat(search, 'x')"],
          ["details_salt", "reverse(details_salt)"],
          ["details_hash", "reverse(details_hash)"],
          ["content_hash", "reverse(content_hash)"],
          ["prev_hash", "reverse(prev_hash)"],
          // The same bytes, cut into other columns.
          ["metadata", "'', actor_email = concat(actor_email, ',\"metadata\":', metadata)"],
          ["actor_email", "'', actor_type = concat(actor_type, '\",\"email\":', actor_email)"]
        ]
        const chain = new Chain("changed").extend(lies.length, () => ({
          actor: { id: "a", type: "human", email: "a@b" },
          resource: { id: "r", type: "t", name: "n" },
          metadata: { a: "b" }
        }))
        const store = yield* EventStore
        yield* store.insertEvents(
          chain.bodies.map((body, offset) => ({ partition: 26, offset, body: Buffer.from(body) }))
        )
        const isFine = ({ body, wrongColumns }: StoredRow) => {
          const read = recompute(body)
          const fault = read && faultOf(read, undefined, false)
          return wrongColumns.length === 0 && read?.exact === true && fault === undefined
        }
        const before = yield* rowsInRange("changed", 1, 100)
        assert.deepStrictEqual([before.length, before.every(isFine)], [lies.length, true])
        for (const [index, [column, lie]] of lies.entries()) {
          // They are done one after the other: who waits for the last has waited for all.
          const isLast = index === lies.length - 1
          yield* tamper(
            `ALTER TABLE ${database}.events UPDATE ${column} = ${lie} WHERE tenant_id = 'changed'`
              + ` AND sequence_number = ${index + 1} SETTINGS mutations_sync = ${isLast ? 2 : 0}`
          )
        }
        const after = yield* rowsInRange("changed", 1, 100)
        assert.deepStrictEqual(
          after.filter(isFine).map(({ sequenceNumber }) => lies[sequenceNumber - 1]),
          []
        )
      })
    )

    it.effect("takes rows of any time in one insert, and gives back what has another form", () =>
      Effect.gen(function* () {
        const store = yield* EventStore
        const chain = new Chain("mixed").extend(40, (n) => ({
          // From mid-2255 on the microseconds of a time are no exact number.
          timestamp: n % 7 === 0 ? "2261-01-01T00:00:00.000001Z" : "1969-12-31T23:59:59.999877Z",
          metadata: { text: "\n" }
        }))
        const bodies = chain.bodies.map((body, index) =>
          index === 10 ? body.replace('"text":"\\n"', '"text":"\\q"') : body
        )
        const rows = bodies.map((body, offset) => ({
          partition: 27,
          offset,
          body: Buffer.from(body)
        }))
        assert.deepStrictEqual(yield* store.insertEvents(rows), [rows[10]!])
        const { bodies: shown, total } = yield* store.page(everythingOf("mixed"), false)
        assert.deepStrictEqual([shown, total], [bodies.filter((_, at) => at !== 10), 39])
        const wrong = (yield* rowsInRange("mixed", 1, 100)).filter(
          ({ body, wrongColumns }) => wrongColumns.length > 0 || !bodies.includes(body)
        )
        assert.deepStrictEqual(wrong, [])
      })
    )

    it.effect("makes the JSON of its columns by the expression that the program names", () =>
      Effect.gen(function* () {
        const { client } = yield* ClickHouseConnection
        const [row] = yield* Effect.promise(() =>
          client
            .query({
              query:
                "SELECT formatQuerySingleLine(concat('SELECT ', default_expression))"
                + " = formatQuerySingleLine(concat('SELECT ', {expression:String}))"
                + " FROM system.columns WHERE database = {database:String}"
                + " AND table = 'events' AND name = 'json' AND default_kind = 'ALIAS'",
              query_params: { database, expression: storedText },
              format: "JSONCompactEachRow"
            })
            .then((answer) => answer.json<[number]>())
        )
        assert.deepStrictEqual(row, [1])
      })
    )

    it.effect("ends a scan where the log stood when it began", () =>
      Effect.gen(function* () {
        const store = yield* EventStore
        yield* stored(chainOf("growing", 12_000))
        let more = 12_000
        const seen = yield* store.scan(everythingOf("growing"), false).pipe(
          Stream.mapEffect((chunk) =>
            stored([storedEvent("growing", ++more)]).pipe(Effect.as(chunk.length))
          ),
          Stream.runCollect
        )
        assert.strictEqual(
          seen.reduce((sum, length) => sum + length),
          12_000
        )
      })
    )

    it.effect("sets aside what came from a partition, and takes the same rows again", () =>
      Effect.gen(function* () {
        const store = yield* EventStore
        const [kept, dropped] = [chainOf("kept", 5), chainOf("dropped", 5)]
        const receipt = (partition: number, tenantId: string) => ({
          partition,
          offset: 3,
          tenantId,
          receiptId: "r",
          body: Buffer.from(JSON.stringify({ received_at: new Date().toISOString() }))
        })
        const conflict = (partition: number, tenantId: string) => ({
          partition,
          offset: 9,
          tenantId,
          sequenceNumber: 1,
          reason: "prev_hash",
          body: Buffer.from("x")
        })
        const fill = (partition: number, tenant: string, events: ReadonlyArray<AuditEvent>) =>
          Effect.all([
            stored(events, partition),
            store.insertReceipts([receipt(partition, tenant)]),
            store.insertConflicts([conflict(partition, tenant)])
          ])
        yield* fill(31, "kept", kept)
        yield* fill(32, "dropped", dropped)
        const topics = yield* StoredTopics
        const all = { from: 0, confirmed: [], end: 4 }
        const rows = (table: string, reason: DeniedReason, first: number, last = first) => ({
          table,
          reason,
          rows: last - first + 1,
          firstOffset: first,
          lastOffset: last
        })
        assert.deepStrictEqual(yield* topics.of("events").denied(32, all), [
          rows("events", "beyond_end", 4),
          rows("events", "not_in_topic", 0, 3),
          rows("conflicts", "beyond_end", 9)
        ])
        for (const topic of ["events", "receipts"] as const) {
          yield* topics.of(topic).setAside(32, all)
          assert.deepStrictEqual(yield* topics.of(topic).denied(32, all), [])
          assert.isUndefined(yield* highest(topic, 32))
        }
        assert.strictEqual((yield* found("dropped", {})).total, 0)
        assert.isUndefined(yield* store.receipt("dropped", "r"))
        assert.deepStrictEqual(yield* store.conflicts("dropped", 10), [])
        yield* assertFinds("kept", {}, kept)
        assert.isDefined(yield* store.receipt("kept", "r"))
        assert.strictEqual((yield* store.conflicts("kept", 10)).length, 1)
        yield* fill(32, "dropped", dropped)
        yield* assertFinds("dropped", {}, dropped)
        assert.strictEqual(yield* highest("receipts", 32), 3)
      })
    )

    it.effect("tells where a partition's view ends, records that did not link included", () =>
      Effect.gen(function* () {
        const store = yield* EventStore
        assert.isUndefined(yield* highest("events", 40))
        const [event] = chainOf("position", 1)
        yield* stored([event!], 40, 0)
        assert.strictEqual(yield* highest("events", 40), 0)
        const conflict = {
          partition: 40,
          offset: 7,
          tenantId: "position",
          sequenceNumber: 2,
          reason: "tab\t, line\nand \\ in the reason",
          body: Buffer.from([0, 1, 9, 10, 13, 92, 110, 0xff, 0xfe, 0xc3])
        }
        yield* store.insertConflicts([conflict, conflict])
        assert.strictEqual(yield* highest("events", 40), 7)
        const topics = yield* StoredTopics
        assert.strictEqual(yield* topics.of("events").highest(40, 7), 0)
        assert.isUndefined(yield* topics.of("events").highest(40, 0))
        const found = yield* topics.of("events").rows(40, 0, 8)
        assert.sameDeepMembers(
          found.map(({ digest, offset }) => [offset, digest]),
          [
            [0, bodyOf(event!)],
            [7, conflict.body],
            [7, conflict.body]
          ].map(([offset, body]) => [offset, sha256Hex(body as Buffer)])
        )
        assert.deepStrictEqual(yield* store.conflicts("position", 10), [conflict])
        assert.deepStrictEqual(yield* store.conflicts("nobody", 10), [])
      })
    )

    it.effect("keeps receipts by tenant and id, the first of two, while they are young", () =>
      Effect.gen(function* () {
        const store = yield* EventStore
        const row = (offset: number, tenantId: string, receiptId: string, body: string) => ({
          partition: 0,
          offset,
          tenantId,
          receiptId,
          body: Buffer.from(body)
        })
        const body = (text: string, age = 0) =>
          JSON.stringify({ text, received_at: new Date(Date.now() - age).toISOString() })
        const day = 86_400_000
        const [first, second] = [body('é\u{1F600}\\"\n'), body("second")]
        yield* store.insertReceipts([
          row(1, "receipts", "r1", first),
          row(2, "receipts", "r1", second),
          row(3, "receipts", "week", body("week", 7 * day)),
          row(4, "receipts", "timeless", "{}"),
          row(5, "receipts", "old", body("old", 9 * day))
        ])
        yield* tamper(`OPTIMIZE TABLE ${database}.receipts FINAL`)
        assert.strictEqual(yield* store.receipt("receipts", "r1"), first)
        assert.isDefined(yield* store.receipt("receipts", "week"))
        assert.strictEqual(yield* store.receipt("receipts", "timeless"), "{}")
        assert.isUndefined(yield* store.receipt("receipts", "old"))
        assert.isUndefined(yield* store.receipt("others", "r1"))
        assert.isUndefined(yield* store.receipt("receipts", "r2"))
        assert.strictEqual(yield* highest("receipts", 0), 4)
      })
    )

    it.effect("shows a row once that was copied, and none below the first sequence", () =>
      Effect.gen(function* () {
        const store = yield* EventStore
        const events = chainOf("copied", 3)
        yield* withoutMerges(
          Effect.gen(function* () {
            yield* stored(events)
            yield* tamper(
              `INSERT INTO ${database}.events SELECT *`
                + ` FROM ${database}.events WHERE tenant_id = 'copied' AND sequence_number = 2`
            )
            yield* tamper(
              `INSERT INTO ${database}.events SELECT * REPLACE (0 AS sequence_number)`
                + ` FROM (SELECT * FROM ${database}.events WHERE tenant_id = 'copied'`
                + " AND sequence_number = 3)"
            )
            const query = { tenantId: "copied", filter: { metadata: [] }, order: "asc" } as const
            const page = yield* store.page({ ...query, offset: 0, limit: 10 }, false)
            assert.deepStrictEqual(page, { bodies: textsOf(events), total: 3 })
            const [{ actor }] = events as [AuditEvent]
            const filters: ReadonlyArray<Partial<EventFilter>> = [
              { actorType: actor.type },
              { actorId: actor.id }
            ]
            for (const filter of filters) {
              const expected = events.filter((event) =>
                matches({ ...emptyFilter, ...filter }, event)
              )
              assert.strictEqual((yield* found("copied", filter)).total, expected.length)
            }
            const chunks = yield* Stream.runCollect(store.scan(query, false))
            assert.deepStrictEqual(chunks.flat(), textsOf(events))
            const stats = yield* store.stats(
              { tenantId: "copied", filter: { metadata: [] }, groupBy: ["outcome"], limit: 10 },
              false
            )
            assert.strictEqual(stats.total, 3)
            assert.deepStrictEqual(yield* store.copies("copied", 1, 9, 10), [2])
            assert.deepStrictEqual(yield* store.extent("copied"), {
              rows: 5,
              lowest: 0,
              highest: 3
            })
          })
        )
      })
    )

    it.effect("lists rows with sequences that no chain reaches, whatever they are asked by", () =>
      Effect.gen(function* () {
        const [first, second] = chainOf("beyond", 2)
        yield* stored([first!, second!])
        for (const sequence of ["9007199254740993", "18446744073709551615"]) {
          yield* tamper(
            `INSERT INTO ${database}.events SELECT * REPLACE (${sequence} AS sequence_number)`
              + ` FROM (SELECT * FROM ${database}.events`
              + " WHERE tenant_id = 'beyond' AND sequence_number = 2)"
          )
        }
        for (const filter of [{}, { actorId: first!.actor.id }]) {
          const { bodies, total } = yield* found("beyond", filter)
          assert.strictEqual(total, 4)
          assert.sameMembers(
            bodies.map((body) => JSON.parse(body).id as string),
            [first!, second!, second!, second!].map(({ id }) => id)
          )
        }
      })
    )

    it.effect("picks the lowest sequence of an id, unless one is named", () =>
      Effect.gen(function* () {
        const store = yield* EventStore
        const events = chainOf("ids", 4, () => ({ id: "same" }))
        yield* stored(events)
        const [first, , third] = textsOf(events)
        assert.strictEqual((yield* store.byId("ids", "same", undefined, false))?.body, first)
        assert.strictEqual((yield* store.byId("ids", "same", 3, true))?.body, third)
        assert.isUndefined(yield* store.byId("ids", "same", 9, false))
        assert.isUndefined(yield* store.byId("others", "same", undefined, false))
      })
    )

    it.effect("takes no rows, and not more than the most", () =>
      Effect.gen(function* () {
        const store = yield* EventStore
        const [good] = rowsOf(chainOf("whole", 1))
        assert.deepStrictEqual(yield* store.insertEvents([]), [])
        const rows = Array.from({ length: 50_001 }, () => good!)
        assert.isTrue(Exit.hasDies(yield* Effect.exit(store.insertEvents(rows))))
      })
    )

    it.effect("makes one part of the largest insert", () =>
      Effect.gen(function* () {
        const store = yield* EventStore
        const { client } = yield* ClickHouseConnection
        const [row] = rowsOf(
          chainOf("one-part", 1, () => ({
            metadata: { text: "Größe 東京 ".repeat(45) }
          }))
        )
        const rows = Array.from({ length: 50_000 }, (_, offset) => ({
          partition: 50,
          offset,
          body: row!.body
        }))
        const count = Effect.promise(() =>
          client
            .query({
              query:
                `SELECT count(), uniqExact(_part), sum(length(json)) FROM ${database}.events`
                + " WHERE kafka_partition = 50",
              format: "JSONCompactEachRow"
            })
            .then((result) => result.json<[number, number, number]>())
        )
        const answer = yield* withoutMerges(store.insertEvents(rows).pipe(Effect.andThen(count)))
        assert.deepStrictEqual(answer, [[50_000, 1, 50_000 * row!.body.length]])
      })
    )
  })
}

/** What takes seconds of the same contract: many rows, many questions. */
export const longStoreContract = <E>(
  name: string,
  /** Generated filters to try; those of the two suites differ. */
  filters: number,
  connection: (database: string) => Layer.Layer<ClickHouseConnection, E>
): void => {
  layer(storesOf(connection), { excludeTestServices: true })(name, (it) => {
    it.effect("compares every filter exactly, whatever the text is", () =>
      Effect.gen(function* () {
        const fields: ReadonlyArray<
          readonly [string, (text: string) => Sample, (text: string) => Partial<EventFilter>]
        > = [
          ["id", (text) => ({ id: text }), (text) => ({ id: text })],
          [
            "actor",
            (text) => ({ actor: { id: text, type: "human" } }),
            (text) => ({ actorId: text })
          ],
          ["action", (text) => ({ action: text }), (text) => ({ action: text })],
          [
            "resource",
            (text) => ({ resource: { id: text, type: "document" } }),
            (text) => ({ resourceId: text })
          ],
          [
            "type",
            (text) => ({ resource: { id: "doc", type: text } }),
            (text) => ({ resourceType: text })
          ],
          [
            "metadata",
            (text) => ({ metadata: { key: text } }),
            (text) => ({ metadata: [{ path: "key", value: text }] })
          ]
        ]
        for (const [field, sample, filter] of fields) {
          const tenant = `exact-${field}`
          // No id holds control characters.
          const own =
            field === "metadata" ? allTexts : allTexts.filter((text) => !/[\0-\x1f]/.test(text))
          const events = own.map((text, index) => storedEvent(tenant, index + 1, sample(text)))
          yield* stored(events)
          yield* Effect.forEach(
            events,
            (event, index) => assertFinds(tenant, filter(own[index]!), [event]),
            { concurrency: 4 }
          )
        }
        for (const text of allTexts) {
          assert.deepStrictEqual(yield* found(text, {}), { bodies: [], total: 0 })
        }
        for (const q of ["\0", "document.read\0"]) yield* assertFinds("exact-id", { q }, [])
      })
    )

    it.effect("counts and shows one moment while events keep arriving", () =>
      Effect.gen(function* () {
        const store = yield* EventStore
        const events = chainOf("arriving", 120)
        yield* stored(events.slice(0, 1), 6)
        const arriving = yield* Effect.forkChild(
          Effect.forEach(
            events.slice(1),
            (event, index) => store.insertEvents(rowsOf([event], 6, index + 1)),
            { discard: true }
          )
        )
        const all = everythingOf("arriving", { order: "desc", limit: 3 })
        const byActor = { ...all, filter: { ...emptyFilter, actorId: events[0]!.actor.id } }
        for (let total = 0; total < events.length; ) {
          for (const query of [all, byActor]) {
            const page = yield* store.page(query, false)
            const newest = JSON.parse(page.bodies[0]!) as AuditEvent
            assert.strictEqual(newest.sequence_number, page.total)
            assert.isAtLeast(page.total, total)
            total = page.total
          }
        }
        yield* Fiber.join(arriving)
      })
    )

    it.effect("counts the values of fields as filters by them find them", () =>
      Effect.gen(function* () {
        const [samples = []] = fc.sample(anyEvents, 1)
        const tenants = ["facets"] as const
        const chains = tenants.map((tenant) =>
          samples.map((sample, index) => storedEvent(tenant, index + 1, sample))
        )
        yield* stored(chains[0]!, 43)
        const context = yield* Effect.context<EventStore>()
        const law = Effect.fnUntraced(function* (filter: EventFilter, path: string) {
          for (const [at, tenantId] of tenants.entries()) {
            const fields = [...whereNames, `metadata.${path}` as const]
            const query = { tenantId, filter, fields, limit: 1_000 }
            const { facets, total } = yield* EventStore.use((store) => store.facets(query, false))
            const expected = chains[at]!.filter((event) => matches(filter, event))
            assert.strictEqual(total, expected.length)
            assert.deepStrictEqual(
              facets.map(({ field }) => field),
              fields
            )
            for (const [index, name] of whereNames.entries()) {
              const values = expected.map((event) => memberAt(event, whereFields[name].path))
              const there = values.filter((value) => value !== undefined)
              const { groups, missing } = facets[index]!
              assert.strictEqual(missing, values.length - there.length, name)
              assert.deepStrictEqual(
                new Map(groups.map(({ count, key }) => [key, count])),
                new Map([...Map.groupBy(there, String)].map(([key, some]) => [key, some.length])),
                name
              )
            }
            const byPath = facets.at(-1)
            const having = expected.filter((event) =>
              matches(
                { ...emptyFilter, where: printWhere({ metadata: path, exists: true }) },
                event
              )
            )
            assert.strictEqual(byPath!.missing, total - having.length, path)
            for (const { count, key } of byPath!.groups) {
              if (key.startsWith("{")) continue
              const one = { ...emptyFilter, metadata: [{ path, value: key }] }
              const found = expected.filter((event) => matches(one, event)).length
              assert.strictEqual(count, found, `${path} is ${JSON.stringify(key)}`)
            }
          }
        })
        yield* Effect.promise(() =>
          fc.assert(
            fc.asyncProperty(anyFilter, anyPath, (filter, path) =>
              Effect.runPromiseWith(context)(law(filter, path))
            ),
            { numRuns: runs(filters) }
          )
        )
      })
    )

    it.effect("finds every number by its RFC 8785 text, and no other", () =>
      Effect.gen(function* () {
        const numbers = [
          ...new Set(
            [
              0,
              1,
              -1,
              0.1,
              1e20,
              1e21,
              -1e20,
              1e22,
              5e-324,
              1.7976931348623157e308,
              1e-7,
              1e-6,
              0.001,
              2 ** 53,
              -(2 ** 63),
              2 ** 63,
              2 ** 64,
              18446744073709550000,
              12345678901234567000,
              123456789012345680000,
              0.0000012345678901234567,
              Number("333333333.33333329"),
              4.35,
              1e15,
              1e16,
              ...fc.sample(fc.double({ noNaN: true, noDefaultInfinity: true }), filters / 4),
              ...fc.sample(fc.integer(), filters / 10)
            ].map((number) => (number === 0 ? 0 : number))
          )
        ]
        const events = numbers.map((number, index) =>
          storedEvent("numbers", index + 1, {
            metadata: { x: number, list: [number, "s"], deep: ["[", ["s", [[], [number]]]] }
          })
        )
        yield* stored(events)
        yield* Effect.forEach(
          numbers,
          (number, index) =>
            Effect.forEach(["x", "list", "deep"], (path) =>
              assertFinds("numbers", { metadata: [{ path, value: String(number) }] }, [
                events[index]!
              ])
            ),
          { concurrency: 4 }
        )
        const others = ["1.0", "+1", "01", "1e0", "1E21", "1e21", "-0", "0x1", " 1", "Infinity"]
        for (const text of others) {
          yield* assertFinds("numbers", { metadata: [{ path: "x", value: text }] }, [])
        }
      })
    )

    it.effect("counts by two fields and paths, weeks and months, and sums up numbers", () =>
      Effect.gen(function* () {
        const amounts = [
          ...[12.5, 0, -3, "12", 1e21, 0.1, 7, undefined, null, true, [1, [2, "3"], 40], {}, []],
          ...[1.2345678901234567e19, 5e-324, 100, 250]
        ]
        const regions = ["eu", "us", undefined, ["eu", "us", "eu"], 7, { a: "eu" }, ""]
        const days = ["1970-01-01", "1970-01-04", "1970-01-05", "2024-02-29", "2025-12-28"]
        const later = ["2025-12-29", "2026-01-04", "2026-01-31", "2026-02-01", "2261-12-31"]
        const at = [...days, ...later]
        const draft = (index: number) => {
          const amount = amounts[index % amounts.length]
          const region = regions[index % regions.length]
          const zone = index % 3 === 0 ? undefined : `zone-${index % 2}`
          return {
            action: `a${index % 3}.x`,
            outcome: outcomes[index % 2]!,
            timestamp: `${at[index % at.length]}T23:59:59.999999Z`,
            metadata: JSON.parse(JSON.stringify({ order: { amount }, region, zone })) as JsonObject
          }
        }
        const chain = chainOf("sums", 240, (n) => draft(n))
        yield* stored(chain, 45)

        type Shape = Pick<StatsQuery, "groupBy" | "interval" | "measure">
        const textOf = (value: unknown) =>
          typeof value === "string" ? value : JSON.stringify(value)
        const flat = (value: unknown): Array<unknown> =>
          Array.isArray(value) ? value.flatMap(flat) : [value]
        const valuesOf = (event: AuditEvent, field: string): ReadonlyArray<string> => {
          if (field === "action") return [event.action]
          if (field === "outcome") return [event.outcome]
          const value = event.metadata?.[field.slice("metadata.".length)]
          return value === undefined ? [] : [...new Set(flat(value).map(textOf))]
        }
        const startOf = (timestamp: string, interval: "week" | "month"): string => {
          if (interval === "month") return `${timestamp.slice(0, 7)}-01T00:00:00.000000Z`
          const day = new Date(`${timestamp.slice(0, 10)}T00:00:00Z`)
          day.setUTCDate(day.getUTCDate() - ((day.getUTCDay() + 6) % 7))
          return day.toISOString().replace("Z", "000Z")
        }
        const numbersIn = (event: AuditEvent, measure: string): Array<number> =>
          flat((event.metadata!["order"] as JsonObject)[measure.split(".")[1]!]).filter(
            (value): value is number => typeof value === "number"
          )
        const percentile = (sorted: ReadonlyArray<number>, level: number) => {
          const place = level * (sorted.length - 1)
          const low = sorted[Math.floor(place)]!
          return low + (place % 1) * (sorted[Math.ceil(place)]! - low)
        }
        const near = (found: number | null, wanted: number, name: string) =>
          assert.isAtMost(Math.abs(found! - wanted), Math.abs(wanted) * 1e-9, name)
        const checkNumbers = (
          found: Numbers | undefined,
          measure: string,
          events: ReadonlyArray<AuditEvent>
        ) => {
          const numbers = events.flatMap((event) => numbersIn(event, measure)).sort((a, b) => a - b)
          assert.strictEqual(found?.count ?? 0, numbers.length)
          if (found === undefined) return
          assert.strictEqual(found.min, numbers[0])
          assert.strictEqual(found.max, numbers.at(-1))
          near(
            found.sum,
            numbers.reduce((sum, value) => sum + value, 0),
            "sum"
          )
          near(found.p50, percentile(numbers, 0.5), "p50")
          near(found.p90, percentile(numbers, 0.9), "p90")
          near(found.p95, percentile(numbers, 0.95), "p95")
          near(found.p99, percentile(numbers, 0.99), "p99")
        }
        const combined = (event: AuditEvent, groupBy: ReadonlyArray<string>) =>
          groupBy.reduce<ReadonlyArray<ReadonlyArray<string>>>(
            (keys, field) =>
              keys.flatMap((key) => valuesOf(event, field).map((value) => [...key, value])),
            [[]]
          )
        const law = Effect.fnUntraced(function* (
          chain: ReadonlyArray<AuditEvent>,
          filter: EventFilter,
          shape: Shape
        ) {
          const tenantId = chain[0]!.tenant_id
          const query = { tenantId, filter, limit: 1_000, ...shape }
          const stats = yield* EventStore.use((store) => store.stats(query, false))
          const chosen = chain.filter((event) => matches(filter, event))
          const grouped = (prefix: (event: AuditEvent) => ReadonlyArray<string>) =>
            Map.groupBy(
              chosen.flatMap((event) =>
                combined(event, shape.groupBy).map((keys) => ({
                  event,
                  id: JSON.stringify([...prefix(event), ...keys])
                }))
              ),
              ({ id }) => id
            )
          const compare = (
            found: ReadonlyArray<{ readonly id: string; readonly group: StatsGroup }>,
            expected: ReturnType<typeof grouped>
          ) => {
            assert.deepStrictEqual(
              new Map(found.map(({ group, id }) => [id, group.count])),
              new Map([...expected].map(([id, events]) => [id, events.length]))
            )
            for (const { group, id } of found) {
              const events = expected.get(id)!.map(({ event }) => event)
              if (shape.measure === undefined) assert.isUndefined(group.numbers)
              else checkNumbers(group.numbers, shape.measure, events)
            }
          }
          compare(
            stats.groups.map((group) => ({ id: JSON.stringify(group.keys), group })),
            grouped(() => [])
          )
          const { interval } = shape
          if (interval === "week" || interval === "month") {
            compare(
              stats.buckets!.map((group) => ({
                id: JSON.stringify([group.start, ...group.keys]),
                group
              })),
              grouped(({ timestamp }) => [startOf(timestamp, interval)])
            )
          }
          assert.strictEqual(stats.total, chosen.length)
          assert.strictEqual(stats.other, 0)
          assert.strictEqual(
            stats.missing,
            chosen.filter((event) => combined(event, shape.groupBy).length === 0).length
          )
          if (shape.measure !== undefined) checkNumbers(stats.numbers, shape.measure, chosen)
          const largest = stats.groups.slice(0, 1)
          const one = yield* EventStore.use((store) => store.stats({ ...query, limit: 1 }, false))
          assert.deepStrictEqual(one.groups, largest)
          const all = stats.groups.reduce((sum, { count }) => sum + count, 0)
          assert.strictEqual(one.other, all - (largest[0]?.count ?? 0))
        })
        const shapes: ReadonlyArray<Shape> = [
          { groupBy: ["action"], interval: "week" },
          { groupBy: ["action", "outcome"], interval: "month", measure: "order.amount" },
          { groupBy: ["metadata.region"], interval: "month" },
          { groupBy: ["metadata.region", "metadata.zone"], interval: "week" },
          { groupBy: ["outcome", "metadata.region"], measure: "order.amount" },
          { groupBy: ["action"], measure: "order.nothing" }
        ]
        for (const shape of shapes) {
          yield* law(chain, emptyFilter, shape)
          yield* law(chain, { ...emptyFilter, fromSequence: 7, outcome: "success" }, shape)
        }
        yield* law(chain, { ...emptyFilter, action: "nobody.does" }, shapes[4]!)
      })
    )

    it.effect("lists and scans by timestamp, events of one time by their sequence numbers", () =>
      Effect.gen(function* () {
        const store = yield* EventStore
        const times = ["1970-01-01T00:00:00.000000Z", "2261-12-31T23:59:59.999999Z"]
        const draft = (n: number) => ({
          timestamp: times[n % 5_000] ?? timeAt((n * 7_919) % 3_001),
          action: n % 3 === 0 ? "third.x" : "other.x",
          metadata: { third: n % 3 === 0 }
        })
        const columns = chainOf("by-time", 21_000, draft)
        const few = chainOf("by-time-few", 300, draft)
        yield* stored(columns, 47)
        yield* stored(few, 48)
        const byTime = (a: AuditEvent, b: AuditEvent) =>
          a.timestamp === b.timestamp
            ? a.sequence_number - b.sequence_number
            : Number(a.timestamp > b.timestamp) * 2 - 1
        const filters: ReadonlyArray<EventFilter> = [
          emptyFilter,
          { ...emptyFilter, action: "third.x", fromSequence: 100 },
          { ...emptyFilter, metadata: [{ path: "third", value: "true" }] },
          { ...emptyFilter, action: "nobody.does" }
        ]
        for (const chain of [columns, few]) {
          for (const filter of filters) {
            for (const order of ["asc", "desc"] as const) {
              const chosen = chain.filter((event) => matches(filter, event)).sort(byTime)
              const expected = textsOf(order === "asc" ? chosen : chosen.toReversed())
              const list = {
                tenantId: chain[0]!.tenant_id,
                filter,
                order,
                sort: "timestamp"
              } as const
              const chunks = yield* Stream.runCollect(store.scan(list, false))
              assert.deepStrictEqual(chunks.flat(), expected)
              if (expected.length > 20_000) assert.isAtLeast(chunks.length, 3)
              for (const offset of [0, 1, 250, 2_500]) {
                const page = yield* store.page({ ...list, offset, limit: 20 }, false)
                assert.strictEqual(page.total, expected.length)
                assert.deepStrictEqual(page.bodies, expected.slice(offset, offset + 20))
              }
            }
          }
        }
      })
    )

    it.effect("scans in both orders, in chunks bounded by rows and bytes", () =>
      Effect.gen(function* () {
        const store = yield* EventStore
        const many = chainOf("scan-rows", 21_000)
        yield* stored(many)
        const large = chainOf("scan-bytes", 40, (n) => ({
          metadata: { text: String.fromCodePoint(0x4e00 + n).repeat(150_000) }
        }))
        yield* stored(large)
        for (const [tenant, events] of [
          ["scan-rows", many],
          ["scan-bytes", large]
        ] as const) {
          const texts = textsOf(events)
          for (const order of ["asc", "desc"] as const) {
            const chunks = yield* Stream.runCollect(
              store.scan({ tenantId: tenant, filter: emptyFilter, order }, false)
            )
            assert.deepStrictEqual(chunks.flat(), order === "asc" ? texts : texts.toReversed())
            assert.isAtLeast(chunks.length, 3)
          }
          const rows = yield* Stream.runCollect(store.rows(tenant, 1, events.length))
          assert.deepStrictEqual(
            rows.flat().map(({ body }) => body),
            texts
          )
          assert.isAtLeast(rows.length, 3)
        }
        const filter = { ...emptyFilter, fromSequence: 5_000, toSequence: 5_001 }
        const narrow = yield* Stream.runCollect(
          store.scan({ tenantId: "scan-rows", filter, order: "desc" }, false)
        )
        assert.deepStrictEqual(narrow.flat(), textsOf(many.slice(4_999, 5_001)).toReversed())
      })
    )
  })
}
