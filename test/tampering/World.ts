/**
 * One installation whose data is tampered with: topics and a database of its own, and for each case
 * of the matrix a tenant with 12 events, 17 trace facts of 3 executions and signed checkpoints in
 * the middle and at the end. What is done to one tenant must be found there, and nowhere else.
 */
import { Effect, Layer, Result } from "effect"
import { runProjection } from "../../src/actors/projection/Projection.ts"
import { runSequencer } from "../../src/actors/sequencer/Sequencer.ts"
import type { AuditEvent } from "../../src/domain/events/AuditEvent.ts"
import { emptyFilter } from "../../src/domain/events/EventFilter.ts"
import type { Command } from "../../src/domain/records/Command.ts"
import { CommandWriter } from "../../src/domain/records/CommandWriter.ts"
import { WRITER_HEADER } from "../../src/domain/records/RecordHeaders.ts"
import { nowMicros } from "../../src/domain/Timestamp.ts"
import { EventStore } from "../../src/ports/EventStore.ts"
import { TraceStore } from "../../src/ports/TraceStore.ts"
import { Verifier } from "../../src/verify/Verifier.ts"
import {
  addEvent,
  endExecution,
  endSpan,
  erase,
  startExecution,
  startSpan
} from "../actors/support/Traces.ts"
import { erasureOf, layerVerification } from "../integration/support/Evidence.ts"
import { commandRecord, ingestCommand } from "../support/Events.ts"
import { eventually } from "../support/Eventually.ts"
import { append, readAll, readAtLeast } from "../support/Log.ts"
import { checkpointSigner } from "../support/Signer.ts"
import { intruder } from "../support/Store.ts"
import { allFacts } from "../support/StoredTraces.ts"
import { traceCommand } from "../support/TracePartition.ts"

/** Events before the erasure, and how many there are in the end. */
const FIRST_EVENTS = 7
export const EVENTS = 12
export const ERASED_EVENT = 3
export const FACTS = 17

/** What a tenant holds before it is tampered with. */
export interface Subject {
  readonly tenantId: string
  /** Bodies on `alk.events` and `alk.traces`, by sequence from 1. */
  readonly events: ReadonlyArray<string>
  readonly facts: ReadonlyArray<string>
}

export interface Column {
  readonly name: string
  readonly type: string
  /** `EPHEMERAL` columns are not stored, `MATERIALIZED` ones can't be written. */
  readonly kind: string
}

export type Columns = ReadonlyMap<string, ReadonlyArray<Column>>

/** Columns that hold something, of every table of the database. */
export const columnsOf = (database: string): Effect.Effect<Columns> =>
  Effect.promise(async () => {
    const client = intruder()
    const answer = await client.query({
      query:
        "SELECT table, name, type, default_kind AS kind FROM system.columns"
        + ` WHERE database = '${database}' AND default_kind != 'EPHEMERAL'`
        + " ORDER BY table, position",
      format: "JSONEachRow"
    })
    const columns = await answer.json<Column & { readonly table: string }>()
    await client.close()
    return Map.groupBy(columns, ({ table }) => table)
  })

/** Only a test decides when rows are merged: what is added must not vanish by chance before. */
export const stopMerges = (database: string, tables: Iterable<string>) =>
  [...tables].map(
    (table) =>
      `ALTER TABLE ${database}.${table} MODIFY SETTING max_bytes_to_merge_at_max_space_in_pool = 1,`
      + " max_bytes_to_merge_at_min_space_in_pool = 1"
  )

const settings = { ...checkpointSigner, windows: { dedup: 10_000, idempotency: 1_000 } }

/** Sequencer, projection, follower and verification of a service, while the scope is open. */
export const running = Effect.gen(function* () {
  const traceStore = yield* TraceStore
  yield* Effect.forkScoped(runSequencer(0, { ...settings, traceStore }, () => Effect.void))
  yield* runProjection({ settleMs: 0 })
  return yield* Layer.build(Layer.fresh(layerVerification))
})

/** What `running` provides. */
export type Running = Effect.Success<typeof running>

const writer = new CommandWriter()

/** Numbered as API processes do: by this a copy of a command is known. */
const submit = (commands: ReadonlyArray<Command>) =>
  append(
    commands.map((command) => {
      const record = commandRecord(command)
      const headers = { ...record.headers, [WRITER_HEADER]: writer.next(nowMicros()) }
      return { ...record, headers }
    })
  )

const checkpoint = (tenantId: string): Command => ({
  ...ingestCommand(tenantId, 0),
  kind: "checkpoint"
})

/** Executions x1, x2 and x3 start first, then their spans s1 to s3: facts 7 to 9. */
const executions = (tenantId: string): Command =>
  traceCommand(tenantId, [
    ...["1", "2"].flatMap((name) => [
      startExecution(`x${name}`),
      startSpan(`x${name}`, `s${name}`),
      addEvent(`s${name}`, `e${name}`),
      endSpan(`s${name}`),
      endExecution(`x${name}`)
    ]),
    startExecution("x3"),
    startSpan("x3", "s3"),
    addEvent("s3", "e3")
  ])

const textsOf = (topic: "events" | "traces") =>
  Effect.map(readAll(topic), (records) =>
    records.flatMap(({ key, value }) =>
      value === null ? [] : [{ tenantId: key?.toString() ?? "", body: value.toString() }]
    )
  )

/**
 * Write what tenants hold, in the order of the names. Event 8 erases event 3, and fact 17 execution
 * x2, where that is wanted: each erasure takes the projection some time. Elsewhere they are others.
 */
export const populate = Effect.fnUntraced(function* (
  tenants: ReadonlyArray<string>,
  isErased: (tenantId: string) => boolean
) {
  const each = (command: (tenantId: string) => Command) => tenants.map(command)
  yield* submit([...each((one) => ingestCommand(one, FIRST_EVENTS)), ...each(executions)])
  yield* readAtLeast("events", FIRST_EVENTS * tenants.length)
  yield* readAtLeast("traces", (FACTS - 1) * tenants.length)
  const erasures = (yield* textsOf("events"))
    .map(({ body }) => JSON.parse(body) as AuditEvent)
    .filter(({ sequence_number }) => sequence_number === ERASED_EVENT)
    .map((event) =>
      isErased(event.tenant_id) ? erasureOf(event) : ingestCommand(event.tenant_id, 1)
    )
  yield* submit([
    ...erasures,
    ...each(checkpoint),
    ...each((one) => traceCommand(one, [isErased(one) ? erase("x2") : addEvent("s3", "e4")])),
    ...each((one) => ingestCommand(one, EVENTS - FIRST_EVENTS - 1)),
    ...each(checkpoint)
  ])
  yield* readAtLeast("events", EVENTS * tenants.length)
  yield* readAtLeast("traces", FACTS * tenants.length)
  yield* readAtLeast("checkpoints", 4 * tenants.length)
  const [events, facts] = [yield* textsOf("events"), yield* textsOf("traces")]
  const bodies = (of: typeof events) => Map.groupBy(of, ({ tenantId }) => tenantId)
  const [ofEvents, ofFacts] = [bodies(events), bodies(facts)]
  return new Map(
    tenants.map((tenantId): [string, Subject] => [
      tenantId,
      {
        tenantId,
        events: ofEvents.get(tenantId)!.map(({ body }) => body),
        facts: ofFacts.get(tenantId)!.map(({ body }) => body)
      }
    ])
  )
})

/** An event, an execution and checkpoints more of each tenant; ends once the topics hold them. */
export const writeMore = Effect.fnUntraced(function* (
  tenants: ReadonlyArray<string>,
  execution: string
) {
  const before = [(yield* readAll("events")).length, (yield* readAll("traces")).length] as const
  yield* submit(
    tenants.flatMap((tenantId) => [
      ingestCommand(tenantId, 1),
      traceCommand(tenantId, [startExecution(execution)]),
      checkpoint(tenantId)
    ])
  )
  yield* readAtLeast("events", before[0] + tenants.length)
  yield* readAtLeast("traces", before[1] + 2 * tenants.length)
})

const UNAVAILABLE = ["StoreUnavailable", "LogUnavailable"]
/** Milliseconds in which a store of many tenants is rebuilt on a busy machine. */
const REBUILT_MS = 240_000

/** Asks again while the store is not caught up, is rebuilt or does not answer. */
export const onceReadable = <A, E extends { readonly _tag?: string }, R>(
  ask: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  eventually(
    "the store answers",
    Effect.result(ask),
    (answer) => Result.isSuccess(answer) || !UNAVAILABLE.includes(answer.failure._tag ?? ""),
    REBUILT_MS
  ).pipe(Effect.flatMap(Effect.fromResult))

/** Both chains. */
export const verifyTenant = (tenantId: string) =>
  onceReadable(Verifier.use((verifier) => verifier.verifyTenant({ tenantId, requireHead: true })))

/** What the API answers of a tenant's events and executions. */
export const answersOf = Effect.fnUntraced(function* (tenantId: string) {
  const events = yield* EventStore
  const traces = yield* TraceStore
  const query = { tenantId, filter: emptyFilter, order: "asc" as const, offset: 0, limit: 100 }
  const { bodies, total } = yield* events.page(query, false)
  const facts = yield* Effect.forEach(["x1", "x2", "x3"], (id) => allFacts(traces, tenantId, id))
  return {
    events: bodies.slice(0, EVENTS),
    isCounted: total === bodies.length,
    facts: facts.flat()
  }
})
