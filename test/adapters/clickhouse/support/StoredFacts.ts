/**
 * Facts of traces as the sequencer writes them, with real hashes, one chain per tenant, for tests
 * of the store.
 */
import { Context } from "effect"
import { canonicalize } from "../../../../src/domain/json/CanonicalJson.ts"
import type { JsonObject } from "../../../../src/domain/json/Json.ts"
import {
  factMacOf,
  factPlaceOf,
  type MarkedFact
} from "../../../../src/domain/records/FactPlace.ts"
import { factDetailsHash, parseFact, storeFact } from "../../../../src/domain/traces/FactText.ts"
import { chunksOf } from "../../../../src/domain/traces/Payload.ts"
import type {
  FactCore,
  FactDetails,
  TerminalStatus
} from "../../../../src/domain/traces/TraceFact.ts"
import { FactMac } from "../../../../src/ports/FactMac.ts"
import type { FactRow } from "../../../../src/ports/TraceStore.ts"
import { timeAt } from "./StoredBodies.ts"

export const GENESIS = "0".repeat(64)

/** A fact in the topic. */
export interface Placed {
  readonly executionId: string
  readonly type: FactCore["type"]
  readonly factNumber: number
  readonly chainSequence: number
  readonly offset: number
  readonly prevHash: string
  readonly hash: string
  readonly body: string
}

type Omitted<Core> = Core extends FactCore ? Omit<Core, "execution_id" | "fact_number"> : never
/** A fact without its place. */
export type Told = Omitted<FactCore>

const SALT = "5a".repeat(16)

/** The chain of one tenant. */
export class FactChain {
  readonly #numbers = new Map<string, number>()
  readonly all: Array<Placed> = []
  readonly tenantId: string
  readonly #firstOffset: number

  constructor(tenantId: string, firstOffset = 0) {
    this.tenantId = tenantId
    this.#firstOffset = firstOffset
  }

  /** The next fact of the execution has the number after this one. */
  numberFrom(executionId: string, factNumber: number): void {
    this.#numbers.set(executionId, factNumber)
  }

  add(executionId: string, told: Told, details?: FactDetails): Placed {
    const factNumber = (this.#numbers.get(executionId) ?? 0) + 1
    this.#numbers.set(executionId, factNumber)
    const chainSequence = this.all.length + 1
    const prevHash = this.all.at(-1)?.hash ?? GENESIS
    const text = details === undefined ? undefined : canonicalize(details as JsonObject)
    const { body, hash } = storeFact(
      { ...told, execution_id: executionId, fact_number: factNumber } as FactCore,
      text === undefined ? undefined : { text, salt: SALT, hash: factDetailsHash(SALT, text) },
      { tenantId: this.tenantId, chainSequence, createdAt: timeAt(chainSequence), prevHash }
    )
    const placed: Placed = {
      executionId,
      type: told.type,
      factNumber,
      chainSequence,
      offset: this.#firstOffset + chainSequence - 1,
      prevHash,
      hash,
      body
    }
    this.all.push(placed)
    return placed
  }

  start(
    executionId: string,
    over: Partial<Extract<Told, { type: "execution.started" }>> = {},
    details: FactDetails = { agent_name: "Agent", metadata: { secret: "start" } }
  ) {
    const started: Told = {
      type: "execution.started",
      agent_id: "agent",
      root_span_id: `root-${executionId}`,
      source: "api",
      started_at: timeAt(0),
      started_at_given: true,
      ...over
    }
    return this.add(executionId, started, details)
  }

  end(executionId: string, status: TerminalStatus = "COMPLETED", endedAt = timeAt(1)) {
    return this.add(executionId, { type: "execution.ended", status, ended_at: endedAt })
  }

  span(
    executionId: string,
    spanId: string,
    startedAt = timeAt(0),
    metadata: JsonObject = { secret: "span" },
    spanType = "TOOL_CALL"
  ) {
    const told: Told = {
      type: "span.started",
      span_id: spanId,
      parent_span_id: `root-${executionId}`,
      caused_by_span_ids: [],
      span_type: spanType,
      started_at: startedAt,
      started_at_given: true
    }
    return this.add(executionId, told, { name: `span ${spanId}`, metadata })
  }

  endSpan(executionId: string, spanId: string, metadata?: JsonObject) {
    const told: Told = {
      type: "span.ended",
      span_id: spanId,
      status: "FAILED",
      ended_at: timeAt(1)
    }
    const details = { error: "secret error" }
    return this.add(executionId, told, metadata === undefined ? details : { ...details, metadata })
  }

  /** A value in pieces. */
  payload(executionId: string, spanId: string, value: string) {
    return chunksOf(value).map((payload) =>
      this.add(executionId, { type: "span.payload", span_id: spanId }, { payload })
    )
  }

  event(executionId: string, spanId: string, sequence: number, payload: JsonObject = { n: 1 }) {
    const told: Told = {
      type: "span.event",
      span_id: spanId,
      event_id: `event-${executionId}-${sequence}`,
      event_type: "llm.request",
      sequence_number: sequence,
      timestamp: timeAt(sequence)
    }
    return this.add(executionId, told, { payload })
  }

  erase(executionId: string) {
    return this.add(executionId, {
      type: "execution.erased",
      reason: "asked for",
      erased_by: "key"
    })
  }
}

const mac = Context.get(Context.empty(), FactMac)

/** A stored fact as the sequencer is told of it. */
export const markedFact = (
  { body, offset }: Pick<Placed, "body" | "offset">,
  partition = 0
): MarkedFact => {
  const place = factPlaceOf(parseFact(body)!, partition, offset)
  return { ...place, mac: factMacOf(mac, place) }
}

export const factRows = (
  facts: ReadonlyArray<Pick<Placed, "body" | "offset">>,
  partition = 0
): ReadonlyArray<FactRow> =>
  facts.map((fact) => {
    const { body, offset } = fact
    const mac = parseFact(body) === undefined ? "" : markedFact(fact, partition).mac
    return { partition, offset, mac, body: Buffer.from(body, "utf8") }
  })

export const bodies = (facts: ReadonlyArray<Placed>): ReadonlyArray<string> =>
  facts.map(({ body }) => body)
