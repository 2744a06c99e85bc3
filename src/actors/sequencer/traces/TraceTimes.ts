/**
 * When executions and spans end, given what clients and servers say. Texts in canonical microsecond
 * form, which sort as the times do; no clock here.
 */
import { refuse, type TraceRefusal } from "./TraceRefusals.ts"

export const laterOf = (left: string, right: string): string => (left > right ? left : right)

interface Beginning {
  readonly startedAt: string
  /** True if the client said so, not a server. */
  readonly startedAtGiven: boolean
}

interface Ending {
  readonly endedAt: string
  readonly endedAtGiven: boolean
}

/**
 * The end to record: as the client says it, unless that is before a start that a client gave. A
 * server's time that is before the start, the client's or another server's, gives way to it.
 */
export const endOf = (
  { endedAt, endedAtGiven }: Ending,
  { startedAt, startedAtGiven }: Beginning
): string | TraceRefusal => {
  if (!endedAtGiven) return laterOf(endedAt, startedAt)
  return startedAtGiven && endedAt < startedAt
    ? refuse(
        "invalid_value",
        `ended_at: ${endedAt} is before started_at ${startedAt}; send a time that is not`
      )
    : endedAt
}
