/** What evidence covers: a period, a query, and what that holds before anything is made of it. */
import type { TargetedSubmitEvent } from "preact"
import { Card, Failure, Loading, Outcome, State, Time } from "../../parts/Basics.tsx"
import { count, counted } from "../../parts/Format.ts"
import { boundsText, type EvidenceView, periods, type Scope } from "../../state/EvidenceView.ts"
import { QueryBox } from "../events/QueryBox.tsx"
import { ChosenExecution, ExecutionCount } from "./ExecutionFacts.tsx"
import { coverOf, type Survey, useVerdict } from "./UseSurvey.ts"

type Change = (change: Partial<EvidenceView>) => void

const OwnPeriod = ({ change, view }: { readonly view: EvidenceView; readonly change: Change }) => {
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>): void => {
    event.preventDefault()
    const given = new FormData(event.currentTarget)
    const textOf = (name: string) => String(given.get(name) ?? "").trim() || undefined
    change({ from: textOf("from"), to: textOf("to") })
  }
  return (
    <form class="own-period" key={`${view.from} ${view.to}`} onSubmit={submit}>
      <label>
        From
        <input name="from" defaultValue={view.from ?? ""} placeholder="2026-10-01" />
      </label>
      <label>
        To
        <input name="to" defaultValue={view.to ?? ""} placeholder="2026-12-31" />
      </label>
      <button type="submit">Set</button>
      <span class="faint">
        A day, an RFC 3339 time, or so long from now, such as -24h; empty is open.
      </span>
    </form>
  )
}

const Periods = ({
  change,
  scope,
  view
}: {
  readonly view: EvidenceView
  readonly scope: Scope
  readonly change: Change
}) => (
  <fieldset class="periods">
    <legend>Period</legend>
    <div class="choices">
      {periods.map(([period, title]) => (
        <label key={period}>
          <input
            type="radio"
            name="period"
            checked={view.period === period}
            // Its own bounds begin as those of the period before.
            onChange={() => change(period === "own" ? { period, ...boundsIn(scope) } : { period })}
          />
          {title}
        </label>
      ))}
    </div>
    {view.period === "own" ? <OwnPeriod view={view} change={change} /> : undefined}
  </fieldset>
)

const boundsIn = ({ from, to }: Scope) => ({ from, to })

const Verdict = ({ scope }: { readonly scope: Scope }) => {
  const { ask, isAsked, report } = useVerdict(scope)
  const { data, failure, isLoading } = report
  const button = (title: string) => (
    <button type="button" class="quiet" onClick={ask}>
      {title}
    </button>
  )
  if (!isAsked) {
    return (
      <>
        <span class="faint">not recomputed yet</span> {button("Recompute it now")}
      </>
    )
  }
  if (isLoading) return <span role="status">Recomputing the period …</span>
  if (failure !== undefined) {
    return (
      <>
        <State tone="warn">not verified</State> {failure.message} {button("Try again")}
      </>
    )
  }
  if (data === undefined) return null
  const events = counted(data.events_checked, "event")
  if (data.valid) {
    return data.status === "empty" ? (
      <State tone="plain">nothing to verify</State>
    ) : (
      <>
        <State tone="good">verified</State> {events} recomputed, whatever the query chooses of them
      </>
    )
  }
  return data.status === "incomplete" ? (
    <State tone="warn">verified in part</State>
  ) : (
    <>
      <State tone="bad">the chain is broken</State> <a href="/chain">See where</a>
    </>
  )
}

/** Executions alone prove something, too. */
const isNothing = ({ executions, stats }: Survey): boolean =>
  stats.data?.total === 0 && executions?.inPeriod === 0 && executions.before === 0

const Counts = ({
  scope,
  survey,
  view
}: {
  readonly scope: Scope
  readonly survey: Survey
  readonly view: EvidenceView
}) => {
  const { first, last, stats } = survey
  const { data } = stats
  return (
    <dl class="export-facts preview">
      <dt>Covers</dt>
      <dd>
        {boundsText(scope)}
        {scope.where === undefined ? "" : ", narrowed by the query"}
        {view.period === "all" ? "" : "; days are days in UTC, and both ends are included"}
      </dd>
      <dt>Events</dt>
      <dd>
        {data === undefined ? (
          "…"
        ) : (
          <>
            <strong>{count(data.total)}</strong>{" "}
            {data.groups.map(({ count: of, key }) => (
              <span class="outcome" key={key}>
                <Outcome value={key} /> {count(of)}
              </span>
            ))}
            {isNothing(survey) ? (
              <span class="faint">no event: a document would say so, and prove little</span>
            ) : undefined}
          </>
        )}
      </dd>
      <dt>First and last</dt>
      <dd>
        {first === undefined || last === undefined ? (
          data?.total === 0 ? (
            "none"
          ) : (
            "…"
          )
        ) : (
          <>
            <Time at={first.timestamp} /> <span class="faint">to</span> <Time at={last.timestamp} />
          </>
        )}
      </dd>
      <ExecutionCount {...coverOf(survey, scope)} />
      {view.execution === undefined ? undefined : <ChosenExecution id={view.execution} />}
      <dt>Integrity</dt>
      <dd>
        <Verdict key={`${scope.from} ${scope.to}`} scope={scope} />
      </dd>
    </dl>
  )
}

export const ScopeChoice = ({
  change,
  scope,
  survey,
  view
}: {
  readonly view: EvidenceView
  readonly scope: Scope
  readonly survey: Survey
  readonly change: Change
}) => {
  const { failure, refused, reload, stats } = survey
  return (
    <Card title="What it covers">
      <Periods view={view} scope={scope} change={change} />
      <div class="narrow">
        <QueryBox text={view.where} apply={(where) => change({ where })} failure={refused} />
      </div>
      {refused !== undefined ? undefined : failure !== undefined ? (
        <Failure failure={failure} retry={reload} />
      ) : stats.data === undefined && stats.isLoading ? (
        <Loading what="the counts" />
      ) : (
        <Counts scope={scope} survey={survey} view={view} />
      )}
    </Card>
  )
}
