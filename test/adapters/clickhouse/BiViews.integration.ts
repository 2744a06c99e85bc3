/**
 * The views for tools on a ClickHouse server, on the engine in a process of its own. That takes users
 * and policies from a file only, so those of the printed statements are put into one, and the
 * statements themselves are read by its parser.
 */
import { spawn } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { ClickHouseConnection } from "../../../src/adapters/clickhouse/client/ClickHouseConnection.ts"
import { layerStores } from "../../../src/adapters/clickhouse/Stores.ts"
import { biStatements } from "../../../src/adapters/clickhouse/sql/BiViews.ts"
import { sqlTableNames } from "../../../src/domain/sql/SqlTables.ts"
import { EventStore } from "../../../src/ports/EventStore.ts"
import { SqlStore } from "../../../src/ports/SqlStore.ts"
import { TraceStore } from "../../../src/ports/TraceStore.ts"
import { blocksOf } from "../../docs/Pages.ts"
import { chainOf, rowsOf, timeAt } from "./support/StoredBodies.ts"
import { FactChain, factRows } from "./support/StoredFacts.ts"
import { runningStore, temporaryFolder } from "./support/StoreProcesses.ts"

const program = fileURLToPath(new URL("./support/PolicyProcess.ts", import.meta.url))
const database = "alk_bi"
const TENANT = "acme"
const OWNER = `alk_views_${TENANT}`

const printed = biStatements({ database, cluster: undefined, user: "default" }, TENANT)
const views = printed.filter((one) => /^CREATE (DATABASE|OR REPLACE VIEW)/.test(one))
const access = printed.filter((one) => !views.includes(one))

/** The condition of the owner's policy on a table, out of the statement. */
const conditionOn = (table: string): string => {
  const policy = new RegExp(
    `^CREATE ROW POLICY OR REPLACE \`${OWNER}\` ON ${database}\\.${table} USING (.+) TO \`${OWNER}\`$`
  )
  return access.flatMap((one) => policy.exec(one)?.[1] ?? [])[0]!
}

const tables = ["events", "facts"] as const

/** Users as the statements make them. */
const usersXml = (
  conditionOf: (table: string) => string,
  grants: ReadonlyArray<string>
): string => {
  const filters = tables.map((one) => `<${one}><filter>${conditionOf(one)}</filter></${one}>`)
  const user = (name: string, more: string) =>
    `<${name}><password></password><networks><ip>::/0</ip></networks><profile>default</profile>`
    + `<quota>default</quota>${more}</${name}>`
  return (
    "<clickhouse><profiles><default/></profiles><quotas><default/></quotas><users>"
    + user("default", "<access_management>1</access_management>")
    + user(
      OWNER,
      `<grants>${grants.map((one) => `<query>${one.replace(/ TO .*/, "")}</query>`).join("")}</grants>`
        + `<databases><${database}>${filters.join("")}</${database}></databases>`
    )
    + "</users></clickhouse>"
  )
}

interface Answered {
  readonly answer?: string
  readonly error?: string
}

/** What the statements answer on a folder, with such users. */
const answersOf = Effect.fnUntraced(function* (
  folder: string,
  users: string,
  statements: ReadonlyArray<string>
) {
  const settings = yield* temporaryFolder
  const [config, ofUsers] = ["config.xml", "users.xml"].map((one) => join(settings, one))
  writeFileSync(ofUsers!, users)
  writeFileSync(config!, `<clickhouse><users_config>${ofUsers}</users_config></clickhouse>`)
  return yield* Effect.promise(async () => {
    const child = spawn(process.execPath, [program, folder, config!])
    child.stdin.end(JSON.stringify(statements))
    const [out, errors] = await Promise.all([text(child.stdout), text(child.stderr)])
    assert.notStrictEqual(out, "", errors)
    return JSON.parse(out) as ReadonlyArray<Answered>
  })
})

/** Two tenants with an event, an erased one and an execution each; what `/v1/sql` shows of one. */
const fill = Effect.gen(function* () {
  const [events, facts, sql] = [yield* EventStore, yield* TraceStore, yield* SqlStore]
  yield* events.migrate
  for (const [partition, tenant] of [TENANT, "other"].entries()) {
    const details = { metadata: { secret: `secret of ${tenant}` } }
    yield* events.insertEvents(
      rowsOf(
        chainOf(tenant, 3, () => details),
        partition
      )
    )
    yield* events.eraseDetails(tenant, [{ sequenceNumber: 2, erasedAt: timeAt(9) }])
    const chain = new FactChain(tenant, partition * 100)
    const [run, span] = [`run-${tenant}`, `span-${tenant}`]
    chain.start(run)
    const of = { span_id: span, caused_by_span_ids: [], span_type: "TOOL_CALL" } as const
    const at = { started_at: timeAt(1), started_at_given: true }
    chain.add(run, { type: "span.started", ...of, ...at }, { name: "search" })
    const event = { event_id: "e", event_type: "tool.response", sequence_number: 1 }
    chain.add(run, { type: "span.event", span_id: span, timestamp: timeAt(2), ...event })
    yield* facts.insertFacts(factRows(chain.all))
  }
  const shown = yield* Effect.forEach(sqlTableNames, (name) =>
    sql.answer(
      { tenantId: TENANT, sql: `SELECT * FROM ${name} ORDER BY ALL`, format: "ndjson" },
      true
    )
  )
  return shown.map(({ bytes }) => String(bytes))
})

const layerOn = (url: string) =>
  layerStores.pipe(Layer.provide(ClickHouseConnection.layerServer({ database, url })))

const asked = sqlTableNames.map(
  (name) =>
    `SELECT * FROM bi_${TENANT}.${name} ORDER BY ALL SETTINGS date_time_output_format = 'iso',`
    + " output_format_json_quote_64bit_integers = 0"
)
const grants = access.filter((one) => one.startsWith("GRANT"))

describe("the views for tools", () => {
  it.live("show one tenant what read-only SQL shows, under row policies", () =>
    Effect.gen(function* () {
      const { folder, stop, url } = yield* runningStore()
      const shown = yield* Effect.provide(fill, layerOn(url))
      yield* Effect.promise(stop)
      const users = usersXml(conditionOn, grants)
      const all = [...views, ...views, ...asked, `SELECT count() AS n FROM ${database}.events`]
      const answers = yield* answersOf(folder, users, all)
      assert.deepStrictEqual(
        answers.flatMap(({ error }) => error ?? []),
        []
      )
      const rows = answers.slice(-1 - asked.length).map(({ answer }) => answer)
      assert.deepStrictEqual(rows.slice(0, -1), shown)
      assert.deepStrictEqual(
        shown.map((one) => one.split("\n").length - 1),
        [3, 1, 1, 1]
      )
      assert.notInclude(shown[0]!.split("\n")[1]!, "secret")
      // The policies are the owner's: who reads the tables themselves sees the other tenant too.
      assert.strictEqual(rows.at(-1), '{"n":6}\n')

      // The condition of the views is not the only one.
      const elsewhere = usersXml(() => "tenant_id = 'other'", grants)
      const hidden = yield* answersOf(folder, elsewhere, asked)
      assert.deepStrictEqual(
        hidden,
        asked.map(() => ({ answer: "" }))
      )

      const without = yield* answersOf(folder, usersXml(conditionOn, []), asked)
      for (const { error } of without) assert.match(error!, /Not enough privileges/)
    })
  )

  it.live("are given by statements that the engine reads, on a cluster too", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const place = { database, cluster: "main", user: "alk" }
      const ofPage = blocksOf("docs/security.md").flatMap(({ kind, text }) =>
        kind === "admin" ? text.split(/;(?:\n|$)/) : []
      )
      const statements = [...access, ...biStatements(place, TENANT), ...ofPage].filter(Boolean)
      assert.lengthOf(ofPage.filter(Boolean), 2)
      const parsed = yield* answersOf(
        folder,
        usersXml(() => "1", []),
        statements.map((one) => `SELECT formatQuery('${one.replace(/[\\']/g, "\\$&")}') AS text`)
      )
      assert.deepStrictEqual(
        parsed.flatMap(({ error }) => error ?? []),
        []
      )
      const onCluster = biStatements(place, TENANT).filter((one) =>
        one.includes("ON CLUSTER 'main'")
      )
      assert.lengthOf(onCluster, biStatements(place, TENANT).length)
    })
  )
})
