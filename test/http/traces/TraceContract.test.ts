/**
 * The contract of the trace routes and the program say the same: answers and example bodies fit the
 * schemas of the OpenAPI document, and what the schemas allow is taken.
 */
import { Ajv2020 } from "ajv/dist/2020.js"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { openApiDocument } from "../../../src/http/Api.ts"
import { READ_KEY, WRITE_KEY } from "../support/Doubles.ts"
import { type Answer, type Call, TestApi } from "../support/TestApi.ts"

const document: any = openApiDocument()
const ajv = new Ajv2020({ strict: false, validateFormats: false })
ajv.addSchema(document, "openapi")

const validator = (...pointer: ReadonlyArray<string | number>) =>
  ajv.compile({
    $ref: `openapi#/${pointer.map((step) => String(step).replaceAll("/", "~1")).join("/")}`
  })

const check = (method: string, path: string, answer: Answer): void => {
  const validate = validator(
    "paths",
    path,
    method.toLowerCase(),
    "responses",
    answer.status,
    "content",
    "application/json",
    "schema"
  )
  const fits = validate(answer.body)
  assert.isTrue(fits, `${method} ${path} ${answer.text} ${JSON.stringify(validate.errors)}`)
}

describe("the contract of traces", () => {
  let api: TestApi
  beforeAll(async () => {
    api = await TestApi.start()
  })
  afterAll(() => api.stop())

  const given = async (method: string, path: string, call: Call = {}, target = path) => {
    const key = method === "GET" ? READ_KEY : WRITE_KEY
    const answer = await api.call(target, { key, method, ...call })
    check(method, path, answer)
    return answer
  }

  it("describes the answers that are really given", async () => {
    const executions = "/api/v1/executions"
    const one = `${executions}/{id}`
    const span = "/api/v1/spans/{id}"
    const at = (path: string, id: string) => path.replace("{id}", id)
    const start = { json: { agent_id: "a", id: "run", trigger: "t", metadata: { x: [null] } } }
    assert.strictEqual((await given("POST", executions, start)).status, 201)
    assert.strictEqual((await given("POST", executions, start)).status, 200)
    await given("POST", executions, { json: {} })
    const child = { json: { id: "s", span_type: "TOOL_CALL", name: "n", metadata: {} } }
    assert.strictEqual(
      (await given("POST", `${one}/spans`, child, at(`${one}/spans`, "run"))).status,
      201
    )
    assert.strictEqual(
      (await given("POST", `${one}/spans`, child, at(`${one}/spans`, "run"))).status,
      200
    )
    const events = at(`${span}/events`, "s")
    const event = { json: { event_type: "a", id: "e", payload: { x: 1 } } }
    assert.strictEqual((await given("POST", `${span}/events`, event, events)).status, 201)
    assert.strictEqual((await given("POST", `${span}/events`, event, events)).status, 200)
    const several = {
      json: { events: [{ event_type: "b" }, { unknown: 1 }, { event_type: "c", x: 1 }] }
    }
    assert.strictEqual((await given("POST", `${span}/events`, several, events)).status, 200)
    await given(
      "PUT",
      `${span}/end`,
      { json: { status: "FAILED", error: { a: 1 } } },
      at(`${span}/end`, "s")
    )
    await given("PUT", `${span}/end`, { json: {} }, at(`${span}/end`, "s"))
    await given("GET", span, {}, at(span, "s"))
    await given("GET", `${span}/events`, {}, events)
    await given("GET", one, {}, at(one, "run"))
    await given("GET", one, {}, at(one, "nobody"))
    await given("GET", executions)
    await given("GET", `${one}/spans`, {}, at(`${one}/spans`, "run"))
    await given("GET", `${one}/dag`, {}, at(`${one}/dag`, "run"))
    await given("GET", `${one}/dag`, {}, `${at(`${one}/dag`, "run")}?edges=recorded`)
    await given("GET", `${one}/dag/aggregated`, {}, at(`${one}/dag/aggregated`, "run"))
    await given("GET", `${one}/verify`, {}, at(`${one}/verify`, "run"))
    await given("PUT", `${one}/end`, {}, at(`${one}/end`, "run"))
    await given("POST", `${one}/erase`, { json: { reason: "r" } }, at(`${one}/erase`, "run"))
    await given("GET", span, {}, at(span, "s"))
    const operations = [
      { op: "execution.start", agent_id: "b" },
      { op: "span.end", span_id: "nobody" },
      { op: "span.event", span_id: "s", event_type: "late" },
      { op: "nothing" }
    ]
    const batch = "/api/v1/traces/batch"
    assert.strictEqual((await given("POST", batch, { json: { operations } })).status, 202)
    const sync = await given("POST", batch, { json: { operations } }, `${batch}?sync=true`)
    assert.strictEqual(sync.status, 200)
    assert.strictEqual(sync.body.rejected, 3)
  })

  it("has examples that fit their schemas and are taken by the service", async () => {
    const inputs: ReadonlyArray<readonly [string, string, string, string?]> = [
      ["post", "/api/v1/executions", "ExecutionInput"],
      ["post", "/api/v1/executions/{id}/spans", "SpanInput", "example"],
      ["put", "/api/v1/executions/{id}/end", "ExecutionEnd", "example"],
      ["post", "/api/v1/executions/{id}/erase", "TraceEraseInput", "example"],
      ["post", "/api/v1/traces/batch?sync=true", "TraceBatchInput"]
    ]
    await api.call("/api/v1/executions", { key: WRITE_KEY, json: { agent_id: "a", id: "example" } })
    for (const [method, path, schema, id = ""] of inputs) {
      for (const example of document.components.schemas[schema].examples) {
        const validate = validator("components", "schemas", schema)
        assert.isTrue(validate(example), `${schema} ${JSON.stringify(validate.errors)}`)
        const answer = await api.call(path.replace("{id}", id), {
          key: WRITE_KEY,
          method: method.toUpperCase(),
          json: example
        })
        assert.include([200, 201], answer.status, answer.text)
        if (schema === "TraceBatchInput") assert.strictEqual(answer.body.rejected, 0, answer.text)
      }
    }
    const schemas = Object.entries<any>(document.components.schemas)
    for (const [name, schema] of schemas.filter(([one]) =>
      /^(Trace|Execution|Span|Dag|AggregatedDag)/.test(one)
    )) {
      const validate = validator("components", "schemas", name)
      for (const example of schema.examples ?? []) {
        assert.isTrue(validate(example), `${name} ${JSON.stringify(validate.errors)}`)
      }
    }
  })
})
