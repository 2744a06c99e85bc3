/**
 * When executions and spans end, given what clients and servers say. Texts in canonical microsecond
 * form, which sort as the times do; no clock here.
 */
import type { StoredSpan } from "../../../domain/traces/StoredTrace.ts"
import type { EndSpan } from "../../../domain/traces/TraceOperation.ts"
import { refuse, type TraceRefusal } from "./TraceRefusals.ts"

export const laterOf = (left: string, right: string): string => (left > right ? left : right)

/**
 * The end to record: as the client says it, unless that is before a start that a client gave. A
 * server's time that is before the start, the client's or another server's, gives way to it.
 */
export const endOf = (
  { endedAt, endedAtGiven }: Pick<EndSpan, "endedAt" | "endedAtGiven">,
  { started_at, started_at_given }: Pick<StoredSpan, "started_at" | "started_at_given">
): string | TraceRefusal => {
  if (!endedAtGiven) return laterOf(endedAt, started_at)
  return started_at_given && endedAt < started_at
    ? refuse(
        "invalid_value",
        `ended_at: ${endedAt} is before started_at ${started_at}; send a time that is not`
      )
    : endedAt
}
