/**
 * When an execution of OpenTelemetry spans ends, as a function of the set of its spans. Its local
 * roots are the spans that name no parent, or one that has not come. It ends when they have ended,
 * at the latest of their ends, and failed if one of them did.
 *
 * Without a span that names no parent, one may still come: it is waited for a minute from the last
 * end, but not for a parent of another process. So it is with an execution of log records alone: it
 * ends with the latest of them.
 */
import type { StoredSpan } from "../../../domain/traces/StoredTrace.ts"
import { type TerminalStatus, terminalStatuses } from "../../../domain/traces/TraceFact.ts"
import { laterOf } from "./TraceTimes.ts"

/** Microseconds after the end of a span in which its parent may still come. */
export const PARENT_WAIT_MICROS = 60_000_000

/** What the local roots of an execution add up to. */
export interface LocalRoots {
  readonly running: number
  /** The latest end; empty while none has ended. */
  readonly endedAt: string
  readonly status: TerminalStatus
  /** The latest end of a span whose parent may still come; empty without one. */
  readonly awaitedSince: string
}

export const NO_ROOTS: LocalRoots = {
  running: 0,
  endedAt: "",
  status: "COMPLETED",
  awaitedSince: ""
}

/** What outlasts others last: one that failed, before it one that was cancelled. */
const WORST_LAST: ReadonlyArray<TerminalStatus> = ["COMPLETED", "CANCELLED", "FAILED"]

export const severityOf = (status: TerminalStatus): number => WORST_LAST.indexOf(status)

const worseOf = (left: TerminalStatus, right: TerminalStatus): TerminalStatus =>
  severityOf(left) > severityOf(right) ? left : right

const isTerminal = (status: StoredSpan["status"]): status is TerminalStatus =>
  (terminalStatuses as ReadonlyArray<string>).includes(status)

/** With one more local root, running or ended. */
export const withRoot = (roots: LocalRoots, span: StoredSpan): LocalRoots => {
  const { ended_at, parent_is_remote, parent_span_id, status } = span
  if (ended_at === null || !isTerminal(status)) return { ...roots, running: roots.running + 1 }
  const mayComeLater = parent_span_id !== null && !parent_is_remote
  return {
    running: roots.running,
    endedAt: laterOf(roots.endedAt, ended_at),
    status: worseOf(roots.status, status),
    awaitedSince: mayComeLater ? laterOf(roots.awaitedSince, ended_at) : roots.awaitedSince
  }
}

/** With the end of one that ran. */
export const withEnd = (roots: LocalRoots, span: StoredSpan): LocalRoots =>
  withRoot({ ...roots, running: roots.running - 1 }, span)

/** Which span says what the execution is: one without a parent, the first to start, then by id. */
export interface Introducer {
  readonly isRoot: boolean
  readonly startedAt: string
  readonly id: string
}

/** True if `one` says what the execution is rather than `other`. */
export const introducesBefore = (one: Introducer, other: Introducer | undefined): boolean => {
  if (other === undefined || one.isRoot !== other.isRoot) return other === undefined || one.isRoot
  return one.startedAt === other.startedAt ? one.id < other.id : one.startedAt < other.startedAt
}
