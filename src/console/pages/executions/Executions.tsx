/** Executions of agents: filtered, sorted, page by page. */
import type { TargetedSubmitEvent } from "preact"
import { useLocation } from "preact-iso/router"
import type { Execution, ExecutionList } from "../../../client/gen/Api.d.ts"
import { useAnswer } from "../../api/Answer.ts"
import {
  Copy,
  Empty,
  Failure,
  Loading,
  RunStatus,
  Scrolls,
  Stale,
  Time
} from "../../parts/Basics.tsx"
import { count, counted, duration } from "../../parts/Format.ts"
import { microsOf } from "../../parts/SpanTree.ts"
import { useCopyKeys } from "../../state/Copying.ts"
import {
  type ExecutionsView,
  executionsAddress,
  executionsPath,
  executionsViewOf,
  isNarrowed,
  type Order,
  orders,
  PAGE_SIZE,
  statuses,
  type TextFilter,
  textFilters
} from "../../state/ExecutionsView.ts"
import { keyLine, otlpLines } from "../../state/Snippets.ts"

const EVERY_SECONDS = 10

const titles: Readonly<Record<TextFilter, string>> = {
  agent_id: "Agent id",
  name: "Agent name",
  model: "Model",
  session_id: "Session",
  user_id: "User"
}

const ranges = [
  ["", "All time"],
  ["-1h", "Last hour"],
  ["-24h", "Last 24 hours"],
  ["-7d", "Last 7 days"],
  ["-30d", "Last 30 days"]
] as const

type Change = (change: Partial<ExecutionsView>) => void

const Texts = ({ change, view }: { readonly view: ExecutionsView; readonly change: Change }) => {
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>): void => {
    event.preventDefault()
    const given = new FormData(event.currentTarget)
    const texts = textFilters.flatMap((name) => {
      const text = String(given.get(name) ?? "").trim()
      return text === "" ? [] : [[name, text] as const]
    })
    change({ texts: Object.fromEntries(texts) })
  }
  return (
    <form class="filters" key={JSON.stringify(view.texts)} onSubmit={submit}>
      {textFilters.map((name) => (
        <label key={name}>
          {titles[name]}
          <input name={name} defaultValue={view.texts[name] ?? ""} placeholder="any" />
        </label>
      ))}
      <button type="submit" class="primary">
        Search
      </button>
    </form>
  )
}

const Choices = ({ change, view }: { readonly view: ExecutionsView; readonly change: Change }) => (
  <div class="controls">
    <fieldset class="chips">
      <legend class="hidden">Status</legend>
      {statuses.map((status) => (
        <label key={status}>
          <input
            type="checkbox"
            checked={view.status.includes(status)}
            onChange={() =>
              change({
                status: view.status.includes(status)
                  ? view.status.filter((one) => one !== status)
                  : [...view.status, status]
              })
            }
          />
          {status.toLowerCase()}
        </label>
      ))}
      <label>
        <input
          type="checkbox"
          checked={view.hasError}
          onChange={() => change({ hasError: !view.hasError })}
        />
        with errors
      </label>
    </fieldset>
    <label>
      <span class="hidden">Time range</span>
      <select
        value={view.from ?? ""}
        onChange={({ currentTarget: { value } }) =>
          change({ from: value === "" ? undefined : value, to: undefined })
        }
      >
        {ranges.map(([value, title]) => (
          <option key={value} value={value}>
            {title}
          </option>
        ))}
      </select>
    </label>
    <label>
      <span class="hidden">Order</span>
      <select
        value={view.sort}
        onChange={({ currentTarget: { value } }) => change({ sort: value as Order })}
      >
        {Object.entries(orders).map(([value, title]) => (
          <option key={value} value={value}>
            {title}
          </option>
        ))}
      </select>
    </label>
  </div>
)

/** Microseconds that it took; undefined while it runs. */
export const durationOf = ({ ended_at, started_at }: Execution): number | undefined =>
  ended_at === undefined ? undefined : microsOf(ended_at) - microsOf(started_at)

const tokensOf = ({ summary }: Execution): string =>
  summary?.input_tokens === undefined && summary?.output_tokens === undefined
    ? ""
    : `${count(summary.input_tokens ?? 0)} / ${count(summary.output_tokens ?? 0)}`

const Row = ({ execution, longest }: { execution: Execution; longest: number }) => {
  const { summary } = execution
  const took = durationOf(execution)
  return (
    <tr>
      <td>
        <a href={`/executions/${encodeURIComponent(execution.id)}`}>
          <Time at={execution.started_at} />
        </a>
      </td>
      <td>
        <strong>{execution.agent_name}</strong>
      </td>
      <td>
        <RunStatus value={execution.status} />
      </td>
      <td class="number">{took === undefined ? "" : duration(took)}</td>
      <td class="bar-cell">
        <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
          <rect
            class="bar success"
            width={took === undefined ? 0 : (100 * took) / longest}
            height="8"
          />
        </svg>
      </td>
      <td class="number">{summary === undefined ? "" : count(summary.spans)}</td>
      <td class="number">{summary === undefined ? "" : count(summary.calls)}</td>
      <td class="number">{tokensOf(execution)}</td>
      <td class="number">{summary === undefined ? "" : count(summary.errors)}</td>
      <td class="number">{summary?.cost ?? ""}</td>
      <td>{summary?.models?.join(", ")}</td>
    </tr>
  )
}

const heads = [
  ["Started", false],
  ["Agent", false],
  ["Status", false],
  ["Took", true],
  ["", false],
  ["Spans", true],
  ["Calls", true],
  ["Tokens in / out", true],
  ["Errors", true],
  ["Cost", true],
  ["Models", false]
] as const

const Table = ({ executions }: { readonly executions: ReadonlyArray<Execution> }) => {
  const longest = Math.max(1, ...executions.map((one) => durationOf(one) ?? 0))
  return (
    <Scrolls label="Executions, as a table">
      <table>
        <thead>
          <tr>
            {heads.map(([title, isNumber]) => (
              <th key={title} scope="col" class={isNumber ? "number" : undefined}>
                {title === "" ? <span class="hidden">Took, as a bar</span> : title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {executions.map((execution) => (
            <Row key={execution.id} execution={execution} longest={longest} />
          ))}
        </tbody>
      </table>
    </Scrolls>
  )
}

const Pages = ({ total, view }: { readonly total: number; readonly view: ExecutionsView }) => {
  const last = Math.max(1, Math.ceil(total / PAGE_SIZE))
  const to = (page: number): string => executionsAddress({ ...view, page })
  return (
    <nav class="near" aria-label="Pages of the list">
      {view.page > 1 ? <a href={to(view.page - 1)}>Before</a> : undefined}
      <span class="faint">
        page {count(view.page)} of {count(last)}, {counted(total, "execution")}
      </span>
      {view.page < last ? <a href={to(view.page + 1)}>Next</a> : undefined}
    </nav>
  )
}

const otlpText = `${keyLine}\n${otlpLines(location.origin)}`

const List = ({ view }: { readonly view: ExecutionsView }) => {
  // The newest page is about what happens now.
  const every = view.page === 1 ? EVERY_SECONDS : undefined
  const list = useAnswer<ExecutionList>(executionsPath(view), every)
  if (list.data === undefined) {
    return list.failure === undefined ? (
      <Loading what="executions" />
    ) : (
      <Failure failure={list.failure} retry={list.reload} />
    )
  }
  const { executions, total } = list.data
  if (executions.length === 0) {
    return isNarrowed(view) || view.page > 1 ? (
      <Empty title="No execution matches">
        <p>Take a condition away, or choose a longer time.</p>
      </Empty>
    ) : (
      <Empty title="No executions yet">
        <p>
          Start a program that is instrumented with OpenTelemetry with these variables, or send
          operations to <code>/api/v1/traces/batch</code>. The first execution appears here.{" "}
          <a href="/start">How to send</a>
        </p>
        <pre>
          <code>{otlpText}</code>
        </pre>
        <Copy text={otlpText} label="Copy" />
      </Empty>
    )
  }
  return (
    <>
      <Stale answer={list} />
      <section class="card" aria-label="Executions">
        <Table executions={executions} />
      </section>
      <Pages total={total} view={view} />
    </>
  )
}

export const Executions = () => {
  const { query, route } = useLocation()
  const view = executionsViewOf(query)
  const change = (changed: Partial<ExecutionsView>) =>
    route(executionsAddress({ ...view, page: 1, ...changed }))
  useCopyKeys(executionsPath(view))
  return (
    <>
      <h1>Executions</h1>
      <Texts view={view} change={change} />
      <Choices view={view} change={change} />
      <List view={view} />
    </>
  )
}
