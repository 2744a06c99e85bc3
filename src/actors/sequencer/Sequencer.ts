/**
 * The sequencer of one partition: the only writer of its chains. It fences every earlier writer,
 * restores its state, then turns commands into events, receipts and state changes, one transaction
 * per chunk. Only what is committed enters its state; after any failure it is thrown away.
 */
import { Clock, Effect, Fiber, Metric } from "effect"
import { defined } from "../../domain/Defined.ts"
import { inSlices } from "../../domain/InSlices.ts"
import { counterOf, gaugeOf, histogramOf } from "../../domain/metrics/Metrics.ts"
import { checkpointHeaders, traceFactHeaders } from "../../domain/records/CloudEvent.ts"
import { CommandUnreadable, decodeCommand, formatIn } from "../../domain/records/CommandBytes.ts"
import { readWriterPosition } from "../../domain/records/CommandWriter.ts"
import type { AttemptVerdict, Receipt, ReceiptRecordKind } from "../../domain/records/Receipt.ts"
import {
  ATTEMPT_HEADER,
  COMMAND_HEADER,
  KIND_HEADER,
  REASON_HEADER,
  RECEIPT_HEADER,
  TENANT_HEADER,
  WRITER_HEADER
} from "../../domain/records/RecordHeaders.ts"
import { FORMAT_HEADER, FORMAT_VERSION } from "../../domain/records/Topics.ts"
import type { ContentRecord } from "../../domain/registry/RegistryContent.ts"
import { registryRecord } from "../../domain/registry/RegistryEntry.ts"
import { currentTime, formatMicros, nowMicros } from "../../domain/Timestamp.ts"
import {
  EventLog,
  type Fetched,
  type LogRecord,
  type LogUnavailable,
  type NewRecord,
  type OffsetOutOfRange,
  type PackedRecords,
  type Placed,
  type TransactionalWriter,
  type WriterFenced
} from "../../ports/EventLog.ts"
import { FactMac } from "../../ports/FactMac.ts"
import { LINES_MAX, malformedRecords } from "../log/Malformed.ts"
import { REGISTRY } from "../log/RegistryChanges.ts"
import { advance, endsAfter, type LogEnds, stateRecords } from "./Changelog.ts"
import { IdTexts } from "./IdTexts.ts"
import { withoutMisplaced } from "./Misplaced.ts"
import { trimRegistry } from "./RegistryTrim.ts"
import { itemsRejected } from "./RejectedItems.ts"
import {
  isNewer,
  newerFormat,
  PartitionRefused,
  type Restoring,
  type SignedCheckpoints
} from "./Restoring.ts"
import { stepCheckpoints } from "./SequencerCheckpoints.ts"
import type { ReceiptDraft, StateChanges } from "./SequencerDraft.ts"
import { changeKey, type KeyChange } from "./SequencerKeys.ts"
import { restore } from "./SequencerRestore.ts"
import {
  appliedRecord,
  newStateRecord,
  type SequencerState,
  type Windows,
  windowEnds
} from "./SequencerState.ts"
import { PURGED_MAX, type ReceivedCommand, stepDue, stepEach, stepPurge } from "./SequencerStep.ts"
import { checkSigned, sizesOf } from "./SignedHistory.ts"
import { ExecutionCache } from "./traces/ExecutionCache.ts"
import type { TraceLookup } from "./traces/VisibleStore.ts"

/** Bytes of one fetch of commands, as they are compressed in the log. */
const FETCH_BYTES = 4 * 1_048_576
/** Milliseconds that a fetch waits for the next command. */
const FETCH_WAIT_MS = 1_000
/** Events in one transaction at most: about a third of a second of full load. */
const CHUNK_EVENTS_MAX = 10_000
/** Microseconds between two looks at what is due for a checkpoint. */
const CHECKPOINT_LOOK_MICROS = 1_000_000
/** Microseconds between two looks at share links that have ended. */
const PURGE_LOOK_MICROS = 60_000_000
/** Microseconds between two looks at executions that end by the clock. */
const DUE_LOOK_MICROS = 2_000_000
/** Microseconds between two attempts to ask what was signed. */
const SIGNED_LOOK_MICROS = 60_000_000
/** Microseconds between two looks at how long the registry's topic is. */
const TRIM_LOOK_MICROS = 3_600_000_000
/** Bytes of the events in one transaction at most, before compression. */
const CHUNK_BYTES_MAX = 16 * 1_048_576

export type SequencerFailure = LogUnavailable | OffsetOutOfRange | WriterFenced | PartitionRefused

export interface SequencerSettings extends KeyChange {
  readonly windows: Windows
  /**
   * Where executions are looked up that were evicted; without it commands that name such are
   * refused.
   */
  readonly traceStore?: TraceLookup
  /** Where checkpoints are found that the log has lost. */
  readonly checkpointStore?: SignedCheckpoints
}

const committedEvents = counterOf("alk_events_committed_total")
const deduplicatedEvents = counterOf("alk_events_deduplicated_total")
const committedFacts = counterOf("alk_trace_facts_committed_total")
const repairsMade = counterOf("alk_repairs_total")
export const tracesInMemory = gaugeOf("alk_sequencer_trace_entries")
const quarantinedCommands = counterOf("alk_commands_quarantined_total")
const commitSeconds = histogramOf("alk_commit_duration_seconds")
/** Of all chains: those that don't grow get no new ones. */
const newestCheckpoint = gaugeOf("alk_checkpoint_newest_timestamp_seconds")
const sequencerLag = gaugeOf("alk_sequencer_lag_commands")

const headerText = (record: LogRecord, name: string): string | undefined =>
  record.headers[name]?.toString()

/** A record of `alk.commands`, read. Refuses formats that only a newer program understands. */
const receivedCommandOf = (
  record: LogRecord,
  partition: number
): ReceivedCommand | PartitionRefused => {
  const format = formatIn(record.headers[FORMAT_HEADER])
  if (record.refused !== undefined) {
    const { offset, refused, value } = record
    // Nothing of it counts: a receipt that it names may be that of another command.
    const unnamed = { tenantId: undefined, receiptId: undefined }
    return { offset, value, format, unreadable: refused, isForeign: true, ...unnamed }
  }
  if (isNewer(format)) return newerFormat(partition, record.offset, format)
  const { offset, value } = record
  const position = readWriterPosition(headerText(record, WRITER_HEADER) ?? "")
  const place = { offset, value, format, ...(position === undefined ? {} : { position }) }
  try {
    return { ...place, command: decodeCommand(value, format) }
  } catch (error) {
    return {
      ...place,
      unreadable: error instanceof CommandUnreadable ? error.message : String(error),
      tenantId: headerText(record, TENANT_HEADER),
      receiptId: headerText(record, RECEIPT_HEADER)
    }
  }
}

/** What was fetched, read up to the first record that may not be passed over. */
function* receivedOf(records: ReadonlyArray<LogRecord>, partition: number) {
  const commands: Array<ReceivedCommand> = []
  for (const record of records) {
    yield
    const received = receivedCommandOf(record, partition)
    if (received instanceof PartitionRefused) return { commands, refused: received }
    commands.push(received)
  }
  return { commands, refused: undefined }
}

/** A receipt that only lacks the form of its record. */
type WholeReceipt = Omit<Receipt, "ids"> & Pick<ReceiptDraft, "ids">

const NO_IDS = '"ids":[]'

/** The JSON of a receipt; ids that are JSON already are put in as they are. */
const receiptValue = (value: WholeReceipt | AttemptVerdict): string | Buffer => {
  if (!("ids" in value) || !(value.ids instanceof IdTexts)) return JSON.stringify(value)
  const json = JSON.stringify({ ...value, ids: [] })
  // Quotes inside of texts have a backslash: the first place is the member's.
  const at = json.indexOf(NO_IDS) + NO_IDS.length - 2
  return Buffer.concat([
    Buffer.from(json.slice(0, at)),
    value.ids.json,
    Buffer.from(json.slice(at + 2))
  ])
}

const receiptRecord = (
  partition: number,
  kind: ReceiptRecordKind,
  attempt: string,
  commandOffset: number,
  value: WholeReceipt | AttemptVerdict
): NewRecord => ({
  topic: "receipts",
  partition,
  key: value.tenant_id,
  value: receiptValue(value),
  headers: {
    [FORMAT_HEADER]: String(FORMAT_VERSION),
    [KIND_HEADER]: kind,
    [ATTEMPT_HEADER]: attempt,
    [COMMAND_HEADER]: String(commandOffset),
    [RECEIPT_HEADER]: value.receipt_id,
    [TENANT_HEADER]: value.tenant_id
  }
})

/** What other records refer to by its offset: events and trace facts. */
const chainedRecords = (
  partition: number,
  changes: StateChanges,
  serviceName: string
): ReadonlyArray<NewRecord | PackedRecords> => [
  ...changes.events.packed(partition),
  ...changes.traces.facts.map(
    (fact): NewRecord => ({
      topic: "traces",
      partition,
      key: fact.tenantId,
      value: fact.body,
      headers: traceFactHeaders(serviceName, fact)
    })
  )
]

/** Receipts, quarantine, registry and state: what follows once the events have their offsets. */
const followingRecords = (
  state: SequencerState,
  changes: StateChanges,
  { offsets }: Placed,
  serviceName: string
): { readonly records: ReadonlyArray<NewRecord>; readonly ends: LogEnds } => {
  const { partition } = state
  const base = offsets.events ?? state.eventsNext
  const tracesBase = offsets.traces ?? state.tracesNext
  const counts = { events: changes.events.count, traces: changes.traces.facts.length }
  const ends = endsAfter(state, counts, offsets)
  const records: Array<NewRecord> = []
  for (const { attempt, eventsBefore, factsBefore, probe, receipt } of changes.receipts) {
    const whole = {
      ...receipt,
      events_next: eventsBefore === 0 ? state.eventsNext : base + eventsBefore,
      ...(receipt.results === undefined
        ? {}
        : { traces_next: factsBefore === 0 ? state.tracesNext : tracesBase + factsBefore })
    }
    const kind = probe ? "probe" : "outcome"
    records.push(receiptRecord(partition, kind, attempt, receipt.command_offset, whole))
  }
  for (const verdict of changes.verdicts) {
    records.push(receiptRecord(partition, "verdict", verdict.attempt, changes.applied, verdict))
  }
  for (const { format, kind, offset, reason, value } of changes.quarantined) {
    records.push({
      topic: "quarantine",
      partition,
      key: String(offset),
      value: value ?? "",
      headers: {
        [COMMAND_HEADER]: String(offset),
        [REASON_HEADER]: reason,
        [KIND_HEADER]: kind,
        // What another producer wrote may say anything.
        ...(Number.isSafeInteger(format) ? { [FORMAT_HEADER]: String(format) } : {})
      }
    })
  }
  const registered: Array<ContentRecord> = changes.registry.map(registryRecord)
  if (registered.length > 0) registered.push(state.registryContent.after(registered))
  for (const record of registered) records.push({ ...REGISTRY, ...record })
  for (const checkpoint of changes.checkpoints) {
    records.push({
      topic: "checkpoints",
      partition,
      key: checkpoint.tenant_id,
      value: JSON.stringify(checkpoint),
      headers: checkpointHeaders(serviceName, checkpoint)
    })
  }
  for (const record of stateRecords(state, changes, ends)) {
    records.push(newStateRecord(partition, record))
  }
  return { records, ends }
}

/** Events or facts that a received command becomes, about. */
const weightOf = (received: ReceivedCommand): number =>
  "command" in received ? received.command.events.count + (received.command.traces?.length ?? 0) : 0

/** Cut received commands into transactions of bounded size; one command is never cut. */
const toChunks = (
  receivedCommands: ReadonlyArray<ReceivedCommand>
): ReadonlyArray<Array<ReceivedCommand>> => {
  const chunks: Array<Array<ReceivedCommand>> = []
  let current: Array<ReceivedCommand> = []
  let events = 0
  let bytes = 0
  for (const received of receivedCommands) {
    const more = weightOf(received)
    const size = more === 0 ? 0 : (received.value?.length ?? 0)
    const full = events + more > CHUNK_EVENTS_MAX || bytes + size > CHUNK_BYTES_MAX
    if (current.length > 0 && full) {
      chunks.push(current)
      current = []
      events = 0
      bytes = 0
    }
    current.push(received)
    events += more
    bytes += size
  }
  if (current.length > 0) chunks.push(current)
  return chunks
}

const report = (changes: StateChanges, partition: number) =>
  Effect.gen(function* () {
    const events = changes.events.count
    if (events > 0) yield* Metric.update(committedEvents, events)
    const facts = changes.traces.facts.length
    if (facts > 0) yield* Metric.update(committedFacts, facts)
    if (changes.counts.deduplicated > 0) {
      yield* Metric.update(deduplicatedEvents, changes.counts.deduplicated)
    }
    const signed = changes.checkpoints.at(-1)
    if (signed !== undefined) {
      yield* Metric.update(newestCheckpoint, Date.parse(signed.created_at) / 1_000)
    }
    yield* itemsRejected(changes.counts.refused, { partition })
    for (const [code, count] of changes.counts.repaired) {
      yield* Metric.update(Metric.withAttributes(repairsMade, { code }), count)
    }
    const { quarantined } = changes
    if (quarantined.length > 0) yield* Metric.update(quarantinedCommands, quarantined.length)
    for (const { offset, reason } of quarantined.slice(0, LINES_MAX)) {
      yield* Effect.logError("a command is quarantined", { partition, offset, reason })
    }
    if (quarantined.length > LINES_MAX) {
      const commands = quarantined.length - LINES_MAX
      yield* Effect.logError("more commands are quarantined", { partition, commands })
    }
  })

/** Write changes in one transaction; only then do they enter the state. */
const commit = Effect.fnUntraced(function* (
  writer: TransactionalWriter,
  state: SequencerState,
  changes: StateChanges,
  { serviceName }: SequencerSettings
) {
  const { eventsNext, tracesNext } = state
  let ends: LogEnds = { eventsNext, tracesNext, strays: [] }
  yield* writer.commit(chainedRecords(state.partition, changes, serviceName), (placed) => {
    const following = followingRecords(state, changes, placed, serviceName)
    ends = following.ends
    return following.records
  })
  advance(state, changes, ends)
  yield* report(changes, state.partition)
  changes.events.release()
})

const commitChunk = Effect.fnUntraced(function* (
  writer: TransactionalWriter,
  state: SequencerState,
  cache: ExecutionCache,
  chunk: ReadonlyArray<ReceivedCommand>,
  settings: SequencerSettings
) {
  const started = yield* Clock.currentTimeMillis
  const prepared = yield* cache.prepare(chunk)
  const hasStore = settings.traceStore !== undefined
  const context = { ...settings, hasStore, ...prepared }
  const changes = yield* inSlices(() => stepEach(state, chunk, context, currentTime()))
  yield* commit(writer, state, changes, settings)
  yield* Metric.update(commitSeconds, ((yield* Clock.currentTimeMillis) - started) / 1_000)
})

/** Evict executions that the store shows, and write that down. */
const evict = Effect.fnUntraced(function* (
  writer: TransactionalWriter,
  state: SequencerState,
  cache: ExecutionCache
) {
  const { partition } = state
  const records = yield* cache.evict
  const entries = Metric.withAttributes(tracesInMemory, { partition: String(partition) })
  yield* Metric.update(entries, state.traces.size)
  if (records.length === 0) return
  const all = [...records, appliedRecord(state, windowEnds(state))]
  yield* writer.commit([], () => all.map((record) => newStateRecord(partition, record)))
})

/**
 * What is due by the clock, looked for at most once in so many microseconds; `true` means
 * another look at the next chance.
 */
const atMostEvery = <E, R>(
  intervalMicros: number,
  look: (now: number) => Effect.Effect<boolean, E, R>
): Effect.Effect<void, E, R> => {
  let lookedAt = 0
  return Effect.suspend(() => {
    const now = nowMicros()
    if (now - lookedAt < intervalMicros) return Effect.void
    lookedAt = now
    return Effect.map(look(now), (again) => {
      if (again) lookedAt = 0
    })
  })
}

/** Where the store did not answer the start, it is asked until it does. */
const makeSignedCheck = (restoring: Restoring, state: SequencerState) => {
  let isChecked = false
  const sizes = sizesOf(state)
  return atMostEvery(SIGNED_LOOK_MICROS, () =>
    isChecked
      ? Effect.succeed(false)
      : Effect.map(
          checkSigned(restoring, state, false, (tree) => sizes.get(tree) ?? 0),
          (checked) => {
            isChecked = checked
            return false
          }
        )
  )
}

/** Checkpoints that are due by the clock. */
const makeCheckpoints = (
  writer: TransactionalWriter,
  state: SequencerState,
  settings: SequencerSettings
) =>
  atMostEvery(CHECKPOINT_LOOK_MICROS, (now) =>
    Effect.gen(function* () {
      const changes = stepCheckpoints(state, settings, formatMicros(now))
      if (changes !== undefined) yield* commit(writer, state, changes, settings)
      return false
    })
  )

/** Links that ended long ago leave the registry. */
const makePurge = (
  writer: TransactionalWriter,
  state: SequencerState,
  settings: SequencerSettings
) =>
  atMostEvery(PURGE_LOOK_MICROS, (now) =>
    Effect.gen(function* () {
      const changes = stepPurge(state, formatMicros(now))
      if (changes === undefined) return false
      const links = changes.registry.length
      yield* commit(writer, state, changes, settings)
      yield* Effect.logInfo("share links that ended long ago have left the registry", { links })
      // As many as leave at once: there may be more.
      return links >= PURGED_MAX
    })
  )

/** Ends executions of OpenTelemetry spans whose root never came. */
const makeDue = (
  writer: TransactionalWriter,
  state: SequencerState,
  cache: ExecutionCache,
  settings: SequencerSettings
) =>
  atMostEvery(DUE_LOOK_MICROS, () =>
    Effect.gen(function* () {
      yield* cache.prepareDue
      const hasStore = settings.traceStore !== undefined
      const changes = yield* inSlices(() => stepDue(state, { hasStore }, currentTime()))
      if (changes === undefined) return false
      yield* commit(writer, state, changes, settings)
      return true
    })
  )

/**
 * Offsets without a command: other programs leave them, by a transaction or by a batch that can't be
 * read. Commands are written by producers without transactions, so none of theirs is among them.
 */
const reportHoles = Effect.fnUntraced(function* (
  partition: number,
  { nextOffset, offset, records }: Fetched
) {
  const offsets = nextOffset - offset - records.length
  if (offsets <= 0) return
  yield* Effect.logError("offsets of alk.commands that hold no command are passed over", {
    partition,
    from: offset,
    to: nextOffset,
    offsets
  })
  yield* Metric.update(Metric.withAttributes(malformedRecords, { topic: "commands" }), offsets)
})

/** Sequence one partition until another owner fences this one, or something fails. */
export const runSequencer = (
  partition: number,
  settings: SequencerSettings,
  ready: (partition: number) => Effect.Effect<void>,
  /** Takes the offset of the next command that is not applied yet. */
  reached: (next: number) => void = () => {}
): Effect.Effect<never, SequencerFailure, EventLog> =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const writer = yield* log.writer(`sequencer-${partition}`)
    const reader = yield* log.reader
    const { checkpointStore: checkpoints, serviceName, signer, traceStore, windows } = settings
    const { previous } = settings
    const vkeys = [signer, previous].flatMap((key) => (key === undefined ? [] : [key.vkey]))
    const parts = { log, reader, writer, partition, windows, serviceName, vkeys }
    const restoring: Restoring = { ...parts, ...defined({ checkpoints }) }
    const state = yield* restore(restoring)
    yield* changeKey(writer, state, settings)
    yield* ready(partition)
    reached(state.applied + 1)
    const lag = Metric.withAttributes(sequencerLag, { partition: String(partition) })
    const fetch = (offset: number) =>
      reader.fetch([{ topic: "commands", partition, offset }], {
        waitMs: FETCH_WAIT_MS,
        maxBytes: FETCH_BYTES
      })
    const cache = new ExecutionCache(log, yield* log.reader, state, traceStore, yield* FactMac)
    const signed = makeSignedCheck(restoring, state)
    const checkpointsDue = makeCheckpoints(writer, state, settings)
    const purge = makePurge(writer, state, settings)
    const due = makeDue(writer, state, cache, settings)
    const trim = atMostEvery(TRIM_LOOK_MICROS, () =>
      Effect.as(trimRegistry(log, writer, state), false)
    )
    let next = state.applied + 1
    let pending = yield* Effect.forkChild(fetch(next))
    for (;;) {
      const [fetched] = yield* Fiber.join(pending)
      const records = fetched?.records ?? []
      if (fetched !== undefined) {
        yield* reportHoles(partition, fetched)
        next = fetched.nextOffset
      }
      pending = yield* Effect.forkChild(fetch(next))
      if (fetched !== undefined) yield* Metric.update(lag, fetched.stableEnd - next)
      const { commands, refused } = yield* inSlices(() => receivedOf(records, partition))
      for (const chunk of toChunks(yield* withoutMisplaced(log, state, commands))) {
        yield* commitChunk(writer, state, cache, chunk, settings).pipe(
          Effect.withSpan("sequencer.transaction", {
            attributes: { partition, commands: chunk.length }
          })
        )
        reached(state.applied + 1)
      }
      if (refused !== undefined) return yield* refused
      yield* signed
      yield* checkpointsDue
      yield* purge
      yield* due
      yield* trim
      yield* evict(writer, state, cache)
    }
  }).pipe(Effect.scoped)
