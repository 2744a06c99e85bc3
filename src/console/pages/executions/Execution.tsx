/** One execution: by time, as a log, as JSON; whether its facts are what was chained; live while it runs. */
import { useEffect, useMemo } from "preact/hooks"
import { useLocation, useRoute } from "preact-iso/router"
import type { Execution, TraceVerifyReport } from "../../../client/gen/Api.d.ts"
import { useAnswer } from "../../api/Answer.ts"
import { useRecovery } from "../../api/Recovery.ts"
import {
  Ago,
  Copy,
  Failure,
  Id,
  Loading,
  RunStatus,
  Stale,
  State,
  Time
} from "../../parts/Basics.tsx"
import { count, counted, duration } from "../../parts/Format.ts"
import { Json } from "../../parts/Json.tsx"
import { spanTreeOf } from "../../parts/SpanTree.ts"
import { useCopyKeys } from "../../state/Copying.ts"
import { evidenceLink } from "../../state/EvidenceView.ts"
import { usePageKeys } from "../../state/PageKeys.ts"
import { Run, type RunData, SPANS_MAX } from "../../state/Run.ts"
import { durationOf } from "./Executions.tsx"
import { RunGraph } from "./RunGraph.tsx"
import { AbsentDrawer, SpanDrawer } from "./SpanDrawer.tsx"
import { Timeline } from "./Timeline.tsx"

const views = { timeline: "Timeline", graph: "Graph", log: "Log", json: "JSON" } as const
type View = keyof typeof views

const Verdict = ({ id, version }: { readonly id: string; readonly version: number }) => {
  const path = `/api/v1/executions/${encodeURIComponent(id)}/verify`
  const report = useAnswer<TraceVerifyReport>(path)
  useRecovery(report.failure, report.reload)
  useEffect(() => {
    if (version > 1) report.reload()
  }, [version])
  if (report.data === undefined) {
    return report.failure === undefined ? (
      <State tone="plain">verifying</State>
    ) : (
      <State tone="warn">not verified: {report.failure.message}</State>
    )
  }
  const { breaks, events_checked, status } = report.data
  return (
    <>
      {status === "valid" ? (
        <State tone="good">{counted(events_checked, "fact")} verified</State>
      ) : status === "broken" ? (
        <State tone="bad">
          the chain is broken at <a href="/chain">#{count(breaks[0]?.sequence_number ?? 0)}</a>
        </State>
      ) : (
        <State tone="warn">{status}</State>
      )}{" "}
      <button type="button" class="quiet" onClick={report.reload} disabled={report.isLoading}>
        {report.isLoading ? "Verifying …" : "Verify again"}
      </button>
    </>
  )
}

const StreamState = ({ run }: { readonly run: Run }) => {
  const stream = run.stream.value
  if (stream === undefined) return null
  const state = stream.state.value
  return state.is === "live" ? (
    <State tone="good">live</State>
  ) : state.is === "cut" ? (
    <>
      <State tone="warn">cut</State> <Ago at={state.since} />
    </>
  ) : state.is === "refused" ? (
    <State tone="bad">not live: {state.failure.message}</State>
  ) : (
    <State tone="plain">connecting</State>
  )
}

const Head = ({ data, run }: { readonly data: RunData; readonly run: Run }) => {
  const { execution } = data
  const { summary } = execution
  const took = durationOf(execution)
  return (
    <>
      <header class="page-head">
        <h1>
          {execution.agent_name} <RunStatus value={execution.status} />
        </h1>
        <p>
          <StreamState run={run} /> <Verdict id={execution.id} version={data.spans.length} />
        </p>
      </header>
      <p class="faint">
        <Time at={execution.started_at} />
        {took === undefined ? "" : ` · ${duration(took)}`} · {counted(data.spans.length, "span")}
        {summary === undefined ? undefined : (
          <>
            {" "}
            · {counted(summary.calls, "call")} of models
            {summary.input_tokens === undefined && summary.output_tokens === undefined
              ? ""
              : ` · ${count(summary.input_tokens ?? 0)} tokens read, ${count(summary.output_tokens ?? 0)} written`}
            {summary.cost === undefined ? "" : ` · cost ${summary.cost}`}
            {summary.errors === 0 ? "" : ` · ${counted(summary.errors, "error")}`}
            {summary.models === undefined ? "" : ` · ${summary.models.join(", ")}`}
          </>
        )}{" "}
        · <Id value={execution.id} length={40} />
      </p>
      {execution.erased_at === undefined ? undefined : (
        <p class="stale">
          <State tone="warn">details erased</State> <Time at={execution.erased_at} />
        </p>
      )}
      {data.isCut ? (
        <p class="stale">
          The first {count(SPANS_MAX)} spans are shown: there are more.{" "}
          <code>GET /api/v1/executions/{execution.id}/spans</code> has all of them.
        </p>
      ) : undefined}
    </>
  )
}

const Log = ({ data, open }: { readonly data: RunData; readonly open: (id: string) => void }) => {
  const lines = useMemo(
    () =>
      data.spans
        .flatMap((span) => [
          { at: span.started_at, span, what: "started" },
          ...(span.ended_at === undefined
            ? []
            : [{ at: span.ended_at, span, what: span.status.toLowerCase() }])
        ])
        .sort((left, right) => (left.at < right.at ? -1 : left.at > right.at ? 1 : 0)),
    [data.spans]
  )
  return (
    <section class="card" aria-label="Log">
      <ol class="rows log">
        {lines.map(({ at, span, what }) => (
          <li key={`${span.id} ${what}`}>
            <Time at={at} />{" "}
            <button type="button" class="open-span" onClick={() => open(span.id)}>
              {span.name}
            </button>{" "}
            <span class={what === "failed" ? "state bad" : "faint"}>{what}</span>
          </li>
        ))}
      </ol>
    </section>
  )
}

const AsJson = ({ data: { execution, spans } }: { readonly data: RunData }) => {
  const value = useMemo(() => ({ execution, spans }), [execution, spans])
  return (
    <section class="card" aria-label="JSON">
      <Json label="The execution and its spans as JSON" value={value} />
    </section>
  )
}

const curlOf = (id: string): string =>
  `curl -H "Authorization: Bearer $ALK_API_KEY" '${location.origin}/api/v1/executions/${encodeURIComponent(id)}'`

/** Evidence packs hold the executions of their period. */
const evidencePath = ({ ended_at, id, started_at }: Execution): string =>
  evidenceLink({ from: started_at, to: ended_at, where: undefined }, id)

export const ExecutionPage = () => {
  const { params, query } = { params: useRoute().params, query: useLocation().query }
  const { route } = useLocation()
  const id = params["id"] ?? ""
  const run = useMemo(() => new Run(id), [id])
  useEffect(() => () => run.end(), [run])
  const view = Object.hasOwn(views, query["view"] ?? "") ? (query["view"] as View) : "timeline"
  const chosen = query["span"]
  const addressOf = (next: {
    readonly view?: View
    readonly span?: string | undefined
  }): string => {
    const { span, view: shown } = { view, span: chosen, ...next }
    const parameters = new URLSearchParams()
    if (shown !== "timeline") parameters.set("view", shown)
    if (span !== undefined) parameters.set("span", span)
    const text = parameters.toString()
    return `/executions/${encodeURIComponent(id)}${text === "" ? "" : `?${text}`}`
  }
  const open = (span: string) => route(addressOf({ span }), chosen !== undefined)
  const close = () => route(addressOf({ span: undefined }))
  const keys = useMemo(
    () => [{ key: "Escape", what: "close the span", run: close }],
    [id, view, chosen]
  )
  usePageKeys(keys)
  useCopyKeys(`/api/v1/executions/${encodeURIComponent(id)}`)
  const data = run.data.value
  const tree = useMemo(() => (data === undefined ? undefined : spanTreeOf(data.spans)), [data])
  const failure = run.failure.value
  if (data === undefined || tree === undefined) {
    return (
      <>
        <h1>Execution</h1>
        {failure === undefined ? (
          <Loading what={`the execution, ${counted(run.loaded.value, "span")} so far`} />
        ) : (
          <Failure failure={failure} retry={() => run.load()} />
        )}
      </>
    )
  }
  const span = data.spans.find((one) => one.id === chosen)
  const absent = data.dag?.nodes.find((node) => node.id === chosen && node.missing === true)
  return (
    <>
      <Head data={data} run={run} />
      <Stale answer={{ data, failure, at: run.at.value, reload: () => run.load() }} />
      <div class="run-bar">
        <nav class="tabs" aria-label="Views of the execution">
          {Object.entries(views).map(([name, title]) => (
            <a
              key={name}
              href={addressOf({ view: name as View })}
              aria-current={name === view ? "page" : undefined}
            >
              {title}
            </a>
          ))}
        </nav>
        <p class="actions">
          <Copy label="Copy link" text={location.href} />
          <Copy label="Copy as curl" text={curlOf(id)} />
          <a href={evidencePath(data.execution)}>Evidence and share links…</a>
        </p>
      </div>
      <div class={(span ?? absent) === undefined ? "run" : "run with-drawer"}>
        {view === "timeline" ? (
          <Timeline tree={tree} dag={data.dag} chosen={chosen} open={open} />
        ) : view === "graph" ? (
          <RunGraph id={id} dag={data.dag} chosen={chosen} open={open} />
        ) : view === "log" ? (
          <Log data={data} open={open} />
        ) : (
          <AsJson data={data} />
        )}
        {span === undefined ? undefined : <SpanDrawer key={span.id} span={span} close={close} />}
        {absent === undefined ? undefined : (
          <AbsentDrawer
            key={absent.id}
            span={{ id: absent.id, execution_id: data.execution.id }}
            close={close}
          />
        )}
      </div>
    </>
  )
}
