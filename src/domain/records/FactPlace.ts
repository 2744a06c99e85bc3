/**
 * Which fact of which execution a stored row is, and the MAC that says so. The store may be changed
 * by others, and the hashes of a fact hold no secret: what the sequencer continues an execution by
 * has to be what this service has written.
 */
import type { FactType } from "../traces/FactText.ts"
import type { TraceFact } from "../traces/TraceFact.ts"
import type { RecordMac } from "./RecordMac.ts"

export interface FactPlace {
  readonly tenantId: string
  readonly executionId: string
  readonly factNumber: number
  readonly type: FactType
  /** Of an event among those of its execution, 0 of other facts. */
  readonly sequenceNumber: number
  /** Of the fact, in the chain. */
  readonly hash: string
  /** On `alk.traces`. */
  readonly partition: number
  readonly offset: number
}

/** A stored row, and the MAC that it has. */
export interface MarkedFact extends FactPlace {
  readonly mac: string
}

/**
 * Of the facts of an execution, by number, the one before which its events say how it has ended: that
 * of its first span. 0 where no end came before.
 */
export const eventsCountBefore = (facts: ReadonlyArray<FactPlace>): number => {
  const first =
    facts.find(({ type }) => type === "span.started")?.factNumber ?? Number.POSITIVE_INFINITY
  const isEarly = ({ factNumber, type }: FactPlace) =>
    type === "execution.ended" && factNumber < first
  return facts.some(isEarly) ? first : 0
}

export const factPlaceOf = (fact: TraceFact, partition: number, offset: number): FactPlace => ({
  tenantId: fact.tenant_id,
  executionId: fact.execution_id,
  factNumber: fact.fact_number,
  type: fact.type,
  sequenceNumber: fact.type === "span.event" ? fact.sequence_number : 0,
  hash: fact.hash,
  partition,
  offset
})

/** In the place of a topic's name: no topic has this one, all have a prefix. */
const FACTS = "facts"
const HEX_DIGITS = 16

/** 16 hex digits, the first of the HMAC-SHA256. */
export const factMacOf = (
  mac: RecordMac,
  { executionId, factNumber, hash, offset, partition, sequenceNumber, tenantId, type }: FactPlace
): string =>
  mac
    .of({
      topic: FACTS,
      partition,
      offset,
      // Neither holds U+0000.
      key: `${tenantId}\0${executionId}`,
      value: hash,
      headers: { number: String(factNumber), type, sequence: String(sequenceNumber) }
    })
    .slice(0, HEX_DIGITS)

/** Whether this service has written the row. */
export const isMarked = (mac: RecordMac, fact: MarkedFact): boolean =>
  factMacOf(mac, fact) === fact.mac
