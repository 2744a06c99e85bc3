/** What of a topic is erased by later records of it: what is stored again leaves their details out. */

import type { Own } from "../../domain/records/OwnOffsets.ts"
import { eraseFact, parseFact } from "../../domain/traces/FactText.ts"
import type { LogRecord } from "../../ports/EventLog.ts"
import type { StoredTopic } from "../../ports/TopicRows.ts"
import { linkOfRecord } from "../log/ChainRecord.ts"
import { bodyOf, tenantOf } from "./ProjectedTopic.ts"
import { erasedRecord, erasedTargetOf } from "./ProjectionErasure.ts"

export interface Erasures {
  /** Learn what a record erases. */
  readonly take: (record: LogRecord) => void
  /** The record as erasing has left it. */
  readonly apply: (record: LogRecord) => LogRecord
}

/** Two ids in one key; neither holds control characters. */
const SEPARATOR = "\n"

const withValue = (record: LogRecord, text: string | undefined): LogRecord =>
  text === undefined ? record : { ...record, value: Buffer.from(text) }

/** Of two erasures of one event the first counts. */
const ofEvents = (): Erasures => {
  const erasedAt = new Map<string, string>()
  const keyOf = (tenantId: string, sequence: number) => `${tenantId}${SEPARATOR}${sequence}`
  const target = (record: LogRecord) => {
    try {
      return linkOfRecord("events", record)?.tenantId === tenantOf(record)
        ? erasedTargetOf(bodyOf(record))
        : undefined
    } catch {
      // Bytes that no sequencer has written erase nothing.
      return undefined
    }
  }
  return {
    take: (record) => {
      const found = target(record)
      if (found === undefined) return
      const key = keyOf(tenantOf(record), found.sequenceNumber)
      if (!erasedAt.has(key)) erasedAt.set(key, found.erasedAt)
    },
    apply: (record) => {
      const link = linkOfRecord("events", record)
      const at = link && erasedAt.get(keyOf(link.tenantId, link.sequenceNumber))
      return at === undefined ? record : withValue(record, erasedRecord(String(record.value), at))
    }
  }
}

interface ErasedFacts {
  readonly before: number
  readonly erasedAt: string
}

/** Facts of an execution before the one that erases it. */
const ofFacts = (): Erasures => {
  const executions = new Map<string, Array<ErasedFacts>>()
  const MARK = Buffer.from('"execution.erased"')
  return {
    take: (record) => {
      if (record.value?.includes(MARK) !== true) return
      const fact = parseFact(record.value.toString())
      if (fact?.type !== "execution.erased" || fact.tenant_id !== tenantOf(record)) return
      const key = `${fact.tenant_id}${SEPARATOR}${fact.execution_id}`
      const known = executions.get(key) ?? []
      known.push({ before: fact.chain_sequence, erasedAt: fact.created_at })
      executions.set(key, known)
    },
    apply: (record) => {
      const fact = record.value === null ? undefined : parseFact(record.value.toString())
      if (fact?.details === undefined) return record
      const known = executions.get(`${fact.tenant_id}${SEPARATOR}${fact.execution_id}`) ?? []
      const by = known.find(({ before }) => fact.chain_sequence < before)
      return by === undefined ? record : withValue(record, eraseFact(fact, by.erasedAt))
    }
  }
}

/** What only looks like an erasure, because no sequencer wrote it, erases nothing. */
export const makeErasures = (topic: StoredTopic, own: Own): Erasures => {
  if (topic !== "events" && topic !== "traces") {
    return { take: () => undefined, apply: (record) => record }
  }
  const { apply, take } = topic === "events" ? ofEvents() : ofFacts()
  return {
    apply,
    take: (record) => {
      if (own.isOwn(topic, record.offset)) take(record)
    }
  }
}
