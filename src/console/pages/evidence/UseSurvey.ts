/**
 * What a scope holds: how many events by outcome, the first and the last, and how many executions of
 * agents; asked for, never assumed.
 */
import { useState } from "preact/hooks"
import type {
  AuditEvent,
  EventListResponse,
  EventStats,
  ExecutionList,
  VerifyReport
} from "../../../client/gen/Api.d.ts"
import { type Answer, useAnswer } from "../../api/Answer.ts"
import type { ApiFailure } from "../../api/Client.ts"
import { filterOf, pathWith } from "../../state/EventsView.ts"
import type { Scope } from "../../state/EvidenceView.ts"
import type { Cover, CoveredExecutions } from "./CoverWords.ts"

export interface Survey {
  readonly stats: Answer<EventStats>
  readonly first: AuditEvent | undefined
  readonly last: AuditEvent | undefined
  readonly executions: CoveredExecutions | undefined
  /** Of any of the questions. */
  readonly failure: ApiFailure | undefined
  /** Of the expression itself: nothing can be made of it. */
  readonly refused: ApiFailure | undefined
  readonly reload: () => void
}

const startedIn = (from: string | undefined, to: string | undefined): string =>
  pathWith("/api/v1/executions", filterOf({ from, to, where: "" }, 0), "page_size=1")

/** Those that began in a scope, and those that began before it. */
const useExecutions = (from: string | undefined, to: string | undefined) => {
  const ofPeriod = useAnswer<ExecutionList>(startedIn(from, to))
  const untilEnd = useAnswer<ExecutionList>(startedIn(undefined, to))
  const [some, all] = [ofPeriod.data?.total, untilEnd.data?.total]
  const executions: CoveredExecutions | undefined =
    some === undefined || all === undefined
      ? undefined
      : { inPeriod: some, before: Math.max(0, all - some) }
  return {
    executions,
    failure: ofPeriod.failure ?? untilEnd.failure,
    reload: () => {
      ofPeriod.reload()
      untilEnd.reload()
    }
  }
}

/** The cover of what is made of a scope, as far as it is known. */
export const coverOf = ({ executions, stats }: Survey, { where = "" }: Scope): Cover => ({
  events: stats.data?.total,
  executions,
  hasQuery: where !== ""
})

export const useSurvey = ({ from, to, where = "" }: Scope): Survey => {
  const filter = filterOf({ from, to, where }, 0)
  const stats = useAnswer<EventStats>(
    pathWith("/v1/events/stats", filter, "group_by=outcome&limit=10")
  )
  const ends = (order: "asc" | "desc") =>
    pathWith("/v1/events", filter, `sort=timestamp&order=${order}&page_size=1`)
  const first = useAnswer<EventListResponse>(ends("asc"))
  const last = useAnswer<EventListResponse>(ends("desc"))
  const runs = useExecutions(from, to)
  const failure = stats.failure ?? first.failure ?? last.failure ?? runs.failure
  return {
    stats,
    first: first.data?.events[0],
    last: last.data?.events[0],
    executions: runs.executions,
    failure,
    refused: failure?.field === "where" ? failure : undefined,
    reload: () => {
      stats.reload()
      first.reload()
      last.reload()
      runs.reload()
    }
  }
}

/** The verdict on the span of a scope, once it is asked for. */
export const useVerdict = ({ from, to }: Scope) => {
  const filter = filterOf({ from, to, where: "" }, 0)
  const [isAsked, setIsAsked] = useState(false)
  const path = filter === "" ? "/v1/verify" : `/v1/verify?${filter}`
  const report = useAnswer<VerifyReport>(isAsked ? path : undefined)
  return { report, isAsked, ask: () => (isAsked ? report.reload() : setIsAsked(true)) }
}
