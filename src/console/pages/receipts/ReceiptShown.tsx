/** One receipt: its state in words, where its events are in the chain, and what was refused. */
import type { Receipt } from "../../../client/gen/Api.d.ts"
import { Ago, Card, Id, Scrolls, State, Time } from "../../parts/Basics.tsx"
import { count, counted } from "../../parts/Format.ts"

const Headline = ({
  isDoubted,
  receipt
}: {
  readonly receipt: Receipt
  readonly isDoubted: boolean
}) => {
  switch (receipt.status) {
    case "committed":
      return (
        <>
          <p class="verdict">
            <State tone={isDoubted ? "plain" : (receipt.rejected ?? 0) > 0 ? "warn" : "good"}>
              committed
            </State>
          </p>
          <p>
            {(receipt.rejected ?? 0) > 0
              ? "The accepted items are in the chain and in every list; the others were refused."
              : "All of it is in the chain and in every list."}
          </p>
        </>
      )
    case "pending":
      return (
        <>
          <p class="verdict">
            <State tone="plain">pending</State>
          </p>
          <p>
            It is durable and can't be lost. It waits for its place in the chain, or for the lists
            to show it. This page asks again until that is done.
          </p>
        </>
      )
    case "failed":
      return (
        <>
          <p class="verdict">
            <State tone="bad">failed</State>
          </p>
          <p>Nothing of it is in the chain. Send it again once the reason below is gone.</p>
        </>
      )
  }
}

const eventLink = (sequence: number): string => `/events?event=${sequence}`

/** Its new events, in one run of the chain. */
const Sequences = ({ receipt }: { readonly receipt: Receipt }) => {
  const { first_sequence_number: first, last_sequence_number: last } = receipt
  if (first === undefined || last === undefined) return null
  return (
    <div>
      <dt>In the chain</dt>
      <dd>
        <a href={eventLink(first)}>#{count(first)}</a>
        {last === first ? undefined : (
          <>
            {" "}
            to <a href={eventLink(last)}>#{count(last)}</a>
          </>
        )}
      </dd>
    </div>
  )
}

const At = ({ name, time }: { readonly name: string; readonly time: string | undefined }) =>
  time === undefined ? null : (
    <div>
      <dt>{name}</dt>
      <dd>
        <Time at={time} /> (<Ago at={time} />)
      </dd>
    </div>
  )

const Facts = ({ receipt }: { readonly receipt: Receipt }) => (
  <dl class="receipt-facts">
    <div>
      <dt>Receipt</dt>
      <dd>
        <code>{receipt.receipt_id}</code>
      </dd>
    </div>
    <At name="Received" time={receipt.received_at} />
    <At name="Committed" time={receipt.committed_at} />
    {receipt.accepted === undefined ? undefined : (
      <div>
        <dt>Items</dt>
        <dd>
          {count(receipt.accepted)} accepted, {count(receipt.rejected ?? 0)} refused
        </dd>
      </div>
    )}
    <Sequences receipt={receipt} />
    {receipt.head_hash === undefined ? undefined : (
      <div>
        <dt>Hash of the last one</dt>
        <dd>
          <code>{receipt.head_hash}</code>
        </dd>
      </div>
    )}
    {receipt.error === undefined ? undefined : (
      <div>
        <dt>Reason</dt>
        <dd>
          <code>{receipt.error.code}</code> {receipt.error.message}
        </dd>
      </div>
    )}
  </dl>
)

const Errors = ({ errors }: { readonly errors: NonNullable<Receipt["errors"]> }) => (
  <Card title={counted(errors.length, "refused item")}>
    <Scrolls label="Refused items, as a table">
      <table>
        <thead>
          <tr>
            <th scope="col" class="number">
              Item
            </th>
            <th scope="col">Code</th>
            <th scope="col">Why</th>
          </tr>
        </thead>
        <tbody>
          {errors.map(({ code, index, message }) => (
            <tr key={index}>
              <td class="number">{count(index)}</td>
              <td>
                <code>{code}</code>
              </td>
              <td class="wraps">{message}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scrolls>
    <p class="faint">Items are numbered from 0, as the request had them.</p>
  </Card>
)

const Duplicates = ({
  duplicates
}: {
  readonly duplicates: NonNullable<Receipt["duplicates"]>
}) => (
  <Card title={counted(duplicates.length, "duplicate")}>
    <p>In the chain already, by id and content, so not written again.</p>
    <ul class="rows">
      {duplicates.map(({ index, sequence_number }) => (
        <li key={index}>
          Item {count(index)} is <a href={eventLink(sequence_number)}>#{count(sequence_number)}</a>
        </li>
      ))}
    </ul>
  </Card>
)

const Traces = ({ results }: { readonly results: NonNullable<Receipt["results"]> }) => (
  <Card title={counted(results.length, "trace operation")}>
    <ul class="rows">
      {results.map(({ execution_id, index, op, outcome }) => (
        <li key={index}>
          {count(index)}: <code>{op}</code> {outcome},{" "}
          <a href={`/executions/${encodeURIComponent(execution_id)}`}>
            <Id value={execution_id} length={28} />
          </a>
        </li>
      ))}
    </ul>
  </Card>
)

export const ReceiptShown = ({
  isDoubted,
  receipt
}: {
  readonly receipt: Receipt
  /** The last attempt to ask for it failed. */
  readonly isDoubted: boolean
}) => {
  const { duplicates = [], errors = [], results = [], warnings = [] } = receipt
  return (
    <>
      <section class="card" aria-label="Receipt">
        <div role="status">
          <Headline receipt={receipt} isDoubted={isDoubted} />
        </div>
        <Facts receipt={receipt} />
        {warnings.length === 0 ? undefined : (
          <p class="stale">
            <State tone="warn">sent, but not stored</State>{" "}
            {warnings.map(({ field, index }) => `${field} of item ${index}`).join(", ")}
          </p>
        )}
      </section>
      {errors.length === 0 ? undefined : <Errors errors={errors} />}
      {duplicates.length === 0 ? undefined : <Duplicates duplicates={duplicates} />}
      {results.length === 0 ? undefined : <Traces results={results} />}
    </>
  )
}
