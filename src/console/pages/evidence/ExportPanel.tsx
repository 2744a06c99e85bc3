/** One export: how far it is, its file once it is done, and what to do with that; or why there is none. */
import { useRef } from "preact/hooks"
import type { ExportJob } from "../../../client/gen/Api.d.ts"
import type { Answer } from "../../api/Answer.ts"
import type { ApiFailure } from "../../api/Client.ts"
import { Ago, Card, Copy, Failure, Loading, Stale, State, Time } from "../../parts/Basics.tsx"
import { bytes, count, relativeTime } from "../../parts/Format.ts"
import { boundsText } from "../../state/EvidenceView.ts"
import { firstSeen, isUnderWay, type Seen, timeLeft } from "../../state/ExportProgress.ts"
import { filterTexts, stagesOf, stageTitle, statusTones, titleOf } from "./ExportWords.ts"
import { HowToCheck } from "./HowToCheck.tsx"
import { askAgain, endExport, filePath, useAct } from "./UseExports.ts"

const amountOf = ({ progress }: ExportJob): string => {
  if (progress === undefined) return ""
  const { done, total, unit } = progress
  if (unit === "bytes") return `${bytes(done)} written`
  return total === undefined ? `${count(done)} events` : `${count(done)} of ${count(total)} events`
}

const Progress = ({ job }: { readonly job: ExportJob }) => {
  const seen = useRef<Seen | undefined>(undefined)
  const now = Date.now()
  seen.current = firstSeen(seen.current, job, now)
  const left = timeLeft(seen.current, job, now)
  const stages = stagesOf(job)
  const { done, total } = job.progress ?? {}
  return (
    <>
      <ol class="stages">
        {stages.map((stage) => (
          <li
            key={stage}
            class={stages.indexOf(stage) < stages.indexOf(job.stage) ? "over" : ""}
            aria-current={stage === job.stage ? "step" : undefined}
          >
            {stageTitle(stage)}
          </li>
        ))}
      </ol>
      {total === undefined || done === undefined ? (
        <progress aria-label={stageTitle(job.stage)} />
      ) : (
        <progress aria-label={stageTitle(job.stage)} value={done} max={Math.max(total, 1)} />
      )}
      <p class="amount number">
        {amountOf(job)}
        {left === undefined ? "" : relativeTime(-left).replace(/^in/, ", about") + " left"}
      </p>
    </>
  )
}

const Done = ({ job }: { readonly job: ExportJob }) => (
  <>
    <p class="actions">
      <a class="button primary" href={filePath(job.id)} download={job.file_name}>
        Download {bytes(job.bytes ?? 0)}
      </a>
      {job.expires_at === undefined ? undefined : (
        <span>
          kept until <Time at={job.expires_at} />, <Ago at={job.expires_at} />
        </span>
      )}
    </p>
    <dl class="export-facts">
      <dt>File</dt>
      <dd>
        <code class="whole">{job.file_name}</code>
      </dd>
      <dt>SHA-256</dt>
      <dd>
        <code class="whole">{job.sha256}</code>{" "}
        <Copy label="Copy the SHA-256" text={job.sha256 ?? ""} />
      </dd>
    </dl>
    <HowToCheck job={job} />
  </>
)

/** Why there is no file, and the ways on. */
const Without = ({ job, run }: { readonly job: ExportJob; readonly run: Run }) => {
  const { error, kind, status } = job
  const hasNoPrinter = error?.code === "pdf_unavailable"
  return (
    <>
      {status === "failed" ? (
        <div class="failure" role="alert">
          <strong>It could not be made.</strong> {error?.message}
          {hasNoPrinter ? (
            <p>
              PDFs are printed by a Chromium: install one on the machine of the service, or set
              CHROMIUM_PATH. Everything else can be made without it.
            </p>
          ) : undefined}
        </div>
      ) : (
        <p>
          {status === "cancelled"
            ? "It was cancelled before it was done."
            : "Its file has expired and was removed."}
        </p>
      )}
      <p class="actions">
        {hasNoPrinter ? (
          <button
            type="button"
            onClick={() => run.again(job.kind === "pdf" ? "pack" : kind, false)}
          >
            Make the evidence pack without the PDF
          </button>
        ) : undefined}
        <button type="button" onClick={() => run.again(kind, job.pdf)}>
          Make it again
        </button>
      </p>
    </>
  )
}

interface Run {
  readonly again: (kind: ExportJob["kind"], pdf: boolean | undefined) => void
}

const Known = ({
  job,
  reload,
  show
}: {
  readonly job: ExportJob
  readonly reload: () => void
  readonly show: (job: ExportJob) => void
}) => {
  const { failure, isRunning, run } = useAct()
  const filters = filterTexts(job)
  const again: Run["again"] = (kind, pdf) =>
    run(async () => show(await askAgain({ ...job, kind }, pdf)))
  return (
    <>
      <p>
        <State tone={statusTones[job.status]}>{job.status}</State> {boundsText(job)}
        {filters.length === 0 ? undefined : (
          <>
            {", "}
            {filters.map((text) => (
              <code key={text} class="whole">
                {text}
              </code>
            ))}
          </>
        )}
        , asked for <Ago at={job.created_at} />
      </p>
      {isUnderWay(job) ? (
        <>
          <Progress job={job} />
          <p class="actions">
            <button
              type="button"
              disabled={isRunning}
              onClick={() =>
                run(async () => {
                  await endExport(job.id)
                  reload()
                })
              }
            >
              Cancel
            </button>
            <span class="faint">It goes on when you close this page.</span>
          </p>
        </>
      ) : job.status === "done" ? (
        <Done job={job} />
      ) : (
        <Without job={job} run={{ again }} />
      )}
      {failure === undefined ? undefined : <Failure failure={failure} />}
    </>
  )
}

const isGone = ({ status }: ApiFailure): boolean => status === 404

export const ExportPanel = ({
  answer,
  close,
  id,
  reload,
  show
}: {
  readonly id: string
  readonly answer: Answer<ExportJob>
  readonly reload: () => void
  readonly show: (job: ExportJob) => void
  readonly close: () => void
}) => {
  const { failure } = answer
  // What came for the export before is not of this one.
  const job = answer.data?.id === id ? answer.data : undefined
  const title =
    job === undefined
      ? "Export"
      : `${titleOf(job)}${job.label === undefined ? "" : `: ${job.label}`}`
  const closing = (
    <button type="button" class="quiet" onClick={close}>
      Close
    </button>
  )
  return (
    <div class="panel-of-export">
      <Card title={title} aside={closing}>
        {failure !== undefined && isGone(failure) ? (
          <p>There is no such export (any more).</p>
        ) : job === undefined ? (
          failure === undefined ? (
            <Loading what="the export" />
          ) : (
            <Failure failure={failure} retry={reload} />
          )
        ) : (
          <>
            <Stale answer={answer} />
            <p class="hidden" role="status">
              {isUnderWay(job) ? stageTitle(job.stage) : job.status}
            </p>
            <Known job={job} reload={reload} show={show} />
          </>
        )}
      </Card>
    </div>
  )
}
