/**
 * What read-only SQL has to do, as tests: run on the engine in this process and on the same engine
 * behind HTTP in another.
 */
import { inspect } from "node:util"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import fc from "fast-check"
import { ClickHouseConnection } from "../../../../src/adapters/clickhouse/client/ClickHouseConnection.ts"
import { layerStores } from "../../../../src/adapters/clickhouse/Stores.ts"
import type { AuditEvent } from "../../../../src/domain/events/AuditEvent.ts"
import { eventFields } from "../../../../src/domain/events/EventFields.ts"
import { allowedFunctions, takesFunction } from "../../../../src/domain/sql/SqlFunctions.ts"
import { sqlTableNames, sqlTables } from "../../../../src/domain/sql/SqlTables.ts"
import { parseFact } from "../../../../src/domain/traces/FactText.ts"
import { summaryOf } from "../../../../src/domain/traces/SpanSummary.ts"
import { foldFacts } from "../../../../src/domain/traces/TraceView.ts"
import { EventStore } from "../../../../src/ports/EventStore.ts"
import {
  type EventTableQuery,
  type SqlFormat,
  SqlRefused,
  SqlStore,
  sqlFormats
} from "../../../../src/ports/SqlStore.ts"
import { TraceStore } from "../../../../src/ports/TraceStore.ts"
import { runs } from "../../../support/Runs.ts"
import { anyEvents } from "./Generators.ts"
import {
  honestAnswer,
  readHonestAnswers,
  writeHonestAnswers,
  writesHonestAnswers
} from "./HonestAnswers.ts"
import { HONEST_TENANT, storeHonestData } from "./HonestData.ts"
import { honestStatements } from "./HonestStatements.ts"
import { refusedStatements } from "./SqlCorpus.ts"
import { derivations, mutations } from "./SqlDerivations.ts"
import { differentReadings } from "./SqlReading.ts"
import { chainOf, rowsOf, type Sample, storedEvent, timeAt } from "./StoredBodies.ts"
import { FactChain, factRows, type Told } from "./StoredFacts.ts"

const database = "alk_sql_contract"

type Row = Record<string, unknown>

const answer = (tenantId: string, sql: string, format: SqlFormat = "json") =>
  Effect.map(
    SqlStore.use((store) => store.answer({ tenantId, sql, format }, true)),
    ({ bytes }) => bytes
  )

const asked = (tenantId: string, sql: string) =>
  Effect.map(
    answer(tenantId, sql),
    (bytes) => (JSON.parse(bytes.toString()) as { data: Array<Row> }).data
  )

const refusalOf = (tenantId: string, sql: string) =>
  answer(tenantId, sql).pipe(
    Effect.map((bytes) => assert.fail(`${sql} was answered: ${bytes.toString().slice(0, 500)}`)),
    Effect.catch((error) => {
      assert.instanceOf(error, SqlRefused, `${sql}: ${String(error)}`)
      return Effect.succeed((error as SqlRefused).message)
    })
  )

const stored = (events: ReadonlyArray<AuditEvent>, partition: number) =>
  EventStore.use((store) =>
    Effect.andThen(store.migrate, store.insertEvents(rowsOf(events, partition)))
  )

/** A row of the view `events` as the event says it. */
const rowOf = (event: AuditEvent): Row => ({
  sequence_number: event.sequence_number,
  id: event.id,
  timestamp: event.timestamp,
  created_at: event.created_at,
  actor_id: event.actor.id,
  actor_type: event.actor.type,
  actor_email: event.actor.email ?? null,
  action: event.action,
  resource_id: event.resource.id,
  resource_type: event.resource.type,
  resource_name: event.resource.name ?? null,
  outcome: event.outcome,
  erased_at: event.erased_at ?? null,
  hash: event.hash,
  prev_hash: event.prev_hash,
  content_hash: event.content_hash
})

/** The rows of the views on traces, as what is folded of the facts says it. */
const viewOf = (facts: FactChain, executionId: string) =>
  foldFacts(
    facts.all.filter((one) => one.executionId === executionId).map(({ body }) => parseFact(body)!)
  )

const millis = (from: string, to: string | undefined): number | null =>
  to === undefined ? null : Date.parse(to) - Date.parse(from)

export const sqlContract = (
  what: string,
  connection: (database: string) => Layer.Layer<ClickHouseConnection, unknown>
): void => {
  const stores = layerStores.pipe(Layer.provideMerge(connection(database)))
  layer(stores, { excludeTestServices: true })(what, (it) => {
    let tenants = 0
    const newTenant = () => `sql-${tenants++}`

    it.effect("shows each event as it is", () =>
      Effect.gen(function* () {
        const context = yield* Effect.context<EventStore | SqlStore>()
        const check = Effect.fnUntraced(function* (samples: ReadonlyArray<Sample>) {
          const tenant = newTenant()
          const events = samples.map((sample, at) => storedEvent(tenant, at + 1, sample))
          yield* stored(events, tenants)
          const rows = yield* asked(
            tenant,
            "SELECT * EXCEPT metadata FROM events ORDER BY sequence_number"
          )
          assert.deepStrictEqual(rows, events.map(rowOf))
          const texts = yield* asked(tenant, "SELECT metadata FROM events ORDER BY sequence_number")
          for (const [at, { metadata: text }] of texts.entries()) {
            const own = events[at]!.metadata
            if (own === undefined) assert.strictEqual(text, "")
            else assert.deepStrictEqual(JSON.parse(String(text)), own)
          }
        })
        yield* Effect.promise(() =>
          fc.assert(
            fc.asyncProperty(anyEvents, (samples) =>
              Effect.runPromiseWith(context)(check(samples))
            ),
            { numRuns: runs(20), endOnFailure: true }
          )
        )
      })
    )

    it.effect("shows no details of an erased event", () =>
      Effect.gen(function* () {
        const tenant = newTenant()
        const secret = {
          actor: { id: "a", type: "human" as const, email: "secret@example.com" },
          resource: { id: "r", type: "doc", name: "secret" },
          metadata: { secret: "secret" }
        }
        yield* stored(
          chainOf(tenant, 3, () => secret),
          tenants
        )
        const erasedAt = timeAt(9)
        yield* EventStore.use((store) =>
          store.eraseDetails(tenant, [{ sequenceNumber: 2, erasedAt }])
        )
        const rows = yield* asked(tenant, "SELECT * FROM events WHERE sequence_number = 2")
        assert.notInclude(JSON.stringify(rows), "secret")
        assert.deepInclude(rows[0]!, { actor_email: null, metadata: "", erased_at: erasedAt })
        const found = "SELECT count() AS n FROM events WHERE metadata LIKE '%secret%'"
        assert.deepStrictEqual(yield* asked(tenant, found), [{ n: 2 }])
      })
    )

    it.effect("shows executions, spans and their events as the API does", () =>
      Effect.gen(function* () {
        const tenant = newTenant()
        const facts = new FactChain(tenant)
        const span = (id: string, at: number, parent?: string): Told => ({
          type: "span.started",
          span_id: id,
          ...(parent === undefined ? {} : { parent_span_id: parent }),
          caused_by_span_ids: parent === undefined ? [] : [parent],
          span_type: "LLM_CALL",
          started_at: timeAt(at),
          started_at_given: true
        })
        for (const id of ["one", "two", "three"]) {
          facts.start(id)
          facts.add(id, span(`${id}-a`, 1), {
            name: 'a "quoted" name',
            metadata: { x: 1, y: [2], attributes: { "llm.model_name": "m", "user.id": "u" } }
          })
          const repairs = [{ code: "missing_start", path: "start_time_unix_nano" }] as const
          facts.add(id, span(`${id}-b`, 9, `${id}-a`), { name: "b", repairs })
          facts.add(
            id,
            { type: "span.ended", span_id: `${id}-a`, status: "FAILED", ended_at: timeAt(4) },
            {
              error: { message: "no" },
              metadata: { x: 3, z: "\u2028", "gen_ai.usage.input_tokens": 7, "llm.cost.total": 0.5 }
            }
          )
          facts.add(
            id,
            {
              type: "span.event",
              span_id: `${id}-a`,
              event_id: `${id}-e`,
              event_type: "llm.request",
              sequence_number: 1,
              timestamp: timeAt(2)
            },
            { payload: { text: "hello" } }
          )
        }
        facts.add(
          "one",
          { type: "execution.ended", status: "COMPLETED", ended_at: timeAt(7) },
          {
            metadata: { end: true }
          }
        )
        facts.add("two", { type: "execution.ended", status: "FAILED", ended_at: timeAt(8) })
        facts.add("two", { type: "execution.resumed" })
        facts.add("one", { type: "span.amended", span_id: "one-a" }, { payload: { details: {} } })
        facts.add("two", { type: "span.amended", span_id: "two-b" }, { payload: { details: {} } })
        facts.add("three", span("three-b", 9, "three-a"), { name: "b again" })
        facts.add("three", { type: "span.amended", span_id: "three-b" })
        const moved = { parent_span_id: "three-b", shared_span_id: "three-b" }
        facts.add("three", { type: "span.amended", span_id: "three-a", ...moved })
        facts.add("two", { type: "span.amended", span_id: "two-b", parent_span_id: "moved" })
        facts.add("two", span("two-b", 9, "two-a"), { name: "b again" })
        yield* TraceStore.use((store) => store.insertFacts(factRows(facts.all)))
        const executions = yield* asked(tenant, "SELECT * FROM executions ORDER BY execution_id")
        const spans = yield* asked(tenant, "SELECT * FROM spans ORDER BY execution_id, span_id")
        const events = yield* asked(tenant, "SELECT * FROM trace_events ORDER BY execution_id")
        const ids = ["one", "three", "two"]
        assert.deepStrictEqual(
          executions.map((row) => ({ ...row, metadata: JSON.parse(String(row["metadata"])) })),
          ids.map((id) => {
            const { execution } = viewOf(facts, id)
            return {
              execution_id: id,
              agent_id: execution!.agent_id,
              agent_name: execution!.agent_name,
              status: execution!.status,
              root_span_id: execution!.root_span_id,
              trigger: execution!.trigger ?? null,
              source: "api",
              started_at: execution!.started_at,
              ended_at: execution!.ended_at ?? null,
              duration_ms: millis(execution!.started_at, execution!.ended_at),
              metadata: execution!.metadata,
              is_erased: false
            }
          })
        )
        assert.deepStrictEqual(
          spans.map((row) => ({
            ...row,
            metadata: JSON.parse(String(row["metadata"])),
            repairs: row["repairs"] === "" ? undefined : JSON.parse(String(row["repairs"])),
            error: row["error"] === null ? null : JSON.parse(String(row["error"]))
          })),
          ids.flatMap((id) =>
            viewOf(facts, id).spans.map((one) => ({
              ...{ model: null, input_tokens: null, output_tokens: null, cost: null },
              ...{ session_id: null, user_id: null, ...summaryOf(one) },
              execution_id: id,
              span_id: one.id,
              parent_span_id: one.parent_span_id ?? null,
              caused_by_span_ids: one.caused_by_span_ids,
              span_type: one.span_type,
              name: one.name,
              status: one.status,
              started_at: one.started_at,
              ended_at: one.ended_at ?? null,
              duration_ms: millis(one.started_at, one.ended_at),
              error: one.error ?? null,
              metadata: one.metadata,
              repairs: one.repairs
            }))
          )
        )
        assert.deepStrictEqual(
          events,
          ids.map((id) => ({
            execution_id: id,
            span_id: `${id}-a`,
            event_id: `${id}-e`,
            event_type: "llm.request",
            sequence_number: 1,
            timestamp: timeAt(2),
            payload: '{"text":"hello"}'
          }))
        )
      })
    )

    it.effect("answers what an analyst asks", () =>
      Effect.gen(function* () {
        const tenant = newTenant()
        yield* stored(
          chainOf(tenant, 100, (n) => ({
            actor: { id: `user_${n % 3}`, type: "human" },
            metadata: { amount: n, region: n % 2 === 0 ? "eu" : "us" }
          })),
          tenants
        )
        const first = (sql: string) => Effect.map(asked(tenant, sql), ([row]) => row)
        const each: ReadonlyArray<readonly [sql: string, row: Row]> = [
          ["SELECT count() AS n FROM events", { n: 100 }],
          ["select Count(*) n from events where actor_id in ('user_1', 'user_2')", { n: 67 }],
          [
            "SELECT quantile(0.5)(JSONExtractFloat(metadata, 'amount')) AS q FROM events",
            { q: 50.5 }
          ],
          [
            "SELECT JSONExtractString(metadata, 'region') AS region, sum(JSONExtractInt(metadata,"
              + " 'amount')) AS total FROM events GROUP BY region ORDER BY region LIMIT 1",
            { region: "eu", total: 2_550 }
          ],
          [
            "WITH big AS (SELECT * FROM events WHERE JSONExtractInt(metadata, 'amount') > 90),"
              + " few AS (SELECT * FROM big WHERE actor_id = 'user_0'), 2 AS two"
              + " SELECT (SELECT count() FROM big) AS a, (SELECT count() FROM few) AS b, two",
            { a: 10, b: 3, two: 2 }
          ],
          [
            "SELECT toStartOfMonth(timestamp) AS month, countIf(outcome = 'success') AS n FROM events"
              + " GROUP BY ALL",
            { month: "2026-01-01", n: 100 }
          ],
          [
            "SELECT a.id AS id, rank() OVER (PARTITION BY a.actor_id ORDER BY a.timestamp) AS r"
              + " FROM events AS a INNER JOIN events AS b ON a.id = b.id ORDER BY r DESC, id LIMIT 1",
            { id: `evt-${tenant}-100`, r: 34 }
          ],
          [
            "SELECT max(n) AS n FROM (SELECT 1 AS n UNION ALL SELECT count() FROM events)",
            { n: 100 }
          ],
          [
            "WITH x AS (SELECT 5 AS n) SELECT sum(n) AS n FROM (SELECT n FROM x UNION ALL SELECT n FROM x)",
            { n: 10 }
          ],
          [
            "SELECT '{p0:String}; -- ' AS text, `a b`.`c` AS c FROM (SELECT tuple(1)::Tuple(c Int8) AS `a b`)",
            { text: "{p0:String}; -- ", c: 1 }
          ],
          ["SELECT 'it''s' AS a, \"b\" FROM (SELECT 1 AS b)", { a: "it's", b: 1 }],
          ["SELECT uniqExactIf(actor_id, outcome = 'success') AS n FROM events", { n: 3 }],
          [
            "SELECT arraySort(groupUniqArray(actor_id)) AS all FROM events",
            { all: ["user_0", "user_1", "user_2"] }
          ],
          [
            "SELECT count() AS n FROM events WHERE timestamp > now() - INTERVAL 1 YEAR OR 1",
            { n: 100 }
          ],
          ["SELECT count() AS n FROM events WHERE id NOT IN (SELECT id FROM events)", { n: 0 }],
          [
            "SELECT CASE WHEN 1 THEN 'a' ELSE 'b' END AS c, if(1, 2, 3) AS d, 1 BETWEEN 0 AND 2 AS e",
            { c: "a", d: 2, e: 1 }
          ],
          [
            "SELECT CASE WHEN 0 THEN 'a' END AS c, has(['a', 'b'], 'b') AS d, (1, NULL) AS e, [1] AS f",
            { c: null, d: 1, e: [1, null], f: [1] }
          ],
          [
            "SELECT count() OVER () AS a, max(id) OVER w AS b, count() OVER (PARTITION BY toDate(timestamp),"
              + " actor_id IN (SELECT actor_id FROM events) ORDER BY sequence_number ROWS BETWEEN 1 PRECEDING"
              + " AND CURRENT ROW) AS c FROM events WINDOW w AS (ORDER BY sequence_number)"
              + " ORDER BY sequence_number DESC LIMIT 1",
            { a: 100, b: `evt-${tenant}-99`, c: 2 }
          ],
          [
            "WITH x AS (SELECT 2 AS n) SELECT sum(n) AS n FROM (WITH y AS (SELECT n FROM x) SELECT n FROM y"
              + " UNION ALL (SELECT n + 1 FROM x))",
            { n: 5 }
          ],
          [
            "WITH x AS (SELECT 1 AS k) SELECT count() OVER (ORDER BY (SELECT k FROM x)) AS n FROM events LIMIT 1",
            { n: 100 }
          ],
          [
            "SELECT sum(n) AS n FROM ((SELECT 1 AS n EXCEPT SELECT 2) UNION ALL SELECT count() FROM events)",
            { n: 101 }
          ],
          ["SELECT count() AS n FROM executions", { n: 0 }],
          ["SELECT count() AS n FROM spans s LEFT JOIN executions e USING (execution_id)", { n: 0 }]
        ]
        for (const [sql, row] of each) assert.deepStrictEqual(yield* first(sql), row, sql)
      })
    )

    it.effect("answers honest statements as it did before", () =>
      Effect.gen(function* () {
        yield* storeHonestData(950)
        // Evenly spread, as many as there is time for.
        const asked = runs(honestStatements.length)
        const isAsked = (at: number) =>
          writesHonestAnswers || (at * asked) % honestStatements.length < asked
        const statements = honestStatements.filter((_, at) => isAsked(at))
        const answers = yield* Effect.forEach(statements, (sql) =>
          answer(HONEST_TENANT, sql).pipe(
            Effect.map((bytes) => honestAnswer(sql, bytes.toString())),
            Effect.catch((error) => Effect.succeed({ failure: inspect(error) }))
          )
        )
        if (writesHonestAnswers) writeHonestAnswers(answers)
        const all = readHonestAnswers()
        assert.strictEqual(all.length, honestStatements.length)
        const before = all.filter((_, at) => isAsked(at))
        const differing = statements.flatMap((sql, at) => {
          // As the file has them.
          const [is, was] = [JSON.stringify(answers[at]), JSON.stringify(before[at])]
          return is === was ? [] : [`${sql}\n  is  ${is}\n  was ${was}`]
        })
        assert.strictEqual(differing.length, 0, differing.join("\n\n"))
        assert.notInclude(JSON.stringify(before), '{"failure":')
      })
    )

    it.effect("has the columns that are documented, of these types", () =>
      Effect.gen(function* () {
        yield* EventStore.use((store) => store.migrate)
        for (const name of sqlTableNames) {
          const { meta } = JSON.parse(String(yield* answer("nobody", `SELECT * FROM ${name}`)))
          const documented = Object.entries(sqlTables[name]).map(([column, [type]]) => ({
            name: column,
            type
          }))
          assert.deepStrictEqual(meta, documented, name)
        }
      })
    )

    it.effect("shows a list of events as a table of the fields that are asked for", () =>
      Effect.gen(function* () {
        const strange = 'a`b\\.c"{p0:String}{p1:`UInt8}'
        const samples: ReadonlyArray<Sample> = [
          { timestamp: timeAt(30), metadata: { n: 1.5, deep: { text: 'ä "q"' }, list: [1, "x"] } },
          { timestamp: timeAt(10), metadata: { n: "7", deep: {}, [strange]: true } },
          { timestamp: timeAt(20), action: "other.x" },
          { timestamp: timeAt(10), metadata: { n: null } }
        ]
        const tenantId = newTenant()
        const events = samples.map((sample, at) => storedEvent(tenantId, at + 1, sample))
        yield* stored(events, tenants)
        yield* stored([storedEvent(newTenant(), 1, samples[0])], tenants)
        const table = (over: Partial<EventTableQuery>) =>
          SqlStore.use((store) =>
            store.events(
              {
                tenantId,
                filter: { metadata: [] },
                order: "asc",
                fields: ["sequence_number"],
                format: "ndjson",
                ...over
              },
              false
            )
          )
        const rows = (over: Partial<EventTableQuery>) =>
          Effect.map(table(over), (bytes) =>
            String(bytes)
              .split("\n")
              .filter(Boolean)
              .map((line) => JSON.parse(line) as Row)
          )
        const values = (over: Partial<EventTableQuery>) =>
          Effect.map(rows(over), (all) => all.map((row) => Object.values(row)))
        assert.deepStrictEqual(yield* values({}), [[1], [2], [3], [4]])
        assert.deepStrictEqual(yield* values({ order: "desc" }), [[4], [3], [2], [1]])
        assert.deepStrictEqual(yield* values({ sort: "timestamp" }), [[2], [4], [3], [1]])
        assert.deepStrictEqual(yield* values({ filter: { metadata: [], action: "other.x" } }), [
          [3]
        ])
        const paths = ["n", "deep.text", "deep", "list", strange, "no\u0000\n"]
        const fields = paths.map((path) => `metadata.${path}` as const)
        assert.deepStrictEqual(yield* values({ fields }), [
          ["1.5", 'ä "q"', '{"text":"ä \\"q\\""}', '[1,"x"]', null, null],
          ["7", null, "{}", null, "true", null],
          [null, null, null, null, null, null],
          ["null", null, null, null, null, null]
        ])
        const [first] = yield* rows({ fields: [...fields, "action"] })
        assert.deepStrictEqual(Object.keys(first!), [...fields, "action"])
        const whole = yield* rows({ fields: eventFields.map(({ name }) => name) })
        for (const [at, { metadata: text, ...row }] of whole.entries()) {
          const event = events[at]!
          assert.deepStrictEqual(text === "" ? undefined : JSON.parse(String(text)), event.metadata)
          const { erased_at: _, ...shown } = rowOf(event)
          assert.deepStrictEqual(row, { ...shown, tenant_id: tenantId })
        }
        assert.match(String(yield* table({ format: "parquet" })), /^PAR1.*PAR1$/s)
      })
    )

    it.effect("refuses a table of more than an answer may hold, and says what to do", () =>
      Effect.gen(function* () {
        const tenantId = newTenant()
        const large = { metadata: { text: "x".repeat(1_000_000) } }
        const events = Array.from({ length: 70 }, (_, at) => storedEvent(tenantId, at + 1, large))
        for (let at = 0; at < events.length; at += 20) {
          const some = rowsOf(events.slice(at, at + 20), tenants, at)
          yield* EventStore.use((store) => store.insertEvents(some))
        }
        const query = {
          tenantId,
          filter: { metadata: [] },
          order: "asc",
          format: "parquet"
        } as const
        const fields = ["sequence_number", "metadata"] as const
        const store = yield* SqlStore
        const failure = yield* Effect.flip(store.events({ ...query, fields }, false))
        assert.instanceOf(failure, SqlRefused)
        assert.match(failure.message, /more than 100,000 rows or 64 MiB.*after_sequence/)
        const narrow = yield* store.events({ ...query, fields: ["sequence_number"] }, false)
        assert.isAbove(narrow.length, 0)
      })
    )

    it.effect("writes each format", () =>
      Effect.gen(function* () {
        const tenant = newTenant()
        yield* stored(chainOf(tenant, 2), tenants)
        const sql = "SELECT sequence_number, action FROM events ORDER BY sequence_number"
        const text = (format: SqlFormat) => Effect.map(answer(tenant, sql, format), String)
        assert.strictEqual(
          yield* text("csv"),
          "sequence_number,action\r\n1,document.read\r\n2,document.read\r\n"
        )
        assert.strictEqual(
          yield* text("ndjson"),
          '{"sequence_number":1,"action":"document.read"}\n{"sequence_number":2,"action":"document.read"}\n'
        )
        assert.match(yield* text("parquet"), /^PAR1.*PAR1$/s)
        const json = JSON.parse(yield* text("json"))
        assert.deepStrictEqual(json.meta, [
          { name: "sequence_number", type: "UInt64" },
          { name: "action", type: "String" }
        ])
        assert.strictEqual(json.rows, 2)
        assert.hasAllKeys(json, ["meta", "data", "rows"])
        const grouped =
          "SELECT action, count() AS n FROM events GROUP BY action WITH TOTALS LIMIT 1"
        assert.hasAllKeys(JSON.parse(String(yield* answer(tenant, grouped))), [
          "meta",
          "data",
          "totals",
          "rows",
          "rows_before_limit_at_least"
        ])
      })
    )

    it.effect("writes values that every reader takes for what they are", () =>
      Effect.gen(function* () {
        const tenant = newTenant()
        yield* stored(chainOf(tenant, 2), tenants)
        const sql = `SELECT toUInt64('18446744073709551615') AS wide, toInt64(-9007199254740991) AS safe,
          toInt64('-9007199254740993') AS below, [toUInt64('9007199254740993'), 7] AS list,
          tuple(toInt64('9007199254740993'), 'x "9007199254740993"') AS pair, toFloat64(1e20) AS float,
          toFloat64(-12.5) AS amount, -1 / 0 AS infinite, NULL AS nothing, '=1+1' AS formula,
          '-1' AS text, 'a, "b"
c\\\\/ö' AS quoted, '9007199254740993' AS digits FROM events LIMIT 1`
        const values = {
          wide: "18446744073709551615",
          safe: -9007199254740991,
          below: "-9007199254740993",
          list: ["9007199254740993", 7],
          pair: ["9007199254740993", 'x "9007199254740993"'],
          float: 1e20,
          amount: -12.5,
          infinite: "-inf",
          nothing: null,
          formula: "=1+1",
          text: "-1",
          quoted: 'a, "b"\nc\\/ö',
          digits: "9007199254740993"
        }
        assert.deepStrictEqual(yield* asked(tenant, sql), [values])
        const line = String(yield* answer(tenant, sql, "ndjson"))
        assert.deepStrictEqual(JSON.parse(line), values)
        assert.strictEqual(line.indexOf("\n"), line.length - 1)
        const [header, ...cells] = String(yield* answer(tenant, sql, "csv")).split("\r\n")
        assert.strictEqual(header, Object.keys(values).join(","))
        assert.deepStrictEqual(cells, [
          `18446744073709551615,-9007199254740991,-9007199254740993,"[9007199254740993,7]",`
            + `"[9007199254740993,""x \\""9007199254740993\\""""]",100000000000000000000,-12.5,-inf,,`
            + `'=1+1,'-1,"a, ""b""\nc\\/ö",9007199254740993`,
          ""
        ])
        const none = "SELECT action FROM events WHERE action = 'none'"
        assert.strictEqual(String(yield* answer(tenant, none, "csv")), "action\r\n")
        assert.strictEqual(String(yield* answer(tenant, none, "ndjson")), "")
        assert.deepStrictEqual(yield* asked(tenant, none), [])
      })
    )

    it.effect("refuses two columns of one name in every format, and names them", () =>
      Effect.gen(function* () {
        const tenant = newTenant()
        yield* stored(chainOf(tenant, 2), tenants)
        const message = /^two columns have the name id: .* AS /
        for (const sql of [
          "SELECT id, id FROM events",
          "SELECT id, * FROM events",
          "SELECT id, action AS id FROM events LIMIT 0",
          "SELECT * FROM (SELECT id, id FROM events)"
        ]) {
          for (const format of sqlFormats) {
            const failure = yield* Effect.flip(answer(tenant, sql, format))
            assert.match((failure as SqlRefused).message, message, `${format}: ${sql}`)
          }
        }
        const joined = "SELECT e.id, f.id FROM events AS e JOIN events AS f ON e.id = f.id LIMIT 1"
        const [row] = yield* asked(tenant, joined)
        assert.deepStrictEqual(Object.keys(row!), ["id", "f.id"])
      })
    )

    it.effect("refuses what is no SELECT over these views, and says why", () =>
      Effect.gen(function* () {
        const tenant = newTenant()
        yield* stored(chainOf(tenant, 2), tenants)
        for (const sql of refusedStatements) {
          const message = yield* refusalOf(tenant, sql)
          assert.isAbove(message.length, 10, `${sql}: ${message}`)
          assert.notMatch(message, /in scope|unhex|tenant_id|AS \(SELECT|Stack trace|root:/i, sql)
        }
        assert.deepStrictEqual(yield* asked(tenant, "SELECT count() AS n FROM events"), [{ n: 2 }])
      })
    )

    it.effect("repeats no value of the data in an error, and nothing of the views", () =>
      Effect.gen(function* () {
        const tenant = newTenant()
        const value = "hunter2"
        yield* stored(
          chainOf(tenant, 2, () => ({
            resource: { id: value, type: value },
            metadata: { [value]: value }
          })),
          tenants
        )
        for (const [expression, why] of [
          ["toInt64(resource_id)", "a value can't be converted"],
          ["CAST(resource_id AS Date)", "a value can't be converted"],
          ["toDateTime(resource_id)", "a value can't be converted"],
          ["CAST(resource_id AS Enum('a' = 1))", "ClickHouse refuses it"],
          ["match(resource_id, '(')", "the regular expression can't be read"],
          ["toUUID(resource_id)", "a value can't be converted"],
          ["intDiv(1, length(resource_id) - 7)", "a division by zero"],
          ["toFixedString(resource_id, 2)", "ClickHouse refuses it"],
          ["(SELECT resource_id FROM events)", "gives more than one row"],
          ["resource_id + 1", "has a type that doesn't fit"],
          ["max(max(resource_id))", "max: an aggregate function has no place here"],
          ["e.resource_id", "resource_id: there is no such column"],
          ["lower(id, id)", "lower: a function has too many arguments, or too few"],
          ["tostring(1)", "tostring: ClickHouse has no such function"]
        ] as const) {
          const message = yield* refusalOf(tenant, `SELECT ${expression} FROM events`)
          assert.include(message, why, expression)
          assert.notMatch(message, /hunter2|in scope|view events|unhex|PREWHERE/, expression)
        }
      })
    )

    it.effect("means to ClickHouse what was read", () =>
      Effect.gen(function* () {
        const { client } = yield* ClickHouseConnection
        const numRuns = runs(5_000)
        const changed = fc.oneof(derivations, fc.constantFrom(...honestStatements))
        const statements = [
          ...fc.sample(derivations, { numRuns }),
          ...fc.sample(mutations(changed), { numRuns })
        ]
        const { different, read } = yield* Effect.promise(() =>
          differentReadings(client, statements)
        )
        assert.isAbove(read, 0.9 * numRuns)
        assert.deepStrictEqual(different, [])
      })
    )

    it.effect("never computes anything on the row of another tenant", () =>
      Effect.gen(function* () {
        const [mine, other] = [`leak-a`, `leak-b`]
        const each = { metadata: { n: 1 } }
        yield* stored(
          [
            ...chainOf(mine, 50, () => ({ ...each, resource: { id: "7", type: "doc" } })),
            ...chainOf(other, 50, () => ({ ...each, resource: { id: "secret", type: "doc" } }))
          ],
          900
        )
        const facts = [new FactChain(mine), new FactChain(other)]
        for (const chain of facts)
          chain.start("x", { root_span_id: chain.tenantId === mine ? "7" : "secret" })
        // Rows of the two stand in one granule, and a condition that fails on a text says so.
        const statements = [
          "SELECT count() AS n FROM events WHERE toInt64(resource_id) = 7",
          "SELECT sum(toInt64(resource_id)) / 7 AS n FROM events",
          "SELECT count() AS n FROM events WHERE toInt64(resource_id) = 7 AND actor_id = 'user_1' AND sequence_number > 0",
          "SELECT count() AS n FROM (SELECT * FROM events) AS e WHERE intDiv(7, toInt64(e.resource_id)) = 1",
          "SELECT countIf(toInt64(resource_id) = 7) AS n FROM events GROUP BY toInt64(resource_id)",
          "SELECT count() AS n FROM events a JOIN events b ON toInt64(a.resource_id) = toInt64(b.resource_id) AND a.id = b.id"
        ]
        for (const sql of statements) {
          assert.deepStrictEqual(yield* asked(mine, sql), [{ n: 50 }], sql)
        }
        for (const name of sqlTableNames) {
          const rows = yield* asked(mine, `SELECT * FROM ${name}`)
          assert.notInclude(JSON.stringify(rows), "secret")
          assert.deepStrictEqual(yield* asked("nobody", `SELECT * FROM ${name}`), [])
        }
      })
    )
  })
}

/** The part of the contract that computes until it is stopped. */
export const sqlLimitsContract = (
  what: string,
  connection: (database: string) => Layer.Layer<ClickHouseConnection, unknown>
): void => {
  const stores = layerStores.pipe(Layer.provideMerge(connection(database)))
  layer(stores, { excludeTestServices: true })(what, (it) => {
    it.effect("limits rows, bytes, time and memory, and says which", () =>
      Effect.gen(function* () {
        const tenant = "sql-limits"
        yield* stored(chainOf(tenant, 400), 0)
        const cross = "FROM events AS a, events AS b, events AS c"
        assert.include(yield* refusalOf(tenant, `SELECT a.id ${cross}`), "100,000 rows")
        assert.include(yield* refusalOf(tenant, `SELECT repeat('x', 300000) FROM events`), "64 MiB")
        assert.include(
          yield* refusalOf(
            tenant,
            "SELECT groupArray(repeat(a.id, 5000)) FROM events AS a, events AS b"
          ),
          "memory"
        )
        assert.include(
          yield* refusalOf(
            tenant,
            `SELECT count() ${cross}, events AS d WHERE SHA256(concat(a.id, b.id, c.id, d.id)) = ''`
          ),
          "10 s"
        )
      })
    )
  })
}

/**
 * What the grammar rests on, tried on the engine at length: which functions take the name of another
 * one, and that each statement is read as it was asked.
 */
export const sqlReadingContract = (
  what: string,
  connection: (database: string) => Layer.Layer<ClickHouseConnection, unknown>
): void => {
  layer(connection(database), { excludeTestServices: true })(what, (it) => {
    it.effect("takes the name of a function in no other place than those that are known", () =>
      Effect.gen(function* () {
        const { client } = yield* ClickHouseConnection
        const array = "['/etc/hostname']"
        const places = [
          ["file"],
          ["file", array],
          ["file", "'/etc/hostname'"],
          ["file", array, array],
          ["file", array, "''"],
          [array, "file"],
          ["'a'", "file"],
          [array, "file", array],
          [array, array, "file"],
          ["file", "map('a', 'b')"]
        ]
        const readsName = (sql: string) =>
          client.query({ query: `SELECT ${sql}` }).then(
            () => true,
            ({ message }: Error) =>
              message.includes("__function_ref") || !message.includes("`file`")
          )
        const unknown: Array<string> = []
        for (const called of allowedFunctions) {
          if (takesFunction(called)) continue
          for (const place of places) {
            const sql = `${called}(${place.join(", ")})`
            const isOther =
              /^(cast|extract|date_?(add|sub)|timestamp_?(add|sub)|group_?concat|lambda)$/i
            // These two have a grammar of their own, in which one argument is none.
            const isNothing = /^(position|substring)\(file\)$/i
            if (isOther.test(called) || isNothing.test(sql)) continue
            if (yield* Effect.promise(() => readsName(sql))) unknown.push(sql)
          }
        }
        assert.deepStrictEqual(unknown, [])
      })
    )

    it.effect(
      "means to ClickHouse what was read, a hundred thousand times",
      () =>
        Effect.gen(function* () {
          const { client } = yield* ClickHouseConnection
          const numRuns = runs(5_000)
          const changed = fc.oneof(derivations, fc.constantFrom(...honestStatements))
          for (let round = 0; round < 10; round++) {
            const statements = [
              ...fc.sample(derivations, { numRuns }),
              ...fc.sample(mutations(changed), { numRuns })
            ]
            const { different } = yield* Effect.promise(() => differentReadings(client, statements))
            assert.deepStrictEqual(different, [])
          }
        }),
      900_000
    )
  })
}
