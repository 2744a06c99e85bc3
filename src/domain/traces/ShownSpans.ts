/** How facts of execution traces become the spans and nodes that answers show. */
import { microsOf } from "../Timestamp.ts"
import type { DecidedRepair, Repair } from "./Repairs.ts"
import type { TraceFact } from "./TraceFact.ts"
import type { Execution, GraphNode, Span } from "./TraceResources.ts"

/** Of the place of a fact in its chain, what no answer shows. */
type Unshown =
  | "chain_sequence"
  | "content_hash"
  | "details_hash"
  | "details_salt"
  | "hash"
  | "prev_hash"
  | "tenant_id"

/** What a fact says; of a span, it does not matter when that was chained. */
type Said<Fact> = Fact extends { readonly type: `span.${string}` }
  ? Omit<Fact, Unshown | "created_at">
  : Omit<Fact, Unshown>
export type SaidFact = Said<TraceFact>

export const saidOf = <Fact extends { readonly [Name in Unshown]?: unknown }>(
  fact: Fact
): Said<Fact> => {
  const {
    chain_sequence,
    content_hash,
    details_hash,
    details_salt,
    hash,
    prev_hash,
    tenant_id,
    ...said
  } = fact
  return said as Said<Fact>
}

type FactOf<Type extends SaidFact["type"]> = Extract<SaidFact, { readonly type: Type }>

const later = (left: string, right: string): string => (left > right ? left : right)

/** The facts of one span. */
interface FactsOfSpan {
  readonly started: FactOf<"span.started">
  readonly amendments: ReadonlyArray<FactOf<"span.amended">>
  readonly ended?: FactOf<"span.ended">
}

/** Said of every span that was sent with other content, and of both of two under one id. */
export const decidedRepairOf: Readonly<Record<DecidedRepair, Repair>> = {
  other_content: { code: "other_content", path: "span" },
  shared_id: { code: "shared_id", path: "span_id" }
}

/** True for an amendment that says nothing of the place of its span. */
const isContent = ({ parent_span_id, shared_span_id }: FactOf<"span.amended">): boolean =>
  parent_span_id === undefined && shared_span_id === undefined

/**
 * The span of these facts. Without an end of its own it ends with its execution; without a parent
 * it is the root, or a child of that.
 */
export const spanOf = (
  { amendments, ended, started }: FactsOfSpan,
  executionEnd: FactOf<"execution.ended"> | undefined,
  rootSpanId: string | undefined
): Span => {
  const { details, execution_id, span_id, started_at } = started
  // What the span said of its parent after it was moved counts.
  const moved = amendments.findLast(
    ({ fact_number, parent_span_id }) =>
      parent_span_id !== undefined && fact_number > started.fact_number
  )
  const sentParent = moved?.parent_span_id ?? started.parent_span_id
  const parentId = sentParent ?? (span_id === rootSpanId ? undefined : rootSpanId)
  const implied = ended === undefined ? executionEnd : undefined
  const status = ended?.status ?? implied?.status ?? "RUNNING"
  const endedAt = ended?.ended_at ?? (implied && later(implied.ended_at, started_at))
  const error = ended?.details?.error
  const erasedAt = started.erased_at ?? ended?.erased_at
  const isShared = amendments.some(({ shared_span_id }) => shared_span_id !== undefined)
  const repairs = [
    ...(details?.repairs ?? []),
    ...(amendments.some(isContent) ? [decidedRepairOf.other_content] : []),
    ...(isShared ? [decidedRepairOf.shared_id] : [])
  ]
  return {
    id: span_id,
    execution_id,
    ...(parentId === undefined ? {} : { parent_span_id: parentId }),
    caused_by_span_ids: started.caused_by_span_ids,
    span_type: started.span_type,
    name: details?.name ?? "",
    status,
    started_at,
    ...(endedAt === undefined ? {} : { ended_at: endedAt }),
    ...(error === undefined ? {} : { error }),
    metadata: { ...details?.metadata, ...ended?.details?.metadata },
    ...(repairs.length === 0 ? {} : { repairs }),
    ...(erasedAt === undefined ? {} : { erased_at: erasedAt })
  }
}

/** Represents the root of OpenTelemetry spans, which has not arrived. */
export const syntheticRootOf = (execution: Execution): Span => ({
  id: execution.root_span_id,
  execution_id: execution.id,
  caused_by_span_ids: [],
  span_type: "AGENT",
  name: execution.agent_name,
  status: execution.status,
  started_at: execution.started_at,
  ...(execution.ended_at === undefined ? {} : { ended_at: execution.ended_at }),
  metadata: {},
  synthetic: true
})

/** Represents a span that another one or an event names, but that was never sent. */
export const missingSpanOf = (id: string, parentId: string | undefined, namedBy: Span): Span => ({
  id,
  execution_id: namedBy.execution_id,
  ...(parentId === undefined ? {} : { parent_span_id: parentId }),
  caused_by_span_ids: [],
  span_type: "CUSTOM",
  name: id,
  status: "RUNNING",
  started_at: namedBy.started_at,
  metadata: {}
})

/** A span as a node. The members are in the order of RFC 8785, whose text is then written faster. */
export const nodeOf = (
  { ended_at, error, id, name, span_type, started_at, status, synthetic }: Span,
  depth: number,
  eventCount: number,
  isMissing: boolean
): GraphNode => ({
  depth,
  ...(ended_at === undefined
    ? {}
    : { duration_us: Math.max(0, microsOf(ended_at) - microsOf(started_at)), ended_at }),
  ...(error === undefined ? {} : { error }),
  event_count: eventCount,
  id,
  ...(isMissing ? { missing: true } : {}),
  name,
  started_at,
  status,
  ...(synthetic === true ? { synthetic: true } : {}),
  type: span_type
})
