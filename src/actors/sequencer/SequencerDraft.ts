/**
 * What a chunk of commands changes in a partition's state, and the draft in which a step gathers it:
 * on top of a state that stays as it was. Decides nothing.
 */

import type { Head } from "../../domain/chain/Chains.ts"
import { type ChainKey, treeNameOf } from "../../domain/chain/Chains.ts"
import { type CheckpointRecord, treeOfCheckpoint } from "../../domain/chain/Checkpoint.ts"
import { movedSum } from "../../domain/chain/HeadsDigest.ts"
import { Frontier } from "../../domain/chain/MerkleTree.ts"
import type { ItemError } from "../../domain/records/Command.ts"
import {
  copyRefusal,
  isForgotten,
  type WriterPosition
} from "../../domain/records/CommandWriter.ts"
import type { QuarantineKind } from "../../domain/records/Quarantine.ts"
import type { AttemptVerdict, Receipt } from "../../domain/records/Receipt.ts"
import type { WindowEntry } from "../../domain/records/StateRecords.ts"
import type { RegistryChange } from "../../domain/registry/RegistryEntry.ts"
import { RegistryDraft } from "../../domain/registry/RegistryTable.ts"
import { microsOf } from "../../domain/Timestamp.ts"
import { ChainedEvents } from "./ChainedEvents.ts"
import type { IdTexts } from "./IdTexts.ts"
import type { WindowHit } from "./PackedWindow.ts"
import { countByCode } from "./RejectedItems.ts"
import { headsOf, type SequencerState, type Totals } from "./SequencerState.ts"
import { type TraceChanges, type TraceContext, TraceDraft } from "./traces/TraceDraft.ts"

/**
 * A receipt without the offsets that are known once what the chunk has made has its own. Its ids may
 * be JSON already.
 */
export interface ReceiptDraft extends Omit<Receipt, "events_next" | "traces_next" | "ids"> {
  readonly ids: ReadonlyArray<string> | IdTexts
}

/** A receipt that the chunk writes, and what of the chunk it has to wait for. */
export interface NewReceipt {
  readonly receipt: ReceiptDraft
  readonly attempt: string
  readonly probe: boolean
  /** Events of this chunk up to and including this command's. */
  readonly eventsBefore: number
  /** The same of trace facts. */
  readonly factsBefore: number
}

/** A command that is set aside. */
export interface Quarantined {
  readonly kind: QuarantineKind
  readonly offset: number
  readonly reason: string
  readonly value: Buffer | null
  /** How the value is written. */
  readonly format: number
}

/** What a chunk changes; nothing has happened until it is committed and taken over by `advance`. */
export interface StateChanges {
  readonly events: ChainedEvents
  readonly receipts: ReadonlyArray<NewReceipt>
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
  /** The last number of each writer, null for those that are no longer remembered. */
  readonly writers: ReadonlyMap<string, number | null>
  readonly applied: number
  /** When the newest command that was applied was received. */
  readonly receivedUpTo: number
  /** A request waits until it is shown. */
  readonly isAwaited: boolean
  /** What the changelog adds up to with these changes; none may follow once it was asked for. */
  readonly totals: Totals
  readonly counts: {
    readonly deduplicated: number
    /** Items that passed validation and were refused here, by code. */
    readonly refused: ReadonlyMap<string, number>
    /** Repairs that were decided here, by code. */
    readonly repaired: ReadonlyMap<string, number>
  }
}

/** Everything a chunk has done so far, on top of a state that stays as it was. */
export class Draft implements StateChanges {
  readonly events = new ChainedEvents()
  readonly receipts: Array<NewReceipt> = []
  readonly verdicts: Array<AttemptVerdict> = []
  readonly quarantined: Array<Quarantined> = []
  readonly registry: Array<RegistryChange> = []
  readonly heads = new Map<string, Head>()
  readonly trees = new Map<string, Frontier>()
  readonly checkpoints: Array<CheckpointRecord> = []
  readonly dedup: Array<WindowEntry> = []
  readonly idempotency: Array<WindowEntry> = []
  readonly #dedupIndex = new Map<string, number>()
  readonly #idempotencyIndex = new Map<string, number>()
  readonly #newestCheckpoints = new Map<string, CheckpointRecord>()
  readonly #state: SequencerState
  #totals: Totals | undefined
  /** The registry with the changes of the chunk. */
  readonly registryDraft: RegistryDraft
  /** Errors of items that are the step's own. */
  readonly refused: Array<ItemError> = []
  readonly repaired: Array<{ readonly code: string }> = []
  deduplicated = 0
  isAwaited = false
  /** Offset of the last command. */
  applied: number
  receivedUpTo: number
  readonly writers = new Map<string, number | null>()

  readonly traces: TraceDraft

  constructor(state: SequencerState, now: string, traces: TraceContext = {}) {
    this.#state = state
    this.applied = state.applied
    this.receivedUpTo = state.receivedUpTo
    this.registryDraft = new RegistryDraft(state.registry)
    this.traces = new TraceDraft(state.traces, state.traceHeads, now, traces)
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
    if (before === undefined && headsOf(this.#state, chain).has(tenantId)) return undefined
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

  /**
   * Why a command is a copy; remembers its position and when it was received if it is not one. The time is
   * not there if the command can't be read.
   */
  refusalOf(
    position: WriterPosition | undefined,
    receivedAt: string | undefined,
    now: string
  ): string | undefined {
    const micros = receivedAt === undefined ? Number.NaN : microsOf(receivedAt)
    const received = Number.isSafeInteger(micros) ? micros : undefined
    if (position !== undefined) {
      const last = this.writers.get(position.writer) ?? this.#state.writers.get(position.writer)
      const { copiesUpTo } = this.#state
      const refusal = copyRefusal(position, received, { last, copiesUpTo }, microsOf(now))
      if (refusal !== undefined) return refusal
      this.writers.set(position.writer, position.number)
    }
    this.receivedUpTo = Math.max(this.receivedUpTo, received ?? 0)
    return undefined
  }

  /** Forget writers that are too old to write. */
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

  /** Whether the window still holds a key: with the chunk it may be larger than it should. */
  holdsDuplicate(key: string): boolean {
    return this.#dedupIndex.has(key) || this.#state.dedup.find(key) !== undefined
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
    const { fingerprint, number } = added[ordinal - window.next]!
    return { ordinal, fingerprint, number }
  }

  get totals(): Totals {
    this.#totals ??= this.#addUp()
    return this.#totals
  }

  #addUp(): Totals {
    const { heads, totals, traceHeads, writers } = this.#state
    const events = movedSum(totals.heads, "events", this.heads, heads)
    let sum = totals.writers
    for (const [writer, number] of this.writers) sum += (number ?? 0) - (writers.get(writer) ?? 0)
    return { heads: movedSum(events, "traces", this.traces.heads, traceHeads), writers: sum }
  }

  get counts(): StateChanges["counts"] {
    const { deduplicated, refused, repaired } = this
    return { deduplicated, refused: countByCode(refused), repaired: countByCode(repaired) }
  }
}
