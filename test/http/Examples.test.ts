/**
 * The examples of the reference page run as they stand: every body and every parameter that the
 * document shows is sent to a fresh service, in an order in which what they name exists.
 */
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { sha256Hex } from "../../src/domain/Identifiers.ts"
import { openApiDocument } from "../../src/http/Api.ts"
import { ADMIN_TOKEN, OTHER_KEY, World } from "./support/Doubles.ts"
import { item } from "./support/Events.ts"
import { ExportWorld, startExports } from "./support/ExportDoubles.ts"
import type { TestApi } from "./support/TestApi.ts"

const document: any = openApiDocument()

/** A schema behind its reference. */
const resolved = (schema: any): any =>
  schema?.$ref === undefined
    ? schema
    : document.components.schemas[schema.$ref.replace("#/components/schemas/", "")]

/** Every example of a body, those of its alternatives too. */
const bodiesOf = (operation: any): ReadonlyArray<unknown> => {
  const content = operation.requestBody?.content?.["application/json"]
  if (content === undefined) return [undefined]
  const schema = resolved(content.schema)
  const of = (one: any) => resolved(one).examples ?? []
  return [...of(schema), ...(schema.oneOf ?? []).flatMap(of)]
}

/** One query per parameter that has an example, and one with all that are required. */
const queriesOf = (operation: any): ReadonlyArray<string> => {
  const query = operation.parameters.filter((parameter: any) => parameter.in === "query")
  const pair = ({ example, name }: any): string =>
    typeof example === "object" && !Array.isArray(example)
      ? new URLSearchParams(example).toString()
      : `${name}=${encodeURIComponent(String(example))}`
  const required = query.filter((parameter: any) => parameter.required).map(pair)
  const optional = query
    .filter(({ example, required }: any) => !required && example !== undefined)
    .map((parameter: any) => [...required, pair(parameter)])
  return [required, ...optional].map((pairs) => pairs.join("&"))
}

/** What has to exist before: writers first, what ends, erases or revokes last. */
const rank = (method: string, path: string): number => {
  if (method === "delete") return 9
  if (path.endsWith("/erase")) return 8
  if (path.endsWith("/end")) return path.includes("spans") ? 6 : 7
  if (method !== "post") return 5
  return path.includes("{") ? 3 : 1
}

const STREAMS = ["/v1/events/stream", "/api/v1/executions/{id}/stream"]

describe("the examples of the document", () => {
  let api: TestApi
  beforeAll(async () => {
    api = await startExports(new World(), new ExportWorld())
  })
  afterAll(() => api.stop())

  it("are answered with 2xx, each as it stands", async () => {
    const known: Record<string, string> = { chain: "events", level: "0", index: "000.p/1" }
    const operations = Object.entries<any>(document.paths)
      .flatMap(([path, item]) =>
        Object.entries<any>(item).map(([method, operation]) => ({ method, operation, path }))
      )
      .filter(({ path }) => !STREAMS.includes(path))
      .sort((left, right) => rank(left.method, left.path) - rank(right.method, right.path))
    // Something to prove: two checkpoints need a chain.
    await api.call("/v1/events?sync=true", { key: OTHER_KEY, json: item(1, { id: "first" }) })
    await api.call("/v1/chain/checkpoints/latest", { key: OTHER_KEY })
    const text = "A long prompt. ".repeat(5_000)
    await api.call("/api/v1/executions", {
      key: OTHER_KEY,
      json: { agent_id: "writer", metadata: { text } }
    })
    known["sha256"] = sha256Hex(text)
    const odd: Array<string> = []
    let sent = 0
    for (const { method, operation, path } of operations) {
      const bodies = bodiesOf(operation)
      assert.isNotEmpty(bodies, `${method} ${path} has no example of its body`)
      for (const body of bodies) {
        for (const query of queriesOf(operation)) {
          const target = path.replace(/\{(\w+)\}/g, (_, name: string) =>
            encodeURIComponent(
              known[`${path.split("{")[0]}:${name === "other" ? "id" : name}`]
                ?? known[name]
                ?? "missing"
            )
          )
          const answer = await api.call(query === "" ? target : `${target}?${query}`, {
            method: method.toUpperCase(),
            key: path.includes("/admin/")
              ? ADMIN_TOKEN
              : path === "/v1/share/export/pdf"
                ? known["token"]!
                : OTHER_KEY,
            ...(body === undefined ? {} : { json: body })
          })
          sent += 1
          if (answer.status >= 300) {
            odd.push(`${method} ${target}?${query}: ${answer.status} ${answer.text.slice(0, 200)}`)
          }
          const { body: made } = answer
          if (method !== "post" || made === undefined) continue
          if (path === "/v1/events") known["/v1/events/:id"] = made.id
          if (path === "/v1/events") known["/v1/verify/events/:id"] = made.id
          if (path === "/v1/events") known["/v1/receipts/:id"] = made.receipt_id
          if (path === "/api/v1/executions") known["/api/v1/executions/:id"] ??= made.id
          if (path === "/api/v1/executions/{id}/spans") known["/api/v1/spans/:id"] ??= made.id
          if (path === "/v1/share/links") known["/v1/share/links/:id"] = made.id
          if (path === "/v1/share/links") known["token"] = made.token
          if (path === "/v1/admin/tenants") known["tenant"] = made.id
          if (path.endsWith("/keys")) known["key"] = made.id
        }
      }
    }
    assert.deepStrictEqual(odd, [])
    assert.isAbove(sent, operations.length)
  })
})
