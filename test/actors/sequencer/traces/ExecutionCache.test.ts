/** What a chunk waits for before the step: a store in memory that shows executions late. */

import { assert, describe, it } from "@effect/vitest"
import { Clock, Context, type Duration, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { emptyState, type SequencerState } from "../../../../src/actors/sequencer/SequencerState.ts"
import type { ReceivedCommand } from "../../../../src/actors/sequencer/SequencerStep.ts"
import { ExecutionCache } from "../../../../src/actors/sequencer/traces/ExecutionCache.ts"
import { ForgottenEvents } from "../../../../src/actors/sequencer/traces/ForgottenEvents.ts"
import type { TraceLookup } from "../../../../src/actors/sequencer/traces/VisibleStore.ts"
import { noProgress, type Progress } from "../../../../src/domain/records/Progress.ts"
import {
  type TraceOperation,
  traceEventKeyOf
} from "../../../../src/domain/traces/TraceOperation.ts"
import { EventLog, type LogReader, type LogRecord } from "../../../../src/ports/EventLog.ts"
import { StoreUnavailable } from "../../../../src/ports/EventStore.ts"
import { FactMac } from "../../../../src/ports/FactMac.ts"
import type {
  LoadedExecution,
  SoughtEvents,
  StoredEvent,
  TraceKey
} from "../../../../src/ports/TraceStore.ts"
import { bodies, FactChain, markedFact } from "../../../adapters/clickhouse/support/StoredFacts.ts"
import { ingestCommand } from "../../../support/Events.ts"
import { loadedFact, withoutDetails } from "../../../support/StoredTraces.ts"
import {
  at,
  endSpan,
  otlpEvents,
  startExecution,
  startSpan,
  TENANT,
  takeLoaded
} from "../../support/Traces.ts"

const mac = Context.get(Context.empty(), FactMac)

const wanted = {
  executions: [{ tenantId: TENANT, id: "run" }],
  spans: [{ tenantId: TENANT, id: "span" }]
}

/** Names an execution and a span that are not in memory. */
const chunk: ReadonlyArray<ReceivedCommand> = [
  {
    offset: 0,
    value: null,
    command: {
      ...ingestCommand(TENANT, 0),
      kind: "trace",
      traces: [startSpan("run", "fresh", { fresh: true }), endSpan("span")]
    }
  }
]

/** `alk.progress` in memory, and a store that reaches as far as its last record says. */
class World {
  readonly loads: Array<unknown> = []
  readonly #records: Array<LogRecord> = []
  duringLoad: () => void = () => undefined
  /** Of each load, or of those that name an execution of a tenant. */
  takes: Duration.Input | ((tenants: ReadonlySet<string>) => Duration.Input) = 0
  fails: boolean | ((tenants: ReadonlySet<string>) => boolean) = false
  stored: ReadonlyArray<LoadedExecution> = []

  say(progress: Partial<Progress>): void {
    const value = Buffer.from(JSON.stringify({ ...noProgress(0), ...progress }))
    const offset = this.#records.length
    this.#records.push({ offset, timestamp: 0, key: Buffer.from("0"), value, headers: {} })
  }

  readonly reader: LogReader = {
    fetch: ([position]) =>
      Effect.sync(() => {
        const records = this.#records.slice(position!.offset)
        const end = this.#records.length
        return [
          { ...position!, records, nextOffset: end, writtenEnd: end, stableEnd: end, logStart: 0 }
        ]
      })
  }

  readonly log = Layer.mock(EventLog, {
    partitions: 1,
    bootstrap: "nowhere",
    partitionOf: () => 0,
    bounds: () => Effect.sync(() => ({ start: 0, end: this.#records.length }))
  })

  events: ReadonlyArray<StoredEvent> = []

  readonly store = {
    position: () => Effect.succeed({ offset: 9 }),
    storedEvents: () => Effect.succeed(this.events),
    load: (executions: ReadonlyArray<TraceKey>, spans: ReadonlyArray<TraceKey>) =>
      Effect.gen({ self: this }, function* () {
        this.loads.push({ executions, spans })
        this.duringLoad()
        const { fails, takes } = this
        const tenants = new Set([...executions, ...spans].map(({ tenantId }) => tenantId))
        const stored = this.stored.filter(({ tenantId }) => tenants.has(tenantId))
        yield* Effect.sleep(typeof takes === "function" ? takes(tenants) : takes)
        if (typeof fails === "function" ? fails(tenants) : fails)
          return yield* new StoreUnavailable({ operation: "load", cause: "away" })
        return stored
      })
  } as unknown as TraceLookup
}

const stateThatForgot = (evictedBelow: number): SequencerState => {
  const state = emptyState(0, 1, { dedup: 10, idempotency: 10 })
  state.evictedBelow = evictedBelow
  return state
}

/** What could not be loaded for the chunk. */
const prepare = (world: World, forgotten: number, store?: TraceLookup) =>
  EventLog.use((log) =>
    new ExecutionCache(log, world.reader, stateThatForgot(forgotten), store, mac).prepare(chunk)
  ).pipe(
    Effect.provide(world.log),
    Effect.map(({ unloaded }) => unloaded)
  )

const run = new FactChain(TENANT)
run.start("run")
run.span("run", "span")
const eventOfRun = run.event("run", "span", 1)
run.endSpan("run", "span")
run.end("run")

/** An execution of five facts that has ended, as the store gives it. */
const storedRun = (): LoadedExecution => {
  return {
    tenantId: TENANT,
    executionId: "run",
    facts: bodies(run.all.filter(({ type }) => type !== "span.event")).map(loadedFact),
    marked: run.all.map((fact) => markedFact(fact))
  }
}

const nothing = { executions: [], spans: [] }

describe("executions that a chunk names and memory lacks", () => {
  it.effect("do not exist where there is no store and nothing was forgotten", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* prepare(new World(), 0), nothing)
    })
  )

  it.effect("are not known where there is no store and something was forgotten", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* prepare(new World(), 5), wanted)
    })
  )

  it.effect("are asked for once the store shows everything that was forgotten", () => {
    const world = new World()
    world.say({ traces_next: 4 })
    return Effect.gen(function* () {
      const prepared = yield* Effect.forkChild(prepare(world, 5, world.store))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(world.loads, [])
      world.say({ traces_next: 5 })
      yield* TestClock.adjust("20 millis")
      assert.deepStrictEqual(yield* Fiber.join(prepared), nothing)
      assert.deepStrictEqual(world.loads, [wanted])
    })
  })

  it.effect("are not known while the store lags for two seconds", () => {
    const world = new World()
    world.say({ traces_next: 4 })
    return Effect.gen(function* () {
      const prepared = yield* Effect.forkChild(prepare(world, 5, world.store))
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(yield* Fiber.join(prepared), wanted)
      assert.deepStrictEqual(world.loads, [])
    })
  })

  it.effect("are what this service has written, or are not known", () =>
    Effect.gen(function* () {
      const genuine = storedRun()
      const { facts, marked } = genuine
      const last = marked.at(-1)!
      const shown = (stored: Partial<LoadedExecution>) => {
        const world = new World()
        world.say({ traces_next: 5 })
        world.stored = [{ ...genuine, ...stored }]
        return prepare(world, 5, world.store)
      }
      assert.deepStrictEqual(yield* shown({}), nothing)
      const forged = new FactChain(TENANT)
      forged.start("run")
      const other = forged.endSpan("run", "span")
      const erased = forged.erase("run")
      const asLast = ({ body, hash, type }: typeof other) => ({
        facts: [...facts.slice(0, -1), loadedFact(body)],
        marked: [...marked.slice(0, -1), { ...last, hash, type }]
      })
      const more = { ...last, type: "span.payload", factNumber: 6 } as const
      const manipulated: Record<string, Partial<LoadedExecution>> = {
        "a fact that only its scope hides": { facts: facts.slice(0, -1) },
        "another fact in its place": asLast(other),
        "an erasure in its place": asLast(erased),
        "one more that is counted": { marked: [...marked, more] },
        "one more with another number for events": {
          marked: marked.map((fact) => ({ ...fact, sequenceNumber: 7 }))
        },
        "another offset": { marked: [...marked.slice(0, -1), { ...last, offset: 99 }] },
        "facts of another execution": {
          executionId: "copy",
          marked: marked.map((fact) => ({ ...fact, executionId: "copy" }))
        },
        "no MACs": { marked: marked.map((fact) => ({ ...fact, mac: "" })) }
      }
      for (const [name, stored] of Object.entries(manipulated)) {
        assert.deepStrictEqual(yield* shown(stored), wanted, name)
      }
    })
  )

  it.effect("are asked for again when the view was rebuilt in between", () => {
    const world = new World()
    world.say({ traces_next: 5 })
    world.duringLoad = () => {
      if (world.loads.length > 1) return
      world.say({ rebuilding: true })
      world.say({ traces_next: 5 })
    }
    return Effect.gen(function* () {
      assert.deepStrictEqual(yield* prepare(world, 5, world.store), nothing)
      assert.deepStrictEqual(world.loads, [wanted, wanted])
    })
  })
})

describe("executions that take long to be loaded", () => {
  const commandOf = (tenantId: string, ...traces: ReadonlyArray<TraceOperation>) => ({
    offset: 0,
    value: null,
    command: { ...ingestCommand(tenantId, 0), kind: "trace" as const, traces }
  })
  const named = (id: string, tenantId = TENANT) => ({
    executions: [{ tenantId, id }],
    spans: []
  })
  const ofRun = [commandOf(TENANT, startSpan("run", "fresh", { fresh: true }))]

  /** A cache on a store of which each load takes so long. */
  const slowly = (takes: World["takes"], more: Partial<World> = {}) => {
    const world = Object.assign(new World(), { takes, stored: [storedRun()] }, more)
    world.say({ traces_next: 9 })
    const state = stateThatForgot(5)
    return Effect.map(EventLog, (log) => {
      const cache = new ExecutionCache(log, world.reader, state, world.store, mac)
      const prepare = (chunk: ReadonlyArray<ReceivedCommand>) =>
        Effect.map(cache.prepare(chunk), ({ unloaded }) => unloaded)
      /** What could not be loaded, and the milliseconds that the chunk has waited for it. */
      const waited = Effect.fnUntraced(function* (chunk: ReadonlyArray<ReceivedCommand>) {
        const before = yield* Clock.currentTimeMillis
        const preparing = yield* Effect.forkChild(
          Effect.flatMap(prepare(chunk), (unloaded) =>
            Effect.map(Clock.currentTimeMillis, (now) => [unloaded, now - before] as const)
          )
        )
        yield* TestClock.adjust("2 seconds")
        return yield* Fiber.join(preparing)
      })
      return { cache, prepare, state, waited, world }
    }).pipe(Effect.provide(world.log))
  }

  it.effect("arrive while the partition goes on, and are asked for once", () =>
    Effect.gen(function* () {
      const { prepare, state, world } = yield* slowly("5 seconds")
      yield* Effect.forkChild(TestClock.adjust("2 seconds"))
      assert.deepStrictEqual(yield* prepare(ofRun), named("run"))
      // Without a wait: no time passes.
      assert.deepStrictEqual(yield* prepare(ofRun), named("run"))
      assert.isUndefined(state.traces.execution(TENANT, "run"))
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual(yield* prepare(ofRun), nothing)
      const entry = state.traces.execution(TENANT, "run")
      assert.strictEqual(entry?.header.fact_count, 5)
      assert.lengthOf(world.loads, 1)
      // Small, and has ended: it stays for those who try again.
      const leaving = (seconds: number) =>
        state.traces.evictable(9, entry!.header.touched_at + seconds * 1_000_000, 1e9).length
      assert.deepStrictEqual([59, 60].map(leaving), [0, 1])
    })
  )

  it.effect("are asked for again when the view was rebuilt meanwhile", () =>
    Effect.gen(function* () {
      const { prepare, world } = yield* slowly("5 seconds")
      yield* Effect.forkChild(TestClock.adjust("2 seconds"))
      yield* prepare(ofRun)
      world.say({ rebuilding: true })
      world.say({ traces_next: 9 })
      // Others have read that it was.
      const other = yield* Effect.forkChild(prepare([commandOf("other", startExecution("own"))]))
      yield* TestClock.adjust("3 seconds")
      yield* Fiber.join(other)
      assert.deepStrictEqual(yield* prepare(ofRun), named("run"))
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(yield* prepare(ofRun), nothing)
      assert.deepStrictEqual(world.loads, [named("run"), named("own", "other"), named("run")])
    })
  )

  it.effect("cost their tenant patience, and no other one", () =>
    Effect.gen(function* () {
      const { waited, world } = yield* slowly("5 seconds")
      const also = commandOf(TENANT, startExecution("also"))
      const other = commandOf("other", startExecution("other"))
      assert.deepStrictEqual(yield* waited(ofRun), [named("run"), 2_000])
      assert.deepStrictEqual(yield* waited([also]), [named("also"), 500])
      world.takes = "1 second"
      assert.deepStrictEqual(yield* waited([other]), [nothing, 1_000])
      // One at a time goes on: the last of the tenant was given up.
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* waited([also]), [nothing, 1_000])
    })
  )

  describe("beside those of other tenants", () => {
    const small = commandOf("other", startSpan("small", "fresh", { fresh: true }))
    const both = [...ofRun, small]
    const isSlow = (tenants: ReadonlySet<string>) => tenants.has(TENANT)
    const joint = {
      executions: [named("run"), named("small", "other")].flatMap(({ executions }) => executions),
      spans: []
    }

    it.effect("hold up none of them, in the same chunk or later", () =>
      Effect.gen(function* () {
        const { prepare, waited, world } = yield* slowly((tenants) =>
          isSlow(tenants) ? "50 seconds" : "900 millis"
        )
        yield* Effect.forkChild(TestClock.adjust("2 seconds"))
        assert.deepStrictEqual(yield* prepare(both), named("run"))
        assert.deepStrictEqual(world.loads, [joint, named("run"), named("small", "other")])
        // It has its patience still, and the other one goes on.
        assert.deepStrictEqual(yield* waited([small]), [nothing, 900])
        assert.deepStrictEqual(yield* prepare(ofRun), named("run"))
        yield* TestClock.adjust("1 minute")
        assert.deepStrictEqual(yield* prepare(ofRun), nothing)
      })
    )

    it.effect("fail alone", () =>
      Effect.gen(function* () {
        const { waited, world } = yield* slowly("10 millis", { fails: isSlow })
        assert.deepStrictEqual(yield* waited(both), [named("run"), 20])
        assert.deepStrictEqual(world.loads, [joint, named("run"), named("small", "other")])
      })
    )

    it.effect("are refused alone where one is not what this service has written", () =>
      Effect.gen(function* () {
        const genuine = storedRun()
        const marked = genuine.marked.map((fact) => ({ ...fact, mac: "" }))
        const { waited, world } = yield* slowly(0, { stored: [{ ...genuine, marked }] })
        assert.deepStrictEqual(yield* waited(both), [named("run"), 0])
        assert.deepStrictEqual(world.loads, [joint])
      })
    )

    it.effect("are asked for by themselves, so many at once, however many tenants wait", () =>
      Effect.gen(function* () {
        const { waited, world } = yield* slowly(({ size }) =>
          size > 1 ? "50 seconds" : "400 millis"
        )
        const tenants = Array.from({ length: 20 }, (_, at) => `tenant-${at}`)
        const chunk = tenants.map((tenantId) => commandOf(tenantId, startExecution("run")))
        const [unloaded, waitedFor] = yield* waited(chunk)
        assert.strictEqual(waitedFor, 2_000)
        // Two rounds of eight: the others had no time, and have lost none of their patience.
        assert.lengthOf(unloaded.executions, 4)
        world.takes = "900 millis"
        assert.deepStrictEqual(yield* waited(chunk.slice(16)), [nothing, 900])
      })
    )
  })

  it.effect("are not asked for again at once when that has failed", () =>
    Effect.gen(function* () {
      const { prepare, waited, world } = yield* slowly("1 second", { fails: true })
      assert.deepStrictEqual(yield* waited(ofRun), [named("run"), 1_000])
      // Since then a second has passed, and it is held back for as long as four.
      yield* TestClock.adjust("2999 millis")
      assert.deepStrictEqual(yield* prepare(ofRun), named("run"))
      assert.lengthOf(world.loads, 1)
      world.fails = false
      yield* TestClock.adjust("1 milli")
      assert.deepStrictEqual(yield* waited(ofRun), [nothing, 1_000])
    })
  )
})

describe("events that the window of duplicates may have forgotten", () => {
  const again: ReadonlyArray<ReceivedCommand> = [
    {
      offset: 0,
      value: null,
      command: {
        ...ingestCommand(TENANT, 0),
        kind: "trace",
        traces: [
          otlpEvents("run", "span", [
            { eventId: "event-run-1", eventType: "llm.request", timestamp: at(0) }
          ])
        ]
      }
    }
  ]
  /** What was prepared with what the store says of the event. */
  const prepared = (event: StoredEvent) => {
    const world = new World()
    world.say({ traces_next: 5 })
    world.stored = [storedRun()]
    world.events = [event]
    const state = stateThatForgot(5)
    const forgetful = { ...state, forgottenEvents: new ForgottenEvents(5) }
    return EventLog.use((log) =>
      new ExecutionCache(log, world.reader, forgetful, world.store, mac).prepare(again)
    ).pipe(Effect.provide(world.log))
  }
  const genuine = storedRun().marked.find(({ type }) => type === "span.event")!
  const body = withoutDetails(eventOfRun.body)
  const key = traceEventKeyOf(TENANT, "event-run-1")

  it.effect("are known by what this service has written", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* prepared({ body, marked: genuine }), {
        unloaded: nothing,
        storedEvents: new Set([key])
      })
    })
  )

  it.effect("are not looked up again at once when that has failed", () => {
    const world = new World()
    world.say({ traces_next: 5 })
    let lookUps = 0
    const storedEvents = () => {
      lookUps += 1
      return Effect.never
    }
    const state = stateThatForgot(0)
    assert.isTrue(takeLoaded(state.traces, storedRun()))
    const forgetful = { ...state, forgottenEvents: new ForgottenEvents(5) }
    return Effect.gen(function* () {
      const log = yield* EventLog
      const store = { ...world.store, storedEvents }
      const cache = new ExecutionCache(log, world.reader, forgetful, store, mac)
      yield* Effect.forkChild(TestClock.adjust("2 seconds"))
      for (const expected of [1, 1]) {
        const { unloaded } = yield* cache.prepare(again)
        assert.deepStrictEqual(unloaded.executions, wanted.executions)
        assert.strictEqual(lookUps, expected)
      }
      yield* TestClock.adjust("8 seconds")
      yield* Effect.forkChild(TestClock.adjust("2 seconds"))
      yield* cache.prepare(again)
      assert.strictEqual(lookUps, 2)
    }).pipe(Effect.provide(world.log))
  })

  it.effect("are known where only those of another tenant can't be looked up", () => {
    const world = new World()
    world.say({ traces_next: 9 })
    return Effect.gen(function* () {
      const log = yield* EventLog
      const others = new FactChain("other")
      others.start("run")
      others.span("run", "span")
      const event = others.event("run", "span", 1)
      others.endSpan("run", "span")
      others.end("run")
      const facts = bodies(others.all.filter(({ type }) => type !== "span.event")).map(loadedFact)
      const marked = others.all.map((fact) => markedFact(fact))
      const [{ command }] = again as readonly [Extract<ReceivedCommand, { command: unknown }>]
      const both = [
        ...again,
        { offset: 1, value: null, command: { ...command, tenantId: "other" } }
      ]
      const right = { body: withoutDetails(event.body), marked: markedFact(event) }
      const unavailable = new StoreUnavailable({ operation: "storedEvents", cause: "away" })
      const answers = {
        "long to come": Effect.never,
        "a failure": Effect.fail(unavailable),
        "not what was written": Effect.succeed([{ body, marked: { ...genuine, mac: "" } }, right])
      }
      for (const [name, ofBoth] of Object.entries(answers)) {
        const storedEvents = (sought: ReadonlyArray<SoughtEvents>) =>
          sought.some(({ tenantId }) => tenantId === TENANT) ? ofBoth : Effect.succeed([right])
        const state = stateThatForgot(0)
        assert.isTrue(takeLoaded(state.traces, storedRun()))
        assert.isTrue(
          takeLoaded(state.traces, { tenantId: "other", executionId: "run", facts, marked })
        )
        const forgetful = { ...state, forgottenEvents: new ForgottenEvents(9) }
        const store = { ...world.store, storedEvents }
        const cache = new ExecutionCache(log, world.reader, forgetful, store, mac)
        yield* Effect.forkChild(TestClock.adjust("2 seconds"))
        assert.deepStrictEqual(
          yield* cache.prepare(both),
          {
            unloaded: { executions: [{ tenantId: TENANT, id: "run" }], spans: [] },
            storedEvents: new Set([traceEventKeyOf("other", "event-run-1")])
          },
          name
        )
      }
    }).pipe(Effect.provide(world.log))
  })

  it.effect("are not known without a store", () =>
    Effect.gen(function* () {
      const state = stateThatForgot(0)
      assert.isTrue(takeLoaded(state.traces, storedRun()))
      const forgetful = { ...state, forgottenEvents: new ForgottenEvents(5) }
      const world = new World()
      const { unloaded } = yield* EventLog.use((log) =>
        new ExecutionCache(log, world.reader, forgetful, undefined, mac).prepare(again)
      ).pipe(Effect.provide(world.log))
      assert.deepStrictEqual(unloaded.executions, wanted.executions)
    })
  )

  it.effect("are not known by anything else: what names them is refused", () =>
    Effect.gen(function* () {
      const forged: Record<string, StoredEvent> = {
        "another MAC": { body, marked: { ...genuine, mac: "0123456789abcdef" } },
        "another id": { body: body.replace("event-run-1", "event-run-2"), marked: genuine },
        "another fact": { body: withoutDetails(storedRun().facts[0]!.body), marked: genuine }
      }
      for (const [name, event] of Object.entries(forged)) {
        const { storedEvents, unloaded } = yield* prepared(event)
        assert.deepStrictEqual(unloaded.executions, wanted.executions, name)
        assert.strictEqual(storedEvents.size, 0, name)
      }
    })
  )
})
