/** The exports of this tenant, asked for often while one is under way; and what can be done to one. */
import { useState } from "preact/hooks"
import type { ExportJob, ExportJobInput, ExportJobList } from "../../../client/gen/Api.d.ts"
import { type Answer, failureOf, useAnswer } from "../../api/Answer.ts"
import { type ApiFailure, call } from "../../api/Client.ts"
import { isUnderWay } from "../../state/ExportProgress.ts"

const PATH = "/v1/exports"
const BUSY_SECONDS = 1
const IDLE_SECONDS = 15

const exportPath = (id: string): string => `${PATH}/${encodeURIComponent(id)}`
export const filePath = (id: string): string => `${exportPath(id)}/file`

/** An answer that is asked for often as long as it says that something is under way. */
const useBusy = <A>(path: string | undefined, isBusy: (data: A) => boolean): Answer<A> => {
  const [seconds, setSeconds] = useState(BUSY_SECONDS)
  const answer = useAnswer<A>(path, seconds)
  const wanted = answer.data !== undefined && !isBusy(answer.data) ? IDLE_SECONDS : BUSY_SECONDS
  if (wanted !== seconds) setSeconds(wanted)
  return answer
}

export const useExports = (): Answer<ExportJobList> =>
  useBusy<ExportJobList>(PATH, ({ exports }) => exports.some(isUnderWay))

/** Undefined asks for none. */
export const useExport = (id: string | undefined): Answer<ExportJob> =>
  useBusy<ExportJob>(id === undefined ? undefined : exportPath(id), isUnderWay)

export const askFor = (body: ExportJobInput): Promise<ExportJob> =>
  call<ExportJob>(PATH, { method: "POST", body })

/** The same again, as of now. */
export const askAgain = ({ bom, filters, from, kind, label, pdf, to }: ExportJob, withPdf = pdf) =>
  askFor({
    kind,
    from,
    to,
    filters,
    ...(bom === undefined ? {} : { bom }),
    ...(label === undefined ? {} : { label }),
    ...(withPdf === undefined ? {} : { pdf: withPdf })
  })

/** Cancels one that is under way, removes one that has ended. */
export const endExport = (id: string): Promise<void> => call(exportPath(id), { method: "DELETE" })

/** Something that a person does: one at a time, and what went wrong with the last. */
export const useAct = () => {
  const [failure, setFailure] = useState<ApiFailure | undefined>(undefined)
  const [isRunning, setIsRunning] = useState(false)
  const run = (act: () => Promise<void>): void => {
    setFailure(undefined)
    setIsRunning(true)
    act()
      .catch((error) => setFailure(failureOf(error)))
      .finally(() => setIsRunning(false))
  }
  return { failure, isRunning, run }
}
