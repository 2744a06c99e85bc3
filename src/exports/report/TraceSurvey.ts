/**
 * One pass over the agent executions of a report and their spans: counts, durations, and a few of
 * those that failed. Keeps a bounded number of each, whatever is stored.
 */
import { canonicalize } from "../../domain/json/CanonicalJson.ts"
import { type JsonObject, parseJson } from "../../domain/json/Json.ts"
import { microsOf } from "../../domain/Timestamp.ts"
import type { TraceStatus } from "../../domain/traces/TraceFact.ts"
import type { Execution, Span } from "../../domain/traces/TraceResources.ts"
import { FIELD_LENGTH_MAX } from "./EventLine.ts"
import { insertRanked, type Quantiles, quantilesOf } from "./Ranking.ts"
import { type CutText, cut } from "./ShownText.ts"

/** Executions, and spans, that are gone through. */
export const TRACE_ITEMS_MAX = 500_000
/** Agents that are counted apart. */
export const AGENTS_MAX = 1_000
/** Failed executions that are listed, the newest. */
export const FAILED_ROWS_MAX = 20
/** Spans that are listed, the longest. */
export const SPAN_ROWS_MAX = 10
/** Characters of an error. */
const ERROR_LENGTH_MAX = 200

export type StatusCounts = Readonly<Partial<Record<TraceStatus, number>>>

export interface AgentCount {
  readonly agent: CutText
  readonly total: number
  readonly byStatus: StatusCounts
}

export interface FailedExecution {
  readonly id: string
  readonly agent: CutText
  readonly status: TraceStatus
  readonly startedAt: string
  /** Microseconds. */
  readonly duration: number | undefined
  /** The first error of its spans; undefined if none has one. */
  readonly error: CutText | undefined
}

export interface LongSpan {
  readonly executionId: string
  readonly name: CutText
  readonly type: CutText
  readonly status: TraceStatus
  /** Microseconds. */
  readonly duration: number
}

export interface SurveyedTraces {
  readonly executions: number
  readonly spans: number
  /** False if there are more of either than TRACE_ITEMS_MAX. */
  readonly isWhole: boolean
  readonly byStatus: StatusCounts
  readonly spansByStatus: StatusCounts
  /** By descending total. */
  readonly agents: ReadonlyArray<AgentCount>
  /** Executions of agents beyond AGENTS_MAX. */
  readonly otherAgents: number
  /** Of ended executions, microseconds, nearest rank; undefined if none has ended. */
  readonly durations: Quantiles | undefined
  /** FAILED, the newest first. */
  readonly failed: ReadonlyArray<FailedExecution>
  readonly longest: ReadonlyArray<LongSpan>
}

const short = (text: string): CutText => cut(text, FIELD_LENGTH_MAX)

const added = (counts: StatusCounts, status: TraceStatus): StatusCounts => ({
  ...counts,
  [status]: (counts[status] ?? 0) + 1
})

const durationOf = (item: Pick<Execution, "started_at" | "ended_at">): number | undefined =>
  item.ended_at === undefined
    ? undefined
    : Math.max(0, microsOf(item.ended_at) - microsOf(item.started_at))

const errorOf = ({ error }: Span): CutText | undefined => {
  if (error === undefined) return undefined
  if (typeof error === "string") return cut(error, ERROR_LENGTH_MAX)
  const { message } = error as { readonly message?: unknown }
  const text = typeof message === "string" ? message : canonicalize(error as JsonObject)
  return cut(text, ERROR_LENGTH_MAX)
}

export class TraceSurvey {
  #executions = 0
  #spans = 0
  #byStatus: StatusCounts = {}
  #spansByStatus: StatusCounts = {}
  readonly #agents = new Map<string, AgentCount>()
  #otherAgents = 0
  readonly #durations: Array<number> = []
  readonly #failed: Array<FailedExecution> = []
  readonly #longest: Array<LongSpan> = []
  readonly #errors = new Map<string, CutText>()

  /**
   * Of one execution's JSON. Executions come before their spans. Hot path: this program has just
   * written the lines, so they are not checked.
   */
  takeExecution(line: string): void {
    const execution = parseJson(line) as Execution
    const duration = durationOf(execution)
    this.#executions += 1
    this.#byStatus = added(this.#byStatus, execution.status)
    if (duration !== undefined) this.#durations.push(duration)
    this.#takeAgent(execution)
    if (execution.status === "FAILED") this.#takeFailed(execution, duration)
  }

  takeSpan(line: string): void {
    const span = parseJson(line) as Span
    this.#spans += 1
    this.#spansByStatus = added(this.#spansByStatus, span.status)
    this.#takeError(span)
    this.#takeDuration(span)
  }

  result(isWhole: boolean): SurveyedTraces {
    const sorted = Float64Array.from(this.#durations).sort()
    return {
      executions: this.#executions,
      spans: this.#spans,
      isWhole,
      byStatus: this.#byStatus,
      spansByStatus: this.#spansByStatus,
      agents: [...this.#agents.values()].sort((left, right) => right.total - left.total),
      otherAgents: this.#otherAgents,
      durations: sorted.length === 0 ? undefined : quantilesOf(sorted),
      failed: this.#failed.map((one) => ({ ...one, error: this.#errors.get(one.id) })),
      longest: this.#longest
    }
  }

  #takeAgent({ agent_id, status }: Execution): void {
    const known = this.#agents.get(agent_id)
    if (known === undefined && this.#agents.size >= AGENTS_MAX) {
      this.#otherAgents += 1
      return
    }
    const { agent, byStatus, total } = known ?? { agent: short(agent_id), byStatus: {}, total: 0 }
    this.#agents.set(agent_id, { agent, total: total + 1, byStatus: added(byStatus, status) })
  }

  #takeFailed(execution: Execution, duration: number | undefined): void {
    const { agent_id, id, started_at, status } = execution
    const failed = (): FailedExecution => {
      const agent = short(agent_id)
      return { id, agent, status, startedAt: started_at, duration, error: undefined }
    }
    const isOlder = ({ startedAt }: FailedExecution) => startedAt < started_at
    insertRanked(this.#failed, failed, isOlder, FAILED_ROWS_MAX)
  }

  /** The first error of each execution that is listed. */
  #takeError(span: Span): void {
    const error = errorOf(span)
    if (error === undefined || this.#errors.has(span.execution_id)) return
    if (this.#failed.some(({ id }) => id === span.execution_id)) {
      this.#errors.set(span.execution_id, error)
    }
  }

  #takeDuration(span: Span): void {
    const duration = durationOf(span)
    // The root lasts as long as its execution: it would say nothing new.
    if (duration === undefined || span.parent_span_id === undefined) return
    const long = (): LongSpan => ({
      executionId: span.execution_id,
      name: short(span.name),
      type: short(span.span_type),
      status: span.status,
      duration
    })
    insertRanked(this.#longest, long, (other) => other.duration < duration, SPAN_ROWS_MAX)
  }
}
