/**
 * The laws of traces: whatever the interleaving, the cuts into chunks, the restarts, and whatever
 * is forgotten and loaded again, every tenant's facts are the same, and they add up to executions
 * that make sense.
 */

import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import type { TraceCommand } from "../../src/actors/sequencer/traces/MissingExecutions.ts"
import { GENESIS_HASH } from "../../src/domain/chain/Chains.ts"
import { finish } from "../../src/domain/Slices.ts"
import { eraseFact, parseFact, recomputeFact } from "../../src/domain/traces/FactText.ts"
import { spanGraphOf } from "../../src/domain/traces/SpanGraph.ts"
import type { TraceFact } from "../../src/domain/traces/TraceFact.ts"
import type { TraceOperation } from "../../src/domain/traces/TraceOperation.ts"
import { foldFacts, type TraceView } from "../../src/domain/traces/TraceView.ts"
import { runs } from "../support/Runs.ts"
import {
  addEvent,
  addNamedEvent,
  at,
  command,
  details,
  endExecution,
  endSpan,
  erase,
  type Moment,
  otlpEvents,
  otlpSpan,
  Partition,
  startExecution,
  startSpan,
  TENANT
} from "./support/Traces.ts"

const TENANTS = ["acme", "globex"] as const

/** What a number stands for, so that a shrunk example stays one. */
const pick = <A>(from: ReadonlyArray<A>, seed: number): A => from[seed % from.length]!

interface Draw {
  readonly kind: number
  readonly one: number
  readonly two: number
  readonly three: number
}

const draw: fc.Arbitrary<Draw> = fc.record({
  kind: fc.nat({ max: 17 }),
  one: fc.nat({ max: 1_000 }),
  two: fc.nat({ max: 1_000 }),
  three: fc.nat({ max: 1_000 })
})

const statuses = ["COMPLETED", "FAILED", "CANCELLED"] as const
/** One id with what a key has to escape. */
const executions = ["e/0", "e%2F1", "e/0", "f0", "t0"]
const spans = ["s/0", "s1", "s2", "root-e/0", "root-e%2F1", "n0", "t0.0", "t0.1"]

/** Makes operations out of numbers, and some of them again, as clients do that got no answer. */
class Maker {
  /** Ids that are made for one request and never again count up. */
  #executions = 0
  #spans = 0
  readonly #made: Array<TraceOperation> = []
  readonly #tenantId: string

  constructor(tenantId: string) {
    this.#tenantId = tenantId
  }

  operation(draw: Draw): TraceOperation {
    const earlier = draw.kind > 13 ? this.#made[draw.one % (this.#made.length || 1)] : undefined
    if (earlier?.op === "span.start") {
      return { ...earlier, details: details(JSON.parse(earlier.details.text)) }
    }
    if (earlier !== undefined) return earlier
    const made = this.#make(draw)
    const isNew = "fresh" in made ? made.fresh : made.op === "span.event" && !made.dedupKey
    if (!isNew) this.#made.push(made)
    return made
  }

  #make({ kind, one, three, two }: Draw): TraceOperation {
    const given = { endedAt: at(three % 9), endedAtGiven: three % 2 === 0 }
    const begun = { startedAt: at(three % 4), startedAtGiven: three % 3 === 0 }
    switch (kind) {
      case 0:
        return startExecution(`f${this.#executions++}`, { fresh: true, ...begun })
      case 1:
      case 2:
        return startExecution(pick(executions.slice(0, 2), one), begun)
      case 3:
        return endExecution(pick(executions, one), { status: pick(statuses, two), ...given })
      case 4:
        return startSpan(pick(executions, one), `n${this.#spans++}`, {
          fresh: true,
          ...(two % 2 === 0 ? {} : { parentSpanId: pick(spans, two) }),
          ...begun
        })
      case 5:
      case 6:
      case 7:
        return startSpan(pick(executions, one), pick(spans.slice(0, 3), two), {
          ...(three % 3 === 0 ? { parentSpanId: pick(spans, three) } : {}),
          causedBy: three % 5 === 0 ? [pick(spans, one + three)] : [],
          details: details({ name: `named ${three % 2}` })
        })
      case 8:
        return endSpan(pick(spans, one), { status: pick(statuses, two), ...given })
      case 9:
        return addEvent(pick(spans, one), `made-${one}-${two}-${three}`)
      case 10:
        return addNamedEvent(
          this.#tenantId,
          pick(spans, one),
          `v${two % 4}`,
          pick(["decision", "log"], three)
        )
      case 11:
        return three % 4 === 0 ? erase(pick(executions, one)) : endSpan(pick(spans, one), given)
      case 12:
        return otlpRecords({ one, two, three })
      default:
        return otlp({ one, two, three })
    }
  }
}

/** Some of the events of a span, by themselves. */
const otlpRecords = ({ one, three, two }: Omit<Draw, "kind">): TraceOperation => {
  const trace = pick(["t0", "t0", "t1"], one)
  const spanId = `${trace}.${three % 5}`
  return otlpEvents(trace, spanId, eventsOf(spanId, 1 + (two % 3), one), {
    startedAt: at(three % 6)
  })
}

const eventsOf = (spanId: string, count: number, seed: number) =>
  Array.from({ length: count }, (_, index) => ({
    eventId: `${spanId}.${(index + seed) % 4}`,
    eventType: "exception",
    timestamp: at(index)
  }))

const otlp = ({ one, three, two }: Omit<Draw, "kind">): TraceOperation => {
  const trace = pick(["t0", "t0", "t1"], one)
  const parentSpanId = two % 4 === 0 ? undefined : `${trace}.${two % 5}`
  const isRemote = (one + two) % 3 === 0
  const made = otlpSpan(trace, `${trace}.${three % 5}`, {
    ...(isRemote ? { parentIsRemote: true } : {}),
    details: details({ ...(isRemote ? { metadata: { flags: 0x300 } } : {}), name: "span" }),
    ...(parentSpanId === undefined ? {} : { parentSpanId }),
    causedBy: one % 3 === 0 ? [`${trace}.${one % 7}`, "s1"] : [],
    startedAt: at(three % 6),
    status: pick(statuses, one),
    events: eventsOf(`${trace}.${three % 5}`, two % 3, one)
  })
  const { endedAt: _open, ...open } = made
  return three % 3 === 0 ? open : { ...made, endedAt: at(two % 8) }
}

const commands: fc.Arbitrary<ReadonlyArray<TraceCommand>> = fc
  .array(
    fc.record({
      tenant: fc.constantFrom(0, 0, 0, 1),
      draws: fc.array(draw, { minLength: 1, maxLength: 5 })
    }),
    { minLength: 1, maxLength: 40, size: "max" }
  )
  .map((requests) => {
    const makers = TENANTS.map((tenantId) => new Maker(tenantId))
    const made = requests.map(({ draws, tenant }) =>
      command(
        TENANTS[tenant]!,
        draws.map((one) => makers[tenant]!.operation(one))
      )
    )
    return [command(TENANT, [startExecution("e/0"), startExecution("e%2F1")]), ...made]
  })

const moment = (fails: fc.Arbitrary<boolean>): fc.Arbitrary<Moment> =>
  fc.record({
    size: fc.integer({ min: 1, max: 5 }),
    restart: fc.boolean(),
    evict: fc.constantFrom("nothing", "ended", "everything"),
    catchUp: fc.boolean(),
    loadFails: fails,
    loadIsLate: fails,
    arrives: fc.boolean()
  })

const moments = (fails: fc.Arbitrary<boolean>) =>
  fc.array(moment(fails), { minLength: 1, maxLength: 8 })

/** What a chunk does not wait for comes when much has changed, and has left memory again. */
const fleeting: fc.Arbitrary<Moment> = fc.record({
  size: fc.constant(1),
  restart: fc.constant(false),
  evict: fc.constantFrom("everything", "nothing"),
  catchUp: fc.constant(true),
  loadFails: fc.constant(false),
  loadIsLate: fc.boolean(),
  arrives: fc.constantFrom(false, false, false, true)
})

const factsOf = (partition: Partition): ReadonlyArray<TraceFact> =>
  partition.bodies.map((body) => parseFact(body)!)

const groupsOf = <A>(all: ReadonlyArray<A>, keyOf: (one: A) => string): ReadonlyArray<Array<A>> => {
  const groups = new Map<string, Array<A>>()
  for (const one of all) groups.set(keyOf(one), [...(groups.get(keyOf(one)) ?? []), one])
  return [...groups.values()]
}

const executionsOf = (partition: Partition) =>
  groupsOf(factsOf(partition), (fact) => `${fact.tenant_id} ${fact.execution_id}`)

/** True if some span of the graph follows from itself. */
const hasCycle = ({ execution, spans }: TraceView): boolean => {
  const rootSpanId = execution?.root_span_id ?? ""
  const sources = new Map<string, Array<string>>()
  for (const { source, target } of finish(
    spanGraphOf({ rootSpanId, spans, eventCounts: new Map() })
  ).edges) {
    sources.set(target, [...(sources.get(target) ?? []), source])
  }
  const settled = new Set<string>()
  const open = new Set<string>()
  const visit = (id: string): boolean => {
    if (settled.has(id)) return false
    if (open.has(id)) return true
    open.add(id)
    const found = (sources.get(id) ?? []).some(visit)
    open.delete(id)
    settled.add(id)
    return found
  }
  return [...sources.keys()].some(visit)
}

/** What is answered about an execution, order of arrival and time of storing aside. */
const answers = (facts: ReadonlyArray<TraceFact>) => {
  const view = foldFacts(facts)
  const byId = (left: { readonly id: string }, right: { readonly id: string }) =>
    left.id < right.id ? -1 : 1
  return {
    execution: view.execution,
    spans: [...view.spans].sort(byId),
    events: facts.flatMap((fact) => foldFacts([]).take(fact).event ?? []).sort(byId)
  }
}

describe("traces", () => {
  it("are the same however commands are cut, restarted, forgotten and loaded", () => {
    let evictions = 0
    fc.assert(
      fc.property(commands, moments(fc.constant(false)), (all, plan) => {
        const calm = new Partition().runAll(all)
        const wild = new Partition().runAll(all, plan)
        evictions += wild.evictions
        assert.deepStrictEqual(wild.bodies, calm.bodies)
        assert.deepStrictEqual(wild.outcomes, calm.outcomes)
      }),
      { numRuns: runs(1_000) }
    )
    assert.isAbove(evictions, runs(1_000))
  })

  it("hold an event once, however soon the window of duplicates has forgotten it", () => {
    let lookUps = 0
    const windowMax = fc.integer({ min: 0, max: 3 })
    fc.assert(
      fc.property(commands, moments(fc.constant(false)), windowMax, (all, plan, events) => {
        const calm = new Partition().runAll(all)
        const wild = new Partition()
        wild.windowMax = events
        wild.runAll(all, plan)
        lookUps += wild.lookUps
        assert.deepStrictEqual(wild.bodies, calm.bodies)
        assert.deepStrictEqual(wild.outcomes, calm.outcomes)
      }),
      { numRuns: runs(500) }
    )
    assert.isAbove(lookUps, runs(500))
  })

  it("are as if a command that could not be looked up had never been sent", () => {
    const [failing, late] = [
      { refused: 0, late: 0 },
      { refused: 0, late: 0 }
    ]
    const check =
      (seen: { refused: number; late: number }) =>
      (all: ReadonlyArray<TraceCommand>, plan: ReadonlyArray<Moment>) => {
        const wild = new Partition().runAll(all, plan)
        const applied = all.filter((_, index) => wild.outcomes[index]?.unavailable === false)
        seen.refused += all.length - applied.length
        seen.late += wild.lateLoads
        const calm = new Partition().runAll(applied)
        assert.deepStrictEqual(wild.bodies, calm.bodies)
        assert.deepStrictEqual(
          wild.outcomes.filter(({ unavailable }) => !unavailable),
          calm.outcomes
        )
      }
    fc.assert(fc.property(commands, moments(fc.boolean()), check(failing)), { numRuns: runs(500) })
    fc.assert(fc.property(commands, fc.array(fleeting, { minLength: 1 }), check(late)), {
      numRuns: runs(1_000)
    })
    assert.isAbove(failing.refused, 100)
    assert.isAbove(late.late, runs(1_000))
  })

  it("are chained per tenant and numbered per execution without a gap", () => {
    fc.assert(
      fc.property(commands, moments(fc.constant(false)), (all, plan) => {
        const partition = new Partition().runAll(all, plan)
        for (const chain of groupsOf(factsOf(partition), ({ tenant_id }) => tenant_id)) {
          for (const [index, fact] of chain.entries()) {
            assert.strictEqual(fact.chain_sequence, index + 1)
            assert.strictEqual(fact.prev_hash, chain[index - 1]?.hash ?? GENESIS_HASH)
          }
        }
        for (const facts of executionsOf(partition)) {
          const events = facts.filter((fact) => fact.type === "span.event")
          assert.deepStrictEqual(
            facts.map(({ fact_number }) => fact_number),
            facts.map((_, index) => index + 1)
          )
          assert.deepStrictEqual(
            events.map(({ sequence_number }) => sequence_number),
            events.map((_, index) => index + 1)
          )
        }
        for (const body of partition.bodies) {
          const recomputed = recomputeFact(body)!
          assert.isTrue(recomputed.exact)
          assert.strictEqual(recomputed.hash, recomputed.fact.hash)
          assert.strictEqual(recomputed.contentHash, recomputed.fact.content_hash)
          assert.strictEqual(recomputed.detailsHash, recomputed.fact.details_hash)
        }
      }),
      { numRuns: 200 }
    )
  })

  it("add up to executions that make sense", () => {
    fc.assert(
      fc.property(commands, (all) => {
        for (const facts of executionsOf(new Partition().runAll(all))) {
          const view = foldFacts(facts)
          assert.isFalse(hasCycle(view))
          const count = (type: TraceFact["type"], keyOf: (fact: TraceFact) => unknown) => {
            const some = facts.filter((fact) => fact.type === type).map(keyOf)
            assert.strictEqual(new Set(some).size, some.length, type)
          }
          const starts = facts.flatMap((fact) => (fact.type === "execution.started" ? [fact] : []))
          if (starts[0]!.source === "api") count("execution.ended", () => "the only one")
          const ends = facts.filter(({ type }) => /^execution\.(?:ended|resumed)$/.test(type))
          for (const [at, end] of ends.entries()) {
            const before = ends[at - 1]
            const said = (fact: TraceFact | undefined) =>
              fact?.type === "execution.ended" ? `${fact.status} ${fact.ended_at}` : ""
            assert.notStrictEqual(said(end), said(before), "an end that says nothing new")
          }
          const aboutSpans = facts.flatMap((fact) => ("span_id" in fact ? [fact] : []))
          for (const some of groupsOf(aboutSpans, ({ span_id }) => span_id)) {
            const many = (type: TraceFact["type"]) => some.filter((fact) => fact.type === type)
            // What is shown no more was replaced.
            const replacing = many("span.amended").filter(({ details }) => details === undefined)
            const before = many("span.started").length - 1
            if (before >= 0) assert.strictEqual(replacing.length, before)
            assert.isAtMost(many("span.ended").length, before + 1)
          }
          count("span.event", (fact) => "event_id" in fact && fact.event_id)
          // Before there is a span, log records say what the execution is.
          const ofSpans = facts.filter(({ type }) => type.startsWith("span."))
          const byRecords = ofSpans[0]?.type === "span.event"
          const first = ofSpans.find(({ type }) => type === "span.started")?.fact_number ?? 0
          const said = starts.filter(({ fact_number }) => !byRecords || fact_number > first)
          for (const [at, start] of said.entries()) {
            const before = said[at - 1]
            if (before === undefined) continue
            // Of the same kind the earlier one, or a root after none.
            assert.isTrue(
              before.provisional === start.provisional
                ? start.started_at <= before.started_at
                : before.provisional === true
            )
          }
          const roots = view.spans.filter(({ parent_span_id }) => parent_span_id === undefined)
          assert.deepStrictEqual(
            roots.map(({ id }) => id),
            [view.execution?.root_span_id]
          )
        }
      }),
      { numRuns: 300 }
    )
  })

  it("are shown as the store shows them once it has erased what was to be erased", () => {
    let erasures = 0
    fc.assert(
      fc.property(commands, (all) => {
        for (const facts of executionsOf(new Partition().runAll(all))) {
          const erased = facts.map((fact) => {
            const isAfter = ({ fact_number, type }: TraceFact) =>
              type === "execution.erased" && fact_number > fact.fact_number
            const first = facts.find(isAfter)
            if (first === undefined || fact.details === undefined) return fact
            erasures += 1
            return parseFact(eraseFact(fact, first.created_at))!
          })
          const [shown, stored] = [foldFacts(facts), foldFacts(erased)]
          assert.deepStrictEqual(shown.execution, stored.execution)
          assert.deepStrictEqual(shown.spans, stored.spans)
        }
      }),
      { numRuns: 300 }
    )
    assert.isAbove(erasures, 100)
  })

  it("answer every operation exactly once, in the order of the request", () => {
    fc.assert(
      fc.property(commands, (all) => {
        const { outcomes } = new Partition().runAll(all)
        for (const [at, { errors, results }] of outcomes.entries()) {
          const indexes = [...results, ...errors].map(({ index }) => index)
          assert.deepStrictEqual(
            indexes.sort((left, right) => left - right),
            all[at]!.operations.map((_, index) => index)
          )
          for (const list of [results, errors]) {
            assert.isTrue(list.every(({ index }, n) => n === 0 || list[n - 1]!.index < index))
          }
        }
      }),
      { numRuns: 200 }
    )
  })

  it("are the same from one batch in any order as from operations one by one", () => {
    const count = 6
    const shape = fc.record({
      parents: fc.array(fc.nat({ max: 100 }), { minLength: count, maxLength: count }),
      causes: fc.array(fc.option(fc.nat({ max: 100 })), { minLength: count, maxLength: count }),
      ended: fc.array(fc.boolean(), { minLength: count, maxLength: count }),
      finished: fc.boolean(),
      order: fc.array(fc.nat(), { minLength: 40, maxLength: 40 })
    })
    fc.assert(
      fc.property(shape, ({ causes, ended, finished, order, parents }) => {
        const earlier = (seed: number, index: number) =>
          index === 0 ? "root-e" : `s${seed % index}`
        const sensible: ReadonlyArray<TraceOperation> = [
          startExecution("e", { startedAt: at(-1) }),
          ...parents.map((seed, index) => {
            const cause = causes[index]
            return startSpan("e", `s${index}`, {
              ...(seed % 3 === 0 ? {} : { parentSpanId: earlier(seed, index) }),
              causedBy: typeof cause === "number" ? [earlier(cause, index)] : []
            })
          }),
          ...parents.map((_, index) => addNamedEvent(TENANT, `s${index}`, `v${index}`, "log")),
          ...ended.flatMap((isEnded, index) =>
            isEnded ? [endSpan(`s${index}`, { endedAt: at(index) })] : []
          ),
          ...(finished ? [endExecution("e", { status: "FAILED", endedAt: at(9) })] : [])
        ]
        // Events keep their order: it is their numbering.
        const isEvent = ({ op }: TraceOperation) => op === "span.event"
        const events = sensible.filter(isEvent)
        const shuffled = sensible
          .map((operation, index) => ({ operation, rank: order[index]! }))
          .sort((left, right) => left.rank - right.rank)
          .map(({ operation }) => (isEvent(operation) ? events.shift()! : operation))
        const single = new Partition()
        for (const operation of sensible) single.run(operation)
        const batch = new Partition()
        assert.deepStrictEqual(batch.run(...shuffled).errors, [])
        assert.deepStrictEqual(answers(batch.factsOf("e")), answers(single.factsOf("e")))
      }),
      { numRuns: 300 }
    )
  })
})

describe("memory", () => {
  it("holds what is running, not what has been", () => {
    const partition = new Partition()
    partition.run(startExecution("long", { fresh: true }))
    for (let turn = 0; turn < 200; turn++) {
      const id = `e${turn}`
      partition.run(
        startExecution(id, { fresh: true }),
        startSpan(id, `s${turn}`, { fresh: true }),
        addEvent(`s${turn}`, "event"),
        endExecution(id)
      )
      partition.show()
      partition.evict(false)
    }
    assert.strictEqual(partition.state.size, 2)
    assert.strictEqual(partition.changelogSize, 2)
    assert.strictEqual(partition.loads, 0)
  })
})
