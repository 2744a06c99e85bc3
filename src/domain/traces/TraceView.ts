/**
 * What the facts of one execution add up to: the execution, its spans and their events as answers
 * show them. Facts come in the order of their numbers; nothing is decided here, the sequencer has.
 */

import { firstAbove } from "../SortedLists.ts"
import { type SaidFact, spanOf, syntheticRootOf } from "./ShownSpans.ts"
import type { TraceFact } from "./TraceFact.ts"
import type { Execution, Span, TraceEvent } from "./TraceResources.ts"

/** What one fact has changed. */
export interface TraceChange {
  readonly execution: boolean
  readonly spans: ReadonlyArray<string>
  readonly event?: TraceEvent
}

type Started = Extract<SaidFact, { readonly type: "execution.started" }>
type Erased = Extract<SaidFact, { readonly type: "execution.erased" }>
type Ended = Extract<SaidFact, { readonly type: "execution.ended" }>
type SpanStarted = Extract<SaidFact, { readonly type: "span.started" }>
type SpanAmended = Extract<SaidFact, { readonly type: "span.amended" }>
type SpanEnded = Extract<SaidFact, { readonly type: "span.ended" }>

interface SpanFacts {
  readonly started: SpanStarted
  amendments: ReadonlyArray<SpanAmended>
  ended?: SpanEnded
}

export const toTraceEvent = (
  fact: Extract<SaidFact, { readonly type: "span.event" }>
): TraceEvent => ({
  id: fact.event_id,
  execution_id: fact.execution_id,
  span_id: fact.span_id,
  sequence_number: fact.sequence_number,
  event_type: fact.event_type,
  timestamp: fact.timestamp,
  ...(fact.details?.payload === undefined ? {} : { payload: fact.details.payload }),
  ...(fact.erased_at === undefined ? {} : { erased_at: fact.erased_at })
})

/** What was sent besides may be large, and is not shown. */
const withoutPayload = ({ details: _, ...fact }: SpanAmended): SpanAmended => fact

/** What an amendment says, as far as a later one that says the same replaces it. */
const kindOf = ({ parent_span_id, shared_span_id }: SpanAmended): string =>
  `${parent_span_id !== undefined} ${shared_span_id !== undefined}`

/** Those that count once another one has come: of each kind the last, in order. */
const amendedBy = (
  amendments: ReadonlyArray<SpanAmended>,
  next: SpanAmended
): ReadonlyArray<SpanAmended> => [
  ...amendments.filter((one) => kindOf(one) !== kindOf(next)),
  withoutPayload(next)
]

/** Mutable; one per execution, and it never looks at another's facts. */
export class TraceView {
  /** When it was first heard of. */
  #createdAt: string | undefined
  #started: Started | undefined
  #ended: Ended | undefined
  /** By their numbers. What came before one of them is shown without its details. */
  readonly #erasures: Array<Erased> = []
  readonly #spans = new Map<string, SpanFacts>()

  /** Undefined before the first fact. */
  get execution(): Execution | undefined {
    if (this.#started === undefined || this.#createdAt === undefined) return undefined
    const { agent_id, details, execution_id, root_span_id, started_at } = this.#shown(this.#started)
    const ended = this.#ended && this.#shown(this.#ended)
    const erasedAt = this.#erasures.at(-1)?.created_at
    return {
      id: execution_id,
      agent_id,
      agent_name: details?.agent_name ?? agent_id,
      status: ended?.status ?? "RUNNING",
      root_span_id,
      ...(details?.trigger === undefined ? {} : { trigger: details.trigger }),
      started_at,
      ...(ended === undefined ? {} : { ended_at: ended.ended_at }),
      metadata: { ...details?.metadata, ...ended?.details?.metadata },
      created_at: this.#createdAt,
      ...(erasedAt === undefined ? {} : { erased_at: erasedAt })
    }
  }

  /** In the order of their arrival; a root that has not arrived comes first. */
  get spans(): ReadonlyArray<Span> {
    const spans = [...this.#spans.values()].map((facts) => this.#spanOf(facts))
    const root = this.syntheticRoot
    return root === undefined ? spans : [root, ...spans]
  }

  span(id: string): Span | undefined {
    const facts = this.#spans.get(id)
    if (facts !== undefined) return this.#spanOf(facts)
    const root = this.syntheticRoot
    return root?.id === id ? root : undefined
  }

  /** Let go of a span: what is asked of it from then on has no answer. */
  forget(id: string): void {
    this.#spans.delete(id)
  }

  take(fact: SaidFact): TraceChange {
    switch (fact.type) {
      case "execution.started":
        this.#createdAt ??= fact.created_at
        this.#started = fact
        return { execution: true, spans: this.#underRoot(fact) }
      case "execution.ended": {
        this.#ended = fact
        return { execution: true, spans: this.#running() }
      }
      case "execution.resumed":
        this.#ended = undefined
        return { execution: true, spans: this.#running() }
      case "execution.erased":
        this.#erasures.push(fact)
        return { execution: true, spans: [] }
      case "span.started":
        this.#spans.set(fact.span_id, {
          started: fact,
          amendments: this.#spans.get(fact.span_id)?.amendments ?? []
        })
        return { execution: false, spans: [fact.span_id] }
      case "span.amended":
      case "span.ended": {
        const facts = this.#spans.get(fact.span_id)
        if (facts === undefined) return { execution: false, spans: [] }
        if (fact.type === "span.ended") facts.ended = fact
        else facts.amendments = amendedBy(facts.amendments, fact)
        return { execution: false, spans: [fact.span_id] }
      }
      case "span.event":
        return { execution: false, spans: [], event: toTraceEvent(fact) }
      case "span.payload":
        return { execution: false, spans: [] }
    }
  }

  #spanOf({ amendments, ended, started }: SpanFacts): Span {
    const shown = {
      started: this.#shown(started),
      amendments,
      ...(ended === undefined ? {} : { ended: this.#shown(ended) })
    }
    return spanOf(shown, this.#ended, this.#started?.root_span_id)
  }

  /** A fact as the first erasure after it leaves it. */
  #shown<Fact extends Ended | SpanEnded | SpanStarted | Started>(fact: Fact): Fact {
    if (fact.details === undefined) return fact
    const numberOf = ({ fact_number }: Erased) => fact_number
    const erasure = firstAbove(this.#erasures, numberOf, fact.fact_number)
    if (erasure === undefined) return fact
    const { details: _, ...rest } = fact
    return { ...rest, erased_at: erasure.created_at } as Fact
  }

  /** Spans without an end of their own. */
  #running(): ReadonlyArray<string> {
    const running = [...this.#spans.values()].filter(({ ended }) => ended === undefined)
    return running.map(({ started }) => started.span_id)
  }

  /** Spans whose parent is the root because they have none, and the root if it is synthetic. */
  #underRoot({ provisional, root_span_id }: Started): ReadonlyArray<string> {
    const parentless = [...this.#spans.values()].flatMap(({ started }) =>
      started.parent_span_id === undefined ? [started.span_id] : []
    )
    return provisional === true ? [root_span_id, ...parentless] : parentless
  }

  /** Represents the root of spans whose real root has not arrived. */
  get syntheticRoot(): Span | undefined {
    const execution = this.execution
    if (execution === undefined || this.#started?.provisional !== true) return undefined
    return syntheticRootOf(execution)
  }
}

/** The view of facts that are there already. */
export const foldFacts = (facts: Iterable<TraceFact>): TraceView => {
  const view = new TraceView()
  for (const fact of facts) view.take(fact)
  return view
}
