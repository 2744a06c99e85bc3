/** What was done to keys, tenants, sessions and links: the chain of the tenant `_system`, newest first. */
import { useLocation } from "preact-iso/router"
import type { AuditEvent, EventListResponse, EventStats } from "../../../client/gen/Api.d.ts"
import { useAnswer } from "../../api/Answer.ts"
import { Answered } from "../../parts/Answered.tsx"
import { Card, Empty, Id, Scrolls, Time } from "../../parts/Basics.tsx"
import { count } from "../../parts/Format.ts"
import { type KeysView, keysAddress } from "../../state/KeysView.ts"
import { PageLinks } from "./PageLinks.tsx"

const PAGE_SIZE = 25

const TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/

const textOf = (value: unknown): string =>
  Array.isArray(value)
    ? value.map(textOf).join(", ")
    : typeof value === "string"
      ? value
      : JSON.stringify(value)

const shown = (value: unknown) =>
  typeof value === "string" && TIME.test(value) ? <Time at={value} /> : textOf(value)

const Details = ({ metadata }: { readonly metadata: AuditEvent["metadata"] }) => (
  <>
    {Object.entries(metadata ?? {}).map(([name, value]) => (
      <span class="keys-detail" key={name}>
        <span class="faint">{name}</span> {shown(value)}
      </span>
    ))}
  </>
)

const Row = ({ event }: { readonly event: AuditEvent }) => (
  <tr>
    <td>
      <Time at={event.timestamp} />
    </td>
    <td>
      {event.actor.id === "admin" ? "admin token" : <Id value={event.actor.id} length={22} />}
    </td>
    <td>
      <strong>{event.action}</strong>
    </td>
    <td>
      {event.resource.type} <Id value={event.resource.id} length={22} />
    </td>
    <td class="keys-details">
      <Details metadata={event.metadata} />
    </td>
    <td class="number">#{count(event.sequence_number)}</td>
  </tr>
)

const Table = ({ events }: { readonly events: ReadonlyArray<AuditEvent> }) => (
  <Scrolls label="Acts, as a table">
    <table>
      <thead>
        <tr>
          <th scope="col">When</th>
          <th scope="col">Who</th>
          <th scope="col">What</th>
          <th scope="col">To what</th>
          <th scope="col">Details</th>
          <th scope="col" class="number">
            Place in the chain
          </th>
        </tr>
      </thead>
      <tbody>
        {events.map((event) => (
          <Row key={event.sequence_number} event={event} />
        ))}
      </tbody>
    </table>
  </Scrolls>
)

const ActionChoice = ({ view }: { readonly view: KeysView }) => {
  const { route } = useLocation()
  const stats = useAnswer<EventStats>("/v1/events/stats?group_by=action", undefined, "admin")
  const groups = stats.data?.groups ?? []
  const { action = "" } = view
  const isListed = action === "" || groups.some(({ key }) => key === action)
  return (
    <label class="keys-filter">
      What
      <select
        value={action}
        onChange={({ currentTarget: { value } }) =>
          route(keysAddress({ ...view, action: value || undefined, logPage: 1 }))
        }
      >
        <option value="">all acts</option>
        {isListed ? undefined : <option value={action}>{action}</option>}
        {groups.map((group) => (
          <option key={group.key} value={group.key ?? ""}>
            {group.key} ({count(group.count)})
          </option>
        ))}
      </select>
    </label>
  )
}

export const ActsLog = ({ view }: { readonly view: KeysView }) => {
  const filter = view.action === undefined ? "" : `&action=${encodeURIComponent(view.action)}`
  const path = `/v1/events?page=${view.logPage}&page_size=${PAGE_SIZE}${filter}`
  const list = useAnswer<EventListResponse>(path, undefined, "admin")
  return (
    <Card
      title="Log of acts"
      aside={
        <button type="button" class="quiet" onClick={list.reload} disabled={list.isLoading}>
          {list.isLoading ? "Loading …" : "Load again"}
        </button>
      }
    >
      <p class="faint">
        The chain of the tenant <code>_system</code>: who has made and revoked keys and tenants,
        signed in and out, shared and exported.
      </p>
      <ActionChoice view={view} />
      <Answered answer={list} what="the log">
        {({ events, total }) =>
          events.length === 0 ? (
            <Empty title={view.action === undefined ? "Nothing here" : "No such act"}>
              <p>What is done to tenants, keys, sessions and share links appears here.</p>
            </Empty>
          ) : (
            <>
              <Table events={events} />
              <PageLinks
                label="Pages of the log"
                noun="act"
                page={view.logPage}
                size={PAGE_SIZE}
                total={total}
                to={(logPage) => keysAddress({ ...view, logPage })}
              />
            </>
          )
        }
      </Answered>
    </Card>
  )
}
