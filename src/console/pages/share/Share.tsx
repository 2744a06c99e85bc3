/** What the bearer of a share link sees, without being signed in. */
import { useSignal } from "@preact/signals"
import type { ComponentChildren } from "preact"
import type { SharedScope } from "../../../client/gen/Api.d.ts"
import { Card, Failure, Loading, State } from "../../parts/Basics.tsx"
import { count, counted, relativeTime } from "../../parts/Format.ts"
import { filterWords, periodWords, timeWords } from "../../parts/ScopeWords.ts"
import { type Shared, useShared, useToken } from "../../state/Shared.ts"
import { Downloads } from "./Downloads.tsx"
import { Limits } from "./Limits.tsx"
import { closedWords, ShareClosed } from "./ShareClosed.tsx"
import { usePack, usePdf } from "./SharedDocuments.ts"
import { ShareVerdict } from "./ShareVerdict.tsx"
import { VerifyHere } from "./VerifyHere.tsx"

type Open = Extract<Shared, { readonly is: "open" }>

const usesLeft = ({ max_uses, uses }: SharedScope): number | undefined =>
  max_uses === undefined ? undefined : Math.max(0, max_uses - uses)

/** With year and zone: it is read by people who have set neither. */
const Exactly = ({ at }: { readonly at: string }) => <time dateTime={at}>{timeWords(at)}</time>

const Filters = ({ filters }: Pick<SharedScope, "filters">) => {
  const words = filterWords(filters)
  if (words.length === 0) return <>every event of the period</>
  return (
    <>
      events with
      <ul class="share-list">
        {words.map((condition) => (
          <li key={condition}>{condition}</li>
        ))}
      </ul>
    </>
  )
}

const Scope = ({ scope }: { readonly scope: SharedScope }) => {
  const { created_at, events, expires_at, filters, from, has_traces, tenant, to } = scope
  const left = usesLeft(scope)
  const facts: ReadonlyArray<readonly [string, ComponentChildren]> = [
    ["Log of", tenant.name === undefined ? tenant.id : `${tenant.name} (${tenant.id})`],
    ["Period", periodWords(from, to)],
    ["Shows", <Filters key="filters" filters={filters} />],
    ["Events", count(events)],
    ["Execution traces", has_traces ? "those of the period" : "none: the conditions select events"],
    ["Shared", <Exactly key="shared" at={created_at} />],
    [
      "Expires",
      <>
        <Exactly at={expires_at} /> ({relativeTime(Date.now() - Date.parse(expires_at))})
      </>
    ],
    [
      "Uses left",
      left === undefined ? "not limited" : `${count(left)} of ${count(scope.max_uses!)}`
    ]
  ]
  return (
    <Card title="What this link covers">
      <dl class="share-cover">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </Card>
  )
}

const costOf = (scope: SharedScope): string | undefined => {
  const left = usesLeft(scope)
  return left === undefined
    ? undefined
    : `Each download counts as one use of this link: ${counted(left, "use")} left. What you have downloaded is kept in this page, so saving and checking it again is free.`
}

const Opened = ({
  reload,
  shared: { ended, failure, scope },
  token
}: {
  readonly shared: Open
  readonly token: string
  readonly reload: () => void
}) => {
  const pdf = usePdf(token, reload)
  const pack = usePack(token, reload)
  const isDoubted = useSignal(false)
  const isOpen = ended === undefined && usesLeft(scope) !== 0
  const hereCost = pack.isHere
    ? "Uses the pack that you have downloaded."
    : usesLeft(scope) === undefined
      ? undefined
      : "Counts as one use."
  return (
    <>
      {ended === undefined ? undefined : (
        <p class="stale" role="status">
          <State tone="warn">{closedWords[ended].title}</State>. What was loaded before stays on
          this page until you close it.
        </p>
      )}
      {failure === undefined || ended !== undefined ? undefined : (
        <Failure failure={failure} retry={reload} />
      )}
      <div class="columns">
        <Scope scope={scope} />
        <ShareVerdict scope={scope} token={token} isDoubted={isDoubted.value} />
      </div>
      <Downloads pdf={pdf} pack={pack} cost={costOf(scope)} isOpen={isOpen} />
      <VerifyHere
        take={pack.take}
        received={pack.received}
        cost={hereCost}
        isOpen={isOpen || pack.isHere}
        onVerdict={(verdict) => (isDoubted.value = verdict === "tampered")}
      />
      <Limits />
    </>
  )
}

const titleOf = (shared: Shared): string =>
  shared.is === "open" ? (shared.scope.label ?? "Shared evidence") : "Shared evidence"

export const SharePage = () => {
  const token = useToken()
  const [shared, reload] = useShared(token)
  return (
    <main class="share" id="content">
      <header>
        <p class="brand">
          <strong>alk</strong>
        </p>
        <h1>{titleOf(shared)}</h1>
        <p class="faint">
          A part of an audit log, shared with you. You need no account; this page sends nothing to
          anybody but the service that has the log.
        </p>
      </header>
      {shared.is === "loading" ? <Loading what="what was shared" /> : undefined}
      {shared.is === "closed" ? <ShareClosed why={shared.why} /> : undefined}
      {shared.is === "failed" ? <Failure failure={shared.failure} retry={reload} /> : undefined}
      {shared.is === "open" ? (
        <Opened key={token} shared={shared} token={token} reload={reload} />
      ) : undefined}
    </main>
  )
}
