/**
 * Single events as a sequencer has written them, read from their topic: what an act on one of them
 * has to go by, as rows of the store can be changed.
 */
import { Context, Effect, Layer, type Scope } from "effect"
import type { AuditEvent } from "../../domain/events/AuditEvent.ts"
import { parseEvent } from "../../domain/events/StoredEvent.ts"
import {
  EventLog,
  type LogReader,
  type LogUnavailable,
  type OffsetOutOfRange
} from "../../ports/EventLog.ts"
import { Heads } from "./Heads.ts"

/** Nothing of an offset that has left the topic. */
export type WrittenEvent = AuditEvent | "removed" | undefined

export interface WrittenReader {
  /** The event at an offset of the tenant's partition of `alk.events`; undefined if none is there. */
  at(
    tenantId: string,
    offset: number
  ): Effect.Effect<WrittenEvent, LogUnavailable | OffsetOutOfRange>
}

export class WrittenEvents extends Context.Service<
  WrittenEvents,
  {
    /** For one event after the other, by one connection. */
    readonly reader: Effect.Effect<WrittenReader, LogUnavailable, Scope.Scope>
  }
>()("alk/WrittenEvents") {}

/** The batch that has the record comes whole, however large it is. */
const LIMITS = { waitMs: 0, maxBytes: 1 }

const make = Effect.gen(function* () {
  const log = yield* EventLog
  const heads = yield* Heads
  const readerOf = (reader: LogReader): WrittenReader => ({
    at: Effect.fn("WrittenEvents.at")(function* (tenantId, offset) {
      const partition = log.partitionOf(tenantId)
      const { end, start } = yield* log.bounds("events", partition)
      if (offset < start) return "removed"
      if (offset >= end) return undefined
      const [fetched] = yield* reader.fetch([{ topic: "events", partition, offset }], LIMITS)
      const records = fetched?.records.filter((record) => record.offset === offset) ?? []
      if (records.length === 0) return undefined
      const { own } = yield* heads.decided("events", partition, records)
      const event = own[0] && parseEvent(String(own[0].value))
      return event?.tenant_id === tenantId ? event : undefined
    })
  })
  return WrittenEvents.of({ reader: Effect.map(log.reader, readerOf) })
})

export const layerWrittenEvents = Layer.effect(WrittenEvents, make)
