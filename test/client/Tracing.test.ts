/** Runs, spans and tools: the operations that they become, with and without a context of calls. */
import { AsyncLocalStorage } from "node:async_hooks"
import { assert, describe, it } from "vitest"
import type { Open, TraceOperation } from "../../src/client/traces/Span.ts"
import { Tracing } from "../../src/client/traces/Tracing.ts"

const withoutContext = { getStore: () => undefined, run: <A, B>(_: A, body: () => B) => body() }

const makeTracing = (context = new AsyncLocalStorage<Open>()) => {
  const operations: Array<TraceOperation> = []
  return { operations, tracing: new Tracing((operation) => operations.push(operation), context) }
}

/** The operations in short: kinds, names, and the name of the parent. */
const shapeOf = (operations: ReadonlyArray<TraceOperation>): ReadonlyArray<string> => {
  const names = new Map<string, string>()
  for (const one of operations) {
    if (one.op === "span.start") names.set(one.id!, one.name)
    if (one.op === "execution.start") names.set(one.id!, one.agent_id)
  }
  return operations.map((one) => {
    switch (one.op) {
      case "execution.start":
        return `run ${one.agent_id}`
      case "execution.end":
        return `${names.get(one.execution_id)} ${one.status}`
      case "span.start":
        return `${one.name} below ${names.get(one.parent_span_id ?? one.execution_id)}`
      case "span.end":
        return `${names.get(one.span_id)} ${one.status}`
      case "span.event":
        return `${one.event_type} in ${names.get(one.span_id)}`
    }
  })
}

describe("a run", () => {
  it("is its function, and spans find the one that is open, side by side too", async () => {
    const { operations, tracing } = makeTracing()
    const rightEnded = Promise.withResolvers<void>()
    const answer = await tracing.run("agent", async (run) => {
      await Promise.all([
        tracing.span("left", async () => {
          await rightEnded.promise
          return tracing.tool("search", { input: { q: "tides" }, recordsOutput: true }, () => 3)
        }),
        tracing
          .span("right", { type: "LLM_CALL" }, async (span) => {
            span.event("llm.response", { tokens: 5 })
          })
          .then(rightEnded.resolve)
      ])
      assert.strictEqual(tracing.open, run)
      return 42
    })
    assert.strictEqual(answer, 42)
    assert.isUndefined(tracing.open)
    assert.deepStrictEqual(shapeOf(operations), [
      "run agent",
      "left below agent",
      "right below agent",
      "llm.response in right",
      "right COMPLETED",
      "search below left",
      "search COMPLETED",
      "left COMPLETED",
      "agent COMPLETED"
    ])
    const [tool] = operations.filter((one) => one.op === "span.start" && one.name === "search")
    assert.deepInclude(tool, { span_type: "TOOL_CALL", metadata: { input: { q: "tides" } } })
    const ends = operations.filter((one) => one.op === "span.end")
    assert.deepInclude(ends[1], { metadata: { output: 3 } })
  })

  it("needs no context of calls: spans are started on handles", async () => {
    const { operations, tracing } = makeTracing(withoutContext as never)
    await tracing.run("agent", (run) =>
      run.span("outer", async (outer) => outer.tool("inner", async () => undefined))
    )
    assert.deepStrictEqual(shapeOf(operations), [
      "run agent",
      "outer below agent",
      "inner below outer",
      "inner COMPLETED",
      "outer COMPLETED",
      "agent COMPLETED"
    ])
  })

  it("records what is thrown, by whatever way, and throws it on", async () => {
    const failure = new RangeError("too far")
    for (const body of [
      () => {
        throw failure
      },
      () => Promise.reject(failure)
    ]) {
      const { operations, tracing } = makeTracing()
      const caught = await (async () =>
        tracing.run("agent", () => tracing.span("step", body)))().catch((error: unknown) => error)
      assert.strictEqual(caught, failure)
      const [span, run] = operations.slice(2)
      assert.deepInclude(span, { op: "span.end", status: "FAILED" })
      assert.deepInclude((span as { readonly error: object }).error, {
        type: "RangeError",
        message: "too far"
      })
      assert.deepInclude(run, { op: "execution.end", status: "FAILED" })
    }
  })

  it("that was given up is cancelled", () => {
    const { operations, tracing } = makeTracing()
    const run = tracing.startRun("agent")
    run.end({ error: new DOMException("stop", "AbortError") })
    run.end()
    assert.strictEqual(operations.length, 2)
    assert.deepInclude(operations[1], { status: "CANCELLED" })
  })

  it("has ids and times of its own in every operation, and times that never go back", async () => {
    const { operations, tracing } = makeTracing()
    await tracing.run(
      "agent",
      { id: "run-1", trigger: "cron", metadata: { a: 1 } },
      async (run) => {
        run.set({ b: 2 })
        await tracing.span("step", { causedBy: [] }, (span) => span.event("decision"))
      }
    )
    assert.deepInclude(operations[0], { id: "run-1", trigger: "cron", metadata: { a: 1 } })
    assert.deepInclude(operations.at(-1), { metadata: { b: 2 } })
    const times = operations.map((one) => {
      if (one.op === "span.event") return one.timestamp
      return one.op === "span.start" || one.op === "execution.start" ? one.started_at : one.ended_at
    })
    for (const time of times) assert.match(time ?? "", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
    assert.deepStrictEqual(times, times.toSorted())
  })

  it("of its own is what happens outside of one", () => {
    const { operations, tracing } = makeTracing()
    tracing.tool("search", () => 1)
    assert.deepStrictEqual(shapeOf(operations), [
      "run search",
      "search below search",
      "search COMPLETED",
      "search COMPLETED"
    ])
  })
})
