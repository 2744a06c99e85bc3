/**
 * What the projection has to erase before it stores a record that says so. Reads records; erases
 * nothing itself.
 */
import type { AuditEvent } from "../domain/AuditEvent.ts"
import { ERASURE_ACTION, erasureOf } from "../domain/Erasure.ts"
import type { EventErasure } from "../ports/EventStore.ts"

/** Events of one tenant whose details go. */
export interface ErasedEvents {
  readonly tenantId: string
  readonly erasures: ReadonlyArray<EventErasure>
}

/** An execution whose facts before `beforeFactNumber` lose their details. */
export interface ErasedExecution {
  readonly tenantId: string
  readonly executionId: string
  readonly beforeFactNumber: number
  readonly erasedAt: string
}

/** As it stands in every erasure event; other events may hold it too, in their metadata. */
const MARK = Buffer.from(`"action":"${ERASURE_ACTION}"`)

/** What the event in these bytes erases; undefined for nearly every event, at the cost of a search. */
export const erasedTargetsOf = (body: Buffer): ErasedEvents | undefined => {
  if (!body.includes(MARK)) return undefined
  const event = JSON.parse(body.toString()) as AuditEvent
  const erasure = erasureOf(event)
  return erasure === undefined
    ? undefined
    : {
        tenantId: event.tenant_id,
        erasures: [{ sequenceNumber: erasure.sequence_number, erasedAt: event.created_at }]
      }
}
