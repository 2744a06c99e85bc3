/**
 * The traces of one partition on a real log and a real store, with a sequencer and a projection
 * that a test starts, stops and hinders one by one. Writes what a request would have written and reads
 * what the log, the changelog and the store say.
 */
import { Deferred, Effect, Fiber, Layer, Metric, type Scope } from "effect"
import { layerChainEnds } from "../../src/actors/chainEnds/ChainEndsOfLog.ts"
import { layerLogFollower } from "../../src/actors/follower/LogFollower.ts"
import { runProjection } from "../../src/actors/projection/Projection.ts"
import {
  runSequencer,
  type SequencerFailure,
  tracesInMemory
} from "../../src/actors/sequencer/Sequencer.ts"
import { makeReceiptId, uuidv7 } from "../../src/domain/Identifiers.ts"
import type { Command } from "../../src/domain/records/Command.ts"
import { EMPTY_BATCH } from "../../src/domain/records/EventBatch.ts"
import { noProgress, type Progress } from "../../src/domain/records/Progress.ts"
import type { Receipt } from "../../src/domain/records/Receipt.ts"
import { ATTEMPT_HEADER } from "../../src/domain/records/RecordHeaders.ts"
import { currentTime } from "../../src/domain/Timestamp.ts"
import { parseFact } from "../../src/domain/traces/FactText.ts"
import type { TraceFact } from "../../src/domain/traces/TraceFact.ts"
import type { TraceOperation } from "../../src/domain/traces/TraceOperation.ts"
import { foldFacts } from "../../src/domain/traces/TraceView.ts"
import type { EventLog } from "../../src/ports/EventLog.ts"
import { StoreUnavailable } from "../../src/ports/EventStore.ts"
import { TraceStore } from "../../src/ports/TraceStore.ts"
import { layerTraceVerifier, TraceVerifier } from "../../src/verify/TraceVerifier.ts"
import { commandRecord, ingestCommand } from "./Events.ts"
import { eventually } from "./Eventually.ts"
import { append, decidedEnd, readAll } from "./Log.ts"
import { TEST_SECRET } from "./Program.ts"
import { checkpointSigner } from "./Signer.ts"
import type { Stores } from "./Store.ts"
import { allFacts } from "./StoredTraces.ts"

export const traceCommand = (
  tenantId: string,
  operations: ReadonlyArray<TraceOperation>
): Command => ({
  kind: "trace",
  tenantId,
  receiptId: makeReceiptId(TEST_SECRET, tenantId, uuidv7()),
  attempt: crypto.randomUUID(),
  receivedAt: currentTime(),
  events: EMPTY_BATCH,
  errors: [],
  warnings: [],
  traces: operations.map((operation, index) => ({ ...operation, index }))
})

/** What became of each operation, in the order of the request; `failed` if nothing was done. */
export const outcomesOf = ({ errors, results = [], status }: Receipt): ReadonlyArray<string> =>
  status === "failed"
    ? ["failed"]
    : [
        ...results.map(({ index, outcome }) => [index, outcome] as const),
        ...errors.map(({ code, index }) => [index, code] as const)
      ]
        .sort(([left], [right]) => left - right)
        .map(([, said]) => said)

/** An actor that runs until it is stopped, in the scope of the test. */
class Running {
  #fiber: Fiber.Fiber<unknown, unknown> | undefined

  start<A, E, R>(actor: Effect.Effect<A, E, R>) {
    return Effect.map(Effect.forkScoped(actor), (fiber) => {
      this.#fiber = fiber
    })
  }

  readonly stop = Effect.suspend(() => {
    const fiber = this.#fiber
    this.#fiber = undefined
    return fiber === undefined ? Effect.void : Fiber.interrupt(fiber)
  })
}

/** Every committed fact, in the order of the topic. */
export const factsInTopic = readAll("traces").pipe(
  Effect.map((records) => records.map(({ value }) => parseFact(value!.toString())!))
)

const receiptsByAttempt = readAll("receipts").pipe(
  Effect.map(
    (records): ReadonlyMap<string, Receipt> =>
      new Map(
        records.map(({ headers, value }) => [
          headers[ATTEMPT_HEADER]?.toString() ?? "",
          JSON.parse(value!.toString()) as Receipt
        ])
      )
  )
)

export const progress = readAll("progress").pipe(
  Effect.map((records) => {
    const last = records.at(-1)?.value
    return last == null ? noProgress(0) : (JSON.parse(last.toString()) as Progress)
  })
)

export class TracePartition {
  readonly tenantId: string
  readonly #sequencer = new Running()
  readonly #projection = new Running()
  /** Times that the sequencer has asked the store. */
  loads = 0
  /** Ids of events that the sequencer remembers, from its next start on. */
  dedupWindow = 1_000
  /** The store does not answer the sequencer. */
  storeFails = false

  constructor(tenantId: string) {
    this.tenantId = tenantId
  }

  /** Until it is ready; fails with what it refuses to start for. */
  readonly startSequencer = Effect.suspend(() =>
    Effect.gen({ self: this }, function* () {
      const { load, position, storedEvents } = yield* TraceStore
      const traceStore = {
        position,
        storedEvents,
        load: (...wanted: Parameters<typeof load>) => {
          this.loads += 1
          return this.storeFails
            ? Effect.fail(new StoreUnavailable({ operation: "load", cause: new Error("away") }))
            : load(...wanted)
        }
      }
      const windows = { dedup: this.dedupWindow, idempotency: 100 }
      const settings = { ...checkpointSigner, windows, traceStore }
      const ready = yield* Deferred.make<void, SequencerFailure>()
      yield* this.#sequencer.start(
        runSequencer(0, settings, () => Effect.asVoid(Deferred.succeed(ready, undefined))).pipe(
          Effect.tapError((error) => Deferred.fail(ready, error))
        )
      )
      yield* eventually("the sequencer is ready", Effect.as(Deferred.await(ready), true))
    })
  )

  readonly stopSequencer = this.#sequencer.stop

  readonly restartSequencer = Effect.andThen(this.stopSequencer, this.startSequencer)

  readonly startProjection = Effect.suspend(() =>
    this.#projection.start(
      runProjection({ settleMs: 0 }).pipe(Effect.andThen(Effect.never), Effect.scoped)
    )
  )

  readonly stopProjection = this.#projection.stop

  /** Commands, one behind the other; their receipts once all that they make can be read. */
  submit(...commands: ReadonlyArray<Command>) {
    return Effect.gen(function* () {
      yield* append(commands.map((command) => commandRecord(command)))
      const decided = yield* eventually(
        `the receipts of ${commands.length} commands`,
        receiptsByAttempt,
        (known) => commands.every(({ attempt }) => known.has(attempt))
      )
      // Of one transaction the receipts may be read sooner than the rest.
      yield* Effect.forEach(["events", "traces"] as const, (topic) => decidedEnd(topic))
      return commands.map(({ attempt }) => decided.get(attempt)!)
    })
  }

  /** What becomes of operations in one command. */
  run(...operations: ReadonlyArray<TraceOperation>) {
    return Effect.map(this.submit(traceCommand(this.tenantId, operations)), (receipts) =>
      receipts.flatMap(outcomesOf)
    )
  }

  /** What becomes of operations, a command for each. */
  each(...operations: ReadonlyArray<TraceOperation>) {
    return Effect.map(
      this.submit(...operations.map((one) => traceCommand(this.tenantId, [one]))),
      (receipts) => receipts.flatMap(outcomesOf)
    )
  }

  /** An audit event goes its way; the number it was given. */
  audit() {
    return Effect.map(
      this.submit(ingestCommand(this.tenantId, 1)),
      ([receipt]) => receipt?.last_sequence_number
    )
  }

  /** The store shows the topic's end. */
  readonly shown = Effect.gen(function* () {
    const end = yield* decidedEnd("traces")
    yield* eventually(
      `the store shows alk.traces up to ${end}`,
      progress,
      ({ rebuilding, traces_next }) => !rebuilding && traces_next >= end
    )
  })

  /** Executions and spans that the changelog holds. */
  readonly changelog = readAll("state").pipe(
    Effect.map((records) => {
      const live = new Set<string>()
      for (const { key, value } of records) {
        const name = key?.toString() ?? ""
        if (value === null) live.delete(name)
        else if (name.startsWith("x/") || name.startsWith("s/")) live.add(name)
      }
      return [...live]
    })
  )

  /** Neither memory nor changelog hold anything of any execution. */
  readonly forgotten = Effect.gen({ self: this }, function* () {
    const isEmpty = (live: ReadonlyArray<string>) => live.length === 0
    yield* eventually("the changelog has no executions", this.changelog, isEmpty)
    const inMemory = Metric.value(Metric.withAttributes(tracesInMemory, { partition: "0" }))
    yield* eventually("memory has no executions", inMemory, ({ value }) => value === 0)
  })

  /** Everything that the store holds of an execution. */
  stored(executionId: string) {
    return Effect.gen({ self: this }, function* () {
      yield* this.shown
      const store = yield* TraceStore
      const bodies = yield* allFacts(store, this.tenantId, executionId)
      return bodies.map((body) => parseFact(body)!)
    })
  }

  /** The same once it is so many facts. */
  holds(executionId: string, count: number) {
    const what = `${count} facts of ${executionId} in the store`
    return eventually(what, this.stored(executionId), ({ length }) => length === count)
  }

  /** The execution as the store shows it; its facts are numbered without a gap. */
  view(executionId: string) {
    return Effect.map(this.stored(executionId), (facts: ReadonlyArray<TraceFact>) => {
      facts.forEach(({ fact_number }, index) => {
        if (fact_number !== index + 1) throw new Error(`fact ${fact_number} at place ${index + 1}`)
      })
      return foldFacts(facts)
    })
  }

  verify(executionId: string) {
    return Effect.gen({ self: this }, function* () {
      const verifier = yield* TraceVerifier
      return yield* verifier.verify(this.tenantId, executionId)
    }).pipe(
      Effect.provide(
        layerTraceVerifier.pipe(
          Layer.provide(layerChainEnds(true)),
          Layer.provide(layerLogFollower)
        )
      ),
      Effect.scoped
    )
  }
}

/** What every test needs. */
export type TraceContext = EventLog | Stores | Scope.Scope
