/** Projects `alk.traces`: the facts of executions, in the order of the chains. */
import { Effect } from "effect"
import type { ChainLink } from "../../domain/chain/ChainLink.ts"
import { RecordUnreadable } from "../../domain/json/RecordFields.ts"
import { type FactPlace, factMacOf, factPlaceOf } from "../../domain/records/FactPlace.ts"
import { parseTimestamp } from "../../domain/Timestamp.ts"
import { parseFact, type TraceFact } from "../../domain/traces/TraceFact.ts"
import type { LogRecord } from "../../ports/EventLog.ts"
import type { ConflictRow } from "../../ports/EventStore.ts"
import { FactMac } from "../../ports/FactMac.ts"
import { TraceStore } from "../../ports/TraceStore.ts"
import {
  addTo,
  bodyOf,
  conflictRow,
  insertAll,
  measured,
  type ProjectedTopic,
  refusalOf,
  type Segment,
  storeConflicts,
  strayReasonOf,
  tenantOf
} from "./ProjectedTopic.ts"
import { type ErasedExecution, isFactOf } from "./ProjectionErasure.ts"
import type { ChainLinks, Links } from "./ProjectionLinks.ts"
import { isGone } from "./RemovedChains.ts"

interface PlacedRow extends FactPlace {
  readonly body: Buffer
}

interface Rows {
  /** In order, cut before each fact that erases an execution. */
  readonly facts: Array<Segment<PlacedRow, ErasedExecution>>
  readonly conflicts: Array<ConflictRow>
}

/** What the store and its statements take as numbers and times has to be such. */
const checkFact = ({ chain_sequence, created_at, fact_number }: TraceFact): void => {
  const numbers = [chain_sequence, fact_number]
  if (numbers.some((number) => !Number.isSafeInteger(number) || number < 1)) {
    throw new RecordUnreadable("its numbers are none")
  }
  if (parseTimestamp(created_at) !== created_at) throw new RecordUnreadable("its time is none")
}

/** A fact in its place, or why it is not shown. */
const readFact = (links: Links, record: LogRecord, isOwn: boolean) => {
  const tenantId = tenantOf(record)
  try {
    const body = bodyOf(record)
    const fact = parseFact(body.toString())
    if (fact === undefined) throw new RecordUnreadable("it is no fact")
    checkFact(fact)
    const link: ChainLink = {
      tenantId: fact.tenant_id,
      sequenceNumber: fact.chain_sequence,
      createdAt: fact.created_at,
      contentHash: fact.content_hash,
      prevHash: fact.prev_hash,
      hash: fact.hash
    }
    const before = links.get(tenantId)
    const reason = isOwn ? refusalOf(link, tenantId, before) : strayReasonOf(link, tenantId, before)
    return reason === undefined
      ? { body, fact, link }
      : { reason, sequenceNumber: link.sequenceNumber }
  } catch {
    return { reason: "unreadable", sequenceNumber: 0 }
  }
}

/** A fact that is no part of its chain is kept apart, and verification reports it. */
const takeFact = (
  into: Rows,
  { own, removed, traces: links }: ChainLinks,
  partition: number,
  record: LogRecord
): void => {
  const { offset } = record
  const tenantId = tenantOf(record)
  const read = readFact(links, record, own(partition).isOwn("traces", offset))
  if (read.fact === undefined) {
    const { reason, sequenceNumber } = read
    if (isGone(removed, tenantId)) return
    into.conflicts.push(conflictRow(partition, record, reason, sequenceNumber))
    return
  }
  const { body, fact, link } = read
  links.set(tenantId, link)
  if (link.sequenceNumber <= removed(tenantId, "traces")) return
  const erase: ErasedExecution | undefined =
    fact.type === "execution.erased"
      ? {
          tenantId,
          executionId: fact.execution_id,
          beforeSequence: fact.chain_sequence,
          erasedAt: fact.created_at
        }
      : undefined
  addTo(into.facts, { ...factPlaceOf(fact, partition, offset), body }, erase)
}

const insertFacts = Effect.fnUntraced(function* ({ conflicts, facts }: Rows) {
  const store = yield* TraceStore
  const mac = yield* FactMac
  const marked = (rows: ReadonlyArray<PlacedRow>) =>
    rows.map((row) => {
      const { body, offset, partition } = row
      return { partition, offset, mac: factMacOf(mac, row), body }
    })
  for (const { erase, rows } of facts) {
    if (erase !== undefined) {
      const { beforeSequence, erasedAt, executionId, tenantId } = erase
      yield* store.eraseDetails(tenantId, executionId, beforeSequence, erasedAt)
    }
    yield* measured(rows.length, insertAll(marked(rows), store.insertFacts))
  }
  yield* storeConflicts("traces", conflicts, store.insertConflicts)
})

export const projectedFacts: ProjectedTopic = {
  topic: "traces",
  isRecord: isFactOf,
  begin: (links) => {
    const rows: Rows = { facts: [], conflicts: [] }
    return {
      take: (partition, record) => takeFact(rows, links, partition, record),
      store: Effect.suspend(() => insertFacts(rows))
    }
  }
}
