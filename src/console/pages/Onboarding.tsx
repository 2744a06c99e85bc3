/**
 * How to begin: the first event, sent from here or from the reader's own program, and what became of
 * it. Stays while it is open, whatever has arrived.
 */
import { useSignal } from "@preact/signals"
import type { ComponentChildren } from "preact"
import { useRef } from "preact/hooks"
import type { EventListResponse, ExecutionList, VerifyReport } from "../../client/gen/Api.d.ts"
import { type Answer, useAnswer } from "../api/Answer.ts"
import { ApiFailure, call } from "../api/Client.ts"
import { Card, Copy, Failure, State } from "../parts/Basics.tsx"
import { count } from "../parts/Format.ts"
import { signedIn } from "../state/Session.ts"
import { examples, firstEvent, keyLine } from "../state/Snippets.ts"

const EVERY_SECONDS = 3
/** Events before the newest that are recomputed for the tick. */
const RECOMPUTED = 1_000

const TestEvent = ({ onEvent }: { readonly onEvent: () => void }) => {
  const failure = useSignal<ApiFailure | undefined>(undefined)
  const isBusy = useSignal(false)
  const send = async () => {
    isBusy.value = true
    failure.value = undefined
    try {
      await call("/v1/events?sync=true", { method: "POST", body: firstEvent })
      onEvent()
    } catch (error) {
      failure.value = error instanceof ApiFailure ? error : new ApiFailure(0, "", String(error))
    } finally {
      isBusy.value = false
    }
  }
  const { value } = signedIn
  const mayWrite = value.is === "in" && value.session.scopes.includes("write")
  return (
    <>
      <p>
        <button type="button" class="primary" disabled={!mayWrite || isBusy.value} onClick={send}>
          {isBusy.value ? "Sending …" : "Send a test event"}
        </button>
      </p>
      {mayWrite ? undefined : (
        <p class="faint">Your key may only read: send one with a key that has the scope write.</p>
      )}
      {failure.value === undefined ? undefined : <Failure failure={failure.value} />}
    </>
  )
}

/** A step that is done, once its answer says so. */
const Tick = <A,>({
  answer,
  children,
  waiting
}: {
  readonly answer: Answer<A>
  readonly waiting: string
  /** What is said once it is done; undefined before. */
  readonly children: ComponentChildren
}) =>
  answer.failure === undefined ? (
    <li>{children ?? <State tone="plain">{waiting}</State>}</li>
  ) : (
    <li>
      <Failure failure={answer.failure} retry={answer.reload} />
    </li>
  )

const Ticks = ({ events }: { readonly events: Answer<EventListResponse> }) => {
  const newest = events.data?.events[0]
  // Later events don't begin the verification anew.
  const seen = useRef<number | undefined>(undefined)
  seen.current ??= newest?.sequence_number
  const from = seen.current === undefined ? undefined : Math.max(1, seen.current - RECOMPUTED + 1)
  const report = useAnswer<VerifyReport>(
    from === undefined ? undefined : `/v1/verify?chain=events&from_sequence=${from}`
  )
  const runs = useAnswer<ExecutionList>("/api/v1/executions?page_size=1", EVERY_SECONDS)
  const run = runs.data?.executions[0]
  const { data } = report
  return (
    <ul class="rows">
      <Tick answer={events} waiting="waiting for the first event">
        {newest && (
          <>
            <State tone="good">event arrived</State>{" "}
            <a href={`/events?event=${newest.sequence_number}`}>
              #{count(newest.sequence_number)} {newest.action}
            </a>
          </>
        )}
      </Tick>
      <Tick answer={report} waiting={from === undefined ? "not verified yet" : "verifying …"}>
        {data && (
          <State tone={data.status === "valid" ? "good" : "bad"}>
            {data.status === "valid"
              ? `verified #${count(data.first_sequence_number ?? 0)} to #${count(data.last_sequence_number ?? 0)}`
              : `not verified: ${data.status}`}
          </State>
        )}
      </Tick>
      <Tick answer={runs} waiting="no run of an agent yet: OpenTelemetry above sends one">
        {run && (
          <>
            <State tone="good">run of an agent arrived</State>{" "}
            <a href={`/executions/${encodeURIComponent(run.id)}`}>{run.agent_name}</a>
          </>
        )}
      </Tick>
    </ul>
  )
}

/** `leave` is called by who goes on, where that leads to the same address. */
export const Onboarding = ({ leave }: { readonly leave?: () => void }) => {
  const events = useAnswer<EventListResponse>("/v1/events?page_size=1", EVERY_SECONDS)
  return (
    <>
      <h1>Welcome</h1>
      <p>
        How events and runs of agents get here.{" "}
        <a href="/" onClick={leave}>
          Go to the overview
        </a>
      </p>
      <Card title="1. Send something">
        <TestEvent onEvent={events.reload} />
        <p>
          Or from your program. First put a key into its environment: the first start of the service
          has printed one, once, and <a href="/keys">Keys</a> makes another.
        </p>
        <pre>
          <code>{keyLine}</code>
        </pre>
        <Copy text={keyLine} label="Copy" />
        {examples(location.origin).map(([name, text], at) => (
          <details key={name} open={at === 0}>
            <summary>{name}</summary>
            <pre>
              <code>{text}</code>
            </pre>
            <Copy text={text} label="Copy" />
          </details>
        ))}
      </Card>
      <Card title="2. See it here">
        <Ticks events={events} />
      </Card>
    </>
  )
}
