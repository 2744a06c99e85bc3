/**
 * The pure heart of the sequencer: what a chunk of commands makes of a partition's state. No clock,
 * no log, no effects. Invariants, by the numbers that tests cite:
 *
 * - S1: the same commands in the same order give the same chains and receipts, however they are cut
 *   into chunks, and wherever a restart is between them.
 * - S2: a chain is numbered from 1 without gaps, and each record links to the one before it.
 * - S3: the chain of a tenant depends on the commands of that tenant alone.
 * - S4: each command has one outcome, a receipt or a verdict, which counts what was appended.
 * - S5: a command that can't be applied changes nothing but its own outcome.
 * - S6: times in a chain never go back.
 */

import {
  COMMAND_FORMAT,
  type Command,
  hasWaited,
  type ItemError,
  isSameBody
} from "../../domain/records/Command.ts"
import type { WriterPosition } from "../../domain/records/CommandWriter.ts"
import {
  dedupKeyAt,
  type EventBatch,
  fingerprintAt,
  flagsAt,
  HAS_CLIENT_ID,
  idTextAt,
  indexAt
} from "../../domain/records/EventBatch.ts"
import type { QuarantineKind } from "../../domain/records/Quarantine.ts"
import type { Duplicate } from "../../domain/records/Receipt.ts"
import type { WindowEntry } from "../../domain/records/StateRecords.ts"
import { RECEIPTS_RETENTION_DAYS } from "../../domain/records/Topics.ts"
import { decide, linksToPurge } from "../../domain/registry/Registry.ts"
import {
  type RegistryChange,
  readRegistryRecord,
  registryRecord
} from "../../domain/registry/RegistryEntry.ts"
import { sessionsToPurge } from "../../domain/registry/Sessions.ts"
import { finish, type Sliced } from "../../domain/Slices.ts"
import { microsOf } from "../../domain/Timestamp.ts"
import { IdTexts } from "./IdTexts.ts"
import { answerCheckpoint, type CheckpointSigner } from "./SequencerCheckpoints.ts"
import { Draft, type StateChanges } from "./SequencerDraft.ts"
import {
  addReceipt,
  committed,
  committedTraces,
  failed,
  type Outcome,
  withErrors
} from "./SequencerReceipts.ts"
import type { SequencerState } from "./SequencerState.ts"
import { endDue } from "./traces/OtlpStep.ts"
import { CommandDraft, type TraceContext } from "./traces/TraceDraft.ts"
import { applyTraces } from "./traces/TraceStep.ts"

/**
 * A record of `alk.commands` with its place and its bytes: a command, or what of it could be read.
 */
export type ReceivedCommand = {
  readonly offset: number
  readonly value: Buffer | null
  /** How the value is written, as its header says. */
  readonly format?: number
  readonly position?: WriterPosition
} & (
  | { readonly command: Command }
  | {
      readonly unreadable: string
      /** This service did not write it. */
      readonly isForeign?: true
      readonly tenantId: string | undefined
      readonly receiptId: string | undefined
    }
)

const RETENTION_MICROS = RECEIPTS_RETENTION_DAYS * 86_400_000_000

/** What a step needs beside the state and the commands. */
export interface StepContext extends CheckpointSigner, TraceContext {}

/**
 * Hot path: measured in test/bench/Sequencing.ts. What a command does to its tenant's chain; the
 * events are a run in the draft, kept by `takeOverEvents`. Only an event whose id is the client's
 * may be a duplicate.
 */
const applyEvents = (
  draft: Draft,
  command: Command,
  { serviceName }: CheckpointSigner,
  now: string
): Outcome => {
  const { events: batch, tenantId } = command
  const { events } = draft
  const ids = new IdTexts(batch)
  const conflicts: Array<ItemError> = []
  const duplicates: Array<Duplicate> = []
  const dedup: Array<WindowEntry> = []
  const own = new Map<string, WindowEntry>()
  const before = draft.head(tenantId)
  events.begin(serviceName, tenantId, before, now)
  for (let event = 0; event < batch.count; event++) {
    if ((flagsAt(batch, event) & HAS_CLIENT_ID) === 0) {
      ids.add(event)
      events.append(batch, event)
      continue
    }
    const key = dedupKeyAt(batch, event)
    const fingerprint = fingerprintAt(batch, event)
    const earlier = own.get(key) ?? draft.findDuplicate(key, dedup.length)
    if (earlier !== undefined && earlier.fingerprint !== fingerprint) {
      conflicts.push(conflictOf(batch, event, earlier.number))
      continue
    }
    ids.add(event)
    if (earlier !== undefined) {
      duplicates.push({ index: indexAt(batch, event), sequence_number: earlier.number })
      continue
    }
    events.append(batch, event)
    const entry = { key, fingerprint, number: events.sequenceNumber }
    own.set(key, entry)
    dedup.push(entry)
  }
  const errors = withErrors(command, conflicts)
  const head = events.runHead ?? before
  return { appended: events.runCount, head, ids, errors, conflicts, duplicates, dedup }
}

const conflictOf = (batch: EventBatch, event: number, sequenceNumber: number): ItemError => ({
  index: indexAt(batch, event),
  code: "id_conflict",
  message:
    `id: ${idTextAt(batch, event)} belongs to an event with other content `
    + `(sequence_number ${sequenceNumber}); send a new id`
})

const mergeEvents = (draft: Draft, command: Command, outcome: Outcome): void => {
  const { tenantId } = command
  if (outcome.head !== undefined && outcome.appended > 0) {
    draft.tree({ tenantId, chain: "events" })?.appendAll(draft.events.runHashes)
    draft.heads.set(tenantId, outcome.head)
  }
  draft.events.keep()
  for (const entry of outcome.dedup) draft.addDedup(entry)
  draft.deduplicated += outcome.duplicates.length
  draft.refused.push(...outcome.conflicts)
}

/** True if the attempt repeats a remembered one; its verdict is then in the draft. */
const isRepeat = (draft: Draft, command: Command): boolean => {
  const { idempotency } = command
  if (idempotency === undefined) return false
  const remembered = draft.findIdempotent(idempotency.key)
  if (
    remembered === undefined
    || remembered.number <= microsOf(command.receivedAt) - RETENTION_MICROS
  ) {
    return false
  }
  const { fingerprint } = remembered
  draft.verdicts.push({
    receipt_id: command.receiptId,
    tenant_id: command.tenantId,
    attempt: command.attempt,
    ...(isSameBody(fingerprint, idempotency.body)
      ? { verdict: "repeat", waited: hasWaited(fingerprint) }
      : { verdict: "mismatch" })
  })
  return true
}

/** What the window has to remember of this command, if anything. */
const toRemember = (
  command: Command,
  { errors }: { readonly errors: ReadonlyArray<ItemError> }
): WindowEntry | undefined => {
  const { idempotency } = command
  if (idempotency === undefined) return undefined
  if (idempotency.forgetConflict && errors.length > 0) return undefined
  const number = microsOf(command.receivedAt)
  if (!Number.isSafeInteger(number)) throw new Error(`no time: ${command.receivedAt}`)
  return { key: idempotency.key, fingerprint: idempotency.body, number }
}

const mergeFacts = (draft: Draft, command: CommandDraft): void => {
  const { facts, tenantId } = command
  draft.traces.merge(command)
  const tree = facts.length === 0 ? undefined : draft.tree({ tenantId, chain: "traces" })
  for (const { hash } of facts) tree?.append(hash)
}

/** The values of the events that were appended, each event's as facts of an execution that has ended. */
const valuesOf = (
  draft: Draft,
  { tenantId, values }: Command,
  { conflicts, duplicates }: Outcome
): CommandDraft | undefined => {
  if (values === undefined) return undefined
  const left = new Set([...conflicts, ...duplicates].map(({ index }) => index))
  const command = new CommandDraft(draft.traces, { operations: [], tenantId })
  for (const { executionId, index, payloads, spanId } of values) {
    if (left.has(index)) continue
    const entry = command.create(executionId)
    entry.holdValues(draft.traces.now)
    for (const chunk of payloads.flatMap(({ chunks = [] }) => chunks)) {
      command.record(entry, { type: "span.payload", span_id: spanId }, chunk)
    }
  }
  return command
}

/** Operations on traces. Refused as a whole where the store could not be asked. */
const stepTraces = (draft: Draft, offset: number, command: Command, now: string): void => {
  const { attempt, tenantId } = command
  const operations = command.traces ?? []
  const outcome = applyTraces(draft.traces, { tenantId, operations }, draft)
  if (outcome.unavailable) {
    const error = { code: "unavailable", message: outcome.errors[0]!.message }
    const rejected = operations.length + command.errors.length
    return addReceipt(draft, attempt, failed(command, offset, rejected, error))
  }
  const remembered = toRemember(command, outcome)
  const receipt = committedTraces(command, offset, outcome, now)
  // What may throw is above this line; below it the draft changes.
  mergeFacts(draft, outcome.command)
  for (const entry of outcome.dedup) draft.addDedup(entry)
  draft.refused.push(...outcome.errors)
  for (const { repairs = [] } of outcome.results) {
    for (const code of repairs) draft.repaired.push({ code })
  }
  if (remembered !== undefined) draft.addIdempotency(remembered)
  addReceipt(draft, attempt, receipt)
}

/** A registry record that could not be read back is not written: a command may hold anything. */
const checkReadable = (change: RegistryChange): void => {
  const { key, value } = registryRecord(change)
  readRegistryRecord(Buffer.from(key), value === null ? null : Buffer.from(value))
}

const stepOne = (
  draft: Draft,
  offset: number,
  command: Command,
  signer: CheckpointSigner,
  now: string
): void => {
  if (command.kind === "checkpoint") {
    return answerCheckpoint(draft, offset, command, signer, now)
  }
  if (isRepeat(draft, command)) return
  if (command.kind === "trace") return stepTraces(draft, offset, command, now)
  const decision =
    command.operation === undefined ? undefined : decide(draft.registryDraft, command.operation)
  if (decision?.granted === false) {
    const { code, message } = decision
    return addReceipt(draft, command.attempt, failed(command, offset, 0, { code, message }))
  }
  const changes = decision?.entries ?? []
  for (const change of changes) checkReadable(change)
  const outcome = applyEvents(draft, command, signer, now)
  const remembered = toRemember(command, outcome)
  const receipt = committed(command, offset, outcome, now)
  const values = valuesOf(draft, command, outcome)
  // What may throw is above this line; below it the draft changes.
  if (values !== undefined) mergeFacts(draft, values)
  draft.registryDraft.take(changes)
  draft.registry.push(...changes)
  mergeEvents(draft, command, outcome)
  if (remembered !== undefined) draft.addIdempotency(remembered)
  addReceipt(draft, command.attempt, receipt, command.kind === "probe")
}

const setAside = (
  draft: Draft,
  { format = COMMAND_FORMAT, offset, value }: ReceivedCommand,
  kind: QuarantineKind,
  reason: string
): void => {
  draft.quarantined.push({ kind, offset, reason, value, format })
}

const kindOf = (received: ReceivedCommand): QuarantineKind => {
  if ("command" in received) return "failed"
  return received.isForeign === true ? "foreign" : "unreadable"
}

const quarantine = (draft: Draft, received: ReceivedCommand, reason: string, now: string): void => {
  setAside(draft, received, kindOf(received), reason)
  const error = { code: "unreadable_command", message: `quarantined: ${reason}` }
  if ("command" in received) {
    const { command, offset } = received
    // A time that can't be could not be stored.
    const receivedAt = Number.isSafeInteger(microsOf(command.receivedAt)) ? command.receivedAt : now
    const receipt = failed({ ...command, receivedAt }, offset, command.events.count, error)
    addReceipt(draft, command.attempt, receipt)
  } else if (received.receiptId !== undefined && received.tenantId !== undefined) {
    const { offset, receiptId, tenantId } = received
    addReceipt(draft, receiptId, failed({ receiptId, tenantId, receivedAt: now }, offset, 0, error))
  }
}

/**
 * Apply commands in order. `now` is the canonical time of the chunk; `chunk` is not empty and its
 * offsets rise from `state.applied` on. A command on which the step throws twice goes to
 * quarantine and changes nothing else; so does a copy of one, which has no receipt of its own. One
 * command at a time: `state` stays as it is until the changes are committed.
 */
export function* stepEach(
  state: SequencerState,
  chunk: ReadonlyArray<ReceivedCommand>,
  context: StepContext,
  now: string
): Sliced<StateChanges> {
  const draft = new Draft(state, now, context)
  let expected = state.applied + 1
  for (const received of chunk) {
    yield
    if (received.offset < expected) {
      throw new Error(`command ${received.offset} where ${expected} was expected`)
    }
    expected = received.offset + 1
    const receivedAt = "command" in received ? received.command.receivedAt : undefined
    const copied = draft.refusalOf(received.position, receivedAt, now)
    if (copied !== undefined) {
      setAside(draft, received, "copy", copied)
      continue
    }
    if ("unreadable" in received) {
      quarantine(draft, received, received.unreadable, now)
      continue
    }
    draft.isAwaited ||= received.command.waits === true
    const poison = withOneRetry(() =>
      stepOne(draft, received.offset, received.command, context, now)
    )
    if (poison !== undefined) quarantine(draft, received, poison, now)
  }
  draft.forgetWriters(now)
  draft.applied = expected - 1
  return draft
}

/** The same at once. */
export const step = (
  state: SequencerState,
  chunk: ReadonlyArray<ReceivedCommand>,
  context: StepContext,
  now: string
): StateChanges => finish(stepEach(state, chunk, context, now))

/** Entries that one transaction removes at most. */
export const PURGED_MAX = 500

/** Removes links and sessions that ended long ago; undefined without such ones. */
export const stepPurge = (state: SequencerState, now: string): StateChanges | undefined => {
  const links = linksToPurge(state.registry, now, PURGED_MAX)
  const sessions = sessionsToPurge(state.registry.sessions, now, PURGED_MAX - links.length)
  const leaving = [...links, ...sessions]
  if (leaving.length === 0) return undefined
  const draft = new Draft(state, now)
  draft.registry.push(...leaving)
  return draft
}

/** Executions that are ended at once by the clock at most. */
const DUE_MAX = 500

/** Ends executions whose parents have not come, in steps; undefined without such ones. */
export function* stepDue(
  state: SequencerState,
  context: TraceContext,
  now: string
): Sliced<StateChanges | undefined> {
  const due = yield* state.traces.due(microsOf(now), DUE_MAX)
  if (due.length === 0) return undefined
  const draft = new Draft(state, now, context)
  for (const { executionId, tenantId } of due) {
    yield
    mergeFacts(draft, endDue(draft.traces, tenantId, executionId))
  }
  return draft
}

/** Undefined if one of two attempts succeeds, else what the second one said. */
const withOneRetry = (attempt: () => void): string | undefined => {
  for (let left = 1; ; left--) {
    try {
      attempt()
      return undefined
    } catch (error) {
      if (left === 0) return error instanceof Error ? error.message : String(error)
    }
  }
}
