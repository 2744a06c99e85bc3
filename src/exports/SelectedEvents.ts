/** The events of an export: those of the verified part of the chain that its filter selects. */
import { Effect, Stream } from "effect"
import { conditionsOf, type EventFilter, matcherOf } from "../domain/events/EventFilter.ts"
import { FilteredEvent } from "../domain/events/FilteredEvent.ts"
import { inSlices } from "../domain/InSlices.ts"
import type { Sliced } from "../domain/Slices.ts"
import type { SequenceRange } from "../ports/ChainRecompute.ts"
import { EventStore } from "../ports/EventStore.ts"
import { type CheckedEvent, CheckedEvents } from "../verify/CheckedEvents.ts"
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
  /** What is made of them can't be recomputed by its reader. */
  readonly isRetold?: boolean
}

/** The stored JSON of those that the filter selects, one event a step. */
const selectionBy = (filter: EventFilter) => {
  const isSelected = matcherOf(filter)
  return function* (events: ReadonlyArray<CheckedEvent>): Sliced<ReadonlyArray<string>> {
    const bodies: Array<string> = []
    for (const { body, event } of events) {
      if (isSelected(new FilteredEvent(event))) bodies.push(body)
      yield
    }
    return bodies
  }
}

/**
 * Their stored JSON, ascending. Events that are left out leave no trace in an export: so where it
 * depends on what they say, and the chain was found to hold, all of them are gone through here, and
 * the stream fails if one is not (any more) what the chain says. The same where they are only retold:
 * links beside them would show what was changed.
 */
export const selectedEvents = (selection: Selection) =>
  Stream.unwrap(
    Effect.gen(function* () {
      const store = yield* EventStore
      const checked = yield* CheckedEvents
      const { deduplicate, filter, isRetold = false, tenantId, verification } = selection
      const range = verifiedRange(verification)
      const isChecked = verification.status === "valid" && (isRetold || isByContent(filter))
      if (range === undefined || !isChecked) {
        return store.scan({ tenantId, filter, order: "asc" }, deduplicate)
      }
      const select = selectionBy(filter)
      return checked
        .of(tenantId, range, deduplicate)
        .pipe(Stream.mapEffect((events) => inSlices(() => select(events))))
    })
  )
