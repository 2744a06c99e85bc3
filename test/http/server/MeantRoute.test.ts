/** What is proposed in the place of an address that nothing has. */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { meantRoute } from "../../../src/http/server/MeantRoute.ts"
import { allowedMethods, routeTable } from "../../../src/http/server/RouteTable.ts"
import { runs } from "../../support/Runs.ts"

describe("meantRoute", () => {
  it.each([
    ["POST", "/v1/events/", "/v1/events"],
    ["POST", "//v1/traces", "/v1/traces"],
    ["POST", "/v1/traces/v1/traces", "/v1/traces"],
    ["POST", "/v1/traces//", "/v1/traces"],
    ["POST", "/otlp/v1/traces", "/v1/traces"],
    ["POST", "/api/v1/traces", "/v1/traces"],
    ["POST", "/api/public/otel/v1/traces", "/v1/traces"],
    ["POST", "/V1/TRACES", "/v1/traces"],
    ["POST", "/v1/trace", "/v1/traces"],
    ["POST", "/events/batch", "/v1/events/batch"],
    ["POST", "/v1/executions", "/api/v1/executions"],
    ["POST", "/v2/events", "/v1/events"],
    ["GET", "/v1/events/evt_1/", "/v1/events/{id}"],
    ["GET", "/v1/x/../events", "/v1/events"],
    ["GET", "/v1/./events", "/v1/events"],
    ["GET", "/ready", "/readyz"]
  ])("%s %s: %s", (method, path, expected) => {
    assert.strictEqual(meantRoute(method, path), expected)
  })

  it.each([
    "/v1/nothing",
    "/ping",
    "/ingest",
    "/",
    `/${"a/".repeat(2_000)}`,
    `/${"x".repeat(8_000)}`,
    "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
  ])("proposes nothing for what is far from every route: %s", (path) => {
    assert.isUndefined(meantRoute("POST", path))
  })

  it("finds every route again, however its address was spoiled", () => {
    const spoiled: ReadonlyArray<(path: string) => string> = [
      (path) => `${path}/`,
      (path) => `/${path}`,
      (path) => path.replaceAll("/", "//"),
      (path) => path.toUpperCase(),
      (path) => `/proxy/of/ours${path}`
    ]
    const written = routeTable.filter(({ template }) => /^\/(?:api\/)?v1\//.test(template))
    fc.assert(
      fc.property(
        fc.constantFrom(...written),
        fc.array(fc.constantFrom(...spoiled), { minLength: 1, maxLength: 3 }),
        ({ methods, template }, ways) => {
          const path = template.replaceAll(/:\w+/g, "id_1")
          const given = ways.reduce((text, way) => way(text), path)
          const meant = meantRoute(methods[0]!, given)
          assert.isDefined(meant, given)
          const found = meant!.replaceAll(/\{\w+\}/g, "id_1")
          assert.include(allowedMethods(found), methods[0], `${given}: ${meant}`)
          assert.strictEqual(found, path)
        }
      ),
      { numRuns: runs(500) }
    )
  })
})
