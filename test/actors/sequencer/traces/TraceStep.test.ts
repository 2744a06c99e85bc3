/** The rules of traces, one by one: what is recorded, what is there already, what is refused. */
import { assert, describe, it } from "@effect/vitest"
import { TraceDraft } from "../../../../src/actors/sequencer/traces/TraceDraft.ts"
import { SPANS_MAX } from "../../../../src/actors/sequencer/traces/TraceRefusals.ts"
import { TraceState } from "../../../../src/actors/sequencer/traces/TraceState.ts"
import {
  applyTraces,
  type TraceOutcome
} from "../../../../src/actors/sequencer/traces/TraceStep.ts"
import { recomputeFact } from "../../../../src/domain/traces/FactText.ts"
import { chunkOf } from "../../../../src/domain/traces/Payload.ts"
import type { TraceOperation } from "../../../../src/domain/traces/TraceOperation.ts"
import {
  addEvent,
  addNamedEvent,
  at,
  calm,
  command,
  details,
  endExecution,
  endSpan,
  erase,
  type Moment,
  NOW,
  otlpSpan,
  Partition,
  payloadOf,
  startExecution,
  startSpan,
  TENANT
} from "../../support/Traces.ts"

/** The outcome of each operation by index: what was answered, or the code of the refusal. */
const outcomes = ({ errors, results }: TraceOutcome): ReadonlyArray<string> => {
  const all = [
    ...results.map(({ index, outcome }) => ({ index, said: outcome as string })),
    ...errors.map(({ code, index }) => ({ index, said: code }))
  ]
  return all.sort((left, right) => left.index - right.index).map(({ said }) => said)
}

/** What becomes of operations that are sent one by one. */
const each = (partition: Partition, ...operations: ReadonlyArray<TraceOperation>) =>
  operations.map((operation) => outcomes(partition.run(operation))[0])

const messageOf = (applied: TraceOutcome): string => applied.errors[0]?.message ?? ""

const types = (partition: Partition, executionId: string) =>
  partition.factsOf(executionId).map(({ type }) => type)

describe("start of an execution", () => {
  it("records the execution and its root span", () => {
    const partition = new Partition()
    const { results } = partition.run(startExecution("e", { startedAt: at(-1.000_5) }))
    assert.deepStrictEqual(results, [
      {
        index: 0,
        op: "execution.start",
        outcome: "created",
        execution_id: "e",
        span_id: "root-e"
      }
    ])
    const { execution, spans } = partition.view("e")
    assert.strictEqual(execution?.status, "RUNNING")
    assert.strictEqual(execution?.root_span_id, "root-e")
    assert.strictEqual(execution?.created_at, NOW)
    assert.deepStrictEqual(
      spans.map(({ id, name, parent_span_id, span_type }) => [id, name, parent_span_id, span_type]),
      [["root-e", "agent", undefined, "AGENT"]]
    )
  })

  it("finds the first one on a retry, whatever else that says", () => {
    const partition = new Partition()
    partition.run(startExecution("e"))
    const retry = partition.run(startExecution("e", { rootSpanId: "other", agentId: "other" }))
    assert.deepStrictEqual(outcomes(retry), ["existing"])
    assert.strictEqual(retry.results[0]?.span_id, "root-e")
    assert.deepStrictEqual(types(partition, "e"), ["execution.started", "span.started"])
  })

  it("refuses a retry only if both say when it started, and not the same", () => {
    const partition = new Partition()
    const given = (seconds: number) => ({ startedAt: at(seconds), startedAtGiven: true })
    assert.deepStrictEqual(
      each(
        partition,
        startExecution("e", given(0.000_001)),
        startExecution("e", given(0.000_001)),
        startExecution("e", { startedAt: at(5) }),
        startExecution("e", given(1)),
        startExecution("open"),
        startExecution("open", given(1)),
        startExecution("open", given(2))
      ),
      ["created", "existing", "existing", "idempotency_conflict", "created", "existing", "existing"]
    )
    const refused = partition.run(startExecution("e", given(1)))
    assert.include(messageOf(refused), "started_at")
    assert.include(messageOf(refused), at(0.000_001))
  })

  it("keeps executions of other tenants apart", () => {
    const partition = new Partition()
    const both = ["acme", "globex"].map((tenant) => command(tenant, [startExecution("e")]))
    partition.runAll(both)
    assert.deepStrictEqual(
      partition.outcomes.map(({ results }) => results[0]?.outcome),
      ["created", "created"]
    )
    assert.strictEqual(partition.heads.get("acme")?.sequence_number, 2)
    assert.strictEqual(partition.heads.get("globex")?.sequence_number, 2)
    const foreign = partition.chunk([command("initech", [endExecution("e")])], calm)
    assert.deepStrictEqual(outcomes(foreign[0]!), ["not_found"])
  })
})

describe("end of an execution", () => {
  it("keeps the first end", () => {
    const partition = new Partition()
    assert.deepStrictEqual(
      each(
        partition,
        endExecution("e"),
        startExecution("e"),
        endExecution("e", { status: "FAILED", endedAt: at(1) }),
        endExecution("e", { status: "FAILED", endedAt: at(9), endedAtGiven: true }),
        endExecution("e", { status: "CANCELLED" }),
        endExecution("e", { status: "COMPLETED" })
      ),
      ["not_found", "created", "created", "existing", "already_ended", "already_ended"]
    )
    const { execution } = partition.view("e")
    assert.strictEqual(execution?.status, "FAILED")
    assert.strictEqual(execution?.ended_at, at(1))
  })

  it("may be before the start only if the client did not say when that was", () => {
    const partition = new Partition()
    partition.run(startExecution("given", { startedAt: at(10), startedAtGiven: true }))
    const early = endExecution("given", { endedAt: at(5), endedAtGiven: true })
    const refused = partition.run(early)
    assert.deepStrictEqual(outcomes(refused), ["invalid_value"])
    assert.match(messageOf(refused), /^ended_at: /)
    assert.deepStrictEqual(each(partition, { ...early, endedAt: at(10) }), ["created"])

    partition.run(startExecution("server", { startedAt: at(10) }))
    const kept = endExecution("server", { endedAt: at(5), endedAtGiven: true })
    assert.deepStrictEqual(each(partition, kept), ["created"])
    assert.strictEqual(partition.view("server").execution?.ended_at, at(5))
  })

  it("uses the start where the server's clock is before it", () => {
    const partition = new Partition()
    partition.run(startExecution("e", { startedAt: at(3_600), startedAtGiven: true }))
    partition.run(endExecution("e", { endedAt: at(1) }))
    assert.strictEqual(partition.view("e").execution?.ended_at, at(3_600))
  })

  it("is that of the spans still running, without facts of their own", () => {
    const partition = new Partition()
    partition.run(
      startExecution("e"),
      startSpan("e", "done"),
      startSpan("e", "open"),
      endSpan("done", { status: "FAILED" })
    )
    partition.run(endExecution("e", { status: "CANCELLED", endedAt: at(4) }))
    const { spans } = partition.view("e")
    assert.deepStrictEqual(
      spans.map(({ ended_at, id, status }) => [id, status, ended_at]),
      [
        ["root-e", "CANCELLED", at(4)],
        ["done", "FAILED", NOW],
        ["open", "CANCELLED", at(4)]
      ]
    )
    assert.strictEqual(types(partition, "e").at(-1), "execution.ended")
    assert.deepStrictEqual(
      each(partition, endSpan("open", { status: "CANCELLED" }), endSpan("open")),
      ["existing", "already_ended"]
    )
  })
})

describe("start of a span", () => {
  it("makes it a child of the root unless it says otherwise", () => {
    const partition = new Partition()
    partition.run(startExecution("e"))
    partition.run(startSpan("e", "a"))
    partition.run(startSpan("e", "b", { parentSpanId: "a", causedBy: ["root-e", "a"] }))
    assert.strictEqual(partition.view("e").span("a")?.parent_span_id, "root-e")
    assert.strictEqual(partition.view("e").span("b")?.parent_span_id, "a")
    assert.deepStrictEqual(partition.view("e").span("b")?.caused_by_span_ids, ["root-e", "a"])
  })

  it("wants parents and causes of its own execution, and names the id that is not", () => {
    const partition = new Partition()
    partition.run(startExecution("e"), startExecution("other"), startSpan("other", "theirs"))
    const orphan = partition.run(startSpan("e", "a", { parentSpanId: "theirs" }))
    assert.deepStrictEqual(outcomes(orphan), ["not_found"])
    assert.match(messageOf(orphan), /^parent_span_id: "theirs"/)
    const groundless = partition.run(startSpan("e", "a", { causedBy: ["root-e", "nobody"] }))
    assert.deepStrictEqual(outcomes(groundless), ["not_found"])
    assert.match(messageOf(groundless), /^caused_by_span_ids: "nobody"/)
    const homeless = partition.run(startSpan("nowhere", "a"))
    assert.match(messageOf(homeless), /^execution_id: .*"nowhere"/)
    assert.strictEqual(partition.view("e").spans.length, 1)
  })

  it("takes parents and causes from the same command in any order", () => {
    const partition = new Partition()
    const done = partition.run(
      startSpan("e", "c", { parentSpanId: "b", causedBy: ["a"] }),
      startSpan("e", "b", { parentSpanId: "a" }),
      startSpan("e", "a"),
      startExecution("e")
    )
    assert.deepStrictEqual(outcomes(done), ["created", "created", "created", "created"])
    assert.deepStrictEqual(
      done.results.map(({ index }) => index),
      [0, 1, 2, 3]
    )
    assert.deepStrictEqual(
      partition.view("e").spans.map(({ id }) => id),
      ["root-e", "a", "b", "c"]
    )
  })

  it("refuses every span on a cycle, and what follows from them has no parent", () => {
    const partition = new Partition()
    partition.run(startExecution("e"))
    const done = partition.run(
      startSpan("e", "a", { causedBy: ["b"] }),
      startSpan("e", "b", { parentSpanId: "c" }),
      startSpan("e", "c", { causedBy: ["a"] }),
      startSpan("e", "below", { parentSpanId: "a" }),
      startSpan("e", "self", { parentSpanId: "self" }),
      startSpan("e", "fine")
    )
    assert.deepStrictEqual(outcomes(done), [
      "cycle_detected",
      "cycle_detected",
      "cycle_detected",
      "not_found",
      "cycle_detected",
      "created"
    ])
    assert.include(messageOf(done), '"a"')
    assert.deepStrictEqual(
      partition.view("e").spans.map(({ id }) => id),
      ["root-e", "fine"]
    )
  })

  it("finds the same request's span, and refuses the id for anything else", () => {
    const partition = new Partition()
    partition.run(startExecution("e"), startExecution("other"))
    const asked = startSpan("e", "a", { startedAt: at(1), startedAtGiven: true })
    assert.deepStrictEqual(each(partition, startSpan("e", "b"), asked, asked), [
      "created",
      "created",
      "existing"
    ])
    const others = [
      { ...asked, spanType: "LLM_CALL" },
      { ...asked, parentSpanId: "b" },
      { ...asked, causedBy: ["b"] },
      { ...asked, startedAt: at(2) },
      { ...asked, startedAtGiven: false },
      { ...asked, details: details({ name: "another" }) },
      { ...asked, executionId: "other" },
      { ...asked, spanId: "root-e" }
    ]
    for (const other of others) assert.deepStrictEqual(each(partition, other), ["id_conflict"])
    partition.run(endExecution("e"))
    assert.deepStrictEqual(each(partition, asked), ["existing"])
  })

  it("knows the request's span again after it was forgotten and loaded", () => {
    const partition = new Partition()
    const asked = startSpan("e", "a", { details: details({ name: "first" }) })
    partition.run(startExecution("e"), asked, endExecution("e"))
    partition.show()
    partition.evict(false)
    assert.strictEqual(partition.state.size, 0)
    partition.loads = 0
    const again = { ...asked, details: details({ name: "first" }) }
    const changed = startSpan("e", "a", { details: details({ name: "second" }) })
    assert.deepStrictEqual(each(partition, again, changed), ["existing", "id_conflict"])
    assert.strictEqual(partition.loads, 1)
  })

  it("is told by everything but its details once they are erased", () => {
    const partition = new Partition()
    partition.run(startExecution("e"), startSpan("e", "a"), erase("e"))
    const renamed = startSpan("e", "a", { details: details({ name: "renamed" }) })
    const moved = startSpan("e", "a", { causedBy: ["root-e"] })
    const inMemory = each(partition, renamed, moved)
    partition.show()
    partition.evict(true)
    assert.deepStrictEqual(inMemory, ["existing", "id_conflict"])
    assert.deepStrictEqual(each(partition, renamed, moved), inMemory)
  })

  it("is refused once the execution has ended", () => {
    const partition = new Partition()
    partition.run(startExecution("e"), endExecution("e"))
    const late = partition.run(startSpan("e", "a"))
    assert.deepStrictEqual(outcomes(late), ["already_ended"])
    assert.match(messageOf(late), /^execution_id: "e" has ended as COMPLETED/)
  })

  it("has a limit per execution", () => {
    const partition = new Partition()
    partition.run(startExecution("e"))
    const last = startSpan("e", "last")
    // As if they had been started one after the other.
    partition.state.execution(TENANT, "e")!.header.spanCount = SPANS_MAX - 1
    const said = each(partition, last, startSpan("e", "more"), last, endSpan("last"))
    assert.deepStrictEqual(said, ["created", "too_many_spans", "existing", "created"])
  })
})

describe("end of a span", () => {
  it("keeps the first end, and follows the rules of the execution's", () => {
    const partition = new Partition()
    partition.run(startExecution("e"))
    partition.run(startSpan("e", "a", { startedAt: at(10), startedAtGiven: true }))
    partition.run(startSpan("e", "b", { startedAt: at(10) }))
    const given = (seconds: number) => ({ endedAt: at(seconds), endedAtGiven: true })
    assert.deepStrictEqual(
      each(
        partition,
        endSpan("nobody"),
        endSpan("a", given(9)),
        endSpan("a", given(11)),
        endSpan("a", given(12)),
        endSpan("a", { status: "FAILED" }),
        endSpan("b", given(9))
      ),
      ["not_found", "invalid_value", "created", "existing", "already_ended", "created"]
    )
    assert.strictEqual(partition.view("e").span("a")?.ended_at, at(11))
    assert.strictEqual(partition.view("e").span("b")?.ended_at, at(9))
  })

  it("of the root leaves the execution running", () => {
    const partition = new Partition()
    partition.run(startExecution("e"), endSpan("root-e"))
    assert.strictEqual(partition.view("e").execution?.status, "RUNNING")
    assert.strictEqual(partition.view("e").span("root-e")?.status, "COMPLETED")
    assert.deepStrictEqual(each(partition, startSpan("e", "a")), ["created"])
  })
})

describe("trace events", () => {
  it("are numbered per execution as they arrive, whatever span they belong to", () => {
    const partition = new Partition()
    partition.run(startExecution("e"), startSpan("e", "a"), startExecution("other"))
    const { results } = partition.run(
      addEvent("a", "1"),
      addEvent("root-other", "2"),
      addEvent("root-e", "3"),
      addEvent("nobody", "4"),
      addEvent("a", "5")
    )
    assert.deepStrictEqual(
      results.map(({ event_id, execution_id, sequence_number }) => [
        event_id,
        execution_id,
        sequence_number
      ]),
      [
        ["1", "e", 1],
        ["2", "other", 1],
        ["3", "e", 2],
        ["5", "e", 3]
      ]
    )
  })

  it("are not added to what has ended", () => {
    const partition = new Partition()
    partition.run(startExecution("e"), startSpan("e", "a"), startSpan("e", "b"))
    partition.run(endSpan("a"))
    assert.deepStrictEqual(each(partition, addEvent("a", "1"), addEvent("b", "2")), [
      "already_ended",
      "created"
    ])
    partition.run(endExecution("e"))
    assert.deepStrictEqual(each(partition, addEvent("b", "3")), ["already_ended"])
  })

  it("with an id of the client's are added once, also after the end", () => {
    const partition = new Partition()
    partition.run(startExecution("e"), startSpan("e", "a"))
    const event = addNamedEvent(TENANT, "a", "mine", "decision")
    const twice = partition.run(addEvent("a", "1"), event, event)
    assert.deepStrictEqual(outcomes(twice), ["created", "created", "existing"])
    partition.run(endExecution("e"))
    const again = partition.run(event, addNamedEvent(TENANT, "a", "mine", "other"))
    assert.deepStrictEqual(outcomes(again), ["existing", "id_conflict"])
    assert.strictEqual(again.results[0]?.sequence_number, 2)
    assert.match(messageOf(again), /^id: "mine" .*sequence_number 2/)
  })
})

describe("values that have no room", () => {
  it("come right behind what refers to them, if that is recorded", () => {
    const partition = new Partition()
    const bringing = (value: string) => ({ payloads: [payloadOf(value)] })
    const operations = () => [
      startExecution("e", bringing("of the start")),
      startSpan("e", "s", bringing("of the span")),
      { ...addNamedEvent(TENANT, "s", "v", "a"), ...bringing("of the event") },
      endSpan("s", bringing("of the end")),
      endExecution("e", bringing("of the execution's end"))
    ]
    partition.run(...operations())
    partition.run(...operations())
    assert.deepStrictEqual(
      partition.factsOf("e").map((fact) => chunkOf(fact)?.text ?? fact.type),
      [
        "execution.started",
        "span.started",
        "of the start",
        "span.started",
        "of the span",
        "span.event",
        "of the event",
        "span.ended",
        "of the end",
        "execution.ended",
        "of the execution's end"
      ]
    )
    const spans = partition
      .factsOf("e")
      .map((fact) => (fact.type === "span.payload" ? fact.span_id : ""))
    assert.deepStrictEqual(spans.filter(Boolean), ["root-e", "s", "s", "s", "root-e"])
  })
})

describe("erasing", () => {
  it("is recorded once, as long as nothing follows that could be erased", () => {
    const partition = new Partition()
    partition.run(startExecution("e"))
    assert.deepStrictEqual(each(partition, erase("nobody"), erase("e"), erase("e")), [
      "not_found",
      "created",
      "existing"
    ])
    assert.deepStrictEqual(each(partition, startSpan("e", "a"), erase("e"), erase("e")), [
      "created",
      "created",
      "existing"
    ])
    const [erased] = partition.factsOf("e").filter(({ type }) => type === "execution.erased")
    assert.deepInclude(erased, { reason: "asked for", erased_by: "key", fact_number: 3 })
  })
})

describe("a command", () => {
  it("may hold a whole execution in any order, and one by one gives the same", () => {
    const operations = [
      endExecution("e", { endedAt: at(9) }),
      addEvent("a", "1"),
      endSpan("a", { endedAt: at(8) }),
      startSpan("e", "b", { parentSpanId: "a" }),
      startSpan("e", "a"),
      erase("e"),
      startExecution("e")
    ]
    const partition = new Partition()
    assert.deepStrictEqual(
      outcomes(partition.run(...operations)),
      operations.map(() => "created")
    )
    assert.deepStrictEqual(types(partition, "e"), [
      "execution.started",
      "span.started",
      "span.started",
      "span.started",
      "span.event",
      "span.ended",
      "execution.ended",
      "execution.erased"
    ])
  })

  it.each([
    ["the same", at(1), []],
    ["a later one", at(3), ["execution.ended"]],
    ["none", undefined, ["execution.resumed"]]
  ] as const)("leaves an end open that it may not count, and the clock finds %s", (...row) => {
    const [, endedAt, facts] = row
    const ended = new Partition()
    ended.run(otlpSpan("t", "child", { parentSpanId: "root" }))
    ended.pass(70)
    assert.strictEqual(ended.view("t").execution?.status, "COMPLETED")
    const before = types(ended, "t").length
    // Another one that takes all that the tenant may count.
    const orphans = Array.from({ length: 35_000 }, (_, n) =>
      otlpSpan("big", `b${n}`, { parentSpanId: `gone${n}` })
    )
    ended.run(...orphans)
    const { endedAt: _, ...open } = otlpSpan("t", "root")
    const root = endedAt === undefined ? open : { ...open, endedAt }
    const commands = [otlpSpan("big", "gone1"), root].map((span) => command(TENANT, [span]))
    ended.chunk(commands, { ...calm, size: 2 })
    const said = () =>
      types(ended, "t")
        .slice(before)
        .filter((type) => /^execution/.test(type))
    assert.deepStrictEqual(said(), ["execution.started"])
    for (const restarts of [true, false]) {
      if (restarts) ended.restart()
      ended.show()
      ended.evict(true)
      ended.pass(1)
      assert.deepStrictEqual(said(), ["execution.started", ...facts])
    }
  })

  it("that names what is loaded late is refused until then, and finds what is the newest", () => {
    const partition = new Partition()
    partition.run(startExecution("e"), startSpan("e", "a"))
    const leave = () => {
      partition.show()
      partition.evict(true)
    }
    const chunk = (moment: Partial<Moment>, operation: TraceOperation) =>
      outcomes(partition.chunk([command(TENANT, [operation])], { ...calm, ...moment })[0]!)
    leave()
    const waiting = { loadIsLate: true, arrives: false }
    assert.deepStrictEqual(chunk(waiting, endSpan("a")), ["unavailable"])
    assert.deepStrictEqual(chunk({ arrives: false }, endSpan("a")), ["unavailable"])
    assert.deepStrictEqual(chunk({ arrives: false }, startSpan("e", "b")), ["created"])
    leave()
    // What was loaded for the span says nothing of the other one.
    assert.deepStrictEqual(chunk(calm, startSpan("e", "b")), ["existing"])
    assert.deepStrictEqual(chunk(calm, endSpan("a")), ["created"])
    assert.deepStrictEqual(
      partition.factsOf("e").map(({ fact_number }) => fact_number),
      [1, 2, 3, 4, 5]
    )
  })

  it("that names what can't be loaded is refused as a whole", () => {
    const partition = new Partition()
    partition.run(startExecution("e"), endExecution("e"))
    const operations = [startExecution("new", { fresh: true }), endExecution("e")]
    partition.show()
    partition.evict(false)
    const [refused] = partition.chunk([command(TENANT, operations)], { ...calm, loadFails: true })
    assert.strictEqual(refused?.unavailable, true)
    assert.deepStrictEqual(outcomes(refused!), ["unavailable", "unavailable"])
    assert.deepStrictEqual(types(partition, "new"), [])
    assert.deepStrictEqual(outcomes(partition.run(...operations)), ["created", "existing"])
    const [fine] = partition.chunk([command(TENANT, [addEvent("root-new", "1")])], {
      ...calm,
      loadFails: true
    })
    assert.deepStrictEqual(outcomes(fine!), ["created"])
  })

  it("with a whole execution leaves nothing in the changelog, and is known after a restart", () => {
    const whole = [
      startExecution("e"),
      startSpan("e", "a"),
      addNamedEvent(TENANT, "a", "event", "llm.response"),
      endSpan("a"),
      endExecution("e")
    ]
    for (const evicted of [false, true]) {
      const partition = new Partition()
      assert.deepStrictEqual(new Set(outcomes(partition.run(...whole))), new Set(["created"]))
      assert.strictEqual(partition.changelogSize, 0)
      if (evicted) {
        partition.show()
        partition.evict(false)
        assert.strictEqual(partition.evictions, 1)
        assert.strictEqual(partition.changelogSize, 0)
      }
      // The store shows none of it yet: nobody may start the execution a second time.
      partition.restart()
      assert.deepStrictEqual(new Set(outcomes(partition.run(...whole))), new Set(["existing"]))
      assert.deepStrictEqual(outcomes(partition.run(startSpan("e", "late"))), ["already_ended"])
      assert.deepStrictEqual(outcomes(partition.run(erase("e"))), ["created"])
      // What has changed since is in the changelog, and the rest is loaded.
      assert.strictEqual(partition.changelogSize, 1)
      partition.restart()
      assert.deepStrictEqual(outcomes(partition.run(erase("e"))), ["existing"])
      assert.strictEqual(partition.view("e").execution!.status, "COMPLETED")
    }
  })

  it("with an execution that goes on leaves all of it in the changelog", () => {
    const partition = new Partition()
    partition.run(startExecution("e"), startSpan("e", "a"), endSpan("a"))
    assert.strictEqual(partition.changelogSize, 3)
    partition.run(endExecution("e"))
    assert.strictEqual(partition.changelogSize, 3)
    partition.restart()
    const { loads } = partition
    assert.deepStrictEqual(outcomes(partition.run(endExecution("e"))), ["existing"])
    assert.strictEqual(partition.loads, loads)
  })

  it("on which the step throws has changed nothing", () => {
    const draft = new TraceDraft(new TraceState(), new Map(), NOW)
    const before = applyTraces(draft, command(TENANT, [startExecution("e")]))
    draft.merge(before.command)
    const broken = startSpan("e", "half \ud800 of a pair", { fresh: true })
    const poison = command(TENANT, [startSpan("e", "fine"), broken, endExecution("e")])
    assert.throws(() => applyTraces(draft, poison))
    assert.strictEqual(draft.facts.length, 2)
    const after = applyTraces(draft, command(TENANT, [startSpan("e", "next")]))
    draft.merge(after.command)
    assert.deepStrictEqual(
      draft.facts.map(({ chainSequence }) => chainSequence),
      [1, 2, 3]
    )
    assert.strictEqual(recomputeFact(draft.facts[2]!.body)?.fact.fact_number, 3)
    assert.strictEqual(draft.execution(TENANT, "e")?.span("fine"), undefined)
  })

  it("never goes back in time when the clock does", () => {
    const partition = new Partition()
    partition.run(startExecution("e"))
    partition.now = at(-60)
    partition.run(endExecution("e"))
    assert.strictEqual(partition.factsOf("e").at(-1)?.created_at, NOW)
  })
})
