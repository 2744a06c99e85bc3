/**
 * The runs of one client. Where the runtime has a context that follows calls, the span that is open
 * is found by itself; elsewhere spans are started on the handle of a run or span.
 */
import { type AsyncContext, makeAsyncContext } from "../Environment.ts"
import {
  around,
  type Open,
  optionsAndBody,
  Run,
  type RunOptions,
  type Scope,
  type Span,
  type SpanOptions,
  type ToolOptions,
  type TraceOperation,
  type WithOptions
} from "./Span.ts"

const makeScope = (
  context: AsyncContext<Open> | undefined,
  record: (operation: TraceOperation) => void
): Scope => ({
  record,
  within: (open, body) => (context === undefined ? body() : context.run(open, body))
})

export class Tracing {
  readonly #context: AsyncContext<Open> | undefined
  readonly #scope: Scope

  /** `context` is for tests; undefined is a runtime that has none. */
  constructor(
    record: (operation: TraceOperation) => void,
    context: AsyncContext<Open> | undefined = makeAsyncContext()
  ) {
    this.#context = context
    this.#scope = makeScope(context, record)
  }

  /** The run or span that is open here; undefined outside of one, or without a context of calls. */
  get open(): Open | undefined {
    return this.#context?.getStore()
  }

  startRun(agent: string, options: RunOptions = {}): Run {
    return new Run(agent, options, this.#scope)
  }

  run<A>(agent: string, ...given: WithOptions<RunOptions, Run, A>): A {
    const [options, body] = optionsAndBody(given)
    return around(this.#scope, this.startRun(agent, options), body)
  }

  span<A>(name: string, ...given: WithOptions<SpanOptions, Span, A>): A {
    const [options, body] = optionsAndBody(given)
    return this.#below(name, (open) => open.span(name, options, body))
  }

  tool<A>(name: string, ...given: WithOptions<ToolOptions, Span, A>): A {
    const [options, body] = optionsAndBody(given)
    return this.#below(name, (open) => open.tool(name, options, body))
  }

  /** Outside of a run it is a run of its own, so that it is recorded all the same. */
  #below<A>(name: string, body: (open: Open) => A): A {
    const { open } = this
    return open === undefined ? this.run(name, body) : body(open)
  }
}
