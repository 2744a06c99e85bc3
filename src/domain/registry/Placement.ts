/**
 * Which partition a tenant's records are in. A tenant stays for ever where it was when it was created:
 * its place is computed with the number of partitions over which tenants were spread then. Pure but
 * for the table that it keeps; it knows neither Kafka nor the registry's topic.
 */
import type { Partitions, RegistryChange, Tenant } from "./RegistryEntry.ts"

const SEED = 0x9747b28c
const MULTIPLIER = 0x5bd1e995

const multiplied = (value: number): number => Math.imul(value, MULTIPLIER)

/** Murmur2 of the UTF-8 bytes of a key, as Kafka's default partitioner computes it: 32 bits. */
export const murmur2 = (key: string): number => {
  const bytes = Buffer.from(key)
  const whole = bytes.length - (bytes.length % 4)
  let hash = SEED ^ bytes.length
  for (let at = 0; at < whole; at += 4) {
    const word = multiplied(bytes.readInt32LE(at))
    hash = multiplied(hash) ^ multiplied(word ^ (word >>> 24))
  }
  if (whole < bytes.length) {
    for (let at = bytes.length - 1; at >= whole; at--) hash ^= bytes[at]! << (8 * (at - whole))
    hash = multiplied(hash)
  }
  hash = multiplied(hash ^ (hash >>> 13))
  return hash ^ (hash >>> 15)
}

/** The partition of a key among so many, as Kafka's default partitioner chooses it. */
export const partitionAmong = (key: string, partitions: number): number =>
  (murmur2(key) & 0x7fffffff) % partitions

/** Where tenants are, as far as the registry has said it. */
export class Placement {
  readonly #start: number
  /** Numbers of partitions by tenant, of those that are not spread over the first number. */
  readonly #spread = new Map<string, number>()
  readonly #listeners = new Set<(partitions: number) => void>()
  #record: Partitions | undefined

  /** `partitions`: what the topics have, as long as the registry does not say anything. */
  constructor(partitions: number) {
    this.#start = partitions
  }

  /** The number of partitions that every topic but the registry's has. */
  get partitions(): number {
    return this.#record?.topics ?? this.#start
  }

  /** What the registry says; undefined in an installation that has never grown. */
  get record(): Partitions | undefined {
    return this.#record
  }

  /** Numbers over which tenants are, or were, spread: the first number first. */
  get counts(): ReadonlyArray<number> {
    return this.#record?.counts ?? [this.#start]
  }

  /** Takes a record of the registry; the order in which they come changes nothing. */
  take(change: RegistryChange): void {
    if (change.kind === "tenant") this.#takeTenant(change.tenant)
    else if (change.kind === "partitions") this.#takePartitions(change.partitions)
  }

  /** Hears of each growth as it becomes known; what comes back ends that. */
  onGrown(listener: (partitions: number) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  partitionOf(tenantId: string): number {
    return partitionAmong(tenantId, this.#spread.get(tenantId) ?? this.counts[0]!)
  }

  /** A tenant never moves: the first record counts. */
  #takeTenant({ id, partitions }: Tenant): void {
    if (partitions === undefined || this.#spread.has(id)) return
    this.#spread.set(id, partitions)
  }

  /** An older record comes back when a process reads the topic again. */
  #takePartitions(partitions: Partitions): void {
    if (this.#record !== undefined && isOlder(partitions, this.#record)) return
    const before = this.partitions
    this.#record = partitions
    if (this.partitions === before) return
    for (const listener of this.#listeners) listener(this.partitions)
  }
}

/** True for a record of an earlier step than another one. */
export const isOlder = (one: Partitions, other: Partitions): boolean => rankOf(one) < rankOf(other)

/** The steps of a growth follow each other, and so do growths. */
const rankOf = ({ counts, growing_to = 0, topics }: Partitions): number =>
  (topics * 2 + (growing_to > topics ? 1 : 0)) * 2 + (counts.at(-1) === topics ? 1 : 0)
