/** OpenTelemetry spans in every order that exporters send them in. */

import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { EXECUTION_WEIGHT_MAX } from "../../../../src/actors/sequencer/traces/LinkBudgets.ts"
import {
  EXECUTION_STARTS_MAX,
  MOVED_CHILDREN_MAX
} from "../../../../src/actors/sequencer/traces/OtlpStep.ts"
import { SPANS_MAX } from "../../../../src/actors/sequencer/traces/TraceRefusals.ts"
import { derivedUuid } from "../../../../src/domain/Identifiers.ts"
import { finish } from "../../../../src/domain/Slices.ts"
import { graphOf } from "../../../../src/domain/traces/ExecutionGraph.ts"
import { chunkOf, type PreparedPayload, wholeValue } from "../../../../src/domain/traces/Payload.ts"
import type {
  OtlpEvent,
  RecordOtlpSpan,
  Side
} from "../../../../src/domain/traces/TraceOperation.ts"
import { isWhole } from "../../../support/Runs.ts"
import {
  at,
  details,
  endExecution,
  endSpan,
  otlpEvents,
  otlpSpan,
  Partition,
  payloadOf,
  startExecution,
  startSpan,
  TENANT
} from "../../support/Traces.ts"

const event = (eventId: string): OtlpEvent => ({
  eventId,
  eventType: "exception",
  timestamp: at(0.5),
  details: details({ payload: { said: eventId } })
})

const child = (spanId: string, parentSpanId: string, more: Partial<RecordOtlpSpan> = {}) =>
  otlpSpan("t", spanId, { parentSpanId, ...more })

const types = (partition: Partition) => partition.factsOf("t").map(({ type }) => type)

const seen = (partition: Partition) => {
  const { execution, spans } = partition.view("t")
  return {
    execution: { ...execution, created_at: "" },
    spans: [...spans].sort((left, right) => (left.id < right.id ? -1 : 1))
  }
}

const onSide = (span: RecordOtlpSpan, side: Side, start: number): RecordOtlpSpan => ({
  ...span,
  side,
  startedAt: at(start),
  details: details({ name: `${side} of ${span.spanId}`, metadata: { kind: side } })
})

/** Spans of one trace: each below one before it, below one that never comes, or below none. */
const aTrace = fc
  .array(
    fc.record({
      parent: fc.nat(12),
      isRemote: fc.boolean(),
      start: fc.nat(9),
      length: fc.nat(9),
      isOpen: fc.integer({ min: 0, max: 9 }).map((one) => one === 0),
      status: fc.constantFrom("COMPLETED" as const, "FAILED" as const),
      kind: fc.constantFrom(
        "INTERNAL" as const,
        "CLIENT" as const,
        "SERVER" as const,
        "both" as const
      )
    }),
    { minLength: 1, maxLength: 8 }
  )
  .map((spans) =>
    spans.flatMap(({ isOpen, isRemote, kind, length, parent, start, status }, index) => {
      const isNone = parent === 12
      const parentSpanId = parent < index ? `s${parent}` : `absent${parent % 3}`
      const { endedAt, ...span } = otlpSpan("t", `s${index}`, {
        ...(isNone ? {} : { parentSpanId }),
        ...(isNone || !isRemote ? {} : { parentIsRemote: true }),
        startedAt: at(start),
        endedAt: at(start + length),
        status,
        executionDetails: details({ agent_name: `agent ${index}` })
      })
      const whole = { ...span, ...(isOpen ? {} : { endedAt: endedAt! }) }
      if (kind !== "both") return kind === "INTERNAL" ? [whole] : [onSide(whole, kind, start)]
      // The server starts after the client, and both at another time than other spans.
      const after = start + (index + 1) / 100
      return [onSide(whole, "CLIENT", start - 0.5 + index / 100), onSide(whole, "SERVER", after)]
    })
  )

/** The spans, and some of them with other content, before they ended or after. */
const aTraceSentAgain = fc
  .tuple(
    aTrace,
    fc.array(
      fc.record({
        of: fc.nat(7),
        later: fc.nat(3),
        isOpen: fc.boolean(),
        status: fc.constantFrom("COMPLETED" as const, "FAILED" as const),
        said: fc.nat(3),
        spanType: fc.constantFrom("LLM_CALL", "TOOL_CALL")
      }),
      { maxLength: 6 }
    )
  )
  .map(([spans, again]) => [
    ...spans,
    ...again.map(({ isOpen, later, of, said, spanType, status }): RecordOtlpSpan => {
      const { endedAt: _, ...span } = spans[of % spans.length]!
      const { parentSpanId, side, spanId: name, startedAt } = span
      const start = (Date.parse(startedAt) - Date.parse(at(0))) / 1_000
      return {
        ...span,
        ...(isOpen ? {} : { endedAt: at(start + later) }),
        status,
        spanType,
        ...(parentSpanId === undefined || said !== 3 ? {} : { parentSpanId: "absent3" }),
        // Nothing more, or another text.
        ...(said === 0
          ? {}
          : {
              details: details({
                name: `${name} again`,
                metadata: { said, ...(side && { kind: side }) }
              }),
              executionDetails: details({ agent_name: `agent of ${name}, said ${said}` })
            })
      }
    })
  ])

/** What is seen, two spans with one id by their sides: which of them has it depends on the order. */
const seenBySides = (partition: Partition) => {
  let text = JSON.stringify(seen(partition))
  for (let index = 0; index < 8; index++) {
    const id = `s${index}`
    for (const [side, other] of [
      ["CLIENT", "SERVER"],
      ["SERVER", "CLIENT"]
    ] as const) {
      const derived = derivedUuid("alk-otlp-side", TENANT, id, side)
      if (!text.includes(derived)) continue
      text = text.replaceAll(`"${id}"`, `"${id} ${other}"`).replaceAll(derived, `${id} ${side}`)
    }
  }
  const { execution, spans } = JSON.parse(text) as ReturnType<typeof seen>
  return { execution, spans: spans.sort((left, right) => (left.id < right.id ? -1 : 1)) }
}

/** Schedules that the law is tried with, milliseconds each: minutes in `npm run test:all`. */
const SCHEDULES = Number(process.env["ALK_TEST_SCHEDULES"] ?? (isWhole ? 100_000 : 1_000))
const SCHEDULES_AT_ONCE = 1_000

const aTurn = fc.record({
  which: fc.array(fc.nat(13), { minLength: 1, maxLength: 4 }),
  evict: fc.constantFrom("no" as const, "ended" as const, "all" as const)
})

describe("OpenTelemetry spans", () => {
  it("make an execution with a root that stands in until the real one arrives", () => {
    const partition = new Partition()
    partition.run(child("b", "a"))
    const before = partition.view("t")
    assert.strictEqual(before.execution?.status, "RUNNING")
    assert.strictEqual(before.execution?.agent_id, "agent of b")
    assert.strictEqual(before.execution?.root_span_id, "synthetic-t")
    assert.strictEqual(before.span("synthetic-t")?.synthetic, true)
    partition.run(
      otlpSpan("t", "a", {
        startedAt: at(-5),
        endedAt: at(5),
        status: "FAILED",
        executionDetails: details({ agent_name: "The agent" })
      })
    )
    const after = partition.view("t")
    assert.strictEqual(after.execution?.root_span_id, "a")
    assert.strictEqual(after.execution?.agent_name, "The agent")
    assert.strictEqual(after.execution?.agent_id, "agent of a")
    assert.strictEqual(after.execution?.started_at, at(-5))
    assert.strictEqual(after.execution?.ended_at, at(5))
    assert.strictEqual(after.execution?.status, "FAILED")
    assert.strictEqual(after.span("synthetic-t"), undefined)
    assert.deepStrictEqual(types(partition), [
      "execution.started",
      "span.started",
      "span.ended",
      "execution.started",
      "span.started",
      "span.ended",
      "execution.ended"
    ])
  })

  it("need no stand-in when the root comes in the same request, wherever it stands", () => {
    const partition = new Partition()
    partition.run(child("c", "b"), child("b", "a"), otlpSpan("t", "a"))
    const started = partition.factsOf("t").filter(({ type }) => type === "execution.started")
    assert.strictEqual(started.length, 1)
    assert.notProperty(started[0], "provisional")
    assert.strictEqual(types(partition).at(-1), "execution.ended")
  })

  it("add up to the same execution in one request, one by one, and in any order", () => {
    const spans = [
      otlpSpan("t", "a", { endedAt: at(9), events: [event("e1"), event("e2")] }),
      child("b", "a", { causedBy: ["d"] }),
      child("c", "b", { status: "FAILED", endDetails: details({ error: "no" }) }),
      child("d", "never came")
    ]
    const whole = new Partition()
    whole.run(...spans)
    const [a, b, c, d] = spans as [RecordOtlpSpan, RecordOtlpSpan, RecordOtlpSpan, RecordOtlpSpan]
    for (const order of [spans, [d, c, b, a], [c, a, d, b]]) {
      const single = new Partition()
      for (const span of order) single.run(span)
      assert.deepStrictEqual(seen(single), seen(whole))
      const batch = new Partition()
      batch.run(...order)
      assert.deepStrictEqual(seen(batch), seen(whole))
    }
  })

  it("without a parent are children of the first of them, and all of them have to end", () => {
    const partition = new Partition()
    const end = () => {
      const { ended_at, status } = partition.view("t").execution!
      return [status, ended_at]
    }
    const { endedAt: _open, ...third } = otlpSpan("t", "third", { startedAt: at(4) })
    partition.run(otlpSpan("t", "second", { startedAt: at(2), endedAt: at(3) }))
    assert.strictEqual(partition.view("t").execution?.root_span_id, "second")
    assert.deepStrictEqual(end(), ["COMPLETED", at(3)])
    partition.run(third)
    assert.deepStrictEqual(end(), ["RUNNING", undefined])
    partition.run({ ...third, endedAt: at(5), status: "FAILED" })
    assert.deepStrictEqual(end(), ["FAILED", at(5)])
    partition.run(otlpSpan("t", "a", { endedAt: at(1) }))
    const view = partition.view("t")
    assert.deepStrictEqual(
      ["a", "second", "third"].map((id) => view.span(id)?.parent_span_id),
      [undefined, "a", "a"]
    )
    assert.strictEqual(view.execution?.started_at, at(0))
    assert.deepStrictEqual(end(), ["FAILED", at(5)])
  })

  it("whose parent is of another process, or has not come for a minute, end their execution", () => {
    const partition = new Partition()
    const status = (id: string) => {
      const { ended_at, status } = partition.view(id).execution!
      return [status, ended_at]
    }
    const early = { parentSpanId: "a", startedAt: at(-9), endedAt: at(-5) }
    partition.run(
      otlpSpan("remote", "b", { ...early, parentIsRemote: true }),
      otlpSpan("late", "b", early),
      otlpSpan("long ago", "b", { parentSpanId: "a", startedAt: at(-99), endedAt: at(-61) }),
      otlpSpan("ahead", "b", { parentSpanId: "a", endedAt: at(9_999) })
    )
    const names = ["remote", "late", "long ago", "ahead"]
    assert.deepStrictEqual(names.map(status), [
      ["COMPLETED", at(-5)],
      ["RUNNING", undefined],
      ["COMPLETED", at(-61)],
      ["RUNNING", undefined]
    ])
    partition.pass(54)
    assert.deepStrictEqual(status("late"), ["RUNNING", undefined])
    partition.pass(1)
    assert.deepStrictEqual(status("late"), ["COMPLETED", at(-5)])
    assert.deepStrictEqual(status("ahead"), ["RUNNING", undefined])
    partition.restart()
    partition.pass(5)
    assert.deepStrictEqual(status("ahead"), ["COMPLETED", at(9_999)])
    const { endedAt: _open, ...parent } = otlpSpan("late", "a", { startedAt: at(-7) })
    partition.run(parent)
    assert.deepStrictEqual(status("late"), ["RUNNING", undefined])
    assert.strictEqual(partition.view("late").execution?.root_span_id, "a")
  })

  it("end no execution that a client has ended, and start none again", () => {
    const partition = new Partition()
    partition.run(otlpSpan("t", "b", { parentSpanId: "a" }))
    partition.run(endExecution("t", { status: "CANCELLED", endedAt: at(2) }))
    partition.show()
    partition.evict(true)
    const { endedAt: _open, ...root } = otlpSpan("t", "a")
    partition.run(root)
    partition.restart()
    partition.run({ ...root, endedAt: at(9) })
    const { ended_at, status } = partition.view("t").execution!
    assert.deepStrictEqual([status, ended_at], ["CANCELLED", at(2)])
  })

  it(
    "are one execution, whatever order, pieces, restarts and repetitions they come in",
    async () => {
      const law = fc.property(
        aTraceSentAgain,
        fc.array(aTurn, { minLength: 1, maxLength: 30 }),
        (spans, turns) => {
          const whole = new Partition()
          whole.run(...spans)
          whole.pass(120)
          const pieces = new Partition()
          for (const { evict, which } of turns) {
            pieces.run(...which.map((at) => spans[at % spans.length]!))
            if (evict !== "no") {
              pieces.show()
              pieces.evict(evict === "all")
              pieces.restart()
            }
          }
          for (const span of spans) pieces.run(span)
          const facts = pieces.bodies.length
          for (const span of spans) pieces.run(span)
          assert.strictEqual(pieces.bodies.length, facts)
          pieces.pass(120)
          assert.deepStrictEqual(seenBySides(pieces), seenBySides(whole))
        }
      )
      const { seed = 1 } = fc.readConfigureGlobal() ?? {}
      for (let done = 0; done < SCHEDULES; done += SCHEDULES_AT_ONCE) {
        fc.assert(law, {
          numRuns: Math.min(SCHEDULES_AT_ONCE, SCHEDULES - done),
          seed: seed + done
        })
        // The runner hears of the worker.
        await new Promise((resume) => setImmediate(resume))
      }
    },
    60_000 + 20 * SCHEDULES
  )

  it("are the same span when they come again, and only what is new is recorded", () => {
    const partition = new Partition()
    const { endedAt: _open, ...open } = child("b", "a", { events: [event("e1")] })
    const states = [
      partition.run(open),
      partition.run(open),
      partition.run({ ...open, events: [event("e1"), event("e2")] }),
      partition.run({ ...open, endedAt: at(2), events: [event("e2")] }),
      partition.run({ ...open, endedAt: at(2), events: [event("e1")] })
    ]
    assert.deepStrictEqual(
      states.map(({ results }) => results[0]?.outcome),
      ["created", "existing", "created", "created", "existing"]
    )
    const { span, status, ended } = {
      span: partition.view("t").span("b"),
      status: partition.view("t").span("b")?.status,
      ended: partition.view("t").span("b")?.ended_at
    }
    assert.strictEqual(span?.parent_span_id, "a")
    assert.strictEqual(status, "COMPLETED")
    assert.strictEqual(ended, at(2))
    const events = partition.factsOf("t").filter(({ type }) => type === "span.event")
    assert.deepStrictEqual(
      events.map((fact) => "event_id" in fact && [fact.event_id, fact.sequence_number]),
      [
        ["e1", 1],
        ["e2", 2]
      ]
    )
  })

  it("show of several contents the one with the latest end, and keep the others", () => {
    const said = (tokens: number) => details({ name: "b", metadata: { tokens } })
    const { endedAt: _open, ...open } = child("b", "a", { details: said(1) })
    const error = details({ error: "no" })
    const final = { ...open, endedAt: at(2), details: said(20), endDetails: error }
    const later = { ...final, endedAt: at(3), status: "FAILED", spanType: "AGENT" } as const
    const first = { ...later, startedAt: at(-1), details: said(300) }
    for (const order of [
      [open, final, later, first],
      [later, final, open, first],
      [final, open, later, first]
    ]) {
      const partition = new Partition()
      const said = [...order, ...order].flatMap((one) =>
        partition.run(one).results.flatMap(({ repairs = [] }) => repairs)
      )
      assert.deepStrictEqual(said, Array(3).fill("other_content"))
      assert.deepInclude(partition.view("t").span("b"), {
        ended_at: at(3),
        status: "FAILED",
        span_type: "AGENT",
        error: "no",
        metadata: { tokens: 20 },
        repairs: [{ code: "other_content", path: "span" }]
      })
      const texts = partition.factsOf("t").map(({ details }) => JSON.stringify(details ?? {}))
      for (const tokens of [1, 20, 300]) {
        assert.isTrue(texts.some((text) => text.includes(`"tokens":${tokens}}`)))
      }
      assert.strictEqual(types(partition).filter((type) => type === "span.amended").length, 3)
    }
  })

  it("bring nothing back that was erased when they come again", () => {
    const partition = new Partition()
    const { endedAt: _open, ...open } = child("b", "a")
    partition.run(open)
    partition.run({ op: "execution.erase", index: 0, executionId: "t", reason: "r", erasedBy: "k" })
    partition.run({ ...open, details: details({ name: "other" }), endedAt: at(2) })
    partition.run({ ...open, details: details({ name: "another" }), endedAt: at(3) })
    assert.deepStrictEqual(types(partition).slice(-2), ["execution.erased", "span.ended"])
  })

  it("of both sides of a call under one id are two, the server below the client", () => {
    const client = child("x", "a", {
      side: "CLIENT",
      details: details({ name: "client", metadata: { kind: "CLIENT" } }),
      events: [event("of the client")]
    })
    const server = child("x", "a", {
      side: "SERVER",
      startedAt: at(0.5),
      details: details({ name: "server", metadata: { kind: "SERVER" } }),
      events: [event("of the server")]
    })
    const inside = child("inside", "x", { side: "CLIENT" })
    const next = child("next", "x", { side: "SERVER" })
    const root = otlpSpan("t", "a")
    for (const order of [
      [root, client, server, inside, next],
      [next, inside, server, client, root],
      [inside, client, next, server, root]
    ]) {
      for (const commands of [order.map((one) => [one]), [order]]) {
        const partition = new Partition()
        const said: Array<string> = []
        for (const operations of [...commands, ...commands]) {
          const { errors, results } = partition.run(...operations)
          assert.deepStrictEqual(errors, [])
          said.push(...results.flatMap(({ repairs = [] }) => repairs))
          partition.show()
          partition.evict(true)
        }
        assert.deepStrictEqual(said, ["shared_id"])
        const { spans } = partition.view("t")
        const named = (name: string) => spans.find((span) => span.name === name)!
        assert.strictEqual(spans.length, 5)
        assert.strictEqual(named("client").parent_span_id, "a")
        assert.strictEqual(named("server").parent_span_id, named("client").id)
        assert.strictEqual(named("inside").parent_span_id, named("server").id)
        assert.strictEqual(named("next").parent_span_id, named("client").id)
        for (const name of ["client", "server"]) {
          const own = partition
            .factsOf("t")
            .flatMap((fact) =>
              fact.type === "span.event" && fact.span_id === named(name).id ? [fact.event_id] : []
            )
          assert.deepStrictEqual(own, [`of the ${name}`])
          assert.deepStrictEqual(named(name).repairs, [{ code: "shared_id", path: "span_id" }])
        }
        assert.isUndefined(named("inside").repairs)
      }
    }
  })

  it("with one id move up to 1,000 children that came before the second, or none", () => {
    for (const [children, moved] of [
      [MOVED_CHILDREN_MAX, MOVED_CHILDREN_MAX],
      [MOVED_CHILDREN_MAX + 1, 0]
    ] as const) {
      const partition = new Partition()
      partition.run(child("x", "root", { side: "CLIENT" }))
      partition.run(...Array.from({ length: children }, (_, n) => child(`c${n}`, "x")))
      assert.deepStrictEqual(partition.run(child("x", "root", { side: "SERVER" })).errors, [])
      const { spans } = partition.view("t")
      const server = spans.find(
        ({ id, parent_span_id: parent }) => parent === "x" && id[0] !== "c"
      )!
      const below = spans.filter(({ parent_span_id: parent }) => parent === server.id)
      assert.strictEqual(below.length, moved)
      const amended = types(partition).filter((type) => type === "span.amended")
      // The two that share the id, and what has moved.
      assert.strictEqual(amended.length, 2 + moved)
    }
  })

  it("close no cycle when they come again", () => {
    const partition = new Partition()
    partition.run(child("a", "root"), child("b", "a"))
    const { errors } = partition.run(child("a", "b", { endedAt: at(9) }))
    assert.deepStrictEqual(errors, [])
    assert.strictEqual(partition.view("t").span("a")?.parent_span_id, "root")
    assert.strictEqual(types(partition).at(-1), "span.amended")
  })

  it("are accepted after the end, and a real end replaces one that was only implied", () => {
    const partition = new Partition()
    const { endedAt: _open, ...open } = child("slow", "a")
    partition.run(open, otlpSpan("t", "a", { endedAt: at(3), status: "CANCELLED" }))
    assert.strictEqual(partition.view("t").span("slow")?.ended_at, at(3))
    assert.strictEqual(partition.view("t").span("slow")?.status, "CANCELLED")
    partition.show()
    partition.evict(false)
    partition.run({ ...open, endedAt: at(8), events: [event("late")] }, child("later", "slow"))
    const view = partition.view("t")
    assert.strictEqual(view.span("slow")?.ended_at, at(8))
    assert.strictEqual(view.span("slow")?.status, "COMPLETED")
    assert.strictEqual(view.span("later")?.status, "COMPLETED")
    assert.strictEqual(view.execution?.ended_at, at(3))
    assert.strictEqual(types(partition).filter((type) => type === "execution.ended").length, 1)
  })

  it("never end before they start, and neither does the execution", () => {
    const partition = new Partition()
    partition.run(otlpSpan("t", "a", { startedAt: at(10), endedAt: at(2) }))
    assert.strictEqual(partition.view("t").span("a")?.ended_at, at(10))
    assert.strictEqual(partition.view("t").execution?.ended_at, at(10))
  })

  it("that would close a cycle are refused, also over ids that have not arrived", () => {
    const partition = new Partition()
    const said = [
      partition.run(child("a", "b")),
      partition.run(child("b", "c", { causedBy: ["x"] })),
      partition.run(child("c", "root", { causedBy: ["a"], events: [event("e")] })),
      partition.run(child("x", "a")),
      partition.run(child("self", "self")),
      partition.run(child("c", "root")),
      partition.run(otlpSpan("new", "own", { causedBy: ["own"] }))
    ]
    assert.deepStrictEqual(
      said.map(({ errors }) => errors[0]?.code),
      [
        undefined,
        undefined,
        "cycle_detected",
        "cycle_detected",
        "cycle_detected",
        undefined,
        "cycle_detected"
      ]
    )
    assert.deepStrictEqual(
      partition.view("t").spans.map(({ id }) => id),
      ["synthetic-t", "a", "b", "c"]
    )
    assert.isUndefined(partition.view("new").execution)
    assert.notInclude(types(partition), "span.event")
  })

  it("without a parent are not below a root that follows from them", () => {
    const partition = new Partition()
    partition.run(otlpSpan("t", "a", { causedBy: ["b"] }))
    assert.deepStrictEqual(partition.run(otlpSpan("t", "b")).errors, [])
    const { spans } = partition.view("t")
    const graph = finish(graphOf({ rootSpanId: "a", spans, eventCounts: new Map() }))
    assert.deepStrictEqual(
      graph.edges.map(({ source, target, type }) => [type, source, target]),
      [["caused_by", "b", "a"]]
    )
    assert.deepStrictEqual(
      graph.nodes.map(({ depth, id }) => [id, depth]),
      [
        ["b", 0],
        ["a", 0]
      ]
    )
  })

  it("weigh more with their links and other contents, and no execution is too heavy", () => {
    const partition = new Partition()
    const causes = (from: number) => Array.from({ length: 256 }, (_, n) => `cause-${from + n}`)
    const span = (n: number) => child("b", "a", { endedAt: at(n), causedBy: causes(256 * n) })
    partition.run(span(1))
    assert.strictEqual(partition.state.size, 1 + 33)
    // Each content is shown in turn: ids that were named before are still known.
    for (let n = 2; n <= 4; n++) partition.run(span(n))
    assert.strictEqual(partition.state.size, 1 + 33 + 3 * 32 + 1)
    const { header } = partition.state.execution(TENANT, "t")!
    header.weight = EXECUTION_WEIGHT_MAX
    const { errors } = partition.run(child("c", "a"))
    assert.match(errors[0]?.message ?? "", /as many links between its spans as an execution may/)
    partition.run(span(5))
    assert.strictEqual(partition.view("t").span("b")?.ended_at, at(5))
  })

  it("have a limit per execution, and those that are there stay", () => {
    const partition = new Partition()
    const { endedAt: _open, ...open } = child("b", "a")
    partition.run(open)
    partition.state.execution(TENANT, "t")!.header.spanCount = SPANS_MAX
    const refused = partition.run(otlpSpan("t", "a"), { ...open, endedAt: at(1) })
    assert.strictEqual(refused.errors[0]?.code, "too_many_spans")
    assert.strictEqual(partition.view("t").span("b")?.ended_at, at(1))
    const end = () => {
      const { ended_at, root_span_id, status } = partition.view("t").execution!
      return [root_span_id, status, ended_at]
    }
    assert.deepStrictEqual(end(), ["synthetic-t", "RUNNING", undefined])
    // The root was refused: it never comes.
    partition.pass(62)
    assert.deepStrictEqual(end(), ["synthetic-t", "COMPLETED", at(1)])
    const facts = partition.factsOf("t").length
    assert.strictEqual(partition.run(otlpSpan("t", "a")).errors[0]?.code, "too_many_spans")
    assert.strictEqual(partition.factsOf("t").length, facts)
  })

  it("close no cycle through spans that came another way either", () => {
    const partition = new Partition()
    partition.run(child("a", "root", { causedBy: ["mine"] }))
    const { errors } = partition.run(startSpan("t", "mine", { parentSpanId: "a" }))
    assert.strictEqual(errors[0]?.code, "cycle_detected")
    assert.deepStrictEqual(partition.run(startSpan("t", "mine")).errors, [])
  })

  it("join an execution that was started under their id, and do not end it", () => {
    const partition = new Partition()
    partition.run(startExecution("t"), endSpan("root-t"))
    partition.run(otlpSpan("t", "a"))
    assert.strictEqual(partition.view("t").span("a")?.parent_span_id, "root-t")
    assert.strictEqual(partition.view("t").execution?.status, "RUNNING")
  })

  it("share their execution with the other operations", () => {
    const partition = new Partition()
    const { endedAt: _open, ...root } = otlpSpan("t", "a")
    partition.run(root)
    const mine = partition.run(startSpan("t", "mine"), endSpan("a"), endExecution("nobody"))
    assert.deepStrictEqual(
      mine.results.map(({ outcome }) => outcome),
      ["created", "created"]
    )
    assert.strictEqual(partition.view("t").execution?.status, "RUNNING")
    partition.run(endExecution("t", { status: "FAILED", endedAt: at(2) }))
    partition.run({ ...root, endedAt: at(9) })
    assert.strictEqual(partition.view("t").execution?.status, "FAILED")
    assert.strictEqual(partition.view("t").span("a")?.ended_at, at(9))
  })

  it("bring values that have no room in them, once per execution until it is erased", () => {
    const partition = new Partition()
    const long = "字".repeat(200_000)
    const [value, other] = [payloadOf(long), payloadOf("another")]
    const brought = { sha256: value.sha256 }
    const values = () =>
      ["t", "u"].map((id) =>
        partition.factsOf(id).flatMap((fact) => {
          const piece = chunkOf(fact)
          return piece === undefined ? [] : [`${piece.sha256.slice(0, 4)}/${piece.chunk}`]
        })
      )
    const piecesOf = ({ chunks, sha256 }: PreparedPayload) =>
      chunks!.map((_, at) => `${sha256.slice(0, 4)}/${at + 1}`)
    assert.strictEqual(value.chunks!.length, 3)
    const { endedAt: _open, ...open } = otlpSpan("t", "a", { payloads: [value] })
    partition.run(open, child("b", "a", { payloads: [brought, other] }))
    assert.deepStrictEqual(values(), [[...piecesOf(value), ...piecesOf(other)], []])
    assert.strictEqual(
      wholeValue(
        value.sha256,
        partition.factsOf("t").flatMap((fact) => chunkOf(fact) ?? [])
      ),
      long
    )
    // Sent again, with nothing and with something new.
    partition.run(open)
    partition.run(child("c", "a", { payloads: [value] }))
    assert.strictEqual(values()[0]!.length, 4)
    // Another execution has its own; a span that is refused brings what others refer to.
    const refused = otlpSpan("u", "x", { parentSpanId: "x", payloads: [value] })
    const { errors } = partition.run(
      refused,
      otlpSpan("u", "y", { parentSpanId: "z", payloads: [brought] })
    )
    assert.strictEqual(errors[0]?.code, "cycle_detected")
    assert.deepStrictEqual(values()[1], piecesOf(value))
    partition.run({ op: "execution.erase", index: 0, executionId: "t", reason: "r", erasedBy: "k" })
    partition.run(child("d", "a", { payloads: [value] }), child("e", "a", { payloads: [brought] }))
    assert.strictEqual(values()[0]!.length, 7)
  })
})

describe("log records of OpenTelemetry", () => {
  const log = otlpEvents("t", "b", [event("e1"), event("e2")])
  const span = child("b", "a", { events: [event("e3")] })
  const root = otlpSpan("t", "a", { endedAt: at(9) })

  const eventsOf = (partition: Partition) =>
    partition.factsOf("t").flatMap((fact) => (fact.type === "span.event" ? [fact.event_id] : []))

  it("are events of their span, before it, with it, after it and after the end", () => {
    for (const commands of [
      [[log], [span], [root]],
      [[span], [log], [root]],
      [[root], [span], [log]],
      [[log, span, root]],
      [[root, span, log]]
    ]) {
      const partition = new Partition()
      for (const operations of commands) partition.run(...operations)
      assert.sameMembers(eventsOf(partition), ["e1", "e2", "e3"])
      const { execution, spans } = partition.view("t")
      assert.deepInclude(execution, {
        status: "COMPLETED",
        root_span_id: "a",
        agent_id: "agent of a"
      })
      assert.sameMembers(
        [...spans].map(({ id }) => id),
        ["a", "b"]
      )
    }
  })

  it("make the execution that they name, with a root that stands in", () => {
    const partition = new Partition()
    partition.run(log)
    assert.deepStrictEqual(types(partition), ["execution.started", "span.event", "span.event"])
    const { execution, spans } = partition.view("t")
    assert.strictEqual(execution?.status, "RUNNING")
    assert.deepStrictEqual(
      [...spans].map(({ id }) => id),
      ["synthetic-t"]
    )
  })

  it("add nothing when they come again", () => {
    const partition = new Partition()
    partition.run(log)
    const [again] = partition.run(log).results
    assert.strictEqual(again?.outcome, "existing")
    const [more] = partition.run(otlpEvents("t", "b", [event("e2"), event("e4")])).results
    assert.strictEqual(more?.outcome, "created")
    assert.deepStrictEqual(eventsOf(partition), ["e1", "e2", "e4"])
  })

  it("alone end their execution with the latest of them, a quiet minute after it", () => {
    const records = [-30, -20, -10].map((seconds, index) =>
      otlpEvents("t", "b", [{ ...event(`at ${seconds}`), timestamp: at(seconds) }], {
        startedAt: at(seconds),
        agentId: `agent ${index}`
      })
    )
    const again = records[1]!
    for (const order of [records, records.toReversed(), [again, ...records]]) {
      const partition = new Partition()
      for (const one of order) {
        partition.run(one)
        partition.show()
        partition.evict(true)
        partition.restart()
      }
      const shown = () => {
        const { agent_id, ended_at, started_at, status } = partition.view("t").execution!
        return [status, agent_id, started_at, ended_at]
      }
      assert.deepStrictEqual(shown(), ["RUNNING", "agent 0", at(-30), undefined])
      partition.pass(61)
      assert.deepStrictEqual(shown(), ["COMPLETED", "agent 0", at(-30), at(-10)])
      partition.show()
      partition.evict(true)
      partition.restart()
      // The same again is nothing new, something new is waited for again, a span ends it otherwise.
      partition.run(again)
      assert.strictEqual(shown()[0], "COMPLETED")
      partition.run(otlpEvents("t", "b", [{ ...event("more"), timestamp: at(50) }]))
      assert.strictEqual(shown()[0], "RUNNING")
      partition.pass(61)
      assert.deepStrictEqual(shown(), ["COMPLETED", "agent 0", at(-30), at(50)])
      partition.run(root)
      assert.deepStrictEqual(shown(), ["COMPLETED", "agent of a", at(0), at(9)])
    }
  })

  it("each earlier than the last say so often how their execution began, and a root once more", () => {
    for (const leaves of [false, true]) {
      const partition = new Partition()
      const starts = () => types(partition).filter((type) => type === "execution.started").length
      for (let n = 0; n < EXECUTION_STARTS_MAX + 9; n++) {
        partition.run(otlpEvents("t", "b", [event(`e${n}`)], { startedAt: at(-n) }))
        if (!leaves) continue
        partition.show()
        if (n % 3 === 0) partition.evict(true)
        if (n % 5 === 0) partition.restart()
      }
      assert.strictEqual(starts(), EXECUTION_STARTS_MAX)
      const { started_at } = partition.view("t").execution!
      assert.strictEqual(started_at, at(1 - EXECUTION_STARTS_MAX))
      partition.run(root)
      assert.strictEqual(starts(), EXECUTION_STARTS_MAX + 1)
      const { agent_id, root_span_id } = partition.view("t").execution!
      assert.deepStrictEqual([agent_id, root_span_id], ["agent of a", "a"])
    }
  })

  it("bring the values that they refer to, once", () => {
    const payload = payloadOf("large")
    const partition = new Partition()
    const withValue = otlpEvents("t", "b", [event("e1")], { payloads: [payload] })
    partition.run(withValue)
    partition.run(withValue)
    assert.strictEqual(types(partition).filter((type) => type === "span.payload").length, 1)
  })
})
