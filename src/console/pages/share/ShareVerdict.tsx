/** What the service itself finds when it recomputes the shared part of its log. */
import type { Break, SharedScope, VerifyReport } from "../../../client/gen/Api.d.ts"
import { Ago, Card, Failure, Id, Notices, State } from "../../parts/Basics.tsx"
import { count, counted } from "../../parts/Format.ts"
import { type SharedVerdict, useSharedVerdict } from "../../state/SharedVerdict.ts"
import { Findings } from "./Findings.tsx"

type ChainReport = Omit<VerifyReport, "traces">

interface PartProps {
  readonly report: ChainReport
  readonly noun: string
  /** The pack of the service does not hold, so its word counts for less. */
  readonly isDoubted: boolean
}

const Verdict = ({ isDoubted, noun, report }: PartProps) => {
  const { first_sequence_number: first, last_sequence_number: last, status } = report
  const range = first === null ? "" : ` #${count(first)} to #${count(last ?? first)}`
  if (status === "valid") {
    return <State tone={isDoubted ? "warn" : "good"}>{`${noun}s${range} verified`}</State>
  }
  if (status === "empty") return <State tone="plain">{`no ${noun}s in this period`}</State>
  if (status === "incomplete") return <State tone="warn">{`${noun}s verified in part only`}</State>
  return <State tone="bad">{`the chain of ${noun}s is broken`}</State>
}

const Breaks = ({ breaks, total }: { readonly breaks: ReadonlyArray<Break>; total: number }) => (
  <>
    <p class="breaks">
      {counted(total, "break")}
      {total > breaks.length ? `, the first ${count(breaks.length)} shown` : ""}. What is stored is
      not what was recorded. Don’t rely on this log before the operator has explained it.
    </p>
    <Findings label="Breaks of the chain" findings={breaks} />
  </>
)

const ChainPart = ({ isDoubted, noun, report }: PartProps) => (
  <>
    <p class={report.status === "empty" ? undefined : "verdict"}>
      <Verdict report={report} noun={noun} isDoubted={isDoubted} />
    </p>
    {report.events_checked === 0 ? undefined : (
      <p>
        {counted(report.events_checked, noun)} recomputed from the stored bytes, each with its link
        to the one before it.
      </p>
    )}
    <Notices notices={report.notices} />
    {report.breaks_total === 0 ? undefined : (
      <Breaks breaks={report.breaks} total={report.breaks_total} />
    )}
  </>
)

const Signed = ({ checkpoint }: { readonly checkpoint: SharedScope["checkpoint"] }) => (
  <p>
    {checkpoint === undefined ? (
      <State tone="warn">no signed checkpoint yet</State>
    ) : (
      <>
        Newest signed checkpoint: {counted(checkpoint.tree_size, "event")},{" "}
        <Ago at={checkpoint.created_at} />, with key <code>{checkpoint.key_id}</code>, root{" "}
        <Id value={checkpoint.root_hash} length={17} />
      </>
    )}
  </p>
)

const Running = ({ verdict }: { readonly verdict: Extract<SharedVerdict, { is: "running" }> }) => {
  const { progress } = verdict
  return (
    <div role="status">
      <p class="verdict">Verifying …</p>
      {progress === undefined ? (
        <progress aria-label="Verification" />
      ) : (
        <>
          <progress
            aria-label="Verification"
            value={progress.up_to_sequence}
            max={Math.max(1, progress.of)}
          />
          <p class="faint">
            {counted(progress.events_checked, "record")} recomputed, up to #
            {count(progress.up_to_sequence)} of #{count(progress.of)}
            {progress.breaks_total === 0
              ? ""
              : `, ${counted(progress.breaks_total, "break")} found`}
          </p>
        </>
      )}
    </div>
  )
}

const Refused = ({
  again,
  verdict
}: {
  readonly verdict: Extract<SharedVerdict, { is: "failed" }>
  readonly again: () => void
}) => (
  <>
    <p class="verdict">
      <State tone="warn">not verified</State>
    </p>
    {verdict.failure.code === "rate_limited" ? (
      <p class="stale" role="alert">
        A verification of this link is under way already, here or at somebody else who has it. One
        at a time is possible.{" "}
        <button type="button" class="quiet" onClick={again}>
          Try again
        </button>
      </p>
    ) : (
      <Failure failure={verdict.failure} retry={again} />
    )}
  </>
)

export const ShareVerdict = ({
  isDoubted,
  scope,
  token
}: {
  readonly scope: SharedScope
  readonly token: string
  /** What the browser has checked does not hold. */
  readonly isDoubted: boolean
}) => {
  const [verdict, again] = useSharedVerdict(token)
  return (
    <Card
      title="What the service says"
      aside={
        <button type="button" class="quiet" onClick={again} disabled={verdict.is === "running"}>
          {verdict.is === "running" ? "Verifying …" : "Verify again"}
        </button>
      }
    >
      {verdict.is === "running" ? (
        <Running verdict={verdict} />
      ) : verdict.is === "failed" ? (
        <Refused verdict={verdict} again={again} />
      ) : (
        <>
          {isDoubted ? (
            <p class="stale">
              The service says this, but the pack that it sent does not hold, see below. Rely on
              neither before the operator has explained it.
            </p>
          ) : undefined}
          <ChainPart report={verdict.report} noun="event" isDoubted={isDoubted} />
          {verdict.report.traces === undefined ? undefined : (
            <ChainPart report={verdict.report.traces} noun="trace fact" isDoubted={isDoubted} />
          )}
          <p class="faint">
            Verified <Ago at={verdict.report.verified_at} />. A chain can only be verified as a
            whole, so events that this link does not cover are counted, too.
          </p>
        </>
      )}
      <Signed checkpoint={scope.checkpoint} />
    </Card>
  )
}
