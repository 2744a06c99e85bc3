/**
 * What must be true of the log and the store, said without the code under test: each event once,
 * numbers without gaps, chains whose hashes are recomputed, a store that shows the topic.
 */
import { createHash } from "node:crypto"
import { isDeepStrictEqual } from "node:util"
import type { SimulatedLog } from "./SimulatedLog.ts"
import type { SimulatedStore } from "./SimulatedStore.ts"

/** A promise was broken. */
export class Violation extends Error {}

export const check = (holds: boolean, message: string): void => {
  if (!holds) throw new Violation(message)
}

/** The members of a stored event that are looked at. */
export interface StoredEvent {
  readonly id: string
  readonly tenant_id: string
  readonly sequence_number: number
  readonly hash: string
  readonly prev_hash: string
  readonly content_hash: string
  readonly created_at: string
  readonly [member: string]: unknown
}

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex")

/** RFC 8785 for values whose names and numbers are plain. */
const canonical = (value: unknown): string => {
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  const sorted = members.sort(([left], [right]) => (left < right ? -1 : 1))
  return `{${sorted.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`)}}`
}

/** The hash by docs/verify.md. */
const hashOf = (event: StoredEvent): string => {
  const { action, actor, details_salt, id, metadata, outcome, resource, timestamp } = event
  const details =
    metadata === undefined ? undefined : sha256(`${details_salt}\n${canonical({ metadata })}`)
  const core = { action, actor, details_hash: details, id, outcome, resource, timestamp }
  return sha256(
    [
      "alk-chain-v1",
      event.tenant_id,
      event.sequence_number,
      event.created_at,
      sha256(canonical(core)),
      event.prev_hash
    ].join("\n")
  )
}

export const NO_HASH = "0".repeat(64)

/** That events are a chain that begins after `before`. */
export const checkChain = (
  events: ReadonlyArray<StoredEvent>,
  before: Pick<StoredEvent, "hash" | "sequence_number">,
  where: string
): void => {
  let { hash, sequence_number: number } = before
  for (const event of events) {
    number += 1
    const name = `${where}: event ${event.sequence_number} of ${event.tenant_id}`
    check(event.sequence_number === number, `${name} where ${number} was expected`)
    check(event.prev_hash === hash, `${name} does not link`)
    check(event.hash === hashOf(event), `${name} has another hash`)
    hash = event.hash
  }
}

const parse = (body: Buffer | string): StoredEvent => JSON.parse(body.toString())

/** The events of every tenant, as the topic has them. */
export const eventsOnTopic = (log: SimulatedLog): Map<string, Array<StoredEvent>> => {
  const byTenant = new Map<string, Array<StoredEvent>>()
  for (let partition = 0; partition < log.partitions; partition++) {
    for (const { value } of log.of("events", partition).committed) {
      const event = parse(value ?? "")
      byTenant.set(event.tenant_id, [...(byTenant.get(event.tenant_id) ?? []), event])
    }
  }
  return byTenant
}

/** Ids that must be on the topic by tenant, each once, and no other. */
export type Expected = ReadonlyMap<string, ReadonlySet<string>>

const checkTopic = (log: SimulatedLog, expected: Expected): void => {
  const byTenant = eventsOnTopic(log)
  for (const [tenantId, events] of byTenant) {
    checkChain(events, { hash: NO_HASH, sequence_number: 0 }, "alk.events")
    const ids = events.map(({ id }) => id)
    check(new Set(ids).size === ids.length, `${tenantId} has an event twice`)
    for (const id of ids) {
      check(expected.get(tenantId)?.has(id) === true, `nobody has sent ${id} of ${tenantId}`)
    }
  }
  for (const [tenantId, ids] of expected) {
    const found = new Set(byTenant.get(tenantId)?.map(({ id }) => id))
    for (const id of ids) check(found.has(id), `${id} of ${tenantId} was acknowledged and is lost`)
  }
}

const checkStore = (log: SimulatedLog, store: SimulatedStore): void => {
  check(store.aside.length === 0, "rows were set aside")
  check(store.conflicts.rows.length === 0, "records did not link")
  for (let partition = 0; partition < log.partitions; partition++) {
    const onTopic = log.of("events", partition).committed.map(({ offset, value }) => ({
      offset,
      body: value?.toString()
    }))
    const stored = store.events.rows
      .filter((row) => row.partition === partition)
      .map(({ body, offset }) => ({ offset, body: body.toString() }))
      .sort((left, right) => left.offset - right.offset)
    check(stored.length <= onTopic.length, `rows of partition ${partition} are there twice`)
    check(isDeepStrictEqual(stored, onTopic), `the store does not show partition ${partition}`)
    const receipts = new Set(
      log
        .of("receipts", partition)
        .committed.filter(({ headers }) => headers["alk-kind"]?.toString() === "outcome")
        .map(({ offset }) => offset)
    )
    const kept = new Set(
      store.receipts.rows.filter((row) => row.partition === partition).map(({ offset }) => offset)
    )
    check(isDeepStrictEqual(kept, receipts), `receipts of partition ${partition} are missing`)
  }
}

/** Everything at the end, when all is quiet. */
export const checkAll = (log: SimulatedLog, store: SimulatedStore, expected: Expected): void => {
  checkTopic(log, expected)
  checkStore(log, store)
}
