/** Makes a share link for a scope, and shows it this once. */
import { useSignal } from "@preact/signals"
import type { TargetedSubmitEvent } from "preact"
import { useEffect, useRef } from "preact/hooks"
import type { CreatedShareLink, ShareLinkInput } from "../../../client/gen/Api.d.ts"
import { failureOf } from "../../api/Answer.ts"
import { type ApiFailure, call } from "../../api/Client.ts"
import { Copy, Failure, State, Time } from "../../parts/Basics.tsx"
import { isLoopback } from "../../parts/Loopback.ts"
import { QrCode } from "../../parts/QrCode.tsx"
import { filterWords, periodWords } from "../../parts/ScopeWords.ts"
import type { Scope } from "../../state/EvidenceView.ts"
import { linkWords } from "./CoverWords.ts"
import { coverOf, type Survey } from "./UseSurvey.ts"

/** What a link is to cover; without a member, everything. */
const DAY_SECONDS = 86_400
const DAYS = [1, 7, 30] as const
/** Characters of a label at most, as the service takes them. */
const LABEL_MAX = 256
const USES_MAX = 1_000_000

const inputOf = (scope: Scope, form: FormData): ShareLinkInput => {
  const { where, ...bounds } = scope
  const text = (name: string) => String(form.get(name) ?? "").trim()
  return {
    ...bounds,
    ...(where === undefined || where === "" ? {} : { filters: { where } }),
    expires_in: Number(text("days")) * DAY_SECONDS,
    ...(text("label") === "" ? {} : { label: text("label") }),
    ...(text("uses") === "" ? {} : { max_uses: Number(text("uses")) })
  }
}

const curlOf = ({ token, url }: CreatedShareLink): string =>
  `curl -H 'Authorization: Bearer ${token}' ${url} -o report.pdf`

/** An address with a button that copies it. */
const Address = ({ label, text }: { readonly label: string; readonly text: string }) => (
  <div class="link-address">
    <span class="faint">{label}</span>
    <pre>{text}</pre>
    <Copy label={`Copy the ${label.toLowerCase()}`} text={text} />
  </div>
)

const Made = ({ done, link }: { readonly link: CreatedShareLink; readonly done: () => void }) => {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => heading.current?.focus(), [])
  return (
    <section class="link-made" aria-labelledby="made-link">
      <h3 id="made-link" ref={heading} tabIndex={-1}>
        <State tone="good">The link is made</State>
      </h3>
      <p>
        It is shown now and never again: the service keeps no copy of it. Whoever has it sees{" "}
        {periodWords(link.from, link.to)}
        {filterWords(link.filters).map((condition) => `, with ${condition}`)},{" "}
        {Object.keys(link.filters).length === 0
          ? "agent executions with their inputs and outputs included"
          : "without agent executions"}
        , until <Time at={link.expires_at} />.
      </p>
      <div class="link-made-parts">
        <div>
          {link.page_url === undefined ? undefined : (
            <Address label="Page address" text={link.page_url} />
          )}
          {isLoopback(link.url) ? (
            <p class="stale">
              <State tone="warn">This address works only on this machine.</State> Set{" "}
              <code>ALK_PUBLIC_URL</code> to the address at which others reach the service, start it
              again, and make another link.
            </p>
          ) : undefined}
          <Address label="Command for a terminal" text={curlOf(link)} />
        </div>
        {link.page_url === undefined ? undefined : (
          <QrCode text={link.page_url} label="QR code of the page address" />
        )}
      </div>
      <button type="button" onClick={done}>
        I have kept it
      </button>
    </section>
  )
}

const Fields = ({
  isBusy,
  scope,
  survey
}: {
  readonly scope: Scope
  readonly survey: Survey
  readonly isBusy: boolean
}) => (
  <>
    <p>
      For{" "}
      <strong>
        {scope.from === undefined && scope.to === undefined
          ? "everything that is in the log"
          : `${scope.from ?? "the first event"} to ${scope.to ?? "the newest event"}`}
      </strong>
      {scope.where === undefined || scope.where === "" ? undefined : (
        <>
          , events that match <code>{scope.where}</code>
        </>
      )}
      : now <strong>{linkWords(coverOf(survey, scope))}</strong>. Whoever has the link can read this
      and nothing else, without a key.
    </p>
    <div class="new-link-fields">
      <label>
        Label
        <input name="label" maxLength={LABEL_MAX} placeholder="for the auditor" />
      </label>
      <label>
        Expires in
        <select name="days">
          {DAYS.map((days) => (
            <option key={days} value={days} selected={days === 7}>
              {days === 1 ? "1 day" : `${days} days`}
            </option>
          ))}
        </select>
      </label>
      <label>
        Uses at most
        <input
          name="uses"
          type="number"
          min={1}
          max={USES_MAX}
          step={1}
          placeholder="not limited"
        />
      </label>
      <button type="submit" class="primary" disabled={isBusy}>
        {isBusy ? "Making the link …" : "Make a link"}
      </button>
    </div>
    <p class="faint">Each document that is downloaded counts as a use; looking does not.</p>
  </>
)

export const NewShareLink = ({
  onMade,
  scope,
  survey
}: {
  readonly scope: Scope
  readonly survey: Survey
  readonly onMade: () => void
}) => {
  const failure = useSignal<ApiFailure | undefined>(undefined)
  const isBusy = useSignal(false)
  const made = useSignal<CreatedShareLink | undefined>(undefined)
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    if (isBusy.value) return
    const body = inputOf(scope, new FormData(event.currentTarget))
    isBusy.value = true
    failure.value = undefined
    try {
      made.value = await call<CreatedShareLink>("/v1/share/links", { method: "POST", body })
      onMade()
    } catch (error) {
      failure.value = failureOf(error)
    } finally {
      isBusy.value = false
    }
  }
  if (made.value !== undefined) {
    return <Made link={made.value} done={() => (made.value = undefined)} />
  }
  return (
    <form class="new-link" onSubmit={submit}>
      <Fields scope={scope} survey={survey} isBusy={isBusy.value} />
      {failure.value === undefined ? undefined : <Failure failure={failure.value} />}
    </form>
  )
}
