/** Projects `alk.traces`: the facts of executions, in the order of the chains. */

import { Effect } from "effect"
import type { ChainLink } from "../../domain/chain/ChainLink.ts"
import { RecordUnreadable } from "../../domain/json/RecordFields.ts"
import { addTo } from "../../domain/Lists.ts"
import { type FactPlace, factMacOf, factPlaceOf } from "../../domain/records/FactPlace.ts"
import { parseTimestamp } from "../../domain/Timestamp.ts"
import { parseFact } from "../../domain/traces/FactText.ts"
import type { TraceFact } from "../../domain/traces/TraceFact.ts"
import type { LogRecord } from "../../ports/EventLog.ts"
import type { ConflictRow } from "../../ports/EventStore.ts"
import { FactMac } from "../../ports/FactMac.ts"
import { type ExecutionErasure, TraceStore } from "../../ports/TraceStore.ts"
import {
  bodyOf,
  conflictRow,
  insertAll,
  measured,
  type ProjectedTopic,
  refusalOf,
  storeConflicts,
  strayReasonOf,
  tenantOf
} from "./ProjectedTopic.ts"
import { erasedFact, isFactOf } from "./ProjectionErasure.ts"
import type { ChainLinks, Links } from "./ProjectionLinks.ts"
import { isGone } from "./RemovedChains.ts"

interface PlacedRow extends FactPlace {
  body: Buffer
}

interface Rows {
  /** In order, without the details that a later one of them erases. */
  readonly facts: Array<PlacedRow>
  /** Those of them that may have details, by tenant and execution. */
  readonly withDetails: Map<string, Array<PlacedRow>>
  /** Erasures of what is stored already, by tenant. */
  readonly erasures: Map<string, Array<ExecutionErasure>>
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

/** Neither holds U+0000. */
const executionKey = (tenantId: string, executionId: string): string =>
  `${tenantId}\0${executionId}`

/**
 * What is stored already is erased before anything else is stored; rows that are not stored yet lose
 * their details here. So a thousand erasures are one, whatever facts are between them.
 */
const erase = (into: Rows, tenantId: string, fact: TraceFact): void => {
  const { chain_sequence: beforeSequence, created_at: erasedAt, execution_id: executionId } = fact
  const key = executionKey(tenantId, executionId)
  for (const row of into.withDetails.get(key) ?? []) {
    row.body = Buffer.from(erasedFact(row.body.toString(), erasedAt)!)
  }
  into.withDetails.delete(key)
  addTo(into.erasures, tenantId, { executionId, beforeSequence, erasedAt })
}

/** A fact that is not part of its chain is kept apart, and verification reports it. */
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
  const row = { ...factPlaceOf(fact, partition, offset), body }
  if (fact.type === "execution.erased") erase(into, tenantId, fact)
  else if (fact.details !== undefined) {
    addTo(into.withDetails, executionKey(tenantId, fact.execution_id), row)
  }
  into.facts.push(row)
}

const insertFacts = Effect.fnUntraced(function* ({ conflicts, erasures, facts }: Rows) {
  const store = yield* TraceStore
  const mac = yield* FactMac
  const marked = (rows: ReadonlyArray<PlacedRow>) =>
    rows.map((row) => {
      const { body, offset, partition } = row
      return { partition, offset, mac: factMacOf(mac, row), body }
    })
  // In this order nothing is lost when the projection ends in between: the erasure is done again
  // with the row that asks for it.
  for (const [tenantId, some] of erasures) yield* store.eraseDetails(tenantId, some)
  yield* measured(facts.length, insertAll(marked(facts), store.insertFacts))
  yield* storeConflicts("traces", conflicts, store.insertConflicts)
})

export const projectedFacts: ProjectedTopic = {
  topic: "traces",
  isRecord: isFactOf,
  begin: (links) => {
    const rows: Rows = { facts: [], withDetails: new Map(), erasures: new Map(), conflicts: [] }
    return {
      take: (partition, record) => takeFact(rows, links, partition, record),
      store: Effect.suspend(() => insertFacts(rows))
    }
  }
}
