/**
 * The client of alk: puts its parts together under one name. What each of them does, its own file
 * says.
 */
import type { Actions, EventOf } from "./events/Catalogue.ts"
import { type EventInput, toLoggable } from "./events/EventInput.ts"
import {
  type EventQuery,
  type ExecutionQuery,
  events,
  executions,
  type ListOptions
} from "./events/EventPages.ts"
import { eventSender, type Recorded, recordOnce } from "./events/SendEvents.ts"
import { type TailOptions, type TailQuery, tail } from "./events/Tail.ts"
import type { AuditEvent, Execution } from "./gen/Api.d.ts"
import { systemClock } from "./Pause.ts"
import { Delivery } from "./queue/Delivery.ts"
import { type FlushOptions, type QueueCounters, Queues } from "./queue/Queues.ts"
import { type Hooks, Reports } from "./queue/Reports.ts"
import type { SenderParts } from "./Receipts.ts"
import {
  type AnswerOf,
  type RequestArguments,
  Requests,
  type Route,
  withRetries
} from "./Request.ts"
import {
  type ConnectionOptions,
  deliveryOptions,
  type QueueOptions,
  transportOptions
} from "./Settings.ts"
import { makeTransport } from "./Transport.ts"
import { operationToLoggable, traceSender } from "./traces/SendTraces.ts"
import type {
  Open,
  Run,
  RunOptions,
  Span,
  SpanOptions,
  ToolOptions,
  WithOptions
} from "./traces/Span.ts"
import { Tracing } from "./traces/Tracing.ts"

/** Milliseconds that `record` goes on trying by default. */
const RECORD_MS = 60_000

/** Everything that `createClient` can be told. */
export interface ClientOptions<A extends Actions = Actions>
  extends ConnectionOptions,
    QueueOptions,
    Hooks {
  /** The actions that may be logged, of `catalogue`: others do not compile. */
  readonly actions?: A
}

export interface RecordOptions {
  /** Milliseconds to go on trying, 60,000 by default. */
  readonly timeoutMs?: number
  /** Gives it up; the event may be stored all the same. */
  readonly signal?: AbortSignal | undefined
}

/** One service, and the right to use it. `Event` is what may be logged. */
export class Client<Event extends EventInput = EventInput> {
  readonly #parts: SenderParts
  readonly #requests: Requests
  readonly #events: Delivery
  readonly #queues: Queues
  readonly #tracing: Tracing

  constructor(options: ClientOptions = {}) {
    const clock = systemClock
    const transport = makeTransport(transportOptions(options))
    const reports = new Reports(options, clock)
    const limits = deliveryOptions(options)
    this.#parts = { transport, clock, reports }
    this.#requests = new Requests(transport, clock)
    this.#events = new Delivery(eventSender(this.#parts), clock, limits, reports)
    // A run must not fail for its trace.
    const traceLimits = { ...limits, overflow: "drop-newest" } as const
    const traces = new Delivery(traceSender(this.#parts), clock, traceLimits, reports)
    this.#queues = new Queues(this.#events, traces, clock)
    this.#tracing = new Tracing((operation) => traces.log(operationToLoggable(operation)))
  }

  /**
   * Log an event, and go on: it is queued in memory and sent in the background, in order, until the
   * service has it. Gives the event's id. Never throws for the service's sake, unless you choose
   * `overflow: "throw"`. What is not stored is reported loudly; see `onReject`.
   */
  log(event: Event): string {
    const loggable = toLoggable(event, Date.now())
    this.#events.log(loggable)
    return loggable.id
  }

  /**
   * Record an event, and wait until it is in the chain: for what must not happen without a record.
   * Sent at once, beside the queue of `log`. Tried again while the service can't be reached; rejects
   * with ApiFailure when it is refused or the time is up, and the event may then be stored all the
   * same. With an `id` of your own it can be recorded again.
   */
  async record(event: Event, options: RecordOptions = {}): Promise<Recorded> {
    const { signal, timeoutMs = RECORD_MS } = options
    const loggable = toLoggable(event, Date.now())
    const { clock } = this.#parts
    const until = clock.now() + timeoutMs
    return withRetries({ until, clock, signal }, () => recordOnce(this.#parts, loggable, signal))
  }

  /**
   * Resolves once everything that was logged before is acknowledged: written to the log of the
   * service, which keeps it through restarts. Rejects with NotAcknowledged, which names what was not
   * stored since the last flush, or still waits when the time is up.
   */
  flush(options?: FlushOptions): Promise<void> {
    return this.#queues.flush(options)
  }

  /**
   * Flush, and take nothing more. Call it before `process.exit()` and on SIGTERM, which end a program
   * without asking: `process.once("SIGTERM", () => client.close().finally(() => process.exit()))`.
   * A program that ends by itself is held up until its queue is empty, 10 s at most.
   */
  close(options?: FlushOptions): Promise<void> {
    return this.#queues.close(options)
  }

  /** What was logged, acknowledged and refused, and what waits. */
  get counters(): QueueCounters {
    return this.#queues.counters
  }

  /**
   * The events that match, newest first, page after page as far as you read:
   * `for await (const event of client.events({ action: "document.*", from: "-24h" }))`.
   */
  events(query: EventQuery = {}, options: ListOptions = {}): AsyncGenerator<AuditEvent, void> {
    return events(this.#requests, query, options)
  }

  /** The executions that match, newest first, page after page as far as you read. */
  executions(
    query: ExecutionQuery = {},
    options: ListOptions = {}
  ): AsyncGenerator<Execution, void> {
    return executions(this.#requests, query, options)
  }

  /**
   * The events that match, as they are committed, each once and in the order of the chain. The
   * connection is made again when it is lost, from where it was. Ends with the signal, or when you
   * leave the loop; throws ApiFailure if the service refuses.
   */
  tail(query: TailQuery = {}, options: TailOptions = {}): AsyncGenerator<AuditEvent, void> {
    return tail(this.#parts, query, options)
  }

  /**
   * Runs a function as a run of an agent. What it returns is returned; what it throws is recorded, and
   * thrown. Operations are queued as events are.
   */
  run<A>(agent: string, body: (run: Run) => A): A
  run<A>(agent: string, options: RunOptions, body: (run: Run) => A): A
  run<A>(agent: string, ...given: WithOptions<RunOptions, Run, A>): A {
    return this.#tracing.run(agent, ...given)
  }

  /** Start a run; end it yourself. */
  startRun(agent: string, options?: RunOptions): Run {
    return this.#tracing.startRun(agent, options)
  }

  /**
   * Runs a function as a step below the run or span that is open here. Outside of one it is a run of
   * its own; in browsers, which don't know what is open, use `run.span` and `span.span`.
   */
  span<A>(name: string, body: (span: Span) => A): A
  span<A>(name: string, options: SpanOptions, body: (span: Span) => A): A
  span<A>(name: string, ...given: WithOptions<SpanOptions, Span, A>): A {
    return this.#tracing.span(name, ...given)
  }

  /** The same for the call of a tool: a span of type `TOOL_CALL`. */
  tool<A>(name: string, body: (span: Span) => A): A
  tool<A>(name: string, options: ToolOptions, body: (span: Span) => A): A
  tool<A>(name: string, ...given: WithOptions<ToolOptions, Span, A>): A {
    return this.#tracing.tool(name, ...given)
  }

  /** The run or span that is open here; undefined outside of one, and in browsers. */
  get current(): Open | undefined {
    return this.#tracing.open
  }

  /**
   * The parsed answer of a route: `request("GET /v1/events/{id}", { path: { id } })`. Rejects with
   * ApiFailure, or with the reason of an aborted signal.
   */
  request<R extends Route>(route: R, ...options: RequestArguments<R>): Promise<AnswerOf<R>> {
    return this.#requests.request(route, ...options)
  }

  /**
   * The answer of a route from its headers on, for files, NDJSON and streams. Refusals reject with
   * ApiFailure.
   */
  open<R extends Route>(route: R, ...options: RequestArguments<R>): Promise<Response> {
    return this.#requests.open(route, ...options)
  }
}

/** A client. Throws TypeError if there is no address or no key; sends nothing yet. */
export const createClient = <const A extends Actions = Actions>(
  options: ClientOptions<A> = {}
): Client<string extends keyof A ? EventInput : EventOf<A>> => new Client(options)
