/**
 * Which executions are asked for, and how long a chunk waits for them: what takes long, or fails,
 * holds up no other tenants. All are asked for together, and those of each tenant by themselves where
 * that is not quick. Asks nothing itself.
 */
import { Option } from "effect"
import type { Sliced } from "../../../domain/Slices.ts"
import type { TraceKey } from "../../../ports/TraceStore.ts"
import { keyText, type MissingExecutions } from "./MissingExecutions.ts"
import type { ExecutionEntry } from "./TraceEntry.ts"
import type { TraceState } from "./TraceState.ts"

/** Milliseconds that a chunk waits for the store: the audit commands after it wait too. */
const PATIENCE_MS = 2_000
/** The same for several tenants together, and then for each of them by itself. */
const SHARED_PATIENCE_MS = PATIENCE_MS / 2
/** The same for a tenant that has used it up, and milliseconds until it has its patience again. */
const BRIEF_PATIENCE_MS = 500
const BRIEF_FOR_MS = 20_000
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

export const selected = (
  { executions, spans }: MissingExecutions,
  isWanted: (key: TraceKey) => boolean
): MissingExecutions => ({ executions: executions.filter(isWanted), spans: spans.filter(isWanted) })

export const joined = (all: ReadonlyArray<MissingExecutions>): MissingExecutions => ({
  executions: all.flatMap(({ executions }) => executions),
  spans: all.flatMap(({ spans }) => spans)
})

const keyCount = ({ executions, spans }: MissingExecutions): number =>
  executions.length + spans.length

/** One for each tenant, those of few ids first. */
const byTenant = (missing: MissingExecutions): ReadonlyArray<MissingExecutions> => {
  const tenantOf = ({ tenantId }: TraceKey): string => tenantId
  const executions = Map.groupBy(missing.executions, tenantOf)
  const spans = Map.groupBy(missing.spans, tenantOf)
  return [...new Set([...executions.keys(), ...spans.keys()])]
    .map((tenantId) => ({
      executions: executions.get(tenantId) ?? [],
      spans: spans.get(tenantId) ?? []
    }))
    .sort((one, other) => keyCount(one) - keyCount(other))
}

/** What the store has answered. */
export interface LoadAnswer {
  readonly entries: ReadonlyArray<ExecutionEntry>
  /** Tenants of which an execution is not as this service has written it. */
  readonly wrong: ReadonlySet<string>
}

/** One question to the store, on its way. */
export class ExecutionLoad {
  readonly missing: MissingExecutions
  /** Milliseconds. */
  readonly startedAt: number
  readonly #named: ReadonlySet<string>
  readonly #left = new Set<string>()
  /** No chunk waits for it any more. */
  isLate = false
  /** When the view had caught up, and the store was asked. */
  askedAt: number | undefined
  /** Undefined until it is over: then what has come, or none where that failed. */
  answer: Option.Option<LoadAnswer> | undefined

  constructor(missing: MissingExecutions, startedAt: number) {
    this.missing = missing
    this.startedAt = startedAt
    this.#named = new Set(keysIn(missing).map(textOf))
  }

  /** It is over and has not failed. */
  get hasCome(): boolean {
    return this.answer !== undefined && Option.isSome(this.answer)
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

/** One for each tenant of a load that takes long or has failed; none where it is of one tenant. */
export const apart = (missing: MissingExecutions): ReadonlyArray<LoadPlan> => {
  const parts = byTenant(missing)
  if (parts.length < 2) return []
  return parts.map((own) => ({ missing: own, patienceMs: SHARED_PATIENCE_MS, isPatient: true }))
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
    const isBrief = ({ tenantId }: TraceKey) => now < (this.#brief.get(tenantId) ?? 0)
    const together = selected(missing, (key) => isAsked(key) && !isBrief(key))
    const tenants = byTenant(together).length
    const patienceMs = tenants > 1 ? SHARED_PATIENCE_MS : PATIENCE_MS
    const brief = byTenant(selected(missing, (key) => isAsked(key) && isBrief(key)))
    const plans = [
      ...(tenants > 0 ? [{ missing: together, patienceMs, isPatient: true }] : []),
      ...brief.map((own) => ({ missing: own, patienceMs: BRIEF_PATIENCE_MS, isPatient: false }))
    ]
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
