/**
 * The outcome of a verification in words. A broken chain is said as loudly as an intact one, and
 * neither more than was checked.
 */
import type { BreakReason, TenantReport, VerifyReport } from "../../verify/Verifier.ts"
import { counted } from "./ShownText.ts"

export interface Verdict {
  readonly tone: "intact" | "broken" | "neutral"
  /** One or two words, for the largest type on the cover. */
  readonly word: string
  readonly sentence: string
}

/** That the service says more of the chain than that it holds. */
const besideOf = ({ notices = [] }: VerifyReport): string =>
  notices.length === 0
    ? ""
    : ` ${counted(notices.length, "notice")} of the service: see what is not established.`

/** Of one chain; `noun` is what the chain is made of, in the singular. */
export const chainVerdictOf = (report: VerifyReport, noun = "event"): Verdict => {
  const { breaks_total, events_checked, status } = report
  switch (status) {
    case "valid":
      return {
        tone: "intact",
        word: "Intact",
        sentence:
          `${counted(events_checked, noun)} recomputed from the stored bytes. `
          + "Every content hash, every link and every sequence number holds."
          + besideOf(report)
      }
    case "broken":
      return {
        tone: "broken",
        word: "Integrity failure",
        sentence:
          `${counted(breaks_total, "break")} found in ${counted(events_checked, noun)} checked. `
          + "This record does not match its own hash chain and must not be relied on until each "
          + "break is explained."
      }
    case "incomplete":
      return {
        tone: "broken",
        word: "Incomplete",
        sentence:
          `${counted(events_checked, noun)} checked, but the check could not be finished. `
          + "Nothing is established for what was not reached."
      }
    case "empty":
      return {
        tone: "neutral",
        word: `No ${noun}s`,
        sentence: `0 ${noun}s lie within these bounds. There was nothing to verify.`
      }
  }
}

/** Of the whole verification: a broken chain of executions is no less a failure. */
export const verdictOf = (report: TenantReport): Verdict => {
  const events = chainVerdictOf(report)
  const { traces } = report
  if (events.tone === "broken" || traces === undefined) return events
  const ofTraces = chainVerdictOf(traces, "fact")
  return ofTraces.tone !== "broken"
    ? events
    : {
        tone: "broken",
        word: ofTraces.word,
        sentence:
          `The chain of agent executions does not hold. ${ofTraces.sentence} The chain of `
          + "events holds."
      }
}

/** What each kind of break means, for a reader who does not know the scheme. */
export const reasonText = (reason: BreakReason): string => {
  switch (reason) {
    case "content_mismatch":
      return "The stored content is not what was hashed: the event was changed afterwards."
    case "hash_mismatch":
      return "The event's hash does not follow from its content, place and predecessor."
    case "prev_hash_mismatch":
      return "The event does not link to the one before it."
    case "sequence_gap":
      return "Sequence numbers are missing: events were removed."
    case "duplicate_sequence":
      return "More than one event claims this place in the chain."
    case "tail_missing":
      return "The chain ends before the place that the log names as its end."
    case "checkpoint_mismatch":
      return "The chain contradicts a checkpoint that was signed earlier."
  }
}

/** How far the check can be trusted without further means. */
export const assuranceText = (assurance: VerifyReport["assurance"]): string => {
  switch (assurance) {
    case "self_attested":
      return (
        "Self-attested: the end of the chain was compared with the service's own log. A reader who "
        + "keeps a signed checkpoint can establish more."
      )
    case "signed":
      return "Signed: the chain was compared with a checkpoint under the service's Ed25519 key."
    case "timestamped":
      return (
        "Timestamped: the chain was compared with a signed checkpoint that a timestamp authority "
        + "has dated."
      )
  }
}
