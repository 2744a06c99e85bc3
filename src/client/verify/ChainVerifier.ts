/**
 * Checks chains record by record, as consumers of the public topics read them: the place of each,
 * its link to the one before it, and its own hashes. Memory is per tenant, not per record.
 */
import { GENESIS_HASH } from "./Hashes.ts"
import { PendingErasures } from "./PendingErasures.ts"
import {
  type ChainRecord,
  type MismatchReason,
  mismatchOf,
  NotARecord,
  type Scheme,
  toRecord
} from "./Recompute.ts"

/** Hashes before the head that are kept, to compare records with that come twice. */
const RECENT_MAX = 100

/** How far a chain was read: keep it beside your offsets, to go on from there. */
export interface ChainHead {
  readonly scheme: Scheme
  readonly tenant: string
  readonly sequence: number
  readonly hash: string
}

/** Where a chain is broken. */
export interface ChainBreak {
  readonly scheme: Scheme | undefined
  readonly tenant: string | undefined
  /** Of the record; of a gap the first number that is missing. */
  readonly sequence: number | undefined
  readonly reason:
    | MismatchReason
    /** Records are missing before this one. */
    | "sequence_gap"
    /** It does not continue the record before it. */
    | "prev_hash_mismatch"
    /** Another record was at this place. */
    | "other_record"
    | "not_a_record"
  readonly expected: string
  readonly actual: string
}

export interface ChainVerifierOptions {
  /** Where earlier readings ended: of these chains the next record is the one that follows. */
  readonly heads?: ReadonlyArray<ChainHead>
  /**
   * Of a chain without a head: `genesis` (the default) expects its first record, `anywhere` takes the
   * first that comes as it is.
   */
  readonly start?: "genesis" | "anywhere"
}

interface ChainState {
  readonly scheme: Scheme
  readonly tenant: string
  sequence: number
  hash: string
  /** By sequence. */
  readonly recent: Map<number, string>
  readonly erased: PendingErasures
}

const nameOf = ({ scheme, tenant }: Pick<ChainRecord, "scheme" | "tenant">): string =>
  `${scheme} ${tenant}`

/** `sequence` is that of the record unless the fault is before it. */
type Fault = Pick<ChainBreak, "actual" | "expected" | "reason"> & { readonly sequence?: number }

/** Checks the records of any number of tenants, each tenant's in the order of its chain. */
export class ChainVerifier {
  readonly #chains = new Map<string, ChainState>()
  readonly #start: "genesis" | "anywhere"
  #before: Promise<unknown> = Promise.resolve()
  /** Records that were checked, repeated ones included. */
  records = 0
  /** Those that came before: consumers that commit offsets after their work see some again. */
  repeated = 0
  /** The first break of all; undefined as long as everything holds. */
  firstBreak: ChainBreak | undefined

  constructor({ heads = [], start = "genesis" }: ChainVerifierOptions = {}) {
    this.#start = start
    for (const head of heads) this.#chains.set(nameOf(head), newState(head))
  }

  /** How far each chain was read. */
  get heads(): ReadonlyArray<ChainHead> {
    return [...this.#chains.values()].map(({ hash, scheme, sequence, tenant }) => {
      return { scheme, tenant, sequence, hash }
    })
  }

  /**
   * Erased records of which no record says that they were erased: stripped of their details without
   * an erasure, unless the erasure is yet to be read.
   */
  get unexplainedErasures(): ReadonlyArray<Omit<ChainHead, "hash">> {
    return [...this.#chains.values()].flatMap(({ erased, scheme, tenant }) =>
      erased.sequences.map((sequence) => ({ scheme, tenant, sequence }))
    )
  }

  /**
   * Check the next record: the value of a record of `alk.events` or `alk.traces`, or an event of a
   * list in ascending order. Resolves with its break, or undefined. After a break the chain is
   * followed from this record on. Calls may overlap; they are done in the order in which they came.
   */
  add(record: string | Uint8Array | object): Promise<ChainBreak | undefined> {
    const next = this.#before.then(() => this.#add(record))
    this.#before = next.catch(() => {})
    return next
  }

  async #add(source: string | Uint8Array | object): Promise<ChainBreak | undefined> {
    this.records += 1
    const found = await this.#check(source)
    if (found !== undefined) this.firstBreak ??= found
    return found
  }

  async #check(source: string | Uint8Array | object): Promise<ChainBreak | undefined> {
    let record: ChainRecord | undefined
    try {
      record = toRecord(source)
      const fault = this.#place(record) ?? (await mismatchOf(record))
      if (fault === undefined) {
        this.#chains.get(nameOf(record))?.erased.add(record)
        return undefined
      }
      const { scheme, sequence, tenant } = record
      return { scheme, tenant, sequence, ...fault }
    } catch (error) {
      if (!(error instanceof NotARecord)) throw error
      return {
        scheme: record?.scheme,
        tenant: record?.tenant,
        sequence: record?.sequence,
        reason: "not_a_record",
        expected: "a stored event or fact",
        actual: error.message
      }
    }
  }

  /** What is wrong with the record's place; the chain goes on from it. */
  #place(record: ChainRecord): Fault | undefined {
    const chain = this.#chains.get(nameOf(record))
    if (chain === undefined) return this.#begin(record)
    if (record.sequence <= chain.sequence) return this.#repeat(chain, record)
    const fault = faultOfNext(chain, record)
    advance(chain, record)
    return fault
  }

  #begin(record: ChainRecord): Fault | undefined {
    const { scheme, tenant } = record
    const before = newState({ scheme, tenant, sequence: 0, hash: GENESIS_HASH })
    this.#chains.set(nameOf(record), before)
    const fault = this.#start === "genesis" ? faultOfNext(before, record) : undefined
    advance(before, record)
    return fault
  }

  #repeat({ recent }: ChainState, { hash, sequence }: ChainRecord): Fault | undefined {
    this.repeated += 1
    const known = recent.get(sequence)
    return known === undefined || known === hash
      ? undefined
      : { reason: "other_record", expected: known, actual: hash }
  }
}

const newState = ({ hash, scheme, sequence, tenant }: ChainHead): ChainState => ({
  scheme,
  tenant,
  sequence,
  hash,
  recent: new Map([[sequence, hash]]),
  erased: new PendingErasures()
})

const faultOfNext = (chain: ChainState, record: ChainRecord): Fault | undefined => {
  const expected = chain.sequence + 1
  if (record.sequence !== expected) {
    const actual = `sequence ${record.sequence}`
    return { reason: "sequence_gap", sequence: expected, expected: `sequence ${expected}`, actual }
  }
  return record.prevHash === chain.hash
    ? undefined
    : { reason: "prev_hash_mismatch", expected: chain.hash, actual: record.prevHash }
}

const advance = (chain: ChainState, record: ChainRecord): void => {
  const { hash, sequence } = record
  chain.sequence = sequence
  chain.hash = hash
  chain.recent.set(sequence, hash)
  const [oldest] = chain.recent.keys()
  if (chain.recent.size > RECENT_MAX && oldest !== undefined) chain.recent.delete(oldest)
}
