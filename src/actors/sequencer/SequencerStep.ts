/**
 * The pure heart of the sequencer: what a chunk of commands makes of a partition's state. No clock,
 * no log, no effects; the same commands in the same order give the same chains however they are cut
 * into chunks, and a command that can't be applied changes nothing but its own receipt.
 */
import { type ChainKey, chainOfTree, treeNameOf } from "../../domain/chain/Chains.ts"
import {
  type CheckpointRecord,
  makeCheckpoint,
  type Signer,
  treeOfCheckpoint
} from "../../domain/chain/Checkpoint.ts"
import type { Head } from "../../domain/chain/Head.ts"
import { GENESIS_HASH } from "../../domain/chain/LinkHash.ts"
import { Frontier } from "../../domain/chain/MerkleTree.ts"
import { appendSuffix, linkHash } from "../../domain/events/HashChain.ts"
import {
  type Command,
  hasWaited,
  type ItemError,
  isSameBody,
  type PreparedEvent
} from "../../domain/records/Command.ts"
import {
  copyRefusal,
  isForgotten,
  type WriterPosition
} from "../../domain/records/CommandWriter.ts"
import type { AttemptVerdict, Duplicate, Receipt } from "../../domain/records/Receipt.ts"
import type { StateRecord, WindowEntry } from "../../domain/records/StateRecords.ts"
import { DEDUP_PREFIX, IDEMPOTENCY_PREFIX } from "../../domain/records/StateRecords.ts"
import { RECEIPTS_RETENTION_DAYS } from "../../domain/records/Topics.ts"
import { decide, linksToPurge } from "../../domain/registry/Registry.ts"
import {
  type RegistryChange,
  readRegistryRecord,
  registryRecord
} from "../../domain/registry/RegistryEntry.ts"
import { RegistryDraft } from "../../domain/registry/RegistryTable.ts"
import { formatMicros, microsOf } from "../../domain/Timestamp.ts"
import type { WindowHit } from "./PackedWindow.ts"
import { countByCode } from "./RejectedItems.ts"
import {
  appliedRecord,
  checkpointRecord,
  headRecord,
  type SequencerState,
  type Totals,
  windowRecord,
  writerRecord
} from "./SequencerState.ts"
import type { MissingExecutions } from "./traces/MissingExecutions.ts"
import { type TraceChanges, TraceDraft } from "./traces/TraceDraft.ts"
import { traceRecords } from "./traces/TraceState.ts"
import { applyTraces, type TracesApplied } from "./traces/TraceStep.ts"

/**
 * A record of `alk.commands` with its place and its bytes: a command, or what of it could be read.
 */
export type ReceivedCommand =
  | {
      readonly offset: number
      readonly value: Buffer | null
      readonly mark?: WriterPosition
      readonly command: Command
    }
  | {
      readonly offset: number
      readonly value: Buffer | null
      readonly mark?: WriterPosition
      readonly unreadable: string
      readonly tenantId: string | undefined
      readonly receiptId: string | undefined
    }

export interface Appended {
  readonly tenantId: string
  readonly id: string
  readonly sequenceNumber: number
  readonly createdAt: string
  readonly hash: string
  /** The stored JSON, whole. */
  readonly body: string
}

/** A receipt without the offsets that are known once what the chunk has made has its own. */
export type DecidedReceipt = Omit<Receipt, "events_next" | "traces_next">

export interface Decided {
  readonly receipt: DecidedReceipt
  readonly attempt: string
  readonly probe: boolean
  /** Events of this chunk up to and including this command's. */
  readonly eventsBefore: number
  /** The same of trace facts. */
  readonly factsBefore: number
}

export interface Quarantined {
  readonly offset: number
  readonly reason: string
  readonly value: Buffer | null
}

/** What a chunk changes; nothing has happened until it is committed and taken over by `advance`. */
export interface Changes {
  readonly events: ReadonlyArray<Appended>
  readonly decided: ReadonlyArray<Decided>
  readonly verdicts: ReadonlyArray<AttemptVerdict>
  readonly quarantined: ReadonlyArray<Quarantined>
  readonly registry: ReadonlyArray<RegistryChange>
  readonly heads: ReadonlyMap<string, Head>
  /** By name, those of the chains that have grown. */
  readonly trees: ReadonlyMap<string, Frontier>
  /** In the order in which they were made; there may be several of one tree. */
  readonly checkpoints: ReadonlyArray<CheckpointRecord>
  readonly traces: TraceChanges
  readonly dedup: ReadonlyArray<WindowEntry>
  readonly idempotency: ReadonlyArray<WindowEntry>
  /** The last number of each writer, null for those that are remembered no longer. */
  readonly writers: ReadonlyMap<string, number | null>
  readonly applied: number
  readonly counts: {
    readonly deduplicated: number
    /** Items that passed validation and were refused here, by code. */
    readonly refused: ReadonlyMap<string, number>
  }
}

const RETENTION_MICROS = RECEIPTS_RETENTION_DAYS * 86_400_000_000

/** Who signs checkpoints, for which service. */
export interface CheckpointSigner {
  readonly serviceName: string
  readonly signer: Signer
}

/** What a step needs beside the state and the commands. */
export interface StepContext extends CheckpointSigner {
  /** Executions and spans that the store was asked for in vain. */
  readonly unloaded?: MissingExecutions
}

/** Everything a chunk has done so far, on top of a state that stays as it was. */
class Draft {
  readonly events: Array<Appended> = []
  readonly decided: Array<Decided> = []
  readonly verdicts: Array<AttemptVerdict> = []
  readonly quarantined: Array<Quarantined> = []
  readonly registryChanges: Array<RegistryChange> = []
  readonly heads = new Map<string, Head>()
  readonly trees = new Map<string, Frontier>()
  readonly checkpoints: Array<CheckpointRecord> = []
  readonly dedup: Array<WindowEntry> = []
  readonly idempotency: Array<WindowEntry> = []
  readonly #dedupIndex = new Map<string, number>()
  readonly #idempotencyIndex = new Map<string, number>()
  readonly #newestCheckpoints = new Map<string, CheckpointRecord>()
  readonly #state: SequencerState
  readonly registry: RegistryDraft
  /** Errors of items that are the step's own. */
  readonly refused: Array<ItemError> = []
  deduplicated = 0
  readonly writers = new Map<string, number | null>()

  readonly traces: TraceDraft

  constructor(state: SequencerState, now: string, unloaded?: MissingExecutions) {
    this.#state = state
    this.registry = new RegistryDraft(state.registry)
    this.traces = new TraceDraft(state.traces, state.traceHeads, now, unloaded)
  }

  head(tenantId: string): Head | undefined {
    return this.heads.get(tenantId) ?? this.#state.heads.get(tenantId)
  }

  /** The chain's tree, for this chunk to grow; undefined if it has none. */
  tree({ chain, tenantId }: ChainKey): Frontier | undefined {
    const name = treeNameOf(tenantId, chain)
    const own = this.trees.get(name)
    if (own !== undefined) return own
    const before = this.#state.trees.get(name)
    const heads = chain === "events" ? this.#state.heads : this.#state.traceHeads
    if (before === undefined && heads.has(tenantId)) return undefined
    const tree = before === undefined ? Frontier.empty() : before.clone()
    this.trees.set(name, tree)
    return tree
  }

  checkpoint(treeName: string): CheckpointRecord | undefined {
    return this.#newestCheckpoints.get(treeName) ?? this.#state.checkpoints.get(treeName)
  }

  addCheckpoint(made: CheckpointRecord): void {
    this.checkpoints.push(made)
    this.#newestCheckpoints.set(treeOfCheckpoint(made), made)
  }

  /** Why a command of this mark is a copy; remembers it if it is none. */
  refusalOf(mark: WriterPosition, now: string): string | undefined {
    const last = this.writers.get(mark.writer) ?? this.#state.writers.get(mark.writer)
    const refusal = copyRefusal(mark, last, microsOf(now))
    if (refusal === undefined) this.writers.set(mark.writer, mark.number)
    return refusal
  }

  /** Let go of writers that are too old to write. */
  forgetWriters(now: string): void {
    for (const writer of this.#state.writers.keys()) {
      if (!this.writers.has(writer) && isForgotten(writer, microsOf(now))) {
        this.writers.set(writer, null)
      }
    }
  }

  /** The dedup entry of a key, with `more` entries of the running command not yet taken over. */
  findDuplicate(key: string, more: number): WindowHit | undefined {
    return this.#find("dedup", key, more)
  }

  findIdempotent(key: string): WindowHit | undefined {
    return this.#find("idempotency", key, 0)
  }

  addDedup(entry: WindowEntry): void {
    this.#dedupIndex.set(entry.key, this.#state.dedup.next + this.dedup.length)
    this.dedup.push(entry)
  }

  addIdempotency(entry: WindowEntry): void {
    this.#idempotencyIndex.set(entry.key, this.#state.idempotency.next + this.idempotency.length)
    this.idempotency.push(entry)
  }

  #find(kind: "dedup" | "idempotency", key: string, more: number): WindowHit | undefined {
    const window = this.#state[kind]
    const added = this[kind]
    const next = window.next + added.length + more
    const index = kind === "dedup" ? this.#dedupIndex : this.#idempotencyIndex
    const ordinal = index.get(key)
    if (ordinal === undefined) return window.find(key, next)
    if (ordinal < next - window.capacity) return undefined
    const { mark, number } = added[ordinal - window.next]!
    return { ordinal, mark, number }
  }
}

/** What one `ingest` or granted `registry` command does to its tenant's chain. */
interface Applied {
  readonly events: ReadonlyArray<Appended>
  readonly head: Head | undefined
  readonly ids: ReadonlyArray<string>
  readonly errors: ReadonlyArray<ItemError>
  /** Those of the errors that validation has not found. */
  readonly conflicts: ReadonlyArray<ItemError>
  readonly duplicates: ReadonlyArray<Duplicate>
  readonly dedup: ReadonlyArray<WindowEntry>
}

const appendEvent = (
  tenantId: string,
  event: PreparedEvent,
  head: Head | undefined,
  now: string
): { readonly appended: Appended; readonly head: Head } => {
  const sequenceNumber = (head?.sequence_number ?? 0) + 1
  const prevHash = head?.hash ?? GENESIS_HASH
  const createdAt = head !== undefined && head.created_at > now ? head.created_at : now
  const hash = linkHash({
    tenantId,
    sequenceNumber,
    createdAt,
    contentHash: event.contentHash,
    prevHash
  })
  const suffix = appendSuffix({
    tenantId,
    sequenceNumber,
    createdAt,
    prevHash,
    contentHash: event.contentHash,
    hash,
    ...(event.detailsSalt === undefined ? {} : { detailsSalt: event.detailsSalt }),
    ...(event.detailsHash === undefined ? {} : { detailsHash: event.detailsHash })
  })
  return {
    appended: {
      tenantId,
      id: event.id,
      sequenceNumber,
      createdAt,
      hash,
      body: event.body + suffix
    },
    head: { sequence_number: sequenceNumber, hash, created_at: createdAt }
  }
}

const withErrors = (command: Command, more: ReadonlyArray<ItemError>): ReadonlyArray<ItemError> =>
  more.length === 0
    ? command.errors
    : [...command.errors, ...more].sort((left, right) => left.index - right.index)

const applyEvents = (draft: Draft, command: Command, now: string): Applied => {
  const events: Array<Appended> = []
  const ids: Array<string> = []
  const conflicts: Array<ItemError> = []
  const duplicates: Array<Duplicate> = []
  const dedup: Array<WindowEntry> = []
  const own = new Map<string, WindowEntry>()
  let head = draft.head(command.tenantId)
  for (const event of command.events) {
    const { dedupKey, fingerprint } = event
    const earlier =
      dedupKey === undefined
        ? undefined
        : (own.get(dedupKey) ?? draft.findDuplicate(dedupKey, dedup.length))
    if (earlier !== undefined && earlier.mark !== fingerprint) {
      conflicts.push({
        index: event.index,
        code: "id_conflict",
        message:
          `id: ${JSON.stringify(event.id)} belongs to an event with other content `
          + `(sequence_number ${earlier.number}); send a new id`
      })
      continue
    }
    ids.push(event.id)
    if (earlier !== undefined) {
      duplicates.push({ index: event.index, sequence_number: earlier.number })
      continue
    }
    const next = appendEvent(command.tenantId, event, head, now)
    events.push(next.appended)
    head = next.head
    if (dedupKey !== undefined && fingerprint !== undefined) {
      const entry = { key: dedupKey, mark: fingerprint, number: next.head.sequence_number }
      own.set(dedupKey, entry)
      dedup.push(entry)
    }
  }
  const errors = withErrors(command, conflicts)
  return { events, head, ids, errors, conflicts, duplicates, dedup }
}

const takeOver = (draft: Draft, command: Command, applied: Applied): void => {
  const { tenantId } = command
  const tree = applied.events.length === 0 ? undefined : draft.tree({ tenantId, chain: "events" })
  for (const event of applied.events) {
    draft.events.push(event)
    tree?.append(event.hash)
  }
  for (const entry of applied.dedup) draft.addDedup(entry)
  if (applied.head !== undefined && applied.events.length > 0) {
    draft.heads.set(command.tenantId, applied.head)
  }
  draft.deduplicated += applied.duplicates.length
  draft.refused.push(...applied.conflicts)
}

const outcome = (
  command: Command,
  offset: number,
  applied: Applied,
  now: string
): DecidedReceipt => {
  const first = applied.events[0]
  const last = applied.events.at(-1)
  return {
    receipt_id: command.receiptId,
    tenant_id: command.tenantId,
    status: "committed",
    accepted: applied.ids.length,
    rejected: applied.errors.length,
    ids: applied.ids,
    errors: applied.errors,
    ...(command.warnings.length === 0 ? {} : { warnings: command.warnings }),
    ...(applied.duplicates.length === 0 ? {} : { duplicates: applied.duplicates }),
    ...(first === undefined ? {} : { first_sequence_number: first.sequenceNumber }),
    ...(last === undefined ? {} : { last_sequence_number: last.sequenceNumber }),
    received_at: command.receivedAt,
    committed_at: last?.createdAt ?? now,
    ...(applied.head === undefined ? {} : { head_hash: applied.head.hash }),
    command_offset: offset
  }
}

const failure = (
  receiptId: string,
  tenantId: string,
  receivedAt: string,
  offset: number,
  rejected: number,
  error: { readonly code: string; readonly message: string }
): DecidedReceipt => ({
  receipt_id: receiptId,
  tenant_id: tenantId,
  status: "failed",
  accepted: 0,
  rejected,
  ids: [],
  errors: [],
  received_at: receivedAt,
  error,
  command_offset: offset
})

const decideOn = (draft: Draft, attempt: string, receipt: DecidedReceipt, probe = false): void => {
  draft.decided.push({
    receipt,
    attempt,
    probe,
    eventsBefore: draft.events.length,
    factsBefore: draft.traces.facts.length
  })
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
  const { mark } = remembered
  draft.verdicts.push({
    receipt_id: command.receiptId,
    tenant_id: command.tenantId,
    attempt: command.attempt,
    ...(isSameBody(mark, idempotency.body)
      ? { verdict: "repeat", waited: hasWaited(mark) }
      : { verdict: "mismatch" })
  })
  return true
}

/** What the window has to remember of this command, if anything. */
const toRemember = (
  command: Command,
  applied: { readonly errors: ReadonlyArray<ItemError> }
): WindowEntry | undefined => {
  const { idempotency } = command
  if (idempotency === undefined) return undefined
  if (idempotency.forgetConflict && applied.errors.length > 0) return undefined
  const number = microsOf(command.receivedAt)
  if (!Number.isSafeInteger(number)) throw new Error(`no time: ${command.receivedAt}`)
  return { key: idempotency.key, mark: idempotency.body, number }
}

/** The newest checkpoint of a chain, made now if the chain has grown since. */
const checkpointOf = (
  draft: Draft,
  key: ChainKey,
  { serviceName, signer }: CheckpointSigner,
  now: string
): CheckpointRecord | undefined => {
  const { chain, tenantId } = key
  const tree = draft.tree(key)
  if (tree === undefined || tree.size === 0) return undefined
  const newest = draft.checkpoint(treeNameOf(tenantId, chain))
  if (newest !== undefined && newest.tree_size === tree.size && newest.key_id === signer.keyId) {
    return newest
  }
  const made = makeCheckpoint(signer, serviceName, tenantId, tree, now, chain)
  draft.addCheckpoint(made)
  return made
}

const answerCheckpoint = (
  draft: Draft,
  offset: number,
  command: Command,
  signer: CheckpointSigner,
  now: string
): void => {
  const { tenantId } = command
  const nothing: Applied = {
    events: [],
    head: draft.head(tenantId),
    ids: [],
    errors: [],
    conflicts: [],
    duplicates: [],
    dedup: []
  }
  const checkpoint = checkpointOf(draft, { tenantId, chain: "events" }, signer, now)
  const ofTraces = checkpointOf(draft, { tenantId, chain: "traces" }, signer, now)
  const receipt = {
    ...outcome(command, offset, nothing, now),
    ...(checkpoint === undefined ? {} : { checkpoint }),
    ...(ofTraces === undefined ? {} : { trace_checkpoint: ofTraces })
  }
  decideOn(draft, command.attempt, receipt, true)
}

const tracesOutcome = (
  command: Command,
  offset: number,
  { errors, results }: TracesApplied,
  now: string
): DecidedReceipt => {
  const all = withErrors(command, errors)
  return {
    receipt_id: command.receiptId,
    tenant_id: command.tenantId,
    status: "committed",
    accepted: results.length,
    rejected: all.length,
    // The root span, which the start of an execution also tells, is not what it is about.
    ids: results.map(({ event_id, execution_id, op, span_id }) =>
      op.startsWith("execution.") ? execution_id : (event_id ?? span_id ?? execution_id)
    ),
    errors: all,
    ...(command.warnings.length === 0 ? {} : { warnings: command.warnings }),
    results,
    received_at: command.receivedAt,
    committed_at: now,
    command_offset: offset
  }
}

/** Operations on traces. Refused as a whole where the store could not be asked. */
const stepTraces = (draft: Draft, offset: number, command: Command, now: string): void => {
  const { attempt, receiptId, receivedAt, tenantId } = command
  const operations = command.traces ?? []
  const applied = applyTraces(draft.traces, { tenantId, operations }, (key, more) =>
    draft.findDuplicate(key, more)
  )
  if (applied.unavailable) {
    const error = { code: "unavailable", message: applied.errors[0]!.message }
    const rejected = operations.length + command.errors.length
    return decideOn(
      draft,
      attempt,
      failure(receiptId, tenantId, receivedAt, offset, rejected, error)
    )
  }
  const remembered = toRemember(command, applied)
  const receipt = tracesOutcome(command, offset, applied, now)
  // Whatever may throw is above this line; below it the draft changes.
  draft.traces.takeOver(applied.command)
  const { facts } = applied.command
  const tree = facts.length === 0 ? undefined : draft.tree({ tenantId, chain: "traces" })
  for (const { hash } of facts) tree?.append(hash)
  for (const entry of applied.dedup) draft.addDedup(entry)
  draft.refused.push(...applied.errors)
  if (remembered !== undefined) draft.addIdempotency(remembered)
  decideOn(draft, attempt, receipt)
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
    command.operation === undefined ? undefined : decide(draft.registry, command.operation)
  if (decision?.granted === false) {
    const { code, message } = decision
    const { attempt, receiptId, receivedAt, tenantId } = command
    return decideOn(
      draft,
      attempt,
      failure(receiptId, tenantId, receivedAt, offset, 0, { code, message })
    )
  }
  const changes = decision?.entries ?? []
  for (const change of changes) checkReadable(change)
  const applied = applyEvents(draft, command, now)
  const remembered = toRemember(command, applied)
  const receipt = outcome(command, offset, applied, now)
  // Whatever may throw is above this line; below it the draft changes.
  draft.registry.take(changes)
  draft.registryChanges.push(...changes)
  takeOver(draft, command, applied)
  if (remembered !== undefined) draft.addIdempotency(remembered)
  decideOn(draft, command.attempt, receipt, command.kind === "probe")
}

const setAside = (draft: Draft, { offset, value }: ReceivedCommand, reason: string): void => {
  draft.quarantined.push({ offset, reason, value })
}

const quarantine = (draft: Draft, received: ReceivedCommand, reason: string, now: string): void => {
  setAside(draft, received, reason)
  const error = { code: "unreadable_command", message: `quarantined: ${reason}` }
  if ("command" in received) {
    const { attempt, events, receiptId, receivedAt, tenantId } = received.command
    decideOn(
      draft,
      attempt,
      failure(receiptId, tenantId, receivedAt, received.offset, events.length, error)
    )
  } else if (received.receiptId !== undefined && received.tenantId !== undefined) {
    const { offset, receiptId, tenantId } = received
    decideOn(draft, receiptId, failure(receiptId, tenantId, now, offset, 0, error))
  }
}

/**
 * Apply commands in order. `now` is the canonical time of the chunk; `chunk` is not empty and its
 * offsets follow `state.applied` without a gap. A command on which the step throws twice goes to
 * quarantine and changes nothing else; so does a copy of one, which has no receipt of its own.
 */
export const step = (
  state: SequencerState,
  chunk: ReadonlyArray<ReceivedCommand>,
  context: StepContext,
  now: string
): Changes => {
  const draft = new Draft(state, now, context.unloaded)
  let expected = state.applied + 1
  for (const received of chunk) {
    if (received.offset !== expected) {
      throw new Error(`command ${received.offset} where ${expected} was expected`)
    }
    expected += 1
    const copied = received.mark && draft.refusalOf(received.mark, now)
    if (copied !== undefined) {
      setAside(draft, received, copied)
      continue
    }
    if ("unreadable" in received) {
      quarantine(draft, received, received.unreadable, now)
      continue
    }
    const poison = twice(() => stepOne(draft, received.offset, received.command, context, now))
    if (poison !== undefined) quarantine(draft, received, poison, now)
  }
  draft.forgetWriters(now)
  return changesOf(draft, expected - 1)
}

const changesOf = (draft: Draft, applied: number): Changes => ({
  events: draft.events,
  decided: draft.decided,
  verdicts: draft.verdicts,
  quarantined: draft.quarantined,
  registry: draft.registryChanges,
  heads: draft.heads,
  trees: draft.trees,
  checkpoints: draft.checkpoints,
  traces: draft.traces,
  dedup: draft.dedup,
  idempotency: draft.idempotency,
  writers: draft.writers,
  applied,
  counts: { deduplicated: draft.deduplicated, refused: countByCode(draft.refused) }
})

/** Milliseconds between two checkpoints of a chain that grows. */
export const CHECKPOINT_INTERVAL_MS = 10_000
/** Checkpoints of one transaction at most: signing takes about 50 us each. */
const CHECKPOINTS_MAX = 500

/**
 * Checkpoints of the chains that have grown since their last one, if that is long enough ago;
 * undefined if none is due.
 */
export const stepCheckpoints = (
  state: SequencerState,
  signer: CheckpointSigner,
  now: string
): Changes | undefined => {
  const draft = new Draft(state, now)
  const due = formatMicros(microsOf(now) - CHECKPOINT_INTERVAL_MS * 1_000)
  // One of the future was made before the clock went back: nobody waits until it is there again.
  const isRecent = (newest: CheckpointRecord | undefined): boolean =>
    newest !== undefined && newest.created_at > due && newest.created_at <= now
  for (const [name, tree] of state.trees) {
    const newest = state.checkpoints.get(name)
    if (newest?.tree_size === tree.size || isRecent(newest)) continue
    checkpointOf(draft, chainOfTree(name), signer, now)
    if (draft.checkpoints.length >= CHECKPOINTS_MAX) break
  }
  return draft.checkpoints.length === 0 ? undefined : changesOf(draft, state.applied)
}

/** Links that one transaction removes at most. */
export const PURGED_MAX = 500

/** Removes links that ended long ago from the registry; undefined without such links. */
export const stepPurge = (state: SequencerState, now: string): Changes | undefined => {
  const leaving = linksToPurge(state.registry, now, PURGED_MAX)
  if (leaving.length === 0) return undefined
  return { ...changesOf(new Draft(state, now), state.applied), registry: leaving }
}

/** Undefined if one of two attempts succeeds, else what the second one said. */
const twice = (attempt: () => void): string | undefined => {
  for (let left = 1; ; left--) {
    try {
      attempt()
      return undefined
    } catch (error) {
      if (left === 0) return error instanceof Error ? error.message : String(error)
    }
  }
}

const windows = [
  ["dedup", DEDUP_PREFIX],
  ["idempotency", IDEMPOTENCY_PREFIX]
] as const

/** How many of the stored window records, oldest first, hold nothing that can still be found. */
const leaving = (state: SequencerState, kind: "dedup" | "idempotency", added: number): number => {
  const window = state[kind]
  const floor = window.next + added - window.capacity
  const kept = state.stored[kind].findIndex(({ count, first }) => first + count > floor)
  return kept === -1 ? state.stored[kind].length : kept
}

/** Where the log is once a chunk is written: offsets after the last record. */
export interface LogEnds {
  readonly eventsNext: number
  readonly tracesNext: number
}

/** Offset of the first fact of a chunk. */
const firstFact = ({ traces }: Changes, { tracesNext }: LogEnds): number =>
  tracesNext - traces.facts.length

const totalsAfter = ({ totals, writers }: SequencerState, changes: Changes): Totals => {
  let sum = totals.writers
  for (const [writer, number] of changes.writers) sum += (number ?? 0) - (writers.get(writer) ?? 0)
  return {
    events: totals.events + changes.events.length,
    facts: totals.facts + changes.traces.facts.length,
    writers: sum
  }
}

/** The records of `alk.state` that carry these changes. */
export const stateRecords = (
  state: SequencerState,
  changes: Changes,
  ends: LogEnds
): ReadonlyArray<StateRecord> => {
  const records: Array<StateRecord> = []
  for (const [tenantId, head] of changes.heads) {
    records.push(headRecord("events", tenantId, head, changes.trees.get(tenantId)))
  }
  for (const checkpoint of changes.checkpoints) records.push(checkpointRecord(checkpoint))
  for (const [tenantId, head] of changes.traces.heads) {
    const tree = changes.trees.get(treeNameOf(tenantId, "traces"))
    records.push(headRecord("traces", tenantId, head, tree))
  }
  for (const record of traceRecords(changes.traces, firstFact(changes, ends))) records.push(record)
  for (const [kind, prefix] of windows) {
    const added = changes[kind]
    if (added.length === 0) continue
    records.push(windowRecord(prefix, state[kind].next, added))
    for (const { first } of state.stored[kind].slice(0, leaving(state, kind, added.length))) {
      records.push({ key: `${prefix}${first}`, value: null })
    }
  }
  for (const [writer, number] of changes.writers) records.push(writerRecord(writer, number))
  const totals = totalsAfter(state, changes)
  records.push(
    appliedRecord({
      command_offset: changes.applied,
      events_next: ends.eventsNext,
      traces_next: ends.tracesNext,
      traces_forgotten: state.tracesForgotten,
      events_total: totals.events,
      facts_total: totals.facts,
      writers_total: totals.writers
    })
  )
  return records
}

/** Take committed changes into the state. The only place where a state changes. */
export const advance = (state: SequencerState, changes: Changes, ends: LogEnds): void => {
  for (const [tenantId, head] of changes.heads) state.heads.set(tenantId, head)
  for (const [name, tree] of changes.trees) state.trees.set(name, tree)
  for (const checkpoint of changes.checkpoints) {
    state.checkpoints.set(treeOfCheckpoint(checkpoint), checkpoint)
  }
  for (const [tenantId, head] of changes.traces.heads) state.traceHeads.set(tenantId, head)
  state.traces.advance(changes.traces, firstFact(changes, ends))
  for (const [kind] of windows) {
    const added = changes[kind]
    if (added.length === 0) continue
    state.stored[kind].splice(0, leaving(state, kind, added.length))
    state.stored[kind].push({ first: state[kind].next, count: added.length })
    for (const entry of added) state[kind].append(entry)
  }
  state.registry.take(changes.registry)
  state.applied = changes.applied
  state.eventsNext = ends.eventsNext
  state.tracesNext = ends.tracesNext
  state.totals = totalsAfter(state, changes)
  for (const [writer, number] of changes.writers) {
    if (number === null) state.writers.delete(writer)
    else state.writers.set(writer, number)
  }
}
