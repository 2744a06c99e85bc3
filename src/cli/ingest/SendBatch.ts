/**
 * Sends entries until the service has decided on each of them. A request that is refused as a whole is
 * sent in halves, until the entry at fault is alone; one without an answer is sent again.
 */
import { ApiFailure } from "../../client/ApiFailure.ts"
import type { BatchAccepted, BatchResult } from "../../client/gen/Api.d.ts"
import { systemClock } from "../../client/Pause.ts"
import { settledReceipt } from "../../client/Receipts.ts"
import { withRetries } from "../../client/Request.ts"
import type { Transport } from "../../client/Transport.ts"
import { parseJson } from "../../domain/json/Json.ts"
import type { Entry } from "./Entries.ts"
import type { Reject } from "./Journal.ts"

type Sendable = Extract<Entry, { readonly body: string }>

const isSendable = (entry: Entry): entry is Sendable => "body" in entry

export interface SendParts {
  readonly transport: Transport
  /** Parameters of each request. */
  readonly query: Readonly<Record<string, string>>
  /** Ends all attempts; what they have sent may be stored. */
  readonly signal: AbortSignal
  /** Told of each attempt that is made again. */
  readonly onRetry: (failure: ApiFailure) => void
}

const rejectOf = ({ line, text }: Entry, code: string, message: string): Reject => ({
  line,
  code,
  message,
  text
})

/** Ids in the answer hardly get smaller, and both ends need their CPU for other things. */
const UNCOMPRESSED = { "accept-encoding": "identity" }

/** True if a request is refused for what it holds, and not for its key or address. */
const isOfEntries = (error: unknown): error is ApiFailure =>
  error instanceof ApiFailure && [400, 409, 413, 422].includes(error.status)

/** Of one request: what of it is refused, once the rest is in the chain. */
const attempt = async (
  { query, signal, transport }: SendParts,
  entries: ReadonlyArray<Sendable>
): Promise<ReadonlyArray<Reject>> => {
  const { text } = await transport.send({
    method: "POST",
    path: `/v1/events/batch?${new URLSearchParams({ sync: "true", ...query })}`,
    headers: UNCOMPRESSED,
    signal,
    body: `{"events":[${entries.map(({ body }) => body).join(",")}]}`
  })
  const answer = parseJson(text) as unknown as BatchAccepted | BatchResult
  const decided =
    answer.status === "committed"
      ? answer
      : await settledReceipt({ clock: systemClock, transport }, answer.receipt_id, signal)
  if (decided.status === "pending") {
    throw new ApiFailure(503, "unavailable", "the events are written, but not committed yet")
  }
  return (decided.errors ?? []).map(({ code, index, message }) =>
    rejectOf(entries[index]!, code, message)
  )
}

const sendAll = async (
  parts: SendParts,
  entries: ReadonlyArray<Sendable>
): Promise<ReadonlyArray<Reject>> => {
  if (entries.length === 0) return []
  try {
    return await withRetries({ clock: systemClock, signal: parts.signal }, () =>
      attempt(parts, entries).catch((error: unknown) => {
        if (error instanceof ApiFailure && error.isTransient) parts.onRetry(error)
        throw error
      })
    )
  } catch (error) {
    if (!isOfEntries(error)) throw error
    if (entries.length === 1) return [rejectOf(entries[0]!, error.code, error.message)]
    const half = Math.ceil(entries.length / 2)
    const first = await sendAll(parts, entries.slice(0, half))
    return [...first, ...(await sendAll(parts, entries.slice(half)))]
  }
}

/** What of a batch is refused, in the order of its lines; the rest is in the chain. */
export const sendBatch = async (
  parts: SendParts,
  batch: ReadonlyArray<Entry>
): Promise<ReadonlyArray<Reject>> => {
  const refused = await sendAll(parts, batch.filter(isSendable))
  const unreadable = batch.flatMap((entry) =>
    isSendable(entry) ? [] : [rejectOf(entry, entry.code, entry.message)]
  )
  return [...refused, ...unreadable].sort((left, right) => left.line - right.line)
}
