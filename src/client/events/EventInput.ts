/** An event as a program logs it, and what is sent of it. */
import type { AuditEventInput } from "../gen/Api.d.ts"
import { newId } from "../Ids.ts"
import type { Loggable } from "../queue/Delivery.ts"

/**
 * An event to log: who did what to what, and how it ended.
 *
 * - `outcome` is `success` unless you say otherwise.
 * - `id` is made by the client unless you give one. Give one to make a repetition harmless across
 *   restarts of your program: the service stores an id once, and refuses the same id with other
 *   content.
 * - `timestamp` is the time of the call. With an `id` of your own it is left out, and the service
 *   takes the time of acceptance: a repetition would else differ by its time, and be refused.
 *
 * `Action` narrows the names that are allowed; see `catalogue`.
 */
export type EventInput<Action extends string = string, Metadata = EventMetadata> = Omit<
  AuditEventInput,
  "action" | "metadata" | "outcome" | "timestamp"
> & {
  readonly action: Action
  readonly outcome?: AuditEventInput["outcome"]
  /** RFC 3339, or a Date. */
  readonly timestamp?: string | Date
  readonly metadata?: Metadata | null
}

/** Anything else, as a JSON object of at most 1 MiB; can be erased. */
export type EventMetadata = Readonly<Record<string, unknown>>

/** What is sent of an event. */
export const toLoggable = (event: EventInput, now: number): Loggable => {
  const isNamedByCaller = typeof event.id === "string"
  const id = event.id ?? newId()
  const timestamp = event.timestamp ?? (isNamedByCaller ? undefined : new Date(now).toISOString())
  const outcome = event.outcome ?? "success"
  return { id, isNamedByCaller, value: { ...event, id, timestamp, outcome } }
}
