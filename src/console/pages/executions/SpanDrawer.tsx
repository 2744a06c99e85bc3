/** One span: what it was asked and answered, what it was given and returned, how it failed, all of it. */
import type { ComponentChildren } from "preact"
import { useEffect, useRef } from "preact/hooks"
import type { Span, TraceEventList } from "../../../client/gen/Api.d.ts"
import { useAnswer } from "../../api/Answer.ts"
import { Copy, Failure, Id, Loading, RunStatus, Time } from "../../parts/Basics.tsx"
import { count, duration } from "../../parts/Format.ts"
import { Json } from "../../parts/Json.tsx"
import { conversationOf, inputAndOutput, type Message, type Part } from "../../parts/Messages.ts"
import { microsOf } from "../../parts/SpanTree.ts"
import { LargeValues, Value } from "../../parts/Value.tsx"

const PartOf = ({ part }: { readonly part: Part }) => {
  switch (part.kind) {
    case "text":
      return (
        <div class="said">
          <Value value={part.text} />
        </div>
      )
    case "call":
      return (
        <div class="said called">
          <strong>calls {part.name}</strong>
          {part.input === undefined ? undefined : <Value value={part.input} />}
        </div>
      )
    case "result":
      return (
        <div class="said returned">
          <strong>result</strong> <Value value={part.output} />
        </div>
      )
  }
}

const Messages = ({ messages }: { readonly messages: ReadonlyArray<Message> }) => (
  <ol class="chat">
    {messages.map((message, at) => (
      <li
        key={at}
        class={`role-${/^(?:system|user|assistant|tool)$/.exec(message.role)?.[0] ?? "other"}`}
      >
        <span class="faint">{message.role}</span>
        {message.parts.map((part, place) => (
          <PartOf key={place} part={part} />
        ))}
      </li>
    ))}
  </ol>
)

const Said = ({ span }: { readonly span: Span }) => {
  const conversation = conversationOf(span.metadata)
  const { input, output } = inputAndOutput(span.metadata)
  if (conversation !== undefined) {
    return (
      <>
        <h3>Asked</h3>
        <Messages messages={conversation.asked} />
        {conversation.answered.length === 0 ? undefined : (
          <>
            <h3>Answered</h3>
            <Messages messages={conversation.answered} />
          </>
        )}
      </>
    )
  }
  if (input === undefined && output === undefined) return null
  return (
    <div class="in-out">
      <section aria-label="Given">
        <h3>Given</h3>
        <div class="said">{input === undefined ? "nothing" : <Value value={input} />}</div>
      </section>
      <section aria-label="Returned">
        <h3>Returned</h3>
        <div class="said">{output === undefined ? "nothing" : <Value value={output} />}</div>
      </section>
    </div>
  )
}

/** The text of an error, with its stack where it has one. */
const errorText = (error: NonNullable<Span["error"]>): unknown => {
  if (typeof error === "string") return error
  const { message, stack, stacktrace, type } = error as Record<string, unknown>
  const lines = [type, message, stacktrace ?? stack].filter((one) => typeof one === "string")
  return lines.length === 0 ? error : lines.join("\n")
}

type SpanAt = Pick<Span, "id" | "execution_id">

const EventsOf = ({ execution_id, id: span }: SpanAt) => {
  const path = `/api/v1/spans/${encodeURIComponent(span)}/events`
  const answer = useAnswer<TraceEventList>(`${path}?${new URLSearchParams({ execution_id })}`)
  if (answer.data === undefined) {
    return answer.failure === undefined ? (
      <Loading what="its events" />
    ) : (
      <Failure failure={answer.failure} retry={answer.reload} />
    )
  }
  const { events, next_cursor } = answer.data
  if (events.length === 0) return null
  return (
    <>
      <h3>Events of the span</h3>
      <ol class="rows">
        {events.map(({ event_type, id, payload, timestamp }) => (
          <li key={id}>
            <Time at={timestamp} /> <strong>{event_type}</strong>
            {payload === undefined ? undefined : (
              <details>
                <summary>Payload</summary>
                <div class="said">
                  <Value value={payload} />
                </div>
                <LargeValues of={payload} />
              </details>
            )}
          </li>
        ))}
      </ol>
      {next_cursor === undefined ? undefined : (
        <p class="faint">There are more: GET {path} has all of them.</p>
      )}
    </>
  )
}

const Facts = ({ span }: { readonly span: Span }) => {
  const { summary } = span
  const took =
    span.ended_at === undefined ? undefined : microsOf(span.ended_at) - microsOf(span.started_at)
  const facts: ReadonlyArray<readonly [string, unknown]> = [
    ["Took", took === undefined ? undefined : duration(took)],
    ["Model", summary?.model],
    ["Tokens read", summary?.input_tokens],
    ["Tokens written", summary?.output_tokens],
    ["Cost", summary?.cost],
    ["Finished", summary?.finish_reasons?.join(", ")],
    ["Session", summary?.session_id],
    ["User", summary?.user_id]
  ]
  return (
    <dl class="facts">
      {facts
        .filter(([, value]) => value !== undefined && value !== "")
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{typeof value === "number" ? count(value) : String(value)}</dd>
          </div>
        ))}
    </dl>
  )
}

/** What was repaired of the span when it came in, as texts. */
const Repairs = ({ span: { repairs = [] } }: { readonly span: Span }) =>
  repairs.length === 0 ? null : (
    <>
      <h3>Repaired when it came in</h3>
      <ul class="rows" aria-label="Repairs">
        {repairs.map(({ code, count: times, path, sent }, at) => (
          <li key={at}>
            <strong>{code}</strong> {path}
            {times === undefined ? undefined : `, ${count(times)} times`}
            {sent === undefined ? undefined : (
              <>
                , sent as <span class="text">{sent}</span>
              </>
            )}
          </li>
        ))}
      </ul>
    </>
  )

const Drawer = ({
  children,
  close,
  title
}: {
  readonly title: string
  readonly close: () => void
  readonly children: ComponentChildren
}) => {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => heading.current?.focus(), [])
  return (
    <aside class="drawer" aria-labelledby="drawer-title">
      <header>
        <h2 id="drawer-title" ref={heading} tabIndex={-1}>
          {title}
        </h2>
        <button type="button" class="quiet" onClick={close}>
          Close
        </button>
      </header>
      {children}
    </aside>
  )
}

/** A span that others or its events name, but that was never sent. */
export const AbsentDrawer = ({ close, span }: { readonly span: SpanAt; close: () => void }) => (
  <Drawer title={span.id} close={close}>
    <p class="faint">This span was never sent.</p>
    <EventsOf {...span} />
  </Drawer>
)

export const SpanDrawer = ({
  close,
  span
}: {
  readonly span: Span
  readonly close: () => void
}) => (
  <Drawer title={span.name} close={close}>
    <p>
      <RunStatus value={span.status} /> <span class="faint">{span.span_type}</span>{" "}
      <Id value={span.id} /> <span class="number faint">{span.started_at}</span>
    </p>
    <Facts span={span} />
    {span.error === undefined ? undefined : (
      <>
        <h3>Error</h3>
        <div class="said failed-text" role="alert">
          <Value value={errorText(span.error)} />
        </div>
      </>
    )}
    <Said span={span} />
    <EventsOf {...span} />
    <Repairs span={span} />
    <h3>Span</h3>
    <Json label="The span as JSON" value={span} />
    <p class="actions">
      <Copy label="Copy link" text={location.href} />
    </p>
  </Drawer>
)
