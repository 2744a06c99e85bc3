/**
 * The contract and the program say the same: the published document is the generated one, every
 * operation of it is routed, and nothing is routed that is not in it.
 */
import { readFileSync } from "node:fs"
import { NodeHttpServer } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { HttpRouter } from "effect/http"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { exampleEvent } from "../../src/contracts/ExampleEvent.ts"
import { recompute } from "../../src/domain/events/HashChain.ts"
import { openApiDocument, openApiText } from "../../src/http/Api.ts"
import { consolePaths } from "../../src/http/console/ConsolePaths.ts"
import { guideRoutes } from "../../src/http/docs/GuidePaths.ts"
import { Bodies } from "../../src/http/messages/BodyBudget.ts"
import { opsPaths } from "../../src/http/operations/OpsContract.ts"
import { layerRoutes } from "../../src/http/Server.ts"
import { Draining } from "../../src/http/server/Draining.ts"
import { layerFailedCredentials } from "../../src/http/server/FailedCredentials.ts"
import { HttpListener } from "../../src/http/server/HttpListener.ts"
import { layerQuota } from "../../src/http/server/Quota.ts"
import { Quarantine } from "../../src/services/administration/Quarantine.ts"
import { layerIngest } from "../../src/services/ingest/Ingest.ts"
import { Retentions } from "../../src/services/retention/Retentions.ts"
import { layerDoubles, OTHER_KEY, READ_KEY, settings, World } from "./support/Doubles.ts"
import { item } from "./support/Events.ts"
import { TestApi } from "./support/TestApi.ts"

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
    seen.push(`${method} ${path.replaceAll(/:(\w+)/g, "{$1}").replace(/\*$/, "{index}")}`)
  const spying = Layer.effect(
    HttpRouter.HttpRouter,
    Effect.map(
      HttpRouter.make,
      (router): HttpRouter.HttpRouter => ({
        ...router,
        add: (method: any, path: any, ...rest: Array<any>) => {
          name(method, path)
          return (router.add as any)(method, path, ...rest)
        },
        addAll: (routes: any) => {
          for (const { method, path } of routes) name(method, path)
          return router.addAll(routes) as any
        }
      })
    )
  )
  const services = Layer.mergeAll(
    spying,
    Bodies.layer,
    Draining.layer,
    layerQuota,
    layerFailedCredentials,
    Layer.succeed(HttpListener, { port: 0, url: "http://127.0.0.1:0" }),
    layerIngest(settings.secret),
    Layer.mock(Quarantine, {}),
    Layer.mock(Retentions, {}),
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

  it("holds exactly the routes of the router, those without a key too", async () => {
    const documented = operations.map(({ method, path }) => `${method} ${path}`)
    const pages = [...consolePaths, ...guideRoutes].map(
      (path) => `GET ${path.replaceAll(/:(\w+)/g, "{$1}").replace(/\*$/, "{index}")}`
    )
    assert.deepStrictEqual(await routed(), [...documented, ...pages].sort())
    for (const path of opsPaths) assert.include(documented, `GET ${path}`)
  })

  it("describes every operation, parameter and answer", () => {
    for (const { method, operation, path } of operations) {
      const where = `${method} ${path}`
      assert.isNotEmpty(operation.summary, where)
      assert.isNotEmpty(operation.description, where)
      if ((opsPaths as ReadonlyArray<string>).includes(path) || path === "/v1/session") {
        assert.deepStrictEqual(operation.security, [], where)
      } else {
        assert.isNotEmpty(operation.security, where)
        for (const status of ["400", "401", "429", "503"]) {
          assert.property(operation.responses, status, where)
        }
      }
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

  it("has the string form of errors on the batch route and on /api/v1, and only there", () => {
    for (const { operation, path } of operations) {
      const isText = path === "/v1/events/batch" || path.startsWith("/api/v1/")
      const form = isText
        ? "TextError"
        : /^\/v1\/(?:traces|logs|metrics)$/.test(path)
          ? "OtlpError"
          : "Error"
      for (const [status, response] of Object.entries<any>(operation.responses)) {
        if (Number(status) < 400 || path === "/readyz") continue
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

  it("says what generated clients need: open metadata, named alternatives, optional bodies", () => {
    const { schemas } = document.components
    for (const name of ["AuditEventInput", "AuditEventBatchItem", "ExecutionInput", "SpanInput"]) {
      assert.strictEqual(schemas[name].properties.metadata.additionalProperties, true, name)
    }
    for (const path of ["/api/v1/executions/{id}/end", "/api/v1/spans/{id}/end"]) {
      assert.notStrictEqual(document.paths[path].put.requestBody.required, true)
    }
    const requiredOf = (path: string) =>
      document.paths[path].get.parameters
        .filter(({ required }: any) => required)
        .map(({ name }: any) => name)
    assert.deepStrictEqual(requiredOf("/v1/chain/proofs/inclusion"), ["sequence_number"])
    assert.deepStrictEqual(requiredOf("/v1/chain/proofs/consistency"), ["first"])
    const { discriminator, oneOf } = schemas.TraceOperationInput
    assert.strictEqual(discriminator.propertyName, "op")
    assert.sameMembers(
      Object.values(discriminator.mapping),
      oneOf.map(({ $ref }: any) => $ref)
    )
    assert.notInclude(openApiText(), '"anyOf"')
  })

  it("has no schema of an object that leaves open whether it is open", () => {
    const odd: Array<string> = []
    const look = (node: any, place: string): void => {
      if (typeof node !== "object" || node === null) return
      const isFree = [node.type].flat().includes("object") && node.properties === undefined
      const says = node.additionalProperties ?? node.patternProperties
      if (isFree && says === undefined) odd.push(place)
      for (const [key, value] of Object.entries(node)) {
        if (key !== "examples" && key !== "example") look(value, `${place}/${key}`)
      }
    }
    look(document, "")
    assert.deepStrictEqual(odd, [])
  })

  it("tells the truth of answers that are easily missed", async () => {
    const read = { key: READ_KEY }
    const other = { key: OTHER_KEY }
    const sent = await api.call("/v1/events?sync=true", { ...other, json: { ...item(1), odd: 1 } })
    assert.deepStrictEqual(sent.body.warnings, [{ index: 0, field: "odd" }])
    const verified = await api.call("/v1/verify?from_sequence=0", read)
    assert.strictEqual(verified.body.bounds.from_sequence, 0)
    for (const path of opsPaths) assert.strictEqual((await api.call(path)).status, 200)
  })
})
