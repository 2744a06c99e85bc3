/**
 * What the event list, the statistics, the exports and the live stream can be narrowed by. The
 * store turns a filter into SQL, the live feed asks `matches`; both must mean the same.
 */
import type { AuditEvent } from "./AuditEvent.ts"

export interface MetadataCondition {
  /** Path below `metadata`, dots walk nested objects; a key that holds the dots is tried first. */
  readonly path: string
  readonly value: string
}

/** Every condition is optional, all of them are combined with AND. */
export interface EventFilter {
  readonly id?: string
  readonly actorId?: string
  readonly actorType?: "human" | "agent" | "system"
  /** Exact action, or everything below `actionPrefix` (which ends with a dot). */
  readonly action?: string
  readonly actionPrefix?: string
  readonly resourceId?: string
  readonly resourceType?: string
  readonly outcome?: "success" | "failure" | "error"
  /** Inclusive bounds on `timestamp`, canonical microsecond form. */
  readonly from?: string
  readonly to?: string
  /** Inclusive bounds on `sequence_number`. */
  readonly fromSequence?: number
  readonly toSequence?: number
  readonly metadata: ReadonlyArray<MetadataCondition>
  /** Case-insensitive substring of the searchable texts. */
  readonly q?: string
}

export const emptyFilter: EventFilter = { metadata: [] }

/** True if the stored event satisfies every condition of the filter. */
export declare const matches: (filter: EventFilter, event: AuditEvent) => boolean
