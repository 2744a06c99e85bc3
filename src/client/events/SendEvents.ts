/**
 * Sends events to the service, and reads what became of each: a batch for the queue, and one alone
 * for callers that wait.
 */
import { parseJson } from "../../domain/json/Json.ts"
import { ApiFailure } from "../ApiFailure.ts"
import { isPageHidden } from "../Environment.ts"
import type {
  AuditEvent,
  BatchAccepted,
  BatchResult,
  CreatedAuditEvent,
  EventAccepted,
  Receipt
} from "../gen/Api.d.ts"
import { jsonText } from "../JsonText.ts"
import type { Loggable, Send, Verdict } from "../queue/Delivery.ts"
import { type SenderParts, settledReceipt } from "../Receipts.ts"

/** Bytes of a request that a browser still sends when its page is closed. */
const KEEPALIVE_BYTES_MAX = 60 * 1024

/** Of an answer or a receipt: its errors by place, and how many were there before. */
const verdictOf = ({ duplicates, errors }: Pick<Receipt, "duplicates" | "errors">): Verdict => ({
  refused: errors ?? [],
  duplicates: duplicates?.length ?? 0
})

/**
 * Batches of events. Ids that the client made can't be another event's, so that it is enough to know
 * that the request is written to the log. With ids of the caller it waits for the decision.
 */
export const eventSender = ({ clock, reports, transport }: SenderParts): Send => {
  return async (items, signal) => {
    const isDecided = items.some(({ isNamedByCaller }) => isNamedByCaller)
    const body = `{"events":[${items.map(({ text }) => text).join(",")}]}`
    const { text } = await transport.send({
      method: "POST",
      path: `/v1/events/batch${isDecided ? "?sync=true" : ""}`,
      body,
      signal,
      keepalive: isPageHidden() && body.length <= KEEPALIVE_BYTES_MAX
    })
    const answer = parseJson(text) as BatchAccepted | BatchResult
    for (const { field, index, message } of answer.warnings ?? []) {
      // One with a message is of what is stored, only otherwise.
      if (message === undefined) reports.unknownField(items[index]?.id ?? "", field)
    }
    if (!isDecided || answer.status === "committed") return verdictOf(answer)
    const receipt = await settledReceipt({ clock, transport }, answer.receipt_id, signal)
    return verdictOf(receipt.status === "pending" ? answer : receipt)
  }
}

/** Where an event is in the chain. */
export interface Recorded {
  readonly id: string
  readonly sequence_number: number
  /**
   * The event as it is stored, with its hashes: keep it, and the service can be held to it. Undefined
   * if the commit took longer than the service waits for it (10 s).
   */
  readonly event: AuditEvent | undefined
}

const isStored = (answer: CreatedAuditEvent | EventAccepted): answer is CreatedAuditEvent =>
  "sequence_number" in answer

/** One attempt to record one event. Rejects with ApiFailure or Unstorable; a repetition counts once. */
export const recordOnce = async (
  { clock, reports, transport }: SenderParts,
  { id, value }: Loggable,
  signal: AbortSignal | undefined
): Promise<Recorded> => {
  const path = "/v1/events?sync=true"
  const body = jsonText(value)
  const { text } = await transport.send({ method: "POST", path, body, signal })
  const answer = parseJson(text) as CreatedAuditEvent | EventAccepted
  const { warnings = [], ...event } = answer
  for (const { field, message } of warnings) {
    if (message === undefined) reports.unknownField(id, field)
  }
  if (isStored(answer)) {
    return { id, sequence_number: answer.sequence_number, event: event as AuditEvent }
  }
  const receipt = await settledReceipt({ clock, transport }, answer.receipt_id, signal)
  const [refused] = receipt.errors ?? []
  if (refused !== undefined) throw new ApiFailure(409, refused.code, refused.message)
  const sequence = receipt.first_sequence_number ?? receipt.duplicates?.[0]?.sequence_number
  if (sequence === undefined) {
    throw new ApiFailure(503, "unavailable", "the event is written, but not committed yet")
  }
  return { id, sequence_number: sequence, event: undefined }
}
