/**
 * Edges that were not recorded, but follow from metadata and times of the spans: each with the rule
 * that has found it. They are found when a graph is read, so they are outside of hash, chain and
 * digest. Never where a recorded edge leads from and to the same spans, and never against the
 * recorded ones: both together have no cycle that those alone don't have.
 */

import { Schema } from "effect"
import { addTo } from "../Lists.ts"
import type { Sliced } from "../Slices.ts"
import { countWhile } from "../SortedLists.ts"
import { type GraphHints, hintsOf } from "./GraphHints.ts"
import {
  childrenOf,
  edgeIdOf,
  isBefore,
  ordered,
  type Pair,
  pairLength,
  type SpanGraph
} from "./SpanGraph.ts"
import type { Span } from "./TraceResources.ts"

export const inferenceRules = [
  "tool_call",
  "tool_result",
  "graph_node",
  "langgraph_trigger",
  "langgraph_step",
  "timing"
] as const
export type InferenceRule = (typeof inferenceRules)[number]

export const InferenceRule = Schema.Literals(inferenceRules).annotate({
  description:
    "What has told of it. `tool_call`: the model asked for the call of the tool; `tool_result`: it "
    + "was given the result; `graph_node`: `graph.node.parent_id`; `langgraph_trigger`, "
    + "`langgraph_step`: the triggers, or else the steps, of LangGraph; `timing`: siblings that "
    + "ran one after the other, where nothing else says what the second one follows from."
})

export const InferredEdge = Schema.Struct({
  id: Schema.String,
  source: Schema.String,
  target: Schema.String,
  type: Schema.Literal("inferred"),
  rule: InferenceRule
}).annotate({ identifier: "InferredDagEdge" })
export type InferredEdge = typeof InferredEdge.Type

/** Inferred edges of one graph at most, as many as it may have recorded ones. */
export const INFERRED_EDGES_MAX = 50_000
/** Characters of their ids at most, as for the recorded ones. */
const INFERRED_TEXT_MAX = 16 * 1_048_576

interface Found extends Pair {
  readonly rule: InferenceRule
}

/** Ids hold no U+0000. */
const keyOf = ({ source, target }: Pair): string => `${source}\0${target}`

/** Collects edges: the first rule that finds one keeps it. */
class Findings {
  readonly #known: Set<string>
  readonly edges: Array<Found> = []
  isCut = false
  #text = 0

  constructor(recorded: ReadonlyArray<Pair>) {
    this.#known = new Set(recorded.map(keyOf))
  }

  /** False when there are too many. */
  add(source: Span, target: Span, rule: InferenceRule): boolean {
    const found = { source: source.id, target: target.id, rule }
    const key = keyOf(found)
    if (source.id === target.id || this.#known.has(key)) return true
    const length = this.#text + pairLength(found)
    this.isCut ||= this.edges.length >= INFERRED_EDGES_MAX || length > INFERRED_TEXT_MAX
    if (this.isCut) return false
    this.#text = length
    this.#known.add(key)
    this.edges.push(found)
    return true
  }
}

/** A span and what its metadata says. */
interface Hinted {
  readonly span: Span
  readonly hints: GraphHints
}

/** Spans above a call that are looked at for others with the same id. */
const LEVELS_MAX = 8
/** Askers that are looked at for one that had ended. */
const ASKERS_MAX = 16

/**
 * Model calls by the ids in them, in the order of their starts: below each span above them, and all.
 * Only those ids that some span has as a call of a tool.
 */
class CallIds {
  readonly #spans: ReadonlyMap<string, Span>
  readonly #called: ReadonlySet<string>
  readonly #byPlace = new Map<string, Array<Span>>()

  constructor(spans: ReadonlyMap<string, Span>, called: ReadonlySet<string>) {
    this.#spans = spans
    this.#called = called
  }

  add(id: string, span: Span): void {
    if (!this.#called.has(id)) return
    for (const place of this.#placesOf(span)) addTo(this.#byPlace, `${place}\0${id}`, span)
  }

  /** Those with the id, the nearest around a span first. */
  around(id: string, span: Span): ReadonlyArray<ReadonlyArray<Span>> {
    return this.#placesOf(span).flatMap((place) => {
      const found = this.#byPlace.get(`${place}\0${id}`)
      return found === undefined ? [] : [found]
    })
  }

  /** The spans above, the nearest first, and the whole graph. */
  #placesOf(span: Span): ReadonlyArray<string> {
    const places: Array<string> = []
    let above = span.parent_span_id
    while (above !== undefined && places.length < LEVELS_MAX) {
      places.push(above)
      above = this.#spans.get(above)?.parent_span_id
    }
    return [...places, ""]
  }
}

/** Of those that began before a span, the last that had ended by then, or else the last. */
const askerOf = (askers: ReadonlyArray<Span>, { started_at }: Span): Span | undefined => {
  const before = countWhile(askers, (asker) => asker.started_at <= started_at)
  for (let at = before - 1; at >= Math.max(0, before - ASKERS_MAX); at--) {
    const { ended_at } = askers[at]!
    if (ended_at !== undefined && ended_at <= started_at) return askers[at]
  }
  return askers[before - 1]
}

const receiverOf = (receivers: ReadonlyArray<Span>, from: string): Span | undefined =>
  receivers[countWhile(receivers, ({ started_at }) => started_at < from)]

const firstOf = <A>(
  lists: ReadonlyArray<ReadonlyArray<Span>>,
  find: (spans: ReadonlyArray<Span>) => A | undefined
): A | undefined => {
  for (const list of lists) {
    const found = find(list)
    if (found !== undefined) return found
  }
  return undefined
}

/**
 * From the last model call that asked for a tool call before it began, and to the first one that
 * began with the result. Ids may come again, as some models number the calls of each answer, and
 * agents run side by side: those below the nearest common span come first.
 */
function* findToolCalls(byStart: ReadonlyArray<Hinted>, findings: Findings): Sliced<void> {
  const spans = new Map(byStart.map(({ span }) => [span.id, span]))
  const calls = byStart.flatMap(({ hints: { toolCallId }, span }) =>
    span.span_type === "TOOL_CALL" && toolCallId !== undefined ? [toolCallId] : []
  )
  const called = new Set(calls)
  const asking = new CallIds(spans, called)
  const answered = new CallIds(spans, called)
  for (const { hints, span } of byStart) {
    yield
    if (span.span_type !== "LLM_CALL") continue
    for (const id of hints.asked) asking.add(id, span)
    for (const id of hints.answered) answered.add(id, span)
  }
  for (const { hints, span } of byStart) {
    yield
    const { toolCallId } = hints
    if (span.span_type !== "TOOL_CALL" || toolCallId === undefined) continue
    const askers = asking.around(toolCallId, span)
    // Clocks of different machines may disagree.
    const asker = firstOf(askers, (some) => askerOf(some, span)) ?? askers[0]?.[0]
    if (asker !== undefined) findings.add(asker, span, "tool_call")
    const receivers = answered.around(toolCallId, span)
    const startingFrom = (time: string) => firstOf(receivers, (some) => receiverOf(some, time))
    const receiver = startingFrom(span.ended_at ?? span.started_at) ?? startingFrom(span.started_at)
    if (receiver !== undefined) findings.add(span, receiver, "tool_result")
  }
}

/**
 * Spans that say more than the span above them: what is inside of a node says the same as the node,
 * because instrumentations pass it on.
 */
const outermost = (
  byStart: ReadonlyArray<Hinted>,
  said: (hints: GraphHints) => string | undefined
): ReadonlyArray<Hinted> => {
  const texts = new Map(byStart.map(({ hints, span }) => [span.id, said(hints)]))
  return byStart.filter(({ span }) => {
    const own = texts.get(span.id)
    return own !== undefined && own !== texts.get(span.parent_span_id ?? "")
  })
}

/** From the last span of the node that is named as the parent. */
const findGraphNodes = (byStart: ReadonlyArray<Hinted>, findings: Findings): void => {
  const nodes = outermost(byStart, ({ nodeId, parentNodeId }) =>
    nodeId === undefined ? undefined : JSON.stringify([nodeId, parentNodeId])
  )
  const byNode = new Map<string, Array<Span>>()
  for (const { hints, span } of nodes) addTo(byNode, hints.nodeId!, span)
  for (const { hints, span } of nodes) {
    if (hints.parentNodeId === undefined) continue
    const sources = byNode.get(hints.parentNodeId) ?? []
    const before = countWhile(sources, (source) => isBefore(source, span))
    const source = sources[before - 1]
    if (source !== undefined) findings.add(source, span, "graph_node")
  }
}

/** Spans of one step. */
interface StepSpans {
  readonly step: number
  readonly spans: Array<Span>
}

const lastBefore = (steps: ReadonlyArray<StepSpans>, step: number): ReadonlyArray<Span> =>
  steps[countWhile(steps, (one) => one.step < step) - 1]?.spans ?? []

/** Nodes that the name of a channel may mean: `a`, `branch:a:condition:b`, `join:a+b:c`. */
const nodesOf = (trigger: string): ReadonlyArray<string> => {
  const [kind, from = ""] = trigger.split(":")
  if (kind === "join") return from.split("+")
  return kind === "branch" ? [from] : [trigger]
}

const isStart = (trigger: string): boolean =>
  trigger === "__start__" || trigger.startsWith("start:")

/** From the nodes that the triggers name, as they ran last, or else from all of the step before. */
const findSteps = (siblings: ReadonlyArray<Hinted>, findings: Findings): void => {
  const steps: Array<StepSpans> = []
  const byNode = new Map<string, Array<StepSpans>>()
  const placed = siblings
    .map(({ hints, span }) => ({ span, place: hints.langGraph! }))
    .sort((left, right) => left.place.step - right.place.step)
  const append = (list: Array<StepSpans>, step: number, span: Span): void => {
    const last = list.at(-1)
    if (last?.step === step) last.spans.push(span)
    else list.push({ step, spans: [span] })
  }
  for (const { place, span } of placed) {
    append(steps, place.step, span)
    const ofNode = byNode.get(place.node)
    if (ofNode === undefined) byNode.set(place.node, [{ step: place.step, spans: [span] }])
    else append(ofNode, place.step, span)
  }
  for (const { place, span } of placed) {
    const { step, triggers } = place
    const named = [...new Set(triggers.flatMap(nodesOf))].filter((node) => byNode.has(node))
    if (named.length === 0 && triggers.length > 0 && triggers.every(isStart)) continue
    const rule = named.length === 0 ? "langgraph_step" : "langgraph_trigger"
    const sources =
      named.length === 0
        ? lastBefore(steps, step)
        : named.flatMap((node) => lastBefore(byNode.get(node)!, step))
    if (!sources.every((source) => findings.add(source, span, rule))) return
  }
}

/** Steps count within one run of a graph, whose nodes have the same span above them. */
const findLangGraph = (byStart: ReadonlyArray<Hinted>, findings: Findings): void => {
  const nodes = outermost(byStart, ({ langGraph }) =>
    langGraph === undefined ? undefined : JSON.stringify([langGraph.node, langGraph.step])
  )
  const runs = new Map<string | undefined, Array<Hinted>>()
  for (const node of nodes) addTo(runs, node.span.parent_span_id, node)
  for (const siblings of runs.values()) findSteps(siblings, findings)
}

/** Between neighbours that overlap none of their siblings, as long as the second one needs it. */
const findSequences = (
  { missing, order }: SpanGraph,
  isExplained: (target: Span) => boolean,
  findings: Findings
): void => {
  for (const children of childrenOf(order).values()) {
    const siblings = children
      .filter(({ id }) => !missing.has(id))
      .sort((left, right) => (isBefore(left, right) ? -1 : 1))
    let end = ""
    /** The one before, if it was alone. */
    let before: Span | undefined
    for (const [at, span] of siblings.entries()) {
      const next = siblings[at + 1]
      const ownEnd = span.ended_at
      const isLast = next === undefined
      const endsInTime = isLast || (ownEnd !== undefined && ownEnd <= next.started_at)
      const isAlone = end <= span.started_at && endsInTime && next?.started_at !== span.started_at
      if (isAlone && before !== undefined && !isExplained(span)) {
        if (!findings.add(before, span, "timing")) return
      }
      before = isAlone ? span : undefined
      // What runs overlaps everything that begins later.
      end = ownEnd === undefined ? "~" : ownEnd > end ? ownEnd : end
    }
  }
}

/** What was found, and whether it is all that there is to find. */
export interface Inferred {
  readonly edges: ReadonlyArray<InferredEdge>
  readonly isComplete: boolean
}

/** A part of one span in a step, once what they say is read. */
export function* inferEdges(graph: SpanGraph): Sliced<Inferred> {
  const { edges, order, spans } = graph
  const findings = new Findings(edges)
  yield
  const byStart: Array<Hinted> = []
  for (const span of order.toSorted((left, right) => (isBefore(left, right) ? -1 : 1))) {
    yield
    byStart.push({ span, hints: hintsOf(span) })
  }
  yield* findToolCalls(byStart, findings)
  yield
  findGraphNodes(byStart, findings)
  yield
  findLangGraph(byStart, findings)
  yield
  // An order in which every recorded edge leads forward, and of the others as many as can.
  const recorded = new Map(order.map(({ id }, place) => [id, place]))
  const isEarlier = (left: Span, right: Span) => recorded.get(left.id)! < recorded.get(right.id)!
  const together = yield* ordered(spans, [...edges, ...findings.edges], undefined, isEarlier)
  const places = new Map(together.map(({ id }, place) => [id, place]))
  const leadsForward = ({ source, target }: Pair) => places.get(source)! < places.get(target)!
  const explained = new Set(findings.edges.filter(leadsForward).map(({ target }) => target))
  const isExplained = ({ caused_by_span_ids, id }: Span) =>
    caused_by_span_ids.length > 0 || explained.has(id)
  findSequences(graph, isExplained, findings)
  yield
  const found = findings.edges.filter(leadsForward).map(
    ({ rule, source, target }): InferredEdge => ({
      id: edgeIdOf("inferred", { source, target }),
      source,
      target,
      type: "inferred",
      rule
    })
  )
  return { edges: found, isComplete: !findings.isCut }
}
