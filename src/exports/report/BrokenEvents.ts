/**
 * Which events a report must not show as intact: by their sequence numbers among the breaks that
 * the verification found.
 */
import type { BreakReason, VerifyReport } from "../../verify/Verifier.ts"
import { type Html, html, nothing } from "./Html.ts"

/**
 * `broken`: a break names the event, or it is outside of the chain. `in doubt`: a break that
 * concerns it may not be listed, or a signed checkpoint contradicts the chain up to a later event.
 */
export type Doubt = "broken" | "in doubt"

export type BrokenEvents = (sequenceNumber: number) => Doubt | undefined

/** Breaks that name a number without an event. */
const ABSENT: ReadonlySet<BreakReason> = new Set(["sequence_gap", "tail_missing"])

const none: BrokenEvents = () => undefined

export const brokenEventsOf = ({
  breaks,
  breaks_total,
  head,
  status
}: VerifyReport): BrokenEvents => {
  if (breaks_total === 0 && status !== "broken") return none
  const broken = new Set(
    breaks
      .filter(({ reason }) => reason !== "checkpoint_mismatch" && !ABSENT.has(reason))
      .map((found) => found.sequence_number)
  )
  const contradicted = breaks
    .filter(({ reason }) => reason === "checkpoint_mismatch")
    .reduce((last, found) => Math.max(last, found.sequence_number), 0)
  const isListed = breaks.length === breaks_total
  const listedBefore = isListed ? Infinity : (breaks.at(-1)?.sequence_number ?? 0)
  const end = head?.sequence_number ?? Infinity
  return (sequence) => {
    if (broken.has(sequence) || sequence < 1 || sequence > end) return "broken"
    return sequence <= contradicted || sequence >= listedBefore ? "in doubt" : undefined
  }
}

/** The mark as a word; nothing for an event that holds. */
export const marked = (mark: Doubt | undefined): Html =>
  mark === undefined ? nothing : html`<strong class="mark">${mark}</strong>`
