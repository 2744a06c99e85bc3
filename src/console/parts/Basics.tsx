/** The small things that every page is made of. All foreign text is a text node. */
import { useSignal } from "@preact/signals"
import type { ComponentChildren } from "preact"
import { useEffect, useState } from "preact/hooks"
import type { ApiFailure } from "../api/Client.ts"
import { useRecovery } from "../api/Recovery.ts"
import { zone } from "../state/Preferences.ts"
import { relativeTime, sentence, shortId, shortTime } from "./Format.ts"
import { Mark, type Tone } from "./Mark.tsx"

/** A time in the chosen zone; exact when pointed at. */
export const Time = ({ at }: { readonly at: string }) => (
  <time dateTime={at} title={at} class="number">
    {shortTime(at, zone.value)}
  </time>
)

const TICK_MS = 5_000

/** How long ago something was, and still counting. */
export const Ago = ({ at }: { readonly at: string | number }) => {
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), TICK_MS)
    return () => clearInterval(timer)
  }, [])
  const then = new Date(at)
  return (
    <time dateTime={then.toISOString()} title={typeof at === "string" ? at : then.toISOString()}>
      {relativeTime(Math.max(now, Date.now()) - then.getTime())}
    </time>
  )
}

/** Copies a text, and says that it did. */
export const Copy = ({ label, text }: { readonly text: string; readonly label: string }) => {
  const said = useSignal<string | undefined>(undefined)
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      said.value = "Copied"
    } catch {
      said.value = "The browser did not allow it"
    }
    setTimeout(() => (said.value = undefined), 2_000)
  }
  return (
    <button type="button" class="quiet" onClick={copy}>
      <span aria-live="polite">{said.value ?? label}</span>
    </button>
  )
}

/** An id: its middle may be left out, pointing shows it whole. */
export const Id = ({ length, value }: { readonly value: string; readonly length?: number }) => (
  <code title={value}>{shortId(value, length)}</code>
)

/** A state by mark, word and colour together. */
export const State = ({
  children,
  tone
}: {
  readonly tone: Tone
  readonly children: ComponentChildren
}) => (
  <span class={`state ${tone}`}>
    <Mark tone={tone} /> {children}
  </span>
)

/** What a verification says that is not a break of the chain, and that it does not establish. */
export const Notices = ({
  notices = []
}: {
  readonly notices: ReadonlyArray<string> | undefined
}) => (
  <>
    {notices.map((notice) => (
      <p key={notice} class="stale">
        <State tone="warn">not established</State> {notice}
      </p>
    ))}
  </>
)

const outcomes: Readonly<Record<string, Tone>> = { success: "good", failure: "bad", error: "warn" }

export const Outcome = ({ value }: { readonly value: string }) => (
  <State tone={outcomes[value] ?? "plain"}>{value}</State>
)

const runTones: Readonly<Record<string, Tone>> = {
  COMPLETED: "good",
  FAILED: "bad",
  CANCELLED: "warn",
  RUNNING: "plain"
}

/** How an execution or a span stands. */
export const RunStatus = ({ value }: { readonly value: string }) => (
  <State tone={runTones[value] ?? "plain"}>{value.toLowerCase()}</State>
)

/** Something is on its way. Shown a moment later, so that what is quick does not flicker. */
export const Loading = ({ what }: { readonly what: string }) => (
  <p class="loading" role="status">
    Loading {what} …
  </p>
)

/** Nothing is there, and what to do about it. */
export const Empty = ({
  children,
  title
}: {
  readonly title: string
  readonly children?: ComponentChildren
}) => (
  <div class="empty">
    <h3>{title}</h3>
    {children}
  </div>
)

const isForbidden = ({ code }: ApiFailure): boolean => code === "insufficient_scope"

/**
 * What went wrong in the words of the service, and a way on. Asked again by itself when the service
 * is back, unless that costs something and is for a hand to do.
 */
export const Failure = ({
  failure,
  isByHand = false,
  retry
}: {
  readonly failure: ApiFailure
  readonly retry?: () => void
  readonly isByHand?: boolean
}) => {
  if (!useRecovery(failure, isByHand ? undefined : retry)) return <p class="faint">Not loaded.</p>
  return (
    <div class="failure" role="alert">
      <strong>{isForbidden(failure) ? "Your key may not do this." : "This did not work."}</strong>{" "}
      {sentence(failure.message)}
      {failure.requestId === undefined ? undefined : (
        <>
          {" "}
          <span class="faint">
            Request <code>{failure.requestId}</code>
          </span>
        </>
      )}
      {retry === undefined || isForbidden(failure) ? undefined : (
        <>
          {" "}
          <button type="button" class="quiet" onClick={retry}>
            Try again
          </button>
        </>
      )}
    </div>
  )
}

/** What is shown is from before: the last attempt to renew it failed. */
export const Stale = ({
  answer
}: {
  readonly answer: {
    readonly failure: ApiFailure | undefined
    readonly data: unknown
    readonly at: number | undefined
    readonly reload: () => void
  }
}) => {
  const { at, data, failure, reload } = answer
  // A failure without data is shown, and asked again, by others.
  const isSaidHere = useRecovery(data === undefined ? undefined : failure, reload)
  return failure === undefined || data === undefined ? null : (
    <p class="stale" role="status">
      <State tone="warn">not up to date</State>
      {at === undefined ? undefined : (
        <>
          , read <Ago at={at} />
        </>
      )}
      {isSaidHere ? (
        <>
          . {sentence(failure.message)}{" "}
          <button type="button" class="quiet" onClick={reload}>
            Try again
          </button>
        </>
      ) : (
        "."
      )}
    </p>
  )
}

/** A part of a page with a heading. */
export const Card = ({
  aside,
  children,
  title
}: {
  readonly title: string
  readonly aside?: ComponentChildren
  readonly children: ComponentChildren
}) => {
  const id = `card-${title.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-")}`
  return (
    <section class="card" aria-labelledby={id}>
      <header>
        <h2 id={id}>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  )
}

/** What may be wider than the window scrolls by itself, with the keyboard too. */
export const Scrolls = ({
  children,
  label
}: {
  readonly label: string
  readonly children: ComponentChildren
}) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: without it only a mouse could scroll
  <section class="scrolls" aria-label={label} tabIndex={0}>
    {children}
  </section>
)
