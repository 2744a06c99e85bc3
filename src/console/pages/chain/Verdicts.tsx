/**
 * What finished checks have found. Where one chain is broken, nothing beside it is shown in a calm
 * colour.
 */
import type { VerifyReport } from "../../../client/gen/Api.d.ts"
import { Ago, Id, Notices, State, Time } from "../../parts/Basics.tsx"
import { count, counted, duration } from "../../parts/Format.ts"
import type { Verdict } from "../../state/Verification.ts"
import { BrokenChain } from "./BrokenChain.tsx"
import { recordOf, recordsOf } from "./ChainWords.ts"

const assuranceTexts = {
  self_attested: "No signed checkpoint covers it yet: one is made about every 10 seconds.",
  signed: "A signed checkpoint covers it.",
  timestamped: "A signed checkpoint with a time stamp covers it."
} as const satisfies Record<VerifyReport["assurance"], string>

const rangeText = ({ first_sequence_number, last_sequence_number }: VerifyReport): string =>
  `#${count(first_sequence_number ?? 0)} to #${count(last_sequence_number ?? 0)}`

const Headline = ({
  isAlarm,
  verdict
}: {
  readonly verdict: Verdict
  readonly isAlarm: boolean
}) => {
  const { chain, report } = verdict
  const name = recordsOf(chain)
  switch (report.status) {
    case "valid":
      return (
        <State tone={isAlarm ? "plain" : "good"}>
          {name} verified, {rangeText(report)}
        </State>
      )
    case "empty":
      return <State tone="plain">no {name} in this range</State>
    case "incomplete":
      return <State tone="warn">{name} verified in part</State>
    case "broken":
      return <State tone="bad">the chain of {name} is broken</State>
  }
}

const Facts = ({ chain, report }: Verdict) => (
  <>
    <p>
      {counted(report.events_checked, recordOf(chain))} recomputed from the stored bytes in{" "}
      {duration(report.duration_ms * 1_000)}, <Ago at={report.verified_at} />.{" "}
      {report.status === "valid" ? assuranceTexts[report.assurance] : undefined}
      {report.erased_events === 0
        ? undefined
        : ` The details of ${count(report.erased_events)} were erased; their hashes remain.`}
    </p>
    {report.head === null ? undefined : (
      <p class="faint">
        Compared with the end of the log: #{count(report.head.sequence_number)},{" "}
        <Id value={report.head.hash} length={17} />, <Time at={report.head.created_at} />.
      </p>
    )}
    <Notices notices={report.notices} />
  </>
)

export const Verdicts = ({ verdicts }: { readonly verdicts: ReadonlyArray<Verdict> }) => {
  const isAlarm = verdicts.some(({ report }) => report.status === "broken")
  return (
    <>
      {verdicts.map((verdict) => (
        <section key={verdict.chain} class="chain-verdict">
          <p class="verdict" role={verdict.report.status === "broken" ? "alert" : "status"}>
            <Headline verdict={verdict} isAlarm={isAlarm} />
          </p>
          <Facts {...verdict} />
          {verdict.report.breaks_total === 0 ? undefined : <BrokenChain {...verdict} />}
        </section>
      ))}
    </>
  )
}
