/**
 * Which records of a partition of `alk.traces` have to lose their details: the facts of an execution
 * before one that says that it was erased, the pieces of large values among them. Only a fact that
 * continues its chain and recomputes counts.
 */

import type { RecordFate, TransactionOutcome } from "../records/RecordFate.ts"
import { firstAbove } from "../SortedLists.ts"
import { eraseFact, parseFact, recomputeFact } from "../traces/FactText.ts"
import type { TraceFact } from "../traces/TraceFact.ts"
import { ChainOrder, type ForgettingTopic, madeIn, type TopicRecord } from "./ForgettingTopic.ts"

interface Erased {
  /** The facts before this one of the chain lose their details. */
  readonly beforeSequence: number
  readonly erasedAt: string
}

/** What a tenant has erased. */
interface OfTenant {
  /** By execution, in the order of the chain. */
  readonly executions: Map<string, Array<Erased>>
  /** Spans of these executions: some operations name nothing else. Complete when all fates are said. */
  readonly spans: Set<string>
}

const MARK = Buffer.from('"type":"execution.erased"')

const genuineErasure = (body: string) => {
  const found = recomputeFact(body)
  if (found?.exact !== true || found.fact.type !== "execution.erased") return undefined
  const { contentHash, fact, hash } = found
  return fact.content_hash === contentHash && fact.hash === hash ? fact : undefined
}

const spanOf = (fact: TraceFact): string | undefined =>
  "span_id" in fact ? fact.span_id : "root_span_id" in fact ? fact.root_span_id : undefined

export class ErasedFacts implements ForgettingTopic {
  readonly #order: ChainOrder
  readonly #tenants = new Map<string, OfTenant>()
  /** Erasures of executions that count. */
  erasures = 0

  /** `isCut`: the start of the partition is gone. */
  constructor(isCut: boolean) {
    this.#order = new ChainOrder("traces", isCut)
  }

  learn(record: TopicRecord): void {
    const link = this.#order.next(record)
    if (link === undefined || record.value?.includes(MARK) !== true) return
    const fact = genuineErasure(record.value.toString())
    if (fact === undefined) return
    const { executions } = madeIn(this.#tenants, link.tenantId, () => ({
      executions: new Map<string, Array<Erased>>(),
      spans: new Set<string>()
    }))
    const erased = { beforeSequence: fact.chain_sequence, erasedAt: fact.created_at }
    madeIn(executions, fact.execution_id, () => []).push(erased)
    this.erasures += 1
  }

  fateOf(record: TopicRecord, outcome: TransactionOutcome): RecordFate {
    const tenant = this.#tenants.get(record.key?.toString() ?? "")
    if (tenant === undefined || record.value === null) return "keep"
    const fact = parseFact(record.value.toString())
    const erasures = fact && tenant.executions.get(fact.execution_id)
    if (fact === undefined || erasures === undefined) return "keep"
    const erased = firstAbove(erasures, ({ beforeSequence }) => beforeSequence, fact.chain_sequence)
    if (erased === undefined) return "keep"
    const span = spanOf(fact)
    if (span !== undefined) tenant.spans.add(span)
    if (outcome === "aborted") return "drop"
    if (fact.erased_at !== undefined) return "keep"
    return { value: Buffer.from(eraseFact(fact, erased.erasedAt)) }
  }

  /** True if the tenant has erased this execution. */
  isErased(tenantId: string, executionId: string): boolean {
    return this.#tenants.get(tenantId)?.executions.has(executionId) === true
  }

  /** True for a span of an erased execution. */
  isErasedSpan(tenantId: string, spanId: string): boolean {
    return this.#tenants.get(tenantId)?.spans.has(spanId) === true
  }
}
