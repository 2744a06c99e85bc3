/**
 * How many events a chain has to hold: last - first + 1, the last being the one that the log names
 * as its end. Compares with what was read; says nothing of whether the events are unaltered.
 */
import { HISTORY_FROM, HISTORY_TO, type VerifyReport } from "../../verify/Verifier.ts"

export interface Completeness {
  /** Sequence numbers, inclusive; undefined if the bounds hold none. */
  readonly span: { readonly first: number; readonly last: number } | undefined
  /** last - first + 1; 0 without a span. */
  readonly expected: number
  /** Events that the check of the chain has read in it. */
  readonly checked: number
  /** True if as many were read as expected, and no break was found. */
  readonly isEstablished: boolean
}

/** The sequences that the bounds mean, by the log's head where they are open at the end. */
const spanOf = (report: VerifyReport): Completeness["span"] => {
  const { bounds, first_sequence_number, head, last_sequence_number } = report
  const { from, from_sequence, to, to_sequence } = bounds
  const isAllTime = from === HISTORY_FROM && to === HISTORY_TO
  const isOpen = to === HISTORY_TO && to_sequence === null
  const headSequence = head?.sequence_number ?? 0
  const first = isAllTime ? Math.max(1, from_sequence ?? 1) : first_sequence_number
  const last = isOpen
    ? headSequence
    : isAllTime
      ? Math.min(to_sequence ?? headSequence, headSequence)
      : last_sequence_number
  return first === null || last === null || last < first ? undefined : { first, last }
}

export const completenessOf = (report: VerifyReport): Completeness => {
  const span = spanOf(report)
  const expected = span === undefined ? 0 : span.last - span.first + 1
  const checked = report.events_checked
  const holds = report.status === "valid" || report.status === "empty"
  const isEstablished = holds && expected === checked
  return { span, expected, checked, isEstablished }
}
