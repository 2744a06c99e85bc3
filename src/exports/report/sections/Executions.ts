/** What agents ran in the time of the report: how often, how long, and what failed. */
import type { TraceStatus } from "../../../domain/traces/TraceFact.ts"
import { HISTORY_FROM, HISTORY_TO } from "../../../verify/Verifier.ts"
import { type Html, html, nothing } from "../Html.ts"
import { chapter, isWholePopulation, type Report, type Section } from "../Report.ts"
import { count, counted, duration, seconds, shown } from "../ShownText.ts"
import { extent, facts, share, table } from "../Tables.ts"
import { AGENTS_MAX, type StatusCounts } from "../TraceSurvey.ts"
import { chainVerdictOf } from "../Verdict.ts"

/** Agents that are listed. */
const AGENT_ROWS_MAX = 15

const STATUSES: ReadonlyArray<TraceStatus> = ["COMPLETED", "FAILED", "CANCELLED", "RUNNING"]

const of = (counts: StatusCounts, status: TraceStatus): number => counts[status] ?? 0

export const failedExecutions = ({ evidence }: Report): number =>
  of(evidence.traces.byStatus, "FAILED")

const statusesText = (counts: StatusCounts, total: number): string =>
  STATUSES.filter((status) => of(counts, status) > 0)
    .map((status) => `${count(of(counts, status))} ${status} (${share(of(counts, status), total)})`)
    .join(", ")

const summary = ({ evidence }: Report): Html => {
  const { byStatus, durations, executions, spans, spansByStatus } = evidence.traces
  return facts([
    ["Executions", `${count(executions)}: ${statusesText(byStatus, executions)}`],
    ["Spans", spans === 0 ? "0" : `${count(spans)}: ${statusesText(spansByStatus, spans)}`],
    [
      "Duration of ended executions",
      durations === undefined
        ? "none has ended"
        : `median ${duration(durations.median)}, 95th percentile ${duration(durations.p95)}, `
          + `maximum ${duration(durations.maximum)}`
    ]
  ])
}

const agents = ({ evidence }: Report): Html => {
  const { executions, otherAgents } = evidence.traces
  const listed = evidence.traces.agents.slice(0, AGENT_ROWS_MAX)
  const rest = evidence.traces.agents.slice(AGENT_ROWS_MAX)
  const left = rest.reduce((sum, { total }) => sum + total, otherAgents)
  return html`${table({
    caption: "Executions by agent",
    className: "dense",
    columns: [
      { title: "Agent", width: 40 },
      { title: "Executions", width: 14, numeric: true },
      { title: "%", width: 10, numeric: true },
      ...STATUSES.map((status) => ({ title: status.toLowerCase(), width: 9, numeric: true }))
    ],
    rows: listed.map(({ agent, byStatus, total }) => [
      shown(agent),
      count(total),
      share(total, executions),
      ...STATUSES.map((status) => count(of(byStatus, status)))
    ])
  })}${
    left === 0
      ? nothing
      : html`<p class="note">${counted(left, "execution")} of other agents, not listed
          here${otherAgents === 0 ? "" : ` (no more than ${count(AGENTS_MAX)} are counted apart)`}.</p>`
  }`
}

const failed = (report: Report): Html => {
  const rows = report.evidence.traces.failed
  if (rows.length === 0) return html`<p class="none">No execution failed.</p>`
  return html`${table({
    caption: "Failed executions, the newest first, each with the first error of its spans",
    className: "dense",
    columns: [
      { title: "Started (UTC)", width: 16 },
      { title: "Agent", width: 20 },
      { title: "Execution", width: 24 },
      { title: "Duration", width: 11, numeric: true },
      { title: "Error", width: 29 }
    ],
    rows: rows.map(({ agent, duration: micros, error, id, startedAt }) => [
      html`<span class="short">${seconds(startedAt)}</span>`,
      shown(agent),
      html`<code>${id}</code>`,
      micros === undefined ? "not ended" : duration(micros),
      error === undefined ? html`<span class="none">none given</span>` : shown(error)
    ])
  })}${extent(rows.length, failedExecutions(report), "failed execution", "here, the older ones.")}`
}

const longest = ({ evidence }: Report): Html => {
  const rows = evidence.traces.longest
  if (rows.length === 0) return html`<p class="none">No span has ended.</p>`
  return table({
    caption: "The longest spans; the root spans, which last as long as their executions, left out",
    className: "dense",
    columns: [
      { title: "Duration", width: 12, numeric: true },
      { title: "Type", width: 16 },
      { title: "Name", width: 33 },
      { title: "Status", width: 14 },
      { title: "Execution", width: 25 }
    ],
    rows: rows.map((span) => [
      duration(span.duration),
      shown(span.type),
      shown(span.name),
      span.status,
      html`<code>${span.executionId}</code>`
    ])
  })
}

const body = (report: Report): Html => {
  const { executions, isWhole } = report.evidence.traces
  const { from, to } = report.input.verification.bounds
  const isAllTime = from === HISTORY_FROM && to === HISTORY_TO
  if (report.input.eventsOnly === true) {
    return html`<p class="none">Left out: this report covers the events that its filter selects,
      and nothing else.</p>`
  }
  if (executions === 0) {
    return html`<p class="none">0 executions of agents overlap the bounds of this report.</p>`
  }
  const { traces } = report.input.verification
  const isBroken = traces !== undefined && chainVerdictOf(traces).tone === "broken"
  return html`
    ${
      isBroken
        ? html`<p class="alarm"><strong>Computed from altered records.</strong> The chain of agent
            executions does not hold, see ${chapter("integrity")}.</p>`
        : nothing
    }
    ${
      isWhole
        ? nothing
        : html`<p class="note"><strong>Of a part only:</strong> there are more
      executions or spans than a report goes through.</p>`
    }
    <p>Executions of agents ${isAllTime ? "of the tenant" : "that overlap the bounds of time"}${
      isWholePopulation(report.input) ? "" : "; the filter of this report does not apply to them"
    }. They are recorded in a hash chain of their own.</p>
    ${summary(report)}
    ${agents(report)}
    <h2>Failed executions</h2>
    ${failed(report)}
    <h2>Longest spans</h2>
    ${longest(report)}`
}

export const executions: Section = { title: "Agent executions", body }
