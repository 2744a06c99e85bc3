/** The events of an export: those of the verified part of the chain that its filter selects. */
import { Effect, Stream } from "effect"
import { conditionsOf, type EventFilter, matches } from "../domain/events/EventFilter.ts"
import type { SequenceRange } from "../ports/ChainRecompute.ts"
import { EventStore } from "../ports/EventStore.ts"
import { CheckedEvents } from "../verify/CheckedEvents.ts"
import type { VerifyReport } from "../verify/VerifyReport.ts"

/** From the first to the last event that was verified. */
export const verifiedRange = ({
  first_sequence_number: first,
  last_sequence_number: last
}: VerifyReport): SequenceRange | undefined =>
  first === null || last === null ? undefined : { first, last }

/** True if it depends on what an event says whether it is selected. */
const isByContent = (filter: EventFilter): boolean =>
  conditionsOf(filter).length > 0 || filter.from !== undefined || filter.to !== undefined

export interface Selection {
  readonly tenantId: string
  /** Within the bounds of the verification. */
  readonly filter: EventFilter
  readonly verification: VerifyReport
  /** Of the reads, see EventStore. */
  readonly deduplicate: boolean
}

/**
 * Their stored JSON, ascending. Events that are left out leave no trace in an export: so where it
 * depends on what they say, and the chain was found to hold, all of them are gone through here, and
 * the stream fails if one is not (any more) what the chain says.
 */
export const selectedEvents = ({ deduplicate, filter, tenantId, verification }: Selection) =>
  Stream.unwrap(
    Effect.gen(function* () {
      const store = yield* EventStore
      const checked = yield* CheckedEvents
      const range = verifiedRange(verification)
      if (range === undefined || verification.status !== "valid" || !isByContent(filter)) {
        return store.scan({ tenantId, filter, order: "asc" }, deduplicate)
      }
      return checked
        .of(tenantId, range, deduplicate)
        .pipe(
          Stream.map((events) =>
            events.filter(({ event }) => matches(filter, event)).map(({ body }) => body)
          )
        )
    })
  )
