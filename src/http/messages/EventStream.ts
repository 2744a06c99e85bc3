/** What all Server-Sent Event streams have in common: where they resume, and when they are closed. */
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Result } from "effect"
import type { HttpServerRequest } from "effect/http"
import { READER_LIMITS } from "../../actors/feeds/Subscriber.ts"
import { ReaderStalled } from "../server/ReaderStalled.ts"
import { SERVER_TIMES } from "../server/ServerTimes.ts"
import { invalid } from "./ApiError.ts"
import { integerParameter, type ValuesOf } from "./QueryParameters.ts"

/** What browsers send when they reconnect. */
export const LAST_EVENT_ID_HEADER = "Last-Event-ID"

const MIB = 1_048_576

const closedWhen = (): string => {
  const { bytesMax, lateBytes, lateMs } = READER_LIMITS
  const late = `more than ${lateBytes / MIB} MiB for over ${lateMs / 1_000} s`
  return `has ${bytesMax / MIB} MiB waiting, or ${late}, or takes nothing for ${SERVER_TIMES.stalledMs / 1_000} s`
}

/** What becomes of a stream whose reader is slow, in words. */
export const slowReaders =
  `A burst alone closes no stream. A reader that ${closedWhen()} is closed and resumes with its `
  + "last id; so is the slowest one when all together take too much memory. Revoking the "
  + "key closes the stream."

/** Tells when the connection is cut because its client takes nothing. */
export const whenStalled = (request: HttpServerRequest.HttpServerRequest) => {
  const { socket } = NodeHttpServerRequest.toIncomingMessage(request)
  return (stalled: () => void): void =>
    void socket.once("error", (error) => {
      if (error instanceof ReaderStalled) stalled()
    })
}

const sequenceNumber = (description: string) => integerParameter({ minimum: 0, description })

const FROM_POLYFILLS = "As `Last-Event-ID`, from what can't send headers (polyfills)."

/** Where to resume if the header isn't sent. */
export const resumeParameters = {
  after_sequence: sequenceNumber(
    "Resume after this sequence number, if there is no last event id."
  ),
  lastEventId: sequenceNumber(FROM_POLYFILLS),
  "last-event-id": sequenceNumber(FROM_POLYFILLS),
  evs_last_event_id: sequenceNumber(FROM_POLYFILLS)
}

/** Where a client resumes: what it has seen last says more than the address it first came with. */
export const resumePoint = (
  request: HttpServerRequest.HttpServerRequest,
  parameters: ValuesOf<typeof resumeParameters>
): number | undefined => {
  const { after_sequence, evs_last_event_id, lastEventId } = parameters
  const header = request.headers[LAST_EVENT_ID_HEADER.toLowerCase()]?.trim() ?? ""
  // Some send it empty before the first event.
  if (header === "") {
    return lastEventId ?? parameters["last-event-id"] ?? evs_last_event_id ?? after_sequence
  }
  const parsed = resumeParameters.lastEventId.parse(header)
  if (Result.isFailure(parsed)) throw invalid(LAST_EVENT_ID_HEADER, parsed.failure)
  return parsed.success
}
