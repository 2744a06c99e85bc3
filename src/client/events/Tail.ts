/** Follows the events of the service, from where a caller was or from the end of the chain. */
import { parseJson } from "../../domain/json/Json.ts"
import type { AuditEvent, Chain } from "../gen/Api.d.ts"
import type { Routes } from "../gen/Routes.d.ts"
import type { Clock } from "../Pause.ts"
import { queryText } from "../Request.ts"
import type { Transport } from "../Transport.ts"
import { followStream, type OnConnection } from "./FollowStream.ts"

/** Filters of the stream. */
export type TailQuery = Omit<Routes["GET /v1/events/stream"]["query"], "after_sequence">

export interface TailOptions {
  /** Begin after this sequence number, with what is stored already; by default with what comes. */
  readonly after?: number
  /** Ends the sequence without an error. */
  readonly signal?: AbortSignal | undefined
  /** Called when the connection is there, and when it was lost. */
  readonly onConnection?: OnConnection
}

export interface TailParts {
  readonly transport: Transport
  readonly clock: Clock
}

/** Where the chain ends now: a stream that begins without a place could not be resumed at it. */
const headOf = async ({ transport }: TailParts, signal: AbortSignal): Promise<string> => {
  const { text } = await transport.send({ method: "GET", path: "/v1/chain", signal })
  return String((parseJson(text) as Chain).head?.sequence_number ?? 0)
}

/** The events that match, as they are committed, in the order of the chain. */
export async function* tail(
  parts: TailParts,
  query: TailQuery,
  { after, onConnection = () => {}, signal = new AbortController().signal }: TailOptions
): AsyncGenerator<AuditEvent, void> {
  const path = `/v1/events/stream${queryText(query)}`
  const firstId = async (until: AbortSignal) =>
    after === undefined ? headOf(parts, until) : String(after)
  const messages = followStream(parts, path, { firstId, signal, onConnection })
  for await (const { data } of messages) {
    // An id alone moves the place to resume from.
    if (data !== "") yield parseJson(data) as AuditEvent
  }
}
