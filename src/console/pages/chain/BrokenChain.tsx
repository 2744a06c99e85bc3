/**
 * A broken chain: its first break with both sides, since when, what the log still holds, and what to
 * do now; all breaks that the report lists.
 */

import type { Break, CheckpointList, VerifyReport } from "../../../client/gen/Api.d.ts"
import { useAnswer } from "../../api/Answer.ts"
import { Ago, Failure, Id, Loading, Scrolls, Time } from "../../parts/Basics.tsx"
import { count, counted } from "../../parts/Format.ts"
import { saveFile } from "../../parts/SaveFile.ts"
import type { Verdict } from "../../state/Verification.ts"
import type { ChainName } from "../../state/VerificationRequest.ts"
import { differenceOf, reasonTexts } from "./BreakTexts.ts"
import { chainParameter, recordOf, recordsOf } from "./ChainWords.ts"
import { WhatToDo } from "./WhatToDo.tsx"

/** What was expected and what is there, with what differs marked. */
export const Sides = ({ found }: { readonly found: Break }) => {
  const { actual, after, before, expected } = differenceOf(found.expected, found.actual)
  return (
    <dl class="chain-sides">
      <div>
        <dt>Expected</dt>
        <dd>
          <code>
            {before}
            <mark>{expected}</mark>
            {after}
          </code>
        </dd>
      </div>
      <div>
        <dt>Actual</dt>
        <dd>
          <code>
            {before}
            <mark>{actual}</mark>
            {after}
          </code>
        </dd>
      </div>
    </dl>
  )
}

/** The newest signed checkpoint of what comes before the break. */
const SinceWhen = ({ chain, first, report }: Verdict & { readonly first: Break }) => {
  const path = `/v1/chain/checkpoints?${chainParameter(chain)}&limit=1`
  const answer = useAnswer<CheckpointList>(
    `${path}&before_size=${Math.max(1, first.sequence_number)}`
  )
  const from = report.first_sequence_number
  const last = answer.data?.checkpoints[0]
  if (answer.data === undefined) {
    return answer.failure === undefined ? (
      <Loading what="the last good checkpoint" />
    ) : (
      <Failure failure={answer.failure} retry={answer.reload} />
    )
  }
  return (
    <>
      <p>
        {last === undefined ? (
          "No signed checkpoint covers only what comes before the break."
        ) : (
          <>
            The last checkpoint before the break is of #{count(last.tree_size)}, signed{" "}
            <Time at={last.created_at} /> (<Ago at={last.created_at} />
            ), root <Id value={last.root_hash} length={17} />.{" "}
            {from === 1
              ? `The ${recordsOf(chain)} that it covers hold.`
              : "Not all of what it covers was verified now."}
          </>
        )}
      </p>
      <p class="faint">
        When a stored row was changed is not recorded. The background check logs{" "}
        <code>SELF-VERIFICATION FOUND A BROKEN CHAIN</code> when it first finds it, and a checkpoint
        that you kept elsewhere shows whether the log itself was written anew.
      </p>
    </>
  )
}

const InTheLog = ({ chain, first, report }: Verdict & { readonly first: Break }) => {
  const topic = chain === "events" ? "alk.events" : "alk.traces"
  const { head } = report
  return (
    <p>
      {head === null ? (
        <>
          This check did not compare with the end of <code>{topic}</code>.
        </>
      ) : (
        <>
          <code>{topic}</code> goes on to #{count(head.sequence_number)}, recorded{" "}
          <Time at={head.created_at} />.{" "}
          {first.sequence_number > head.sequence_number
            ? "The break is beyond that: the store has a record that the log never had."
            : "The record of the break is on it, unless the log has lost records: then the sequencer "
              + "refuses the partition at its next start and names them."}
        </>
      )}
    </p>
  )
}

const eventLink = (sequence: number): string => `/events?event=${sequence}`

const Neighbours = ({ sequence }: { readonly sequence: number }) => (
  <nav class="near" aria-label="Events at the break">
    {sequence > 1 ? (
      <a href={eventLink(sequence - 1)}>Event before #{count(sequence - 1)}</a>
    ) : undefined}
    {sequence > 0 ? <a href={eventLink(sequence)}>Event #{count(sequence)}</a> : undefined}
    <a href={eventLink(sequence + 1)}>Event after #{count(sequence + 1)}</a>
  </nav>
)

const Rows = ({ chain, report }: Verdict) => (
  <details>
    <summary>
      {report.breaks_total > report.breaks.length
        ? `The first ${count(report.breaks.length)} of ${counted(report.breaks_total, "break")}`
        : `All breaks: ${count(report.breaks_total)}`}
    </summary>
    <Scrolls label={`Breaks of the chain of ${recordsOf(chain)}, as a table`}>
      <table>
        <thead>
          <tr>
            <th scope="col" class="number">
              #
            </th>
            <th scope="col">Reason</th>
            <th scope="col">Id</th>
            <th scope="col">Expected</th>
            <th scope="col">Actual</th>
          </tr>
        </thead>
        <tbody>
          {report.breaks.map((one) => (
            <tr key={`${one.sequence_number} ${one.reason} ${one.actual}`}>
              <td class="number">
                <BreakNumber chain={chain} sequence={one.sequence_number} />
              </td>
              <td>
                <code>{one.reason}</code>
              </td>
              <td>{one.event_id === null ? "none" : <Id value={one.event_id} />}</td>
              <td>
                <Id value={one.expected} length={40} />
              </td>
              <td>
                <Id value={one.actual} length={40} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scrolls>
  </details>
)

const BreakNumber = ({ chain, sequence }: { chain: ChainName; sequence: number }) =>
  chain === "events" && sequence > 0 ? (
    <a href={eventLink(sequence)}>{count(sequence)}</a>
  ) : (
    <span>{count(sequence)}</span>
  )

const saveReport = (report: VerifyReport): void =>
  saveFile(
    `${report.tenant_id}-verification-${report.verified_at}.json`,
    "application/json",
    `${JSON.stringify(report, null, 2)}\n`
  )

export const BrokenChain = (verdict: Verdict) => {
  const { chain, report } = verdict
  const first = report.breaks[0]
  if (first === undefined) return null
  const texts = reasonTexts[first.reason]
  return (
    <div class="chain-broken">
      <h3>
        First break: {recordOf(chain)} #{count(first.sequence_number)}, {texts.title}
      </h3>
      <p>
        <code>{first.reason}</code>: {texts.meaning}
        {first.event_id === null ? undefined : (
          <>
            {" "}
            The record calls itself <Id value={first.event_id} length={40} />.
          </>
        )}
      </p>
      {report.breaks
        .filter(({ sequence_number }) => sequence_number === first.sequence_number)
        .map((found) => (
          <Sides key={`${found.reason} ${found.actual}`} found={found} />
        ))}
      {chain === "events" ? <Neighbours sequence={first.sequence_number} /> : undefined}
      <h3>Since when</h3>
      <SinceWhen {...verdict} first={first} />
      <h3>What the log holds</h3>
      <InTheLog {...verdict} first={first} />
      <h3>What to do now</h3>
      <WhatToDo chain={chain} found={first} save={() => saveReport(report)} />
      <Rows {...verdict} />
    </div>
  )
}
