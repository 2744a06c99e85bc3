/** Spans of alk go to the collector that is named, and nowhere without one. */
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect, Tracer } from "effect"
import { assert, it } from "vitest"
import { TracesRequests } from "../../src/http/messages/CurrentRequest.ts"
import { layerTracing } from "../../src/roles/Tracing.ts"

const work = Effect.withSpan(Effect.void, "sequencer.transaction", { attributes: { partition: 3 } })

it("sends spans to the collector, with the name of the service", async () => {
  const received: Array<{ readonly url: string | undefined; readonly body: string }> = []
  const collector = createServer((request, response) => {
    let body = ""
    request.on("data", (chunk: Buffer) => {
      body += chunk.toString()
    })
    request.on("end", () => {
      received.push({ url: request.url, body })
      response.end("{}")
    })
  })
  collector.listen(0, "127.0.0.1")
  await once(collector, "listening")
  const endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}/`
  await Effect.runPromise(
    work.pipe(Effect.provide(layerTracing({ endpoint, serviceName: "alk-of-test" })), Effect.scoped)
  )
  collector.close()
  assert.lengthOf(received, 1)
  assert.strictEqual(received[0]!.url, "/v1/traces")
  const { resourceSpans } = JSON.parse(received[0]!.body)
  const [{ resource, scopeSpans }] = resourceSpans
  assert.include(JSON.stringify(resource), "alk-of-test")
  const names = scopeSpans[0].spans.map(({ name }: { readonly name: string }) => name)
  assert.deepStrictEqual(names, ["sequencer.transaction"])
})

it("leaves the program without a tracer of its own where none is named", async () => {
  const tracer = Effect.service(Tracer.Tracer)
  const before = await Effect.runPromise(tracer)
  const off = layerTracing({ endpoint: undefined, serviceName: "alk" })
  assert.strictEqual(await Effect.runPromise(Effect.provide(tracer, off)), before)
  assert.isFalse(await Effect.runPromise(Effect.provide(TracesRequests, off)))
})
