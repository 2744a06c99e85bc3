/**
 * What is going on, and whether it holds: the verdict on the chain, events of the last day, the last
 * that failed, the agents that run. An empty tenant sees how to begin.
 */
import { useRef, useState } from "preact/hooks"
import type {
  Chain,
  EventListResponse,
  EventStats,
  ExecutionList,
  VerifyReport
} from "../../client/gen/Api.d.ts"
import { type Answer, useAnswer } from "../api/Answer.ts"
import {
  Ago,
  Card,
  Empty,
  Failure,
  Id,
  Loading,
  Notices,
  Outcome,
  Scrolls,
  Stale,
  State,
  Time
} from "../parts/Basics.tsx"
import { count, counted } from "../parts/Format.ts"
import { HourBars } from "../parts/HourBars.tsx"
import { Onboarding } from "./Onboarding.tsx"

/** Events that are recomputed for the verdict: a moment's work. The page of the chain does all. */
const RECOMPUTED = 10_000
const EVERY_SECONDS = 10
/** Seconds until the newest are verified again. */
const VERIFY_SECONDS = 60

/** The page of the chain, which verifies the same range and says more of it. */
const verifiedHere = (first: number): string =>
  first > 1 ? `/chain?from_sequence=${first}&run=1` : "/chain?verify=events&run=1"

const VerdictOf = ({ chain, report }: { readonly chain: Chain; readonly report: VerifyReport }) => {
  const first = report.first_sequence_number ?? 0
  const last = report.last_sequence_number ?? 0
  const range = `#${count(first)} to #${count(last)}`
  const { checkpoint } = chain
  return (
    <>
      <p class="verdict">
        {report.status === "valid" ? (
          <State tone="good">verified {range}</State>
        ) : report.status === "empty" ? (
          <State tone="plain">nothing to verify yet</State>
        ) : report.status === "incomplete" ? (
          <State tone="warn">verified in part</State>
        ) : (
          <State tone="bad">the chain is broken</State>
        )}
      </p>
      <p>
        {counted(report.events_checked, "event")} recomputed from the stored bytes{" "}
        <Ago at={report.verified_at} />
        {first > 1 ? ", the newest of the chain" : ", the whole chain"}.
      </p>
      <Notices notices={report.notices} />
      {report.breaks_total === 0 ? undefined : (
        <ul class="breaks">
          {report.breaks.slice(0, 5).map((one) => (
            <li key={`${one.sequence_number} ${one.reason}`}>
              #{count(one.sequence_number)}: <code>{one.reason}</code>
            </li>
          ))}
          {report.breaks_total > 5 ? <li>{count(report.breaks_total - 5)} more</li> : undefined}
        </ul>
      )}
      <p>
        <a href={verifiedHere(first)}>
          {report.status === "broken" ? "What to do now" : "More on the chain"}
        </a>
      </p>
      <p>
        {checkpoint === undefined ? (
          <State tone="warn">no signed checkpoint yet</State>
        ) : (
          <>
            Signed to #{count(checkpoint.tree_size)} <Ago at={checkpoint.created_at} /> with key{" "}
            <code>{checkpoint.key_id}</code>, root <Id value={checkpoint.root_hash} length={17} />
          </>
        )}
      </p>
    </>
  )
}

/** Of the newest of a chain, again on a beat: the first of them stays while the chain grows a little. */
const useVerdict = (chain: "events" | "traces", length: number) => {
  const from = useRef(0)
  if (from.current === 0 || length - from.current > 2 * RECOMPUTED) {
    from.current = Math.max(1, length - RECOMPUTED + 1)
  }
  const path = `/v1/verify?chain=${chain}&from_sequence=${from.current}`
  return useAnswer<VerifyReport>(length === 0 ? undefined : path, VERIFY_SECONDS)
}

/** The other chain in one line, unless it is broken. */
const TracesVerdict = ({ report }: { readonly report: VerifyReport }) => {
  const { breaks, events_checked, last_sequence_number, status } = report
  if (status === "empty") return null
  const [first] = breaks
  return (
    <>
      <p class={status === "broken" ? "verdict" : undefined}>
        {status === "valid" ? (
          <State tone="good">executions hold</State>
        ) : status === "incomplete" ? (
          <State tone="warn">executions checked in part</State>
        ) : (
          <State tone="bad">the chain of executions is broken</State>
        )}{" "}
        {first === undefined ? undefined : (
          <>
            at fact {count(first.sequence_number)}: <code>{first.reason}</code>.{" "}
          </>
        )}
        {counted(events_checked, "trace fact")} up to {count(last_sequence_number ?? 0)} recomputed{" "}
        <Ago at={report.verified_at} />. <a href="/chain?verify=traces&run=1">More</a>
      </p>
      <Notices notices={report.notices} />
    </>
  )
}

const Verdict = ({ events, traces }: { readonly events: Chain; readonly traces: Chain }) => {
  const report = useVerdict("events", events.length)
  const ofTraces = useVerdict("traces", traces.length)
  const reload = () => {
    report.reload()
    ofTraces.reload()
  }
  return (
    <Card
      title="Integrity"
      aside={
        <button type="button" class="quiet" onClick={reload} disabled={report.isLoading}>
          {report.isLoading ? "Verifying …" : "Verify again"}
        </button>
      }
    >
      {events.length === 0 ? (
        <p class="verdict">
          <State tone="plain">no events to verify yet</State>
        </p>
      ) : report.data !== undefined && report.failure === undefined ? (
        <VerdictOf chain={events} report={report.data} />
      ) : report.failure !== undefined ? (
        <>
          <p class="verdict">
            <State tone="warn">not verified</State>
          </p>
          <Failure failure={report.failure} retry={report.reload} />
        </>
      ) : (
        <Loading what="the verdict" />
      )}
      {ofTraces.failure !== undefined ? (
        <Failure failure={ofTraces.failure} retry={ofTraces.reload} />
      ) : ofTraces.data === undefined ? undefined : (
        <TracesVerdict report={ofTraces.data} />
      )}
    </Card>
  )
}

const Rates = () => {
  const path = "/v1/events/stats?group_by=outcome&interval=hour&from=-24h&to=now"
  const stats = useAnswer<EventStats>(path, EVERY_SECONDS * 3)
  const { data } = stats
  const of = (key: string) => data?.groups.find((group) => group.key === key)?.count ?? 0
  return (
    <Card title="Events of the last 24 hours">
      <Stale answer={stats} />
      {data === undefined ? (
        stats.failure === undefined ? (
          <Loading what="the counts" />
        ) : (
          <Failure failure={stats.failure} retry={stats.reload} />
        )
      ) : (
        <>
          <p>
            <strong>{counted(data.total, "event")}</strong>, {counted(of("failure"), "failure")},{" "}
            {counted(of("error"), "error")}
          </p>
          <HourBars buckets={data.buckets ?? []} />
        </>
      )}
    </Card>
  )
}

const Failures = () => {
  const path = "/v1/events?outcome=failure,error&page_size=8"
  const list = useAnswer<EventListResponse>(path, EVERY_SECONDS)
  const { data } = list
  return (
    <Card title="Last failures and errors">
      <Stale answer={list} />
      {data === undefined ? (
        list.failure === undefined ? (
          <Loading what="the failures" />
        ) : (
          <Failure failure={list.failure} retry={list.reload} />
        )
      ) : data.events.length === 0 ? (
        <Empty title="None so far">
          <p>Events whose outcome is failure or error appear here.</p>
        </Empty>
      ) : (
        <Scrolls label="Last failures and errors, as a table">
          <table>
            <thead>
              <tr>
                <th scope="col">Time</th>
                <th scope="col">Actor</th>
                <th scope="col">Action</th>
                <th scope="col">Resource</th>
                <th scope="col">Outcome</th>
              </tr>
            </thead>
            <tbody>
              {data.events.map((event) => (
                <tr key={event.sequence_number}>
                  <td>
                    <a href={`/events?event=${event.sequence_number}`}>
                      <Time at={event.timestamp} />
                    </a>
                  </td>
                  <td>
                    <Id value={event.actor.id} length={28} />
                  </td>
                  <td>
                    <strong>{event.action}</strong>
                  </td>
                  <td>
                    {event.resource.type} <Id value={event.resource.id} length={28} />
                  </td>
                  <td>
                    <Outcome value={event.outcome} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scrolls>
      )}
    </Card>
  )
}

const Running = () => {
  const list = useAnswer<ExecutionList>(
    "/api/v1/executions?status=RUNNING&page_size=8",
    EVERY_SECONDS
  )
  const { data } = list
  return (
    <Card title="Running agents">
      <Stale answer={list} />
      {data === undefined ? (
        list.failure === undefined ? (
          <Loading what="the executions" />
        ) : (
          <Failure failure={list.failure} retry={list.reload} />
        )
      ) : data.executions.length === 0 ? (
        <Empty title="None at the moment">
          <p>Executions that have started and not ended appear here.</p>
        </Empty>
      ) : (
        <ul class="rows">
          {data.executions.map(({ agent_name, id, started_at, summary }) => (
            <li key={id}>
              <a href={`/executions/${encodeURIComponent(id)}`}>
                <strong>{agent_name}</strong>
              </a>{" "}
              <Id value={id} />{" "}
              <span class="faint">
                started <Ago at={started_at} />
                {summary === undefined ? "" : `, ${counted(summary.spans, "span")}`}
              </span>
            </li>
          ))}
          {data.total > data.executions.length ? (
            <li class="faint">and {count(data.total - data.executions.length)} more</li>
          ) : undefined}
        </ul>
      )}
    </Card>
  )
}

/** Milliseconds over which the chain's growth is measured. */
const RATE_MS = 60_000

/** Events a minute, by how much longer the chain became while the page is open; undefined at first. */
const useRate = ({ at, data }: Answer<Chain>): number | undefined => {
  const readings = useRef<ReadonlyArray<{ readonly at: number; readonly length: number }>>([])
  if (at !== undefined && data !== undefined && readings.current.at(-1)?.at !== at) {
    const young = readings.current.filter((reading) => at - reading.at <= RATE_MS)
    readings.current = [...young, { at, length: data.length }]
  }
  const [first, last] = [readings.current[0], readings.current.at(-1)]
  return first === undefined || last === undefined || first === last
    ? undefined
    : Math.round(((last.length - first.length) * 60_000) / (last.at - first.at))
}

/** Both chains are empty: nothing was sent yet. */
const isNew = (events: Chain, traces: Chain): boolean => events.length === 0 && traces.length === 0

export const Overview = () => {
  const events = useAnswer<Chain>("/v1/chain", EVERY_SECONDS)
  const traces = useAnswer<Chain>("/v1/chain?chain=traces", EVERY_SECONDS)
  const failure = events.failure ?? traces.failure
  const rate = useRate(events)
  // What arrives meanwhile is told on the page of the first steps, which stays until it is left.
  const [hasLeft, setHasLeft] = useState(false)
  const isWelcomed = useRef(false)
  if (events.data && traces.data && isNew(events.data, traces.data)) isWelcomed.current = true
  if (events.data === undefined || traces.data === undefined) {
    return (
      <>
        <h1>Overview</h1>
        {failure === undefined ? (
          <Loading what="the chains" />
        ) : (
          <Failure
            failure={failure}
            retry={() => {
              events.reload()
              traces.reload()
            }}
          />
        )}
      </>
    )
  }
  if (isWelcomed.current && !hasLeft) return <Onboarding leave={() => setHasLeft(true)} />
  return (
    <>
      <h1>Overview</h1>
      <Stale answer={events.failure === undefined ? traces : events} />
      <p class="faint">
        {counted(events.data.length, "event")} and {counted(traces.data.length, "trace fact")} in
        the chains of this tenant
        {rate === undefined || events.failure !== undefined
          ? "."
          : `; ${counted(rate, "event")} a minute now.`}
      </p>
      <div class="columns">
        <Verdict events={events.data} traces={traces.data} />
        <Rates />
      </div>
      <Failures />
      <Running />
    </>
  )
}
