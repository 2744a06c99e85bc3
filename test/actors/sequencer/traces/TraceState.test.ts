/** What the sequencer keeps of executions, what it lets go, and what a restart finds. */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { TENANT_LINKS_MAX } from "../../../../src/actors/sequencer/traces/LinkBudgets.ts"
import { missingExecutionsOf } from "../../../../src/actors/sequencer/traces/MissingExecutions.ts"
import { TraceDraft } from "../../../../src/actors/sequencer/traces/TraceDraft.ts"
import { closesCycle, ExecutionEntry } from "../../../../src/actors/sequencer/traces/TraceEntry.ts"
import { isTraceKey, traceRecords } from "../../../../src/actors/sequencer/traces/TraceRecords.ts"
import { TraceState } from "../../../../src/actors/sequencer/traces/TraceState.ts"
import { applyTraces } from "../../../../src/actors/sequencer/traces/TraceStep.ts"
import { WaitingExecutions } from "../../../../src/actors/sequencer/traces/WaitingExecutions.ts"
import { factPlaceOf, type MarkedFact } from "../../../../src/domain/records/FactPlace.ts"
import type { StateRecord } from "../../../../src/domain/records/StateRecords.ts"
import { finish } from "../../../../src/domain/Slices.ts"
import { microsOf } from "../../../../src/domain/Timestamp.ts"
import { parseFact } from "../../../../src/domain/traces/FactText.ts"
import type { TraceOperation } from "../../../../src/domain/traces/TraceOperation.ts"
import type { LoadedExecution } from "../../../../src/ports/TraceStore.ts"
import { loadedFact } from "../../../support/StoredTraces.ts"
import {
  addEvent,
  at,
  command,
  endExecution,
  endSpan,
  erase,
  NOW,
  otlpSpan,
  startExecution,
  startSpan,
  TENANT,
  takeLoaded
} from "../../support/Traces.ts"

const MINUTE_MICROS = 60_000_000

/** A state, and where its facts stand. */
class Memory {
  state = new TraceState()
  next = 0
  readonly bodies: Array<string> = []
  readonly #changelog = new Map<string, StateRecord["value"]>()

  run(now: string, ...operations: ReadonlyArray<TraceOperation>): ReadonlyArray<StateRecord> {
    const draft = new TraceDraft(this.state, new Map(), now)
    const done = applyTraces(draft, command(TENANT, operations))
    assert.deepStrictEqual(done.errors, [])
    draft.merge(done.command)
    const records = traceRecords(draft, this.next)
    this.write(records)
    this.state.advance(draft, this.next)
    this.next += draft.facts.length
    this.bodies.push(...draft.facts.map(({ body }) => body))
    return records
  }

  write(records: ReadonlyArray<StateRecord>): void {
    for (const { key, value } of records) {
      if (value === null) this.#changelog.delete(key)
      else this.#changelog.set(key, value)
    }
  }

  restart(): void {
    this.state = new TraceState()
    for (const [key, value] of this.#changelog) {
      assert.isTrue(isTraceKey(key))
      this.state.replay(key, Buffer.from(value!))
    }
  }

  leaving(now: string, visible = this.next, limits?: Parameters<TraceState["evictable"]>[3]) {
    return this.state
      .evictable(visible, microsOf(now), 10 * MINUTE_MICROS, limits)
      .map(({ executionId }) => executionId)
  }
}

const sorted = (records: ReadonlyArray<StateRecord>) =>
  [...records].sort((left, right) => (left.key < right.key ? -1 : 1))

const limitsOf = (entriesMax: number, evictedMax = 1_000) => ({ entriesMax, evictedMax })

describe("the changelog of traces", () => {
  it("gives back the same state, whatever characters ids have", () => {
    const id = fc
      .array(fc.constantFrom("/", "%", "2", "5", "F", "a", " ", "é", "\u{1f600}"), {
        minLength: 1,
        maxLength: 6
      })
      .map((characters) => characters.join(""))
    fc.assert(
      fc.property(fc.uniqueArray(id, { minLength: 4, maxLength: 8 }), (ids) => {
        const [first, second, ...spans] = ids as [string, string, ...Array<string>]
        const memory = new Memory()
        memory.run(
          NOW,
          startExecution(first, { rootSpanId: "root 1" }),
          startExecution(second, { rootSpanId: "root 2", startedAtGiven: true }),
          ...spans.map((span, index) => startSpan(index % 2 === 0 ? first : second, span)),
          endSpan(spans[0]!, { status: "FAILED" }),
          addEvent(spans[1]!, "event"),
          erase(second)
        )
        memory.run(NOW, endExecution(first))
        const before = sorted(memory.state.snapshot())
        memory.restart()
        assert.deepStrictEqual(sorted(memory.state.snapshot()), before)
        for (const [index, span] of spans.entries()) {
          const holder = index % 2 === 0 ? first : second
          assert.strictEqual(memory.state.executionOf(TENANT, span), holder)
        }
        assert.strictEqual(memory.state.execution(TENANT, first)?.header.status, "COMPLETED")
      }),
      { numRuns: 200 }
    )
  })

  it("takes one record for an event, and one more for each span that has changed", () => {
    const memory = new Memory()
    const spans = Array.from({ length: 50 }, (_, index) => startSpan("e", `s${index}`))
    assert.strictEqual(memory.run(NOW, startExecution("e"), ...spans).length, 52)
    assert.strictEqual(memory.run(NOW, addEvent("s1", "event")).length, 1)
    assert.strictEqual(memory.run(NOW, endSpan("s1"), endSpan("s2")).length, 3)
    assert.strictEqual(memory.run(NOW, endSpan("s1")).length, 0)
    assert.strictEqual(memory.run(NOW, startSpan("e", "more")).length, 2)
    assert.strictEqual(memory.state.size, 53)
  })

  it("remembers ids that were only named before a restart", () => {
    const memory = new Memory()
    memory.run(NOW, otlpSpan("t", "a", { parentSpanId: "b" }))
    memory.restart()
    const draft = new TraceDraft(memory.state, new Map(), NOW)
    const closing = command(TENANT, [otlpSpan("t", "b", { parentSpanId: "a" })])
    const { errors } = applyTraces(draft, closing)
    assert.strictEqual(errors[0]?.code, "cycle_detected")
  })
})

describe("what may leave memory", () => {
  it("has ended, or was not named for a while, and is shown by the store", () => {
    const memory = new Memory()
    memory.run(NOW, startExecution("ended"), endExecution("ended"))
    const shown = memory.next
    memory.run(NOW, startExecution("idle"))
    memory.run(NOW, startExecution("named"))
    memory.run(at(590), endSpan("root-named"))
    memory.run(at(599), endSpan("root-named"))
    memory.run(at(599), startExecution("late"), endExecution("late"))
    assert.deepStrictEqual(memory.leaving(at(599), 0), [])
    assert.deepStrictEqual(memory.leaving(at(599), shown), ["ended"])
    assert.deepStrictEqual(memory.leaving(at(599)), ["ended", "late"])
    assert.deepStrictEqual(memory.leaving(at(601)), ["ended", "late", "idle"])
    assert.deepStrictEqual(memory.leaving(at(601), shown), ["ended"])
    assert.deepStrictEqual(memory.leaving(at(1_200)), ["ended", "late", "idle", "named"])
  })

  it("stays for a minute where it is large: to load it again would take seconds", () => {
    const memory = new Memory()
    const spans = Array.from({ length: 5_000 }, (_, n) => startSpan("e", `s${n}`, { fresh: true }))
    memory.run(NOW, startExecution("e"), ...spans, endExecution("e"))
    assert.deepStrictEqual(memory.leaving(at(59)), [])
    assert.deepStrictEqual(memory.leaving(at(60)), ["e"])
    assert.deepStrictEqual(memory.leaving(at(1), memory.next, limitsOf(5_000)), ["e"])
  })

  it("is what rests the longest when memory is full", () => {
    const memory = new Memory()
    for (const id of ["a", "b", "c", "d"]) memory.run(NOW, startExecution(id))
    memory.run(NOW, addEvent("root-a", "event"))
    assert.strictEqual(memory.state.size, 8)
    assert.deepStrictEqual(memory.leaving(NOW, memory.next, limitsOf(8)), [])
    assert.deepStrictEqual(memory.leaving(NOW, memory.next, limitsOf(7)), ["b"])
    assert.deepStrictEqual(memory.leaving(NOW, memory.next, limitsOf(3)), ["b", "c", "d"])
    assert.deepStrictEqual(memory.leaving(NOW, 4, limitsOf(0)), ["b"])
    assert.deepStrictEqual(memory.leaving(NOW, memory.next, limitsOf(0, 3)), ["b", "c"])
  })

  it("leaves with tombstones for everything that it has in the changelog", () => {
    const memory = new Memory()
    memory.run(NOW, startExecution("e"), startSpan("e", "s/1"), endExecution("e"))
    memory.run(NOW, startExecution("stays"))
    const leaving = memory.state.evictable(memory.next, microsOf(NOW), MINUTE_MICROS)
    const { forgotten, records } = memory.state.evict(leaving)
    assert.deepStrictEqual(sorted(records), [
      { key: "s/acme/e/root-e", value: null },
      { key: "s/acme/e/s%2F1", value: null },
      { key: "x/acme/e", value: null }
    ])
    assert.strictEqual(forgotten, 4)
    assert.strictEqual(memory.state.size, 2)
    assert.isUndefined(memory.state.execution(TENANT, "e"))
    assert.isUndefined(memory.state.executionOf(TENANT, "s/1"))
    memory.write(records)
    memory.restart()
    assert.strictEqual(memory.state.size, 2)
  })
})

describe("a loaded execution", () => {
  const markedOf = (body: string, offset: number): MarkedFact => ({
    ...factPlaceOf(parseFact(body)!, 0, offset),
    mac: ""
  })
  const loadedFrom = (memory: Memory, more: Partial<LoadedExecution> = {}): LoadedExecution => ({
    tenantId: TENANT,
    executionId: "e",
    facts: memory.bodies.map(loadedFact),
    marked: memory.bodies.map(markedOf),
    ...more
  })

  const forgotten = (): Memory => {
    const memory = new Memory()
    memory.run(NOW, startExecution("e"), startSpan("e", "a"), startSpan("e", "b"), endSpan("a"))
    memory.write(memory.state.evict([memory.state.execution(TENANT, "e")!]).records)
    assert.strictEqual(memory.state.size, 0)
    return memory
  }

  it("is what it was, and leaves without a trace if nothing becomes of it", () => {
    const memory = forgotten()
    const { marked } = loadedFrom(memory)
    const event = { ...marked[0]!, type: "span.event", hash: "event" } as const
    const events = [1, 7].map((number) => ({
      ...event,
      factNumber: marked.length + (number === 7 ? 2 : 1),
      sequenceNumber: number,
      offset: marked.length + number
    }))
    const loaded = loadedFrom(memory, { marked: [...marked, ...events] })
    assert.isTrue(takeLoaded(memory.state, loaded))
    const entry = memory.state.execution(TENANT, "e")!
    assert.deepInclude(entry.header, {
      fact_count: 7,
      event_count: 7,
      last_offset: 12,
      spanCount: 3
    })
    assert.strictEqual(entry.span("a")?.status, "COMPLETED")
    assert.strictEqual(entry.span("b")?.status, "RUNNING")
    assert.deepStrictEqual(memory.state.snapshot(), [])
    assert.deepStrictEqual(memory.state.evict([entry]).records, [])
  })

  it("may hold values of an event and nothing else, and is erased with that alone", () => {
    const memory = new Memory()
    const piece = (factNumber: number): MarkedFact => ({
      tenantId: TENANT,
      executionId: "e",
      factNumber,
      type: "span.payload",
      sequenceNumber: 0,
      hash: `hash ${factNumber}`,
      partition: 0,
      offset: factNumber,
      mac: ""
    })
    const loaded = (...numbers: ReadonlyArray<number>): LoadedExecution => ({
      tenantId: TENANT,
      executionId: "e",
      facts: [],
      marked: numbers.map(piece)
    })
    // What is before them is missing.
    assert.isFalse(takeLoaded(memory.state, loaded(2, 3)))
    assert.isTrue(takeLoaded(memory.state, loaded(1, 2)))
    const draft = new TraceDraft(memory.state, new Map(), NOW)
    const own = [startExecution("e"), endExecution("e"), startSpan("e", "c"), erase("e")]
    const { errors } = applyTraces(draft, command(TENANT, own))
    assert.deepStrictEqual(
      errors.map(({ code }) => code),
      ["id_conflict", "not_found", "not_found", "not_found"]
    )
    memory.run(NOW, { ...erase("e"), holdsValues: true })
    memory.restart()
    const { header } = memory.state.execution(TENANT, "e")!
    assert.deepInclude(header, { status: "COMPLETED", fact_count: 3, erased_through: 3 })
  })

  it("leaves with what has changed", () => {
    const memory = forgotten()
    takeLoaded(memory.state, loadedFrom(memory))
    memory.run(NOW, endSpan("b"), startSpan("e", "c"))
    const { records } = memory.state.evict([memory.state.execution(TENANT, "e")!])
    const keys = records.map(({ key }) => key).sort()
    assert.deepStrictEqual(keys, ["s/acme/e/b", "s/acme/e/c", "x/acme/e"])
    assert.strictEqual(memory.state.size, 0)
  })

  it("stands in the changelog with what has changed, and is loaded again after a restart", () => {
    const memory = forgotten()
    const stored = loadedFrom(memory)
    takeLoaded(memory.state, stored)
    const records = memory.run(NOW, endSpan("b"), startSpan("e", "c"))
    assert.deepStrictEqual(
      records.map(({ key }) => key),
      ["x/acme/e", "s/acme/e/c", "s/acme/e/b"]
    )
    memory.restart()
    const wanted = missingExecutionsOf(memory.state, [command(TENANT, [endSpan("c")])])
    assert.deepStrictEqual(wanted, { executions: [{ tenantId: TENANT, id: "e" }], spans: [] })
    const unloaded = new TraceDraft(memory.state, new Map(), NOW, { unloaded: wanted })
    assert.isTrue(unloaded.namesUnloaded(command(TENANT, [endSpan("c")])))
    assert.isTrue(unloaded.namesUnloaded(command(TENANT, [startSpan("e", "d")])))
    assert.isFalse(unloaded.namesUnloaded(command(TENANT, [startExecution("f")])))
    takeLoaded(memory.state, stored)
    const entry = memory.state.execution(TENANT, "e")!
    assert.strictEqual(entry.header.fact_count, 7)
    assert.strictEqual(entry.header.spanCount, 4)
    assert.deepStrictEqual(
      ["root-e", "a", "b", "c"].map((id) => entry.span(id)?.status),
      ["RUNNING", "COMPLETED", "COMPLETED", "RUNNING"]
    )
    assert.deepStrictEqual(missingExecutionsOf(memory.state, [command(TENANT, [endSpan("a")])]), {
      executions: [],
      spans: []
    })
    assert.deepStrictEqual(
      memory.state
        .evict([entry])
        .records.map(({ key }) => key)
        .sort(),
      ["s/acme/e/b", "s/acme/e/c", "x/acme/e"]
    )
  })

  it("never takes the place of what memory knows better", () => {
    const memory = new Memory()
    memory.run(NOW, startExecution("e"))
    const old = loadedFrom(memory)
    memory.run(NOW, startSpan("e", "a"), endExecution("e"))
    assert.isTrue(takeLoaded(memory.state, old))
    assert.strictEqual(memory.state.execution(TENANT, "e")?.header.status, "COMPLETED")
    assert.strictEqual(memory.state.executionOf(TENANT, "a"), "e")
  })

  it("is refused if the store holds no execution's facts", () => {
    const memory = forgotten()
    const { facts, marked } = loadedFrom(memory)
    const asEvent = { ...marked.at(-1)!, type: "span.event" } as const
    const damaged = [
      // A fact that is counted, and is not there.
      loadedFrom(memory, { facts: facts.slice(0, -1) }),
      // One that is there, and is no part of what is counted.
      loadedFrom(memory, { marked: marked.slice(0, -1) }),
      loadedFrom(memory, { marked: [...marked.slice(0, -1), asEvent] }),
      // A number that is left out, of a fact or of an event.
      loadedFrom(memory, { facts: facts.toSpliced(2, 1), marked: marked.toSpliced(2, 1) }),
      loadedFrom(memory, { marked: [...marked, { ...asEvent, factNumber: marked.length + 2 }] }),
      loadedFrom(memory, { facts: memory.bodies.slice(1).map(loadedFact) }),
      loadedFrom(memory, { facts: [...facts, { body: "{}", detailsBytes: 0 }] }),
      loadedFrom(memory, { executionId: "other" }),
      loadedFrom(memory, { facts: [] }),
      loadedFrom(memory, { tenantId: "other" }),
      loadedFrom(memory, {
        facts: memory.bodies.map((body) => loadedFact(body.replace("COMPLETED", "FAILED")))
      }),
      loadedFrom(memory, {
        facts: memory.bodies.map((body) => loadedFact(body.replace('"agent', '"other')))
      })
    ]
    for (const loaded of damaged) assert.isFalse(takeLoaded(memory.state, loaded))
    assert.strictEqual(memory.state.size, 0)
  })
})

describe("what is wanted", () => {
  const wanted = (state: TraceState, ...operations: ReadonlyArray<TraceOperation>) => {
    const { executions, spans } = missingExecutionsOf(state, [command(TENANT, operations)])
    return { executions: executions.map(({ id }) => id), spans: spans.map(({ id }) => id) }
  }

  it("is what memory lacks, once, and nothing that can't exist yet", () => {
    const memory = new Memory()
    memory.run(NOW, startExecution("known"), startSpan("known", "a"))
    assert.deepStrictEqual(
      wanted(
        memory.state,
        addEvent("root-new", "event"),
        addEvent("made", "event"),
        startSpan("new", "made", { fresh: true }),
        startExecution("new", { fresh: true }),
        endSpan("a"),
        startSpan("known", "mine", { parentSpanId: "anybody" }),
        endSpan("mine"),
        endSpan("theirs"),
        addEvent("theirs", "event"),
        startExecution("keyed"),
        endExecution("keyed"),
        erase("gone"),
        otlpSpan("t", "s"),
        otlpSpan("t", "s2")
      ),
      { executions: ["keyed", "gone", "t"], spans: ["mine", "theirs"] }
    )
  })

  it("may have been made by an earlier command, but not by a later one", () => {
    const memory = new Memory()
    const start = command(TENANT, [startExecution("e", { fresh: true })])
    const event = command(TENANT, [addEvent("root-e", "event")])
    const foreign = command("globex", [endExecution("e")])
    assert.deepStrictEqual(missingExecutionsOf(memory.state, [start, event]).spans, [])
    assert.deepStrictEqual(missingExecutionsOf(memory.state, [event, start]).spans, [
      { tenantId: TENANT, id: "root-e" }
    ])
    assert.deepStrictEqual(missingExecutionsOf(memory.state, [start, foreign]).executions, [
      { tenantId: "globex", id: "e" }
    ])
  })
})

describe("executions that end by the clock", () => {
  const open = (id: string) => {
    const { endedAt: _, ...running } = otlpSpan(id, `${id}-child`, { parentSpanId: `${id}-gone` })
    return running as TraceOperation
  }

  it("are not those that run, which leave after a restart as before", () => {
    const memory = new Memory()
    memory.run(NOW, open("runs"))
    memory.run(NOW, otlpSpan("waits", "child", { parentSpanId: "gone" }))
    for (const restarts of [0, 1]) {
      if (restarts === 1) memory.restart()
      assert.deepStrictEqual(memory.leaving(at(3_600)), ["runs"])
      assert.deepStrictEqual(
        finish(memory.state.due(microsOf(at(3_600)), 9)).map(({ executionId }) => executionId),
        ["waits"]
      )
    }
  })

  it("are loaded one after the other, whatever of them can't be", () => {
    const memory = new Memory()
    for (const id of ["a", "b", "c"]) {
      const records = memory.run(NOW, otlpSpan(id, `${id}-child`, { parentSpanId: "gone" }))
      memory.write(
        records.map(({ key, value }) => ({
          key,
          value: key.startsWith("x/")
            ? `${value}`.replace('"partial":false', '"partial":true')
            : value
        }))
      )
    }
    memory.restart()
    const named = Array.from({ length: 4 }, () =>
      memory.state.dueInPart(microsOf(at(3_600)), 1).map(({ executionId }) => executionId)
    )
    assert.deepStrictEqual(named, [["a"], ["b"], ["c"], ["a"]])
  })

  it.each([
    [1, 0],
    [10_000, 8_000]
  ])("are those too whose local roots, %i, were too many for %i links", (roots, links) => {
    const memory = new Memory()
    const spans = Array.from({ length: roots }, (_, n) =>
      otlpSpan("t", `child-${n}`, { parentSpanId: n === 0 ? "root" : `gone-${n}` })
    )
    memory.run(NOW, ...spans)
    const draft = new TraceDraft(memory.state, new Map(), NOW)
    draft.linksOf(TENANT).left = links
    const late = command(TENANT, [otlpSpan("t", "root")])
    draft.merge(applyTraces(draft, late).command)
    assert.notInclude(
      draft.facts.map(({ type }) => type),
      "execution.ended"
    )
    assert.strictEqual(draft.linksOf(TENANT).left, 0)
    memory.state.advance(draft, memory.next)
    const counting = memory.state.due(microsOf(at(60)), 9)
    let steps = 1
    let step = counting.next()
    for (; step.done !== true; step = counting.next()) steps += 1
    assert.strictEqual(steps, 1 + Math.floor(roots / 4_096))
    assert.deepStrictEqual(
      step.value.map(({ executionId }) => executionId),
      ["t"]
    )
  })

  it("are looked at when something is due of them, and no others", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat({ max: 9 }), fc.nat({ max: 20_000_000 })), { maxLength: 30 }),
        fc.nat({ max: 20_000_000 }),
        (puts, nowMicros) => {
          const entries = Array.from({ length: 10 }, (_, n) =>
            ExecutionEntry.empty(TENANT, String(n), 0)
          )
          const waiting = new WaitingExecutions()
          const times = new Map<string, number>()
          for (const [n, micros] of puts) {
            if (times.has(String(n)) && micros % 3 === 0) {
              waiting.delete(entries[n]!)
              times.delete(String(n))
            } else {
              waiting.put(entries[n]!, micros)
              times.set(String(n), Math.ceil(micros / 1e6))
            }
          }
          const due = [...waiting.dueAt(nowMicros)].map(({ executionId }) => executionId)
          const expected = [...times].filter(([, second]) => second <= Math.floor(nowMicros / 1e6))
          assert.sameMembers(
            due,
            expected.map(([id]) => id)
          )
          const seconds = due.map((id) => times.get(id)!)
          assert.deepStrictEqual(
            seconds,
            [...seconds].sort((left, right) => left - right)
          )
          assert.lengthOf([...waiting.all], times.size)
        }
      )
    )
  })
})

describe("the search for a cycle", () => {
  it("follows parents and causes, and gives up with its budget", () => {
    const memory = new Memory()
    const chain = Array.from({ length: 100 }, (_, index) =>
      otlpSpan("t", `s${index}`, {
        parentSpanId: `s${index + 1}`,
        causedBy: [`s${index + 2}`]
      })
    )
    memory.run(NOW, ...chain)
    const entry = memory.state.execution(TENANT, "t")!
    assert.deepStrictEqual(
      ["s0", "s1", "s99", "s100", "s101", "s102"].map((id) => entry.isMissing(id)),
      [false, false, false, true, true, false]
    )
    const closes = (spanId: string, sources: ReadonlyArray<string>, left = 1_000) =>
      closesCycle(entry, spanId, sources, { left })
    assert.strictEqual(closes("s100", ["s0"]), true)
    assert.strictEqual(closes("s101", ["s99"]), true)
    assert.strictEqual(closes("s100", ["s101", "elsewhere"]), false)
    assert.strictEqual(closes("s100", ["s0"], 50), undefined)
    assert.strictEqual(closes("new", ["s0"], 0), false)
    assert.strictEqual(closes("new", ["new"], 0), true)
  })

  it("takes no more of a partition than its tenant has, which comes back with time", () => {
    const memory = new Memory()
    const causes = (to: number) =>
      Array.from({ length: Math.min(256, to) }, (_, back) => `s${to - 1 - back}`)
    for (let from = 0; from < 1_500; from += 500) {
      const some = Array.from({ length: 500 }, (_, index) => {
        const at = from + index
        return otlpSpan("t", `s${at}`, { parentSpanId: "root", causedBy: causes(at) })
      })
      memory.run(NOW, ...some)
    }
    memory.run(NOW, otlpSpan("t", "below", { parentSpanId: "late", causedBy: ["later"] }))
    const spent = (now: string) => TENANT_LINKS_MAX - memory.state.linksLeft(TENANT, microsOf(now))
    const code = (now: string, parent: string, missing: string) => {
      const draft = new TraceDraft(memory.state, new Map(), now)
      const span = otlpSpan("t", missing, { parentSpanId: parent })
      const { command: done, errors } = applyTraces(draft, command(TENANT, [span]))
      draft.merge(done)
      memory.state.advance(draft, memory.next)
      return errors[0]?.code
    }
    assert.strictEqual(spent(NOW), 0)
    assert.strictEqual(code(NOW, "s100", "late"), undefined)
    assert.isAbove(spent(NOW), 1_000)
    for (let times = 0; times < 2; times++) {
      assert.strictEqual(code(NOW, "s1499", "later"), "too_many_spans")
    }
    for (let times = 0; times < 50; times++) {
      assert.strictEqual(code(NOW, "s1498", "later"), "unavailable")
      assert.strictEqual(spent(NOW), TENANT_LINKS_MAX)
    }
    assert.strictEqual(memory.state.linksLeft("globex", microsOf(NOW)), TENANT_LINKS_MAX)
    assert.strictEqual(code(at(1), "s1498", "later"), "too_many_spans")
    assert.strictEqual(spent(at(3)), 0)
  })
})
