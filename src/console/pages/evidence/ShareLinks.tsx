/** Share links: made, shown once, followed, revoked. Part of the page of evidence. */
import { useSignal } from "@preact/signals"
import type { ShareLink, ShareLinkList } from "../../../client/gen/Api.d.ts"
import { useAnswer } from "../../api/Answer.ts"
import {
  Ago,
  Card,
  Empty,
  Failure,
  Id,
  Loading,
  Scrolls,
  Stale,
  State,
  Time
} from "../../parts/Basics.tsx"
import { count, counted } from "../../parts/Format.ts"
import { endOf, type LinkState, linkStateOf } from "../../parts/LinkState.ts"
import type { Tone } from "../../parts/Mark.tsx"
import { mayBeTakenAway } from "../../parts/OwnThings.ts"
import { filterWords, periodWords } from "../../parts/ScopeWords.ts"
import type { Scope as Covered } from "../../state/EvidenceView.ts"
import { signedIn } from "../../state/Session.ts"
import { NewShareLink } from "./NewShareLink.tsx"
import { nameOf, RevokeLink } from "./RevokeLink.tsx"
import type { Survey } from "./UseSurvey.ts"

const EVERY_SECONDS = 10

const linkTones: Readonly<Record<LinkState, Tone>> = {
  usable: "good",
  expired: "plain",
  revoked: "bad",
  "used up": "plain"
}

const Scope = ({ link }: { readonly link: ShareLink }) => (
  <>
    {periodWords(link.from, link.to)}
    {filterWords(link.filters).map((condition) => (
      <div key={condition}>
        with <strong>{condition}</strong>
      </div>
    ))}
  </>
)

const usesText = ({ max_uses, uses }: ShareLink): string =>
  max_uses === undefined ? count(uses) : `${count(uses)} of ${count(max_uses)}`

const Row = ({
  link,
  revoke
}: {
  readonly link: ShareLink
  readonly revoke: (() => void) | undefined
}) => {
  const state = linkStateOf(link, Date.now())
  const end = endOf(link, state)
  return (
    <tr>
      <td>
        <State tone={linkTones[state]}>{state}</State>
      </td>
      <th scope="row">{link.label ?? <span class="faint">no label</span>}</th>
      <td class="scope">
        <Scope link={link} />
      </td>
      <td class="number">{usesText(link)}</td>
      <td>{link.last_used_at === undefined ? "–" : <Ago at={link.last_used_at} />}</td>
      <td>{end === undefined ? "with its key" : <Time at={end} />}</td>
      <td>
        <Time at={link.created_at} />
        <div class="faint">
          by <Id value={link.created_by} />
        </div>
      </td>
      {revoke === undefined ? undefined : (
        <td>
          {mayBeTakenAway(link, signedIn.value) ? (
            <button
              type="button"
              class="quiet"
              aria-label={`Revoke ${nameOf(link)}`}
              onClick={revoke}
            >
              Revoke
            </button>
          ) : undefined}
        </td>
      )}
    </tr>
  )
}

const Table = ({
  label,
  links,
  revoke
}: {
  readonly label: string
  readonly links: ReadonlyArray<ShareLink>
  /** Undefined for links that have ended. */
  readonly revoke?: (link: ShareLink) => void
}) => (
  <Scrolls label={label}>
    <table class="share-links">
      <thead>
        <tr>
          <th scope="col">State</th>
          <th scope="col">Label</th>
          <th scope="col">Covers</th>
          <th scope="col" class="number">
            Uses
          </th>
          <th scope="col">Last used</th>
          <th scope="col">{revoke === undefined ? "Ended" : "Expires"}</th>
          <th scope="col">Made</th>
          {revoke === undefined ? undefined : <td />}
        </tr>
      </thead>
      <tbody>
        {links.map((link) => (
          <Row
            key={link.id}
            link={link}
            revoke={revoke === undefined ? undefined : () => revoke(link)}
          />
        ))}
      </tbody>
    </table>
  </Scrolls>
)

const Links = ({
  list,
  revoke
}: {
  readonly list: ShareLinkList
  readonly revoke: (link: ShareLink) => void
}) => {
  const now = Date.now()
  const usable = list.links.filter((link) => linkStateOf(link, now) === "usable")
  const ended = list.links.filter((link) => linkStateOf(link, now) !== "usable")
  return (
    <>
      {usable.length === 0 ? (
        <Empty title="No link can be used now">
          <p>Make one above, and send its address to somebody who has no key.</p>
        </Empty>
      ) : (
        <Table label="Links that can be used" links={usable} revoke={revoke} />
      )}
      {ended.length === 0 ? undefined : (
        <details>
          <summary>{counted(ended.length, "link")} that ended</summary>
          <Table label="Links that ended" links={ended} />
        </details>
      )}
      {list.total > list.links.length ? (
        <p class="faint">
          The newest {count(list.links.length)} of {count(list.total)} links.
        </p>
      ) : undefined}
    </>
  )
}

/** Makes links for this scope, and lists all links of the tenant. */
export const ShareLinks = ({
  scope,
  survey
}: {
  readonly scope: Covered
  readonly survey: Survey
}) => {
  const list = useAnswer<ShareLinkList>("/v1/share/links", EVERY_SECONDS)
  const revoked = useSignal<ShareLink | undefined>(undefined)
  const close = (isRevoked: boolean) => {
    revoked.value = undefined
    if (isRevoked) list.reload()
  }
  return (
    <Card title="Share links">
      {list.failure?.code === "insufficient_scope" ? undefined : (
        <NewShareLink scope={scope} survey={survey} onMade={list.reload} />
      )}
      <Stale answer={list} />
      {list.data !== undefined ? (
        <Links list={list.data} revoke={(link) => (revoked.value = link)} />
      ) : list.failure === undefined ? (
        <Loading what="the links" />
      ) : (
        <Failure failure={list.failure} retry={list.reload} />
      )}
      {revoked.value === undefined ? undefined : <RevokeLink link={revoked.value} close={close} />}
    </Card>
  )
}
