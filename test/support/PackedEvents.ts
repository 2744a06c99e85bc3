/** The events that a step has appended, read from the records that it has made of them. */
import type { StateChanges } from "../../src/actors/sequencer/SequencerDraft.ts"
import type { PackedRecords } from "../../src/ports/EventLog.ts"

export interface AppendedRecord {
  readonly offsetDelta: number
  readonly key: string
  readonly value: string
  readonly headers: Readonly<Record<string, string>>
}

/** Records by Kafka's protocol guide; not the program's own reader. */
export const readPacked = ({ count, records }: PackedRecords): ReadonlyArray<AppendedRecord> => {
  let at = 0
  const number = (): number => {
    let result = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = records[at++]!
      result |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return Number((result >> 1n) ^ -(result & 1n))
    }
  }
  const text = (): string => {
    const length = number()
    at += length
    return records.toString("utf8", at - length, at)
  }
  const read: Array<AppendedRecord> = []
  while (at < records.length) {
    const end = number() + at
    if (records[at++] !== 0) throw new Error("attributes")
    if (number() !== 0) throw new Error("another time")
    const [offsetDelta, key, value] = [number(), text(), text()]
    const headers: Record<string, string> = {}
    for (let left = number(); left > 0; left--) headers[text()] = text()
    if (at !== end) throw new Error(`a record ends at ${at}, not at ${end}`)
    read.push({ offsetDelta, key, value, headers })
  }
  if (read.length !== count) throw new Error(`${read.length} records, not ${count}`)
  return read
}

export interface AppendedEvent {
  readonly tenantId: string
  readonly id: string
  readonly sequenceNumber: number
  readonly createdAt: string
  readonly hash: string
  /** The stored JSON. */
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

/** In the order in which they were appended. */
export const eventsIn = ({ events }: StateChanges): ReadonlyArray<AppendedEvent> =>
  events.packed(0).flatMap((packed) =>
    readPacked(packed).map(({ headers, key, value }) => {
      const event = JSON.parse(value)
      return {
        tenantId: key,
        id: event.id,
        sequenceNumber: event.sequence_number,
        createdAt: event.created_at,
        hash: event.hash,
        body: value,
        headers
      }
    })
  )
