/** The second implementation of `alk-trace-v1`, which shares no code with ours, on our facts. */
import { assert, describe, it } from "@effect/vitest"
import { eraseFact, parseFact } from "../../src/domain/traces/FactText.ts"
import {
  addEvent,
  addNamedEvent,
  at,
  details,
  endExecution,
  endSpan,
  erase,
  otlpEvents,
  otlpSpan,
  Partition,
  startExecution,
  startSpan,
  TENANT
} from "../actors/support/Traces.ts"
import { FactChain, bodies as placed } from "../adapters/clickhouse/support/StoredFacts.ts"
import { judgeFacts } from "../support/IndependentTrace.ts"

const HOSTILE = '“ü” \t\n\u0001"\\/ 😀 \u2028'

/** Every type of fact, from the API and from OpenTelemetry, in one chain. */
const chain = (): ReadonlyArray<string> => {
  const partition = new Partition()
  const id = `run/1 ${HOSTILE}`
  partition.run(
    startExecution(id, {
      agentId: HOSTILE,
      startedAt: "2026-11-21T11:59:59.123456Z",
      startedAtGiven: true,
      details: details({ agent_name: HOSTILE, metadata: { a: [1.5, 1e21, null], "😀": {} } })
    }),
    startSpan(id, "s1", { details: details({ metadata: { [HOSTILE]: true }, name: HOSTILE }) }),
    startSpan(id, `s2 ${HOSTILE}`, { causedBy: ["s1"], parentSpanId: "s1" }),
    addEvent("s1", "e1", { details: details({ payload: { text: HOSTILE } }) })
  )
  partition.run(
    addNamedEvent(TENANT, "s1", `e2 ${HOSTILE}`, "tool.response"),
    endSpan("s1", { status: "FAILED", details: details({ error: { type: HOSTILE } }) }),
    otlpSpan("trace", "child", { parentSpanId: "root", endedAt: at(3) })
  )
  partition.run(otlpSpan("trace", "root"), endExecution(id), erase(id))
  return partition.bodies
}

const bodies = chain()
const placeOf = (type: string): number => bodies.findIndex((body) => parseFact(body)?.type === type)

describe("the independent implementation of traces", () => {
  it("finds our facts intact, in their stored bytes", () => {
    const { output, status } = judgeFacts(bodies, "--exact")
    assert.strictEqual(status, 0, output)
    assert.include(output, `tenant ${TENANT} length ${bodies.length} head`)
  })

  it("takes events before their span only where OpenTelemetry has sent them", () => {
    const partition = new Partition()
    const event = { eventId: "e", eventType: "log", timestamp: at(0) }
    partition.run(otlpEvents("trace", "span", [event]))
    partition.run(otlpSpan("trace", "span"))
    const { output, status } = judgeFacts(partition.bodies, "--exact")
    assert.strictEqual(status, 0, output)
    const api = new FactChain(TENANT)
    api.start("run")
    api.event("run", "span", 1)
    assert.include(judgeFacts(placed(api.all)).output, "of a span that has not started")
  })

  it("takes values of an event, whose execution has not started", () => {
    const values = new FactChain(TENANT)
    values.payload("values", "event", "x".repeat(100))
    values.erase("values")
    const { output, status } = judgeFacts(placed(values.all))
    assert.strictEqual(status, 0, output)
  })

  it("finds them intact when they are erased, and not if nothing says so", () => {
    const at = placeOf("execution.erased")
    const erasure = parseFact(bodies[at]!)!
    const erased = bodies.map((body) => {
      const fact = parseFact(body)!
      const isGone = fact.execution_id === erasure.execution_id && fact.details !== undefined
      return isGone ? eraseFact(fact, erasure.created_at) : body
    })
    assert.notDeepEqual(erased, bodies)
    const { output, status } = judgeFacts(erased, "--exact")
    assert.strictEqual(status, 0, output)
    assert.strictEqual(judgeFacts(erased.slice(0, at)).status, 1)
  })

  const last = bodies.length - 1
  it.each<readonly [string, ReadonlyArray<string>, number]>([
    ["a detail", bodies.with(0, bodies[0]!.replace("1.5", "2.5")), 1],
    ["an agent", bodies.with(0, bodies[0]!.replace('"agent_id":"“', '"agent_id":"”')), 1],
    ["a time", bodies.with(0, bodies[0]!.replace(".123456Z", ".123457Z")), 1],
    ["a time of chaining", bodies.with(2, bodies[2]!.replace('0Z","prev', '1Z","prev')), 3],
    ["a member more", bodies.with(1, bodies[1]!.replace('"tenant_id"', '"more":1,"tenant_id"')), 2],
    ["a fact less", bodies.toSpliced(4, 1), 6],
    ["two facts in the other order", bodies.with(4, bodies[5]!).with(5, bodies[4]!), 6],
    ["a fact twice", bodies.toSpliced(3, 0, bodies[3]!), 4],
    ["another end", bodies.with(last, bodies[last]!.replace("asked for", "asked four")), last + 1]
  ])("finds %s, and where", (_name, lines, sequence) => {
    const { output, status } = judgeFacts(lines)
    assert.strictEqual(status, 1, output)
    assert.include(output, `chain_sequence ${sequence}:`)
  })

  it("finds other bytes for the same fact only when told to", () => {
    const spaced = bodies.map((body) => body.replace('","', '", "'))
    assert.strictEqual(judgeFacts(spaced).status, 0)
    assert.strictEqual(judgeFacts(spaced, "--exact").status, 1)
  })

  it("takes a part of a chain only when told to", () => {
    assert.strictEqual(judgeFacts(bodies.slice(2)).status, 1)
    assert.strictEqual(judgeFacts(bodies.slice(2), "--partial").status, 0)
  })

  it.each(["nonsense", '{"type":"span.event"}', '{"a":1,"a":2}'])("can't read %s", (line) => {
    assert.strictEqual(judgeFacts([line]).status, 2)
  })
})
