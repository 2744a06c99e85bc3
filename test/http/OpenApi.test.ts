/**
 * The contract and the program say the same: the published document is the generated one, every
 * operation of it is routed, and nothing is routed that is not in it.
 */
import { readFileSync } from "node:fs"
import { NodeHttpServer } from "@effect/platform-node"
import { Ajv2020 } from "ajv/dist/2020.js"
import { Effect, Layer } from "effect"
import { HttpRouter } from "effect/http"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { recompute } from "../../src/domain/HashChain.ts"
import { openApiDocument, openApiText } from "../../src/http/Api.ts"
import { exampleEvent } from "../../src/http/ContractExample.ts"
import { layerFailedCredentials } from "../../src/http/FailedCredentials.ts"
import { HttpListener } from "../../src/http/HttpListener.ts"
import { opsPaths } from "../../src/http/OpsRoutes.ts"
import { layerRoutes } from "../../src/http/Server.ts"
import { Bodies } from "../../src/http/BodyBudget.ts"
import { Draining } from "../../src/http/Draining.ts"
import { layerQuota } from "../../src/http/Quota.ts"
import { layerIngest } from "../../src/pipeline/Ingest.ts"
import {
  ADMIN_TOKEN,
  layerDoubles,
  READ_KEY,
  settings,
  World,
  WRITE_KEY
} from "./support/Doubles.ts"
import { item, items } from "./support/Events.ts"
import { TestApi, type Answer, type Call } from "./support/TestApi.ts"

const document: any = openApiDocument()

const operations = Object.entries<any>(document.paths).flatMap(([path, methods]) =>
  Object.entries<any>(methods).map(([method, operation]) => ({
    path,
    method: method.toUpperCase(),
    operation
  }))
)

/** Every route that a router is given, as `METHOD /path/{name}`. */
const routed = async (): Promise<Array<string>> => {
  const seen: Array<string> = []
  const name = (method: string, path: string) =>
    seen.push(`${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`)
  const spying = Layer.effect(
    HttpRouter.HttpRouter,
    Effect.map(HttpRouter.make, (router): HttpRouter.HttpRouter => ({
      ...router,
      add: (method: any, path: any, ...rest: Array<any>) => {
        name(method, path)
        return (router.add as any)(method, path, ...rest)
      },
      addAll: (routes: any) => {
        for (const { method, path } of routes) name(method, path)
        return router.addAll(routes) as any
      }
    }))
  )
  const services = Layer.mergeAll(
    spying,
    Bodies.layer,
    Draining.layer,
    layerQuota,
    layerFailedCredentials,
    Layer.succeed(HttpListener, { port: 0, url: "http://127.0.0.1:0" }),
    layerIngest(settings.secret),
    NodeHttpServer.layerHttpServices
  ).pipe(Layer.provideMerge(layerDoubles(new World())))
  const routes = layerRoutes.pipe(Layer.provide(services)) as Layer.Layer<never>
  await Effect.runPromise(Effect.scoped(Layer.build(routes)))
  return seen.sort()
}

describe("the OpenAPI document", () => {
  let api: TestApi
  beforeAll(async () => {
    api = await TestApi.start()
  })
  afterAll(() => api.stop())

  it("is published as it is generated", () => {
    const file = new URL("../../schemas/openapi.json", import.meta.url)
    assert.strictEqual(readFileSync(file, "utf8"), openApiText())
  })

  it("is served as it is published", async () => {
    const { body } = await api.call("/openapi.json")
    assert.deepStrictEqual(body, JSON.parse(openApiText()))
  })

  it("is OpenAPI 3.1.0 of version 1.0.0 with a bearer scheme and the promised tags", () => {
    assert.strictEqual(document.openapi, "3.1.0")
    assert.strictEqual(document.info.version, "1.0.0")
    assert.deepInclude(document.components.securitySchemes.api_key, {
      type: "http",
      scheme: "bearer"
    })
    assert.includeMembers(
      document.tags.map(({ name }: any) => name),
      ["Ingest", "Query", "Verify", "Chain", "Stream", "Admin"]
    )
  })

  it("holds exactly the routes of the router, those without a key aside", async () => {
    const documented = operations.map(({ method, path }) => `${method} ${path}`)
    const open = opsPaths.map((path) => `GET ${path}`)
    assert.deepStrictEqual(await routed(), [...documented, ...open].sort())
  })

  it("describes every operation, parameter and answer", () => {
    for (const { method, operation, path } of operations) {
      const where = `${method} ${path}`
      assert.isNotEmpty(operation.summary, where)
      assert.isNotEmpty(operation.description, where)
      assert.isNotEmpty(operation.security, where)
      assert.property(operation.responses, "401", where)
      assert.property(operation.responses, "503", where)
      for (const parameter of operation.parameters) {
        const { description, in: place, schema } = parameter
        assert.isNotEmpty(place === "path" ? schema.description : description, where)
      }
      for (const [status, response] of Object.entries<any>(operation.responses)) {
        assert.isNotEmpty(response.description, `${where} ${status}`)
        assert.notInclude(["Success", "Error", "<No Content>"], response.description)
        assert.property(response.headers, "X-Request-Id")
      }
    }
  })

  it("has the string form of errors where service.md promises it, and only there", () => {
    for (const { operation, path } of operations) {
      const isText = path === "/v1/events/batch" || path.startsWith("/api/v1/")
      const form = isText ? "TextError" : "Error"
      for (const [status, response] of Object.entries<any>(operation.responses)) {
        if (Number(status) < 400) continue
        assert.strictEqual(
          response.content["application/json"].schema.$ref,
          `#/components/schemas/${form}`,
          `${path} ${status}`
        )
      }
    }
  })

  it("shows an event whose hashes are true", () => {
    const recomputed = recompute(JSON.stringify(exampleEvent))!
    assert.isTrue(recomputed.exact)
    assert.strictEqual(recomputed.hash, exampleEvent.hash)
    assert.strictEqual(recomputed.contentHash, exampleEvent.content_hash)
    assert.strictEqual(recomputed.detailsHash, exampleEvent.details_hash)
  })

  it("describes the answers that are really given", async () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false })
    ajv.addSchema(document, "openapi")
    const check = (method: string, path: string, answer: Answer) => {
      const pointer = [path.replaceAll("/", "~1"), method.toLowerCase(), "responses", answer.status]
      const reference = `openapi#/paths/${pointer.join("/")}/content/application~1json/schema`
      const validate = ajv.compile({ $ref: reference })
      assert.isTrue(validate(answer.body), `${method} ${path} ${JSON.stringify(validate.errors)}`)
    }
    const given = async (method: string, path: string, call: Call, target = path) => {
      const answer = await api.call(target, call)
      check(method, path, answer)
      return answer
    }
    const write = { key: WRITE_KEY }
    const read = { key: READ_KEY }
    const admin = { key: ADMIN_TOKEN }
    const events = [...items(3), item(1, { id: "evt" }), { bad: true }]
    const accepted = await given("POST", "/v1/events/batch", { ...write, json: { events } })
    await given("GET", "/v1/receipts/{id}", read, accepted.headers.location)
    const sync = "?sync=true"
    const batch = { ...write, json: { events } }
    await given("POST", "/v1/events/batch", batch, `/v1/events/batch${sync}`)
    await given("POST", "/v1/events", { ...write, json: item(1) })
    const single = { ...write, json: item(9, { id: "nine" }) }
    assert.strictEqual((await given("POST", "/v1/events", single, `/v1/events${sync}`)).status, 201)
    assert.strictEqual((await given("POST", "/v1/events", single, `/v1/events${sync}`)).status, 200)
    await given("GET", "/v1/events", read)
    await given("GET", "/v1/events", read, "/v1/events?page=0")
    await given("GET", "/v1/events/stats", read)
    await given("GET", "/v1/events/{id}", read, "/v1/events/evt")
    await given("GET", "/v1/verify", read)
    await given("GET", "/v1/verify/events/{id}", read, "/v1/verify/events/evt")
    await given("GET", "/v1/chain", read)
    const tenants = "/v1/admin/tenants"
    await given("POST", tenants, { ...admin, json: { id: "b", name: "B" } })
    await given("GET", tenants, admin)
    const keys = `${tenants}/{tenant}/keys`
    await given("POST", keys, { ...admin, json: { scopes: ["read"] } }, `${tenants}/acme/keys`)
    await given("GET", keys, admin, `${tenants}/acme/keys`)
    await given("POST", "/v1/events/batch", { json: {} })
  })
})
