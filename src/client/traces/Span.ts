/**
 * Runs of agents and their spans as handles: what each does becomes an operation for the queue. Knows
 * no service and no context of calls.
 */
import type {
  ExecutionEndOperation,
  ExecutionStartOperation,
  SpanEndOperation,
  SpanEventOperation,
  SpanStartOperation
} from "../gen/Api.d.ts"
import { newId } from "../Ids.ts"

/** An operation with the ids and times that make it safe to repeat. */
export type TraceOperation =
  | ExecutionStartOperation
  | ExecutionEndOperation
  | SpanStartOperation
  | SpanEventOperation
  | SpanEndOperation

/** Where the operations go, and how a run or span becomes the one that is open. */
export interface Scope {
  /** Never throws for the service's sake. */
  readonly record: (operation: TraceOperation) => void
  /** Call a function in which, and in what it calls, the run or span is the open one. */
  readonly within: <A>(open: Open, body: () => A) => A
}

/** What spans can be started below. */
export type Open = Run | Span

/** How a run or span ended. */
export type EndStatus = "COMPLETED" | "FAILED" | "CANCELLED"

/** Free-form, as JSON; can be erased. */
export type Details = Readonly<Record<string, unknown>>

export interface RunOptions {
  /** An id of your own; else one is made. */
  readonly id?: string
  /** Shown in place of the agent's id. */
  readonly agentName?: string
  /** What made it run. */
  readonly trigger?: string
  readonly metadata?: Details
}

export interface SpanOptions {
  /** `TOOL_CALL`, `LLM_CALL`, `RETRIEVAL`, … or a name of your own; `CUSTOM` by default. */
  readonly type?: string
  readonly metadata?: Details
  /** Spans of the same run that caused this one, beside its parent. */
  readonly causedBy?: ReadonlyArray<Span>
}

export interface ToolOptions extends Omit<SpanOptions, "type"> {
  /** What the tool is given; kept in the metadata as `input`. */
  readonly input?: unknown
  /** Keep what it returns in the metadata as `output`. It may hold personal data: off by default. */
  readonly recordsOutput?: boolean
}

export interface EndOptions {
  readonly status?: EndStatus
  /** What went wrong, of any kind; the status is then FAILED unless you say otherwise. */
  readonly error?: unknown
}

/** A function, with or without options before it. */
export type WithOptions<Options, On, A> =
  | [body: (on: On) => A]
  | [options: Options, body: (on: On) => A]

export const optionsAndBody = <Options extends object, On, A>(
  given: WithOptions<Options, On, A>
): [Partial<Options>, (on: On) => A] => (given.length === 1 ? [{}, given[0]] : given)

/** Times of one run: they follow each other even if the clock of the machine is set back. */
class RunClock {
  readonly #wall = Date.now()
  readonly #start = performance.now()

  /** RFC 3339 to the microsecond. */
  now(): string {
    const microseconds = Math.round((performance.now() - this.#start) * 1_000)
    const ms = this.#wall + Math.floor(microseconds / 1_000)
    const rest = String(microseconds % 1_000).padStart(3, "0")
    return `${new Date(ms).toISOString().slice(0, -1)}${rest}Z`
  }
}

/** An error as a span keeps it. */
const errorValue = (error: unknown): string | Details => {
  if (!(error instanceof Error)) return String(error)
  const { message, name, stack } = error
  return { type: name, message, ...(stack === undefined ? {} : { stack }) }
}

/** The status of what ended with an error: one that was given up was cancelled. */
const statusOf = (error: unknown): EndStatus =>
  error instanceof Error && error.name === "AbortError" ? "CANCELLED" : "FAILED"

interface End {
  readonly status: EndStatus
  readonly error?: string | Details
}

const endOf = ({ error, status }: EndOptions): End => ({
  status: status ?? (error === undefined ? "COMPLETED" : statusOf(error)),
  ...(error === undefined ? {} : { error: errorValue(error) })
})

const metadataOf = (metadata: Details | undefined): { metadata?: Details } =>
  metadata === undefined || Object.keys(metadata).length === 0 ? {} : { metadata }

/** What a run and its spans share. */
interface RunParts {
  readonly id: string
  readonly clock: RunClock
  readonly scope: Scope
}

const startSpan = (
  { clock, id: executionId, scope }: RunParts,
  parent: string | undefined,
  name: string,
  { causedBy = [], metadata, type = "CUSTOM" }: SpanOptions
): string => {
  const id = newId()
  scope.record({
    op: "span.start",
    execution_id: executionId,
    id,
    ...(parent === undefined ? {} : { parent_span_id: parent }),
    ...(causedBy.length === 0 ? {} : { caused_by_span_ids: causedBy.map((one) => one.id) }),
    span_type: type,
    name,
    started_at: clock.now(),
    ...metadataOf(metadata)
  })
  return id
}

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === "object" && value !== null && "then" in value && typeof value.then === "function"

/**
 * Call a function and end what is open when it has ended, however it did. Gives what it returns;
 * what it throws is recorded and thrown.
 */
export const around = <O extends Open, A>(
  { within }: Scope,
  open: O,
  body: (open: O) => A,
  ended: (result: unknown) => void = () => {}
): A => {
  const succeed = (result: unknown) => {
    ended(result)
    open.end()
    return result
  }
  const fail = (error: unknown): never => {
    open.end({ error })
    throw error
  }
  let result: A
  try {
    result = within(open, () => body(open))
  } catch (error) {
    return fail(error)
  }
  return (isThenable(result) ? result.then(succeed, fail) : succeed(result)) as A
}

/** What a run and a span have in common: spans are started below them. */
abstract class Parent {
  /** Of the execution or of the span. */
  readonly id: string
  protected readonly parts: RunParts
  #metadata: Details = {}
  #isEnded = false

  constructor(id: string, parts: RunParts) {
    this.id = id
    this.parts = parts
  }

  /** Id of the run that it belongs to. */
  get runId(): string {
    return this.parts.id
  }

  /** Start a span below this one; end it yourself. */
  abstract startSpan(name: string, options?: SpanOptions): Span

  /** A span around a function: what that returns is returned, what it throws recorded and thrown. */
  span<A>(name: string, body: (span: Span) => A): A
  span<A>(name: string, options: SpanOptions, body: (span: Span) => A): A
  span<A>(name: string, ...given: WithOptions<SpanOptions, Span, A>): A {
    const [options, body] = optionsAndBody(given)
    return around(this.parts.scope, this.startSpan(name, options), body)
  }

  /** The same for the call of a tool: a span of type `TOOL_CALL`. */
  tool<A>(name: string, body: (span: Span) => A): A
  tool<A>(name: string, options: ToolOptions, body: (span: Span) => A): A
  tool<A>(name: string, ...given: WithOptions<ToolOptions, Span, A>): A {
    const [{ input, recordsOutput, ...options }, body] = optionsAndBody(given)
    const metadata = { ...options.metadata, ...(input === undefined ? {} : { input }) }
    const span = this.startSpan(name, { ...options, metadata, type: "TOOL_CALL" })
    return around(this.parts.scope, span, body, (output) => {
      if (recordsOutput === true && output !== undefined) span.set({ output })
    })
  }

  /** Members of its metadata, which are sent with its end. */
  set(metadata: Details): void {
    this.#metadata = { ...this.#metadata, ...metadata }
  }

  /** End it. The first end counts. */
  end(options: EndOptions = {}): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.recordEnd(endOf(options), this.#metadata)
  }

  protected abstract recordEnd(end: End, metadata: Details): void
}

/** A step of a run, from its start to its end. */
export class Span extends Parent {
  constructor(parts: RunParts, parent: string | undefined, name: string, options: SpanOptions) {
    super(startSpan(parts, parent, name, options), parts)
  }

  override startSpan(name: string, options: SpanOptions = {}): Span {
    return new Span(this.parts, this.id, name, options)
  }

  /** Something that happens in the span, such as `llm.response` or `decision`. */
  event(type: string, payload?: Details): void {
    const { clock, scope } = this.parts
    scope.record({
      op: "span.event",
      span_id: this.id,
      id: newId(),
      event_type: type,
      timestamp: clock.now(),
      ...(payload === undefined ? {} : { payload })
    })
  }

  protected override recordEnd(end: End, metadata: Details): void {
    const { clock, scope } = this.parts
    const ended_at = clock.now()
    scope.record({ op: "span.end", span_id: this.id, ended_at, ...end, ...metadataOf(metadata) })
  }
}

/** One run of an agent, from its start to its end; spans that are still open end with it. */
export class Run extends Parent {
  constructor(agent: string, options: RunOptions, scope: Scope) {
    const { agentName, id = newId(), metadata, trigger } = options
    const clock = new RunClock()
    super(id, { id, clock, scope })
    scope.record({
      op: "execution.start",
      id,
      agent_id: agent,
      started_at: clock.now(),
      ...(agentName === undefined ? {} : { agent_name: agentName }),
      ...(trigger === undefined ? {} : { trigger }),
      ...metadataOf(metadata)
    })
  }

  override startSpan(name: string, options: SpanOptions = {}): Span {
    return new Span(this.parts, undefined, name, options)
  }

  protected override recordEnd({ error, status }: End, metadata: Details): void {
    const { clock, id, scope } = this.parts
    const all = error === undefined ? metadata : { ...metadata, error }
    const ended_at = clock.now()
    scope.record({ op: "execution.end", execution_id: id, ended_at, status, ...metadataOf(all) })
  }
}
