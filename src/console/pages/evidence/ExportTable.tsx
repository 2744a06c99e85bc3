/** The exports of this tenant, newest first: what they cover, how they stand, and what can be done. */

import type { ExportJob, ExportJobList } from "../../../client/gen/Api.d.ts"
import type { Answer } from "../../api/Answer.ts"
import {
  Ago,
  Card,
  Empty,
  Failure,
  Id,
  Loading,
  Scrolls,
  Stale,
  State
} from "../../parts/Basics.tsx"
import { bytes, count } from "../../parts/Format.ts"
import { mayBeTakenAway } from "../../parts/OwnThings.ts"
import { boundsText } from "../../state/EvidenceView.ts"
import { isUnderWay } from "../../state/ExportProgress.ts"
import { signedIn } from "../../state/Session.ts"
import { filterTexts, statusTones, titleOf } from "./ExportWords.ts"
import { askAgain, endExport, filePath, useAct } from "./UseExports.ts"

interface Acts {
  readonly isRunning: boolean
  readonly end: (job: ExportJob) => void
  readonly again: (job: ExportJob) => void
}

/** The name of a job for a screen reader. */
const nameOf = (job: ExportJob): string => `${job.label ?? titleOf(job)}, ${boundsText(job)}`

const Buttons = ({ acts, job }: { readonly acts: Acts; readonly job: ExportJob }) => (
  <>
    {job.status === "done" ? (
      <a href={filePath(job.id)} download={job.file_name} aria-label={`Download ${nameOf(job)}`}>
        Download
      </a>
    ) : undefined}{" "}
    {mayBeTakenAway(job, signedIn.value) ? (
      <button
        type="button"
        class="quiet"
        disabled={acts.isRunning}
        aria-label={`${isUnderWay(job) ? "Cancel" : "Remove"} ${nameOf(job)}`}
        onClick={() => acts.end(job)}
      >
        {isUnderWay(job) ? "Cancel" : "Remove"}
      </button>
    ) : undefined}{" "}
    {isUnderWay(job) ? undefined : (
      <button
        type="button"
        class="quiet"
        disabled={acts.isRunning}
        aria-label={`Make again ${nameOf(job)}`}
        onClick={() => acts.again(job)}
      >
        Make again
      </button>
    )}
  </>
)

const statusText = ({ progress, stage, status }: ExportJob): string => {
  if (status !== "running") return status
  const { done, total } = progress ?? {}
  const part =
    total === undefined || done === undefined || total === 0
      ? ""
      : ` ${Math.floor((100 * done) / total)} %`
  return `${stage}${part}`
}

const Row = ({
  acts,
  address,
  isChosen,
  job
}: {
  readonly acts: Acts
  readonly address: string
  readonly isChosen: boolean
  readonly job: ExportJob
}) => {
  const filters = filterTexts(job)
  return (
    <tr class={isChosen ? "chosen" : undefined}>
      <td>
        <a href={address} aria-current={isChosen ? "true" : undefined}>
          {titleOf(job)}
        </a>
        {job.label === undefined ? undefined : <div class="faint cut">{job.label}</div>}
      </td>
      <td>
        <State tone={statusTones[job.status]}>{statusText(job)}</State>
      </td>
      <td>
        <Buttons acts={acts} job={job} />
      </td>
      <td>{boundsText(job)}</td>
      <td>
        {filters.length === 0 ? (
          <span class="faint">all events</span>
        ) : (
          <code class="cut" title={filters.join(" ")}>
            {filters.join(" ")}
          </code>
        )}
      </td>
      <td class="number">{job.bytes === undefined ? "" : bytes(job.bytes)}</td>
      <td>
        <Id value={job.created_by} length={15} />
      </td>
      <td>
        <Ago at={job.created_at} />
      </td>
      <td>{job.status === "done" && job.expires_at ? <Ago at={job.expires_at} /> : ""}</td>
    </tr>
  )
}

const Table = ({
  acts,
  addressOf,
  chosen,
  list
}: {
  readonly acts: Acts
  readonly addressOf: (id: string) => string
  readonly chosen: string | undefined
  readonly list: ExportJobList
}) => (
  <Scrolls label="Exports, as a table">
    <table class="exports">
      <thead>
        <tr>
          <th scope="col">Export</th>
          <th scope="col">State</th>
          <th scope="col">
            <span class="hidden">Actions</span>
          </th>
          <th scope="col">Period</th>
          <th scope="col">Filter</th>
          <th scope="col" class="number">
            Size
          </th>
          <th scope="col">Made by</th>
          <th scope="col">When</th>
          <th scope="col">Expires</th>
        </tr>
      </thead>
      <tbody>
        {list.exports.map((job) => (
          <Row
            key={job.id}
            job={job}
            acts={acts}
            address={addressOf(job.id)}
            isChosen={job.id === chosen}
          />
        ))}
      </tbody>
    </table>
    {list.total > list.exports.length ? (
      <p class="faint">and {count(list.total - list.exports.length)} more</p>
    ) : undefined}
  </Scrolls>
)

export const ExportTable = ({
  addressOf,
  chosen,
  exports,
  reload,
  show
}: {
  readonly exports: Answer<ExportJobList>
  readonly chosen: string | undefined
  readonly addressOf: (id: string) => string
  /** Asks for everything that shows exports. */
  readonly reload: () => void
  readonly show: (job: ExportJob) => void
}) => {
  const { data, failure: notLoaded } = exports
  const { failure, isRunning, run } = useAct()
  const acts: Acts = {
    isRunning,
    end: ({ id }) =>
      run(async () => {
        await endExport(id)
        reload()
      }),
    again: (job) => run(async () => show(await askAgain(job)))
  }
  return (
    <Card title="Exports">
      <Stale answer={exports} />
      {failure === undefined ? undefined : <Failure failure={failure} />}
      {data === undefined ? (
        notLoaded === undefined ? (
          <Loading what="the exports" />
        ) : (
          <Failure failure={notLoaded} retry={reload} />
        )
      ) : data.exports.length === 0 ? (
        <Empty title="None yet">
          <p>What is made here is kept for a while, for everybody of this tenant to fetch.</p>
        </Empty>
      ) : (
        <Table acts={acts} addressOf={addressOf} chosen={chosen} list={data} />
      )}
    </Card>
  )
}
