/** Which chain and which part of it is to be verified. The address says it; this only edits it. */
import { useState } from "preact/hooks"
import type { VerificationRequest } from "../../state/VerificationRequest.ts"

const chainTexts = {
  both: "both chains",
  events: "audit events",
  traces: "trace facts"
} as const satisfies Record<VerificationRequest["chain"], string>

type Range = "all" | "sequence" | "time"

const rangeOf = ({ from, fromSequence, to, toSequence }: VerificationRequest): Range =>
  fromSequence !== undefined || toSequence !== undefined
    ? "sequence"
    : from !== undefined || to !== undefined
      ? "time"
      : "all"

const textIn = (data: FormData, name: string): string | undefined => {
  const value = data.get(name)
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined
}

const numberIn = (data: FormData, name: string): number | undefined => {
  const text = textIn(data, name)
  return text === undefined ? undefined : Number(text)
}

const requestIn = (form: HTMLFormElement): VerificationRequest => {
  const data = new FormData(form)
  return {
    chain: (textIn(data, "chain") ?? "both") as VerificationRequest["chain"],
    from: textIn(data, "from"),
    to: textIn(data, "to"),
    fromSequence: numberIn(data, "from_sequence"),
    toSequence: numberIn(data, "to_sequence")
  }
}

const Bounds = ({
  range,
  request
}: {
  readonly range: Range
  readonly request: VerificationRequest
}) =>
  range === "sequence" ? (
    <>
      <label>
        From #
        <input name="from_sequence" type="number" min={1} defaultValue={request.fromSequence} />
      </label>
      <label>
        To #
        <input name="to_sequence" type="number" min={1} defaultValue={request.toSequence} />
      </label>
    </>
  ) : range === "time" ? (
    <>
      <label>
        From <input name="from" placeholder="2026-01-31 or -24h" defaultValue={request.from} />
      </label>
      <label>
        To <input name="to" placeholder="2026-02-28T12:00:00Z" defaultValue={request.to} />
      </label>
    </>
  ) : null

export const VerifyForm = ({
  cancel,
  request,
  verify
}: {
  readonly request: VerificationRequest
  readonly verify: (request: VerificationRequest) => void
  /** Of the check that runs. */
  readonly cancel: (() => void) | undefined
}) => {
  const [range, setRange] = useState<Range>(rangeOf(request))
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    verify(requestIn(event.currentTarget as HTMLFormElement))
  }
  return (
    <form class="verify-form" onSubmit={submit}>
      <label>
        Verify
        <select name="chain" defaultValue={request.chain} key={range}>
          {Object.entries(chainTexts).map(([name, text]) =>
            // Sequences are places of one chain.
            name === "both" && range === "sequence" ? undefined : (
              <option key={name} value={name} selected={name === request.chain}>
                {text}
              </option>
            )
          )}
        </select>
      </label>
      <label>
        Range
        <select
          value={range}
          onChange={({ currentTarget }) => setRange(currentTarget.value as Range)}
        >
          <option value="all">all of it</option>
          <option value="sequence">by number</option>
          <option value="time">by time</option>
        </select>
      </label>
      <Bounds range={range} request={request} />
      {/* Two buttons, not one that changes: the click that cancels would send the form. */}
      {cancel === undefined ? (
        <button key="verify" type="submit" class="primary">
          Verify
        </button>
      ) : (
        <button key="cancel" type="button" onClick={cancel}>
          Cancel
        </button>
      )}
    </form>
  )
}
