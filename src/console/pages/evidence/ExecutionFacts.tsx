/** What of a scope agents did: how many executions, and the one whose page led here. */
import type { Execution } from "../../../client/gen/Api.d.ts"
import { useAnswer } from "../../api/Answer.ts"
import { Failure, Id } from "../../parts/Basics.tsx"
import { count, counted } from "../../parts/Format.ts"
import { type CoveredExecutions, earlierWords } from "./CoverWords.ts"

export const ExecutionCount = ({
  executions,
  hasQuery
}: {
  readonly executions: CoveredExecutions | undefined
  readonly hasQuery: boolean
}) => (
  <>
    <dt>Agent executions</dt>
    <dd>
      {executions === undefined ? (
        "…"
      ) : (
        <>
          <strong>{count(executions.inPeriod)}</strong>
          {earlierWords(executions)}
          {hasQuery ? <span class="faint"> – the query chooses events only</span> : undefined}
        </>
      )}
    </dd>
  </>
)

const Named = ({ execution: { agent_name, id, summary } }: { readonly execution: Execution }) => (
  <>
    <a href={`/executions/${encodeURIComponent(id)}`}>{agent_name}</a> <Id value={id} length={40} />
    , with {summary === undefined ? "its spans" : counted(summary.spans, "span")}, and every other
    one that ran in the same time.
  </>
)

export const ChosenExecution = ({ id }: { readonly id: string }) => {
  const path = `/api/v1/executions/${encodeURIComponent(id)}`
  const { data, failure, reload } = useAnswer<Execution>(path)
  return (
    <>
      <dt>Among them</dt>
      <dd>
        {data !== undefined ? (
          <Named execution={data} />
        ) : failure === undefined ? (
          "…"
        ) : (
          <Failure failure={failure} retry={reload} />
        )}
      </dd>
    </>
  )
}
