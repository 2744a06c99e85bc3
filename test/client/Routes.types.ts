/** What has to compile, and what must not, of requests to routes. */
import { createClient } from "../../src/client/index.ts"

const client = createClient({ url: "http://127.0.0.1:1", key: "k" })

export const compiled = async () => {
  const page = await client.request("GET /v1/events", {
    query: { action: "a.*", "outcome!": "failure", "metadata.pages>": 3, page_size: 10 }
  })
  const me = await client.request("GET /v1/me")
  const event = await client.request("GET /v1/events/{id}", { path: { id: "a" } })
  const ended: string = (
    await client.request("PUT /api/v1/executions/{id}/end", { path: { id: "e" } })
  ).id
  const nothing: undefined = await client.request("DELETE /v1/exports/{id}", { path: { id: "e" } })
  // @ts-expect-error a route that does not exist
  await client.request("GET /v1/evnts")
  // @ts-expect-error the path is missing
  await client.request("GET /v1/events/{id}")
  // @ts-expect-error no such parameter
  await client.request("GET /v1/events", { query: { actr_id: "a" } })
  // @ts-expect-error no such value
  await client.request("GET /v1/events", { query: { outcome: "sucess" } })
  // @ts-expect-error the body is missing
  await client.request("POST /v1/events")
  // @ts-expect-error a required parameter is missing
  await client.request("GET /v1/chain/proofs/inclusion", { query: {} })
  // @ts-expect-error no query
  await client.request("GET /v1/me", { query: { a: "b" } })
  return [page.events[0]?.hash, me.tenant_id, event.sequence_number, ended, nothing]
}
