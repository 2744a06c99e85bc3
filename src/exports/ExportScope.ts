/**
 * What an export covers, computed once: the bounds, the conditions, the head of the chain and the
 * finished verification. All parts of one export are made of one scope, so that they agree.
 */
import { Effect } from "effect"
import { Heads } from "../actors/follower/Heads.ts"
import type { Head } from "../domain/chain/Chains.ts"
import { treeNameOf } from "../domain/chain/Chains.ts"
import { defined } from "../domain/Defined.ts"
import { conditionsOf, type EventFilter } from "../domain/events/EventFilter.ts"
import { sha256Hex } from "../domain/Identifiers.ts"
import { canonicalize } from "../domain/json/CanonicalJson.ts"
import type { JsonObject } from "../domain/json/Json.ts"
import { currentTime } from "../domain/Timestamp.ts"
import { StoreUnavailable } from "../ports/EventStore.ts"
import { caughtUp } from "../verify/CaughtUp.ts"
import {
  HISTORY_FROM,
  HISTORY_TO,
  type TenantReport,
  Verifier,
  type VerifyReport,
  type VerifyRequest
} from "../verify/Verifier.ts"
import { withoutEventIds } from "../verify/VerifyReport.ts"
import { EvidenceSeal, type SealedTree, type SealKey } from "./EvidenceSeal.ts"

/** What an export can be; each has a format version of its own. */
export const exportFormats = {
  pack: "alk-evidence-pack-v2",
  "pack-without-pdf": "alk-evidence-pack-v2",
  pdf: "alk-audit-report-v2"
} as const
export type ExportKind = keyof typeof exportFormats

/** What is asked for: the filter holds the bounds too. */
export interface ExportRequest {
  readonly tenantId: string
  readonly filter: EventFilter
  /**
   * For readers who may see nothing that the filter does not select: without the execution traces of
   * the period, and without names and erasures of other events.
   */
  readonly eventsOnly?: boolean
}

/** The bounds of an export, which are those of its verification. */
export type Bounds = VerifyReport["bounds"]

/** What all parts of one export are made of. */
export interface ExportScope {
  readonly tenantId: string
  /** As it was asked for, bounds included. */
  readonly filter: EventFilter
  readonly bounds: Bounds
  /** The conditions other than the bounds, named as in the API; undefined if there are none. */
  readonly conditions: JsonObject | undefined
  /** The check of the whole span: `verified_at` is `generatedAt`, and no time is in it besides. */
  readonly verification: TenantReport
  /** Keys, checkpoints and traces. */
  readonly surroundings: Surroundings
  /** Canonical time: the only thing that differs between two exports of the same content. */
  readonly generatedAt: string
  /** As it was asked for. */
  readonly eventsOnly: boolean
}

/** What an export depends on besides the events: traces, keys, and the newest checkpoint. */
export interface Surroundings {
  /**
   * Head of the tenant's chain of trace facts: what came later is in none of its lists. Undefined
   * without any, or where the export leaves them out.
   */
  readonly traceHead: Pick<Head, "sequence_number" | "hash"> | undefined
  /** The line of keys: in both trees, who signs and what was handed over. */
  readonly keys: ReadonlyArray<SealKey>
  readonly signers: ReadonlyArray<SealedTree>
  /** Text of the newest checkpoint of the events, and of the trace facts. */
  readonly checkpoint: string | undefined
  readonly traceCheckpoint: string | undefined
}

/** How they are now; cheap, nothing is made for it. */
const surroundingsOf = Effect.fnUntraced(function* ({ eventsOnly, tenantId }: ExportRequest) {
  const heads = yield* Heads
  const seal = yield* EvidenceSeal
  const traceHead = eventsOnly === true ? undefined : yield* heads.traceHead(tenantId)
  const traceTree = treeNameOf(tenantId, "traces")
  const newest = (tree: string) =>
    Effect.map(seal.earlier(tree, Number.MAX_SAFE_INTEGER, 1), ([checkpoint]) => checkpoint?.note)
  const surroundings: Surroundings = {
    traceHead,
    keys: yield* seal.keys,
    signers: [yield* seal.signers(tenantId), yield* seal.signers(traceTree)],
    checkpoint: yield* newest(tenantId),
    traceCheckpoint: yield* newest(traceTree)
  }
  return surroundings
})

/** The bounds that a filter means: omitted ones are the full supported history. */
export const boundsOf = ({ from, fromSequence, to, toSequence }: EventFilter): Bounds => ({
  from: from ?? HISTORY_FROM,
  to: to ?? HISTORY_TO,
  from_sequence: fromSequence ?? null,
  to_sequence: toSequence ?? null
})

/** The conditions other than the bounds; undefined for none. */
export const conditionsBeside = (filter: EventFilter): JsonObject | undefined => {
  const conditions = conditionsOf(filter)
  return conditions.length === 0 ? undefined : Object.fromEntries(conditions)
}

const etagOf = (
  kind: ExportKind,
  { eventsOnly, filter, tenantId }: ExportRequest,
  headHash: string | undefined,
  { checkpoint, keys, signers, traceCheckpoint, traceHead }: Surroundings
): string => {
  const parts = {
    kind,
    format: exportFormats[kind],
    tenant_id: tenantId,
    ...(eventsOnly === true ? { events_only: true } : {}),
    bounds: boundsOf(filter) as unknown as JsonObject,
    conditions: conditionsBeside(filter) ?? null,
    head: headHash ?? null,
    trace_head: traceHead?.hash ?? null,
    keys: keys.map(({ endorsement, vkey }) => [vkey, endorsement ?? null]),
    signers: signers.map(({ handOvers, signer }) => [
      signer ?? null,
      handOvers.map(({ note }) => note)
    ]),
    checkpoint: checkpoint ?? null,
    trace_checkpoint: traceCheckpoint ?? null
  }
  return `W/"${sha256Hex(canonicalize(parts)).slice(0, 32)}"`
}

/** How long it took is no property of the content. */
const timeless = (report: TenantReport, bounds: Bounds, generatedAt: string): TenantReport => {
  const times = { verified_at: generatedAt, duration_ms: 0 }
  const { traces } = report
  const ofTraces = traces === undefined ? {} : { traces: { ...traces, ...times } }
  return { ...report, bounds, ...times, ...ofTraces }
}

/** The weak ETag that an export would have now. Cheap: nothing of it is made. */
export const currentEtag = Effect.fn("ExportScope.currentEtag")(function* (
  kind: ExportKind,
  request: ExportRequest
) {
  const heads = yield* Heads
  const head = yield* heads.head(request.tenantId)
  return etagOf(kind, request, head?.hash, yield* surroundingsOf(request))
})

/** The weak ETag of an export of this scope. */
export const scopeEtag = (kind: ExportKind, scope: ExportScope): string =>
  etagOf(kind, scope, scope.verification.head?.hash, scope.surroundings)

/**
 * Verify the span that the bounds mean and fix the scope of an export; fails if the verification
 * can't be finished. `onProgress` is told how far the verification of the events has come.
 */
export const openScope = Effect.fn("ExportScope.open")(function* (
  request: ExportRequest,
  onProgress?: VerifyRequest["onProgress"]
) {
  const verifier = yield* Verifier
  const generatedAt = currentTime()
  const { eventsOnly = false, filter, tenantId } = request
  const { from, fromSequence, to, toSequence } = filter
  // The end of the supported history bounds nothing: the part goes on to the head.
  const bounds = { from, to: to === HISTORY_TO ? undefined : to, fromSequence, toSequence }
  const report = yield* verifier.verifyTenant({
    tenantId,
    requireHead: true,
    ...bounds,
    ...(eventsOnly ? { chain: "events" as const } : {}),
    ...defined({ onProgress })
  })
  if ([report.status, report.traces?.status].includes("incomplete")) {
    const cause = new Error("the chain could not be verified to its end")
    return yield* new StoreUnavailable({ operation: "verify for an export", cause })
  }
  const surroundings = yield* surroundingsOf(request)
  // The traces up to that head are what the export says it holds.
  if (surroundings.traceHead !== undefined) yield* caughtUp(tenantId, "traces")
  const scope: ExportScope = {
    tenantId,
    filter,
    bounds: boundsOf(filter),
    conditions: conditionsBeside(filter),
    verification: timeless(
      eventsOnly ? withoutEventIds(report) : report,
      boundsOf(filter),
      generatedAt
    ),
    surroundings,
    generatedAt,
    eventsOnly
  }
  return scope
})

/** The events of a scope; what was appended after its verification is not among them. */
export const eventsOf = ({ filter, verification }: ExportScope): EventFilter => ({
  ...filter,
  toSequence: Math.min(filter.toSequence ?? Infinity, verification.last_sequence_number ?? 0)
})
