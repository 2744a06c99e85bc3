/**
 * What a partition of a topic has to forget: it learns from the records that count, in their order,
 * and then says of every record what becomes of it.
 */
import { type ChainLink, follows, linkOf } from "../chain/ChainLink.ts"
import type { Chain } from "../chain/Chains.ts"
import type { RecordFate, TransactionOutcome } from "../records/RecordFate.ts"

/** A record as far as forgetting needs it. */
export interface TopicRecord {
  readonly offset: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: Readonly<Record<string, Buffer>>
}

export interface ForgettingTopic {
  /** Every record that is in no transaction or in one that was committed, in their order. */
  learn(record: TopicRecord): void
  /** After all was learned. */
  fateOf(record: TopicRecord, outcome: TransactionOutcome): RecordFate
}

/**
 * Chains as the records of a topic continue them: only what does was written by a sequencer, and only
 * such a record may ask for something to be forgotten.
 */
export class ChainOrder {
  readonly #chain: Chain
  /** True if the start of the topic is gone, so a chain may begin anywhere. */
  readonly #isCut: boolean
  readonly #heads = new Map<string, ChainLink>()

  constructor(chain: Chain, isCut: boolean) {
    this.#chain = chain
    this.#isCut = isCut
  }

  /** The link of the record if it continues its tenant's chain. */
  next(record: TopicRecord): ChainLink | undefined {
    const link = this.linkOf(record)
    if (link === undefined) return undefined
    const before = this.#heads.get(link.tenantId)
    if (!(before === undefined && this.#isCut) && !follows(link, before)) return undefined
    this.#heads.set(link.tenantId, link)
    return link
  }

  /** Undefined for what is not a link of the tenant that the record's key names. */
  linkOf({ key, value }: TopicRecord): ChainLink | undefined {
    const link = value === null ? undefined : linkOf(value, this.#chain)
    return link !== undefined && link.tenantId === key?.toString() ? link : undefined
  }
}

/** The value of a map, made at its first use. */
export const madeIn = <K, V>(map: Map<K, V>, key: K, make: () => V): V => {
  const found = map.get(key)
  if (found !== undefined) return found
  const made = make()
  map.set(key, made)
  return made
}
