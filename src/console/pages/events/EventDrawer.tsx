/** One event: what it says, what is near it, and its proof. */
import { useEffect, useRef } from "preact/hooks"
import type { AuditEvent, EventListResponse } from "../../../client/gen/Api.d.ts"
import { useAnswer } from "../../api/Answer.ts"
import { Copy, Failure, Loading, Outcome, State, Time } from "../../parts/Basics.tsx"
import { count } from "../../parts/Format.ts"
import { Json } from "../../parts/Json.tsx"
import { LargeValues } from "../../parts/Value.tsx"
import { curlOf } from "../../state/Copying.ts"
import { addressOf, type EventsView } from "../../state/EventsView.ts"
import { whereValue } from "../../state/Where.ts"
import { ProofPath } from "./ProofPath.tsx"

/** What the API is asked for this event with. */
export const eventPath = (sequence: number): string => `/v1/events?sequence_number=${sequence}`

const executionOf = ({ metadata }: AuditEvent): string | undefined => {
  const id = metadata?.["execution_id"]
  return typeof id === "string" ? id : undefined
}

const Near = ({ event, view }: { readonly event: AuditEvent; readonly view: EventsView }) => {
  const all = (where: string): string =>
    addressOf({ ...view, where, from: undefined, to: undefined, event: event.sequence_number })
  const at = (sequence: number): string => addressOf({ ...view, event: sequence })
  const execution = executionOf(event)
  return (
    <nav class="near" aria-label="Near this event">
      {event.sequence_number === 1 ? undefined : (
        <a href={at(event.sequence_number - 1)}>Previous #{count(event.sequence_number - 1)}</a>
      )}
      <a href={at(event.sequence_number + 1)}>Next #{count(event.sequence_number + 1)}</a>
      <a href={all(`actor_id:${whereValue(event.actor.id)}`)}>Same actor</a>
      <a
        href={all(
          `resource_type:${whereValue(event.resource.type)}`
            + ` resource_id:${whereValue(event.resource.id)}`
        )}
      >
        Same resource
      </a>
      <a href={all(`action:${whereValue(event.action)}`)}>Same action</a>
      {execution === undefined ? undefined : (
        <>
          <a href={all(`metadata.execution_id:${whereValue(execution)}`)}>Same execution</a>
          <a href={`/executions/${encodeURIComponent(execution)}`}>The execution</a>
        </>
      )}
    </nav>
  )
}

const Shown = ({ event, view }: { readonly event: AuditEvent; readonly view: EventsView }) => (
  <>
    <p>
      <Outcome value={event.outcome} /> <Time at={event.timestamp} />
    </p>
    <p class="faint">
      #{count(event.sequence_number)} of the chain, recorded <Time at={event.created_at} />
      {event.erased_at === undefined ? undefined : (
        <>
          , <State tone="warn">details erased</State> <Time at={event.erased_at} />
        </>
      )}
    </p>
    <Near event={event} view={view} />
    <h3>Event</h3>
    <Json label="The event as JSON" value={event} />
    <LargeValues of={event.metadata} />
    <p class="actions">
      <Copy label="Copy as curl" text={curlOf(eventPath(event.sequence_number))} />
      <Copy label="Copy link" text={location.href} />
    </p>
    <h3>Proof: from this event to the signed root</h3>
    <ProofPath event={event} />
  </>
)

export const EventDrawer = ({
  close,
  sequence,
  view
}: {
  readonly sequence: number
  readonly view: EventsView
  readonly close: () => void
}) => {
  const answer = useAnswer<EventListResponse>(eventPath(sequence))
  const title = useRef<HTMLHeadingElement>(null)
  const event = answer.data?.events[0]
  useEffect(() => title.current?.focus(), [])
  return (
    <aside class="drawer" aria-labelledby="drawer-title">
      <header>
        <h2 id="drawer-title" ref={title} tabIndex={-1}>
          {event?.action ?? `Event #${count(sequence)}`}
        </h2>
        <button type="button" class="quiet" onClick={close}>
          Close
        </button>
      </header>
      {event !== undefined ? (
        <Shown key={event.hash} event={event} view={view} />
      ) : answer.failure !== undefined ? (
        <Failure failure={answer.failure} retry={answer.reload} />
      ) : answer.data !== undefined ? (
        <p>The chain has no event #{count(sequence)}.</p>
      ) : (
        <Loading what="the event" />
      )}
    </aside>
  )
}
