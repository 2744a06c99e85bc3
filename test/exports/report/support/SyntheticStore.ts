/**
 * A population of any size without holding it: event n is a function of n. Answers the reads of a
 * report as the store would; everything else of the store is absent.
 */
import { createHash } from "node:crypto"
import { Layer, Stream } from "effect"
import type { AuditEvent } from "../../../../src/domain/events/AuditEvent.ts"
import { type EventFilter, emptyFilter } from "../../../../src/domain/events/EventFilter.ts"
import { formatMicros } from "../../../../src/domain/Timestamp.ts"
import { EventStore } from "../../../../src/ports/EventStore.ts"
import { CheckedEvents } from "../../../../src/verify/CheckedEvents.ts"
import { matches } from "../../../support/Matches.ts"

export type EventAt = (sequence: number) => AuditEvent

export const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex")

const ACTIONS = [
  "document.read",
  "document.share",
  "user.login",
  "user.role-add",
  "export.download",
  "config.update",
  "deploy.approve",
  "key.rotate"
]
const PEOPLE = ["ann.larsen", "ben.okafor", "chen.wei", "dana.levi", "emil.novak"]
const START_MICROS = Date.parse("2026-01-05T07:30:00Z") * 1_000
/** Between two events: 137 s, so that 100,000 of them take five months. */
const STEP_MICROS = 137_000_001

/** A number that looks random, the same for the same sequence. */
const mix = (sequence: number): number => {
  let mixed = Math.imul(sequence, 0x9e3779b1)
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b)
  return (mixed ^ (mixed >>> 13)) >>> 0
}

/** Plausible events of five months; hashes are computed only when somebody looks. */
export const plausible: EventAt = (sequence) => {
  const mixed = mix(sequence)
  const person = PEOPLE[mixed % PEOPLE.length]!
  const isAgent = mixed % 11 === 0
  const timestamp = formatMicros(START_MICROS + sequence * STEP_MICROS)
  const outcome = mixed % 53 === 0 ? "error" : mixed % 17 === 0 ? "failure" : "success"
  const details = {
    actor: isAgent
      ? { id: "agent-billing", type: "agent" as const }
      : { id: person, type: "human" as const, email: `${person}@example.com` },
    resource: {
      id: `doc-${mixed % 9_973}`,
      type: mixed % 5 === 0 ? "account" : "document",
      name: `Quarterly report ${mixed % 97}`
    },
    metadata: { ip: `192.0.2.${mixed % 250}`, request: `req-${mixed}`, attempt: mixed % 3 }
  }
  return {
    id: `evt-${sequence}`,
    timestamp,
    ...details,
    action: ACTIONS[mixed % ACTIONS.length]!,
    outcome,
    tenant_id: "acme",
    sequence_number: sequence,
    created_at: formatMicros(START_MICROS + sequence * STEP_MICROS + 120_000),
    get prev_hash() {
      return sequence === 1 ? "0".repeat(64) : sha256(`hash ${sequence - 1}`)
    },
    get content_hash() {
      return sha256(`content ${sequence}`)
    },
    get hash() {
      return sha256(`hash ${sequence}`)
    }
  }
}

/** Events of one chunk of a scan. */
const CHUNK_ROWS = 100

export interface StoreOptions {
  readonly size: number
  readonly eventAt: EventAt
  /** Told of each event that is handed out. */
  readonly onBody?: () => void
}

export const syntheticStore = ({ eventAt, onBody = () => undefined, size }: StoreOptions) => {
  const bodyOf = (event: AuditEvent): string => {
    onBody()
    return JSON.stringify(event)
  }
  const made: Array<AuditEvent> = []
  const known = (sequence: number): AuditEvent => (made[sequence] ??= eventAt(sequence))
  function* matching(filter: EventFilter, order: "asc" | "desc"): Generator<AuditEvent> {
    const last = Math.min(size, filter.toSequence ?? size)
    const first = Math.max(1, filter.fromSequence ?? 1)
    for (let index = first; index <= last; index++) {
      const event = known(order === "asc" ? index : last + first - index)
      if (matches(filter, event)) yield event
    }
  }
  const checked = Layer.succeed(CheckedEvents, {
    of: (_, { first, last }) =>
      Stream.fromIterable(
        matching({ ...emptyFilter, fromSequence: first, toSequence: last }, "asc"),
        {
          chunkSize: CHUNK_ROWS
        }
      ).pipe(
        Stream.map((event) => ({ event, body: bodyOf(event) })),
        Stream.grouped(CHUNK_ROWS)
      )
  })
  const store = Layer.mock(EventStore, {
    scan: ({ filter, order }) =>
      Stream.fromIterable(matching(filter, order), { chunkSize: CHUNK_ROWS }).pipe(
        Stream.map(bodyOf),
        Stream.grouped(CHUNK_ROWS)
      )
  })
  return Layer.mergeAll(store, checked)
}
