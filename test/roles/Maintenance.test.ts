/** What the commands of an operator print and refuse. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { parseConfig } from "../../src/config/ParseConfig.ts"
import { viewsOfTenant } from "../../src/roles/Maintenance.ts"

const surroundings = {
  workingDirectory: "/srv",
  homeDirectory: "/home/you",
  terminal: false,
  cores: 2,
  platform: "linux"
} as const

const views = (variables: Readonly<Record<string, string>>, ...args: ReadonlyArray<string>) =>
  viewsOfTenant(Result.getOrThrow(parseConfig(variables, surroundings)), args)

const server = { CLICKHOUSE_URL: "http://clickhouse:8123" }

describe("alk views", () => {
  it.effect("prints statements for the server, the cluster and the user of the configuration", () =>
    Effect.gen(function* () {
      const text = yield* views(
        {
          ...server,
          CLICKHOUSE_CLUSTER: "main",
          CLICKHOUSE_DATABASE: "log",
          CLICKHOUSE_USER: "alk"
        },
        "my-tenant_1"
      )
      assert.include(
        text,
        "ROW POLICY IF NOT EXISTS alk ON CLUSTER 'main' ON log.events USING 1 TO `alk`"
      )
      assert.include(text, "USING tenant_id = 'my-tenant_1' TO `alk_views_my-tenant_1`;\n")
      assert.match(text, /VIEW `bi_my-tenant_1`\.spans ON CLUSTER 'main' .*;\n$/m)
      assert.include(yield* views(server, "acme"), "ON alk.events USING 1 TO `default`")
    })
  )

  it.effect("refuses what is no tenant, and the embedded store", () =>
    Effect.gen(function* () {
      for (const args of [[], [""], ["_system"], ["a'b"], ["A"]]) {
        const { message } = yield* Effect.flip(views(server, ...args))
        assert.strictEqual(message, "views: name a tenant, as in views acme")
      }
      assert.include((yield* Effect.flip(views({}, "acme"))).message, "set CLICKHOUSE_URL")
    })
  )
})
