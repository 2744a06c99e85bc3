/**
 * Which executions are asked for, and how long a chunk waits for them: what takes long, or fails, holds
 * up no others. Asks nothing itself.
 */
import type { Option } from "effect"
import type { Sliced } from "../../../domain/Slices.ts"
import type { TraceKey } from "../../../ports/TraceStore.ts"
import { keyText, type MissingExecutions } from "./MissingExecutions.ts"
import type { ExecutionEntry } from "./TraceEntry.ts"
import type { TraceState } from "./TraceState.ts"

/** Milliseconds that a chunk waits for the store: the audit commands after it wait too. */
const PATIENCE_MS = 2_000
/** The same for a tenant that has used it up, and milliseconds until it has its patience again. */
const BRIEF_PATIENCE_MS = 500
const BRIEF_FOR_MS = 20_000
/** Such tenants are asked for one by one, in so many groups at most; the others together. */
const BRIEF_GROUPS = 8
const PATIENT = -1
/** What has failed is asked for again after so many times what that has taken, and milliseconds at most. */
const BACK_OFF = 4
const BACK_OFF_MAX_MS = 30_000
/** Executions and spans that are remembered to have failed. */
const FAILED_MAX = 10_000

export const keysIn = ({ executions, spans }: MissingExecutions): ReadonlyArray<TraceKey> => [
  ...executions,
  ...spans
]

const textOf = ({ id, tenantId }: TraceKey): string => keyText(tenantId, id)

const selected = (
  { executions, spans }: MissingExecutions,
  isWanted: (key: TraceKey) => boolean
): MissingExecutions => ({ executions: executions.filter(isWanted), spans: spans.filter(isWanted) })

export const joined = (all: ReadonlyArray<MissingExecutions>): MissingExecutions => ({
  executions: all.flatMap(({ executions }) => executions),
  spans: all.flatMap(({ spans }) => spans)
})

/** One question to the store, on its way. */
export class ExecutionLoad {
  readonly missing: MissingExecutions
  /** Milliseconds. */
  readonly startedAt: number
  readonly #named: ReadonlySet<string>
  readonly #left = new Set<string>()
  /** No chunk waits for it any more. */
  isLate = false
  /** The view had caught up, and the store was asked. */
  isAsked = false
  /** Undefined until it is over: then what has come, or none where that failed. */
  answer: Option.Option<ReadonlyArray<ExecutionEntry>> | undefined

  constructor(missing: MissingExecutions, startedAt: number) {
    this.missing = missing
    this.startedAt = startedAt
    this.#named = new Set(keysIn(missing).map(textOf))
  }

  names(key: TraceKey): boolean {
    return this.#named.has(textOf(key))
  }

  /**
   * These leave memory meanwhile. They may have changed since the store was asked: what it says of them
   * is not taken.
   */
  noteLeaving(entries: ReadonlyArray<ExecutionEntry>): void {
    for (const { executionId, tenantId } of entries) this.#left.add(keyText(tenantId, executionId))
  }

  /** Put what has come into memory. Nothing else may change that meanwhile. */
  *take(
    traces: TraceState,
    entries: ReadonlyArray<ExecutionEntry>,
    nowMicros: number
  ): Sliced<void> {
    for (const entry of entries) {
      const { executionId, tenantId } = entry
      if (this.#left.has(keyText(tenantId, executionId))) continue
      entry.wasLate = this.isLate
      yield* traces.take(entry, nowMicros)
    }
  }
}

/** Executions that are asked for together. */
export interface LoadPlan {
  readonly missing: MissingExecutions
  readonly patienceMs: number
  /** Goes on when the chunk waits no more. */
  readonly isPatient: boolean
}

/** Times are milliseconds of one clock. */
export class LoadTimes {
  /** By execution or span, until when it is not asked for. */
  readonly #failed = new Map<string, number>()
  /** By tenant, until when it has little patience. */
  readonly #brief = new Map<string, number>()

  isHeldBack(key: TraceKey, now: number): boolean {
    return now < (this.#failed.get(textOf(key)) ?? 0)
  }

  /** Those that `isHeld` are not asked for. */
  plan(
    missing: MissingExecutions,
    now: number,
    isHeld: (key: TraceKey) => boolean
  ): { readonly held: MissingExecutions; readonly plans: ReadonlyArray<LoadPlan> } {
    const isAsked = (key: TraceKey) => !(isHeld(key) || this.isHeldBack(key, now))
    const groups = new Map<string, number>()
    const groupOf = ({ tenantId }: TraceKey): number => {
      const isBrief = now < (this.#brief.get(tenantId) ?? 0)
      if (isBrief && !groups.has(tenantId)) groups.set(tenantId, groups.size % BRIEF_GROUPS)
      return groups.get(tenantId) ?? PATIENT
    }
    const asked = selected(missing, isAsked)
    const executions = Map.groupBy(asked.executions, groupOf)
    const spans = Map.groupBy(asked.spans, groupOf)
    const plans = [...new Set([...executions.keys(), ...spans.keys()])].map((group) => ({
      missing: { executions: executions.get(group) ?? [], spans: spans.get(group) ?? [] },
      patienceMs: group === PATIENT ? PATIENCE_MS : BRIEF_PATIENCE_MS,
      isPatient: group === PATIENT
    }))
    return { held: selected(missing, (key) => !isAsked(key)), plans }
  }

  /** A chunk has waited for them in vain. */
  usedUp(missing: MissingExecutions, now: number): void {
    for (const [tenantId, until] of this.#brief) if (until <= now) this.#brief.delete(tenantId)
    for (const { tenantId } of keysIn(missing)) this.#brief.set(tenantId, now + BRIEF_FOR_MS)
  }

  failed(missing: MissingExecutions, startedAt: number, now: number): void {
    const until = now + Math.min(BACK_OFF_MAX_MS, BACK_OFF * (now - startedAt))
    for (const key of keysIn(missing).map(textOf)) {
      this.#failed.delete(key)
      this.#failed.set(key, until)
    }
    for (const key of this.#failed.keys()) {
      if (this.#failed.size <= FAILED_MAX) break
      this.#failed.delete(key)
    }
  }

  succeeded(missing: MissingExecutions): void {
    for (const key of keysIn(missing)) this.#failed.delete(textOf(key))
  }
}
