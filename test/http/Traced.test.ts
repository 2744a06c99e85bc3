/** Requests as spans, for a process that has a tracer: routes and statuses, nothing of the client's. */
import { Layer, Tracer } from "effect"
import { HttpMiddleware } from "effect/http"
import { assert, it } from "vitest"
import { TracesRequests } from "../../src/http/messages/CurrentRequest.ts"
import { READ_KEY, World } from "./support/Doubles.ts"
import { TestApi } from "./support/TestApi.ts"

it("has a span a request, in the trace of its client", async () => {
  const spans: Array<Tracer.NativeSpan> = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      spans.push(span)
      return span
    }
  })
  const tracing = Layer.mergeAll(
    Layer.succeed(Tracer.Tracer, tracer),
    Layer.succeed(TracesRequests, true),
    Layer.succeed(HttpMiddleware.TracerDisabledWhen, () => true)
  )
  const api = await TestApi.start({}, new World(), tracing)
  const traceId = "4bf92f3577b34da6a3ce929d0e0e4736"
  await api.call("/v1/events?q=needle", {
    key: READ_KEY,
    headers: { traceparent: `00-${traceId}-00f067aa0ba902b7-01` }
  })
  await api.stop()
  const own = spans.filter(({ kind }) => kind === "server")
  assert.deepStrictEqual(
    own.map(({ attributes, name, traceId: id }) => [name, id, Object.fromEntries(attributes)]),
    [
      [
        "GET /v1/events",
        traceId,
        {
          "http.request.method": "GET",
          "http.route": "/v1/events",
          "http.response.status_code": 200
        }
      ]
    ]
  )
  const said = spans.map(({ attributes, name }) => [name, [...attributes]])
  assert.notInclude(JSON.stringify(said), "needle")
})
