/**
 * What the sequencer remembers of an execution, made of what the store says of it. Whether it is in
 * memory already, or may have changed since, is not known here.
 */
import { eventsCountBefore, isMarked, type MarkedFact } from "../../../domain/records/FactPlace.ts"
import type { RecordMac } from "../../../domain/records/RecordMac.ts"
import type { Sliced } from "../../../domain/Slices.ts"
import { formatMicros } from "../../../domain/Timestamp.ts"
import { holdsItsHashes, parseFact } from "../../../domain/traces/FactText.ts"
import type { LoadedExecution } from "../../../ports/TraceStore.ts"
import { ExecutionEntry } from "./TraceEntry.ts"

/** Facts that are not loaded are counted, and not looked at. */
const isCounted = ({ factNumber, type }: MarkedFact, eventsBefore: number): boolean =>
  type === "span.payload" || (type === "span.event" && factNumber >= eventsBefore)

/** Facts of an execution that only holds values of an event: it never started. */
const holdsValues = ({ type }: MarkedFact): boolean =>
  type === "span.payload" || type === "execution.erased"

/**
 * The entry that loaded facts add up to: what their MACs cover has been checked. Undefined if they
 * are not those that were written. One fact in a step.
 */
export function* loadedEntry(
  { executionId, facts, marked, tenantId }: LoadedExecution,
  nowMicros: number
): Sliced<ExecutionEntry | undefined> {
  const entry = ExecutionEntry.empty(tenantId, executionId, nowMicros)
  const eventsBefore = eventsCountBefore(marked)
  const named = new Set<string>()
  for (const fact of marked) {
    if (!isCounted(fact, eventsBefore)) named.add(fact.hash)
    yield
  }
  for (const { body, detailsBytes: bytes, parentIsRemote, side } of facts) {
    yield
    const fact = parseFact(body)
    if (fact?.execution_id !== executionId || fact.tenant_id !== tenantId) return undefined
    if (!holdsItsHashes(fact) || !named.delete(fact.hash)) return undefined
    const { details_hash: hash, details_salt: salt } = fact
    entry.fold(fact, hash === undefined || salt === undefined ? undefined : { hash, salt, bytes })
    if (fact.type !== "span.started") continue
    if (parentIsRemote === true) entry.noteRemoteParent(fact.span_id)
    if (side !== undefined) entry.noteSide(fact.span_id, side)
  }
  const { header } = entry
  if (marked.every(holdsValues)) entry.holdValues(formatMicros(nowMicros))
  if (header.started_at === "" || named.size > 0) return undefined
  const numbers = new Set<number>()
  for (const { factNumber, offset, sequenceNumber } of marked) {
    header.fact_count = Math.max(header.fact_count, factNumber)
    header.event_count = Math.max(header.event_count, sequenceNumber)
    header.last_offset = Math.max(header.last_offset, offset)
    numbers.add(factNumber)
    yield
  }
  if (numbers.size !== header.fact_count) return undefined
  header.logged = "nowhere"
  entry.unlogged = new Set(entry.spans.keys())
  yield* entry.findMissing()
  return entry
}

/** The same, once every row that is said to be of it was seen to be written by this service. */
export function* checkedEntry(
  mac: RecordMac,
  loaded: LoadedExecution,
  nowMicros: number
): Sliced<ExecutionEntry | undefined> {
  for (const fact of loaded.marked) {
    if (!isMarked(mac, fact)) return undefined
    yield
  }
  return yield* loadedEntry(loaded, nowMicros)
}
