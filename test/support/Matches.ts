import type { AuditEvent } from "../../src/domain/events/AuditEvent.ts"
import { type EventFilter, matcherOf } from "../../src/domain/events/EventFilter.ts"
import { FilteredEvent } from "../../src/domain/events/FilteredEvent.ts"

/** True if the stored event satisfies every condition of the filter. */
export const matches = (filter: EventFilter, event: AuditEvent): boolean =>
  matcherOf(filter)(new FilteredEvent(event))
