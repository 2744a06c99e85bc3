/** Long answers on their way: what a client gets is whole, or visibly broken off and in the log. */
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Cause, Effect, Exit, Stream } from "effect"
import type { HttpServerRequest } from "effect/http"
import { ReaderStalled } from "../server/ReaderStalled.ts"

/** What is said of a transfer in the log. */
export interface TransferOf {
  readonly operation: string
  readonly tenantId: string
}

/** Why a stream has ended before its end; undefined if it has not, or the client has left. */
const reasonOf = <E>(exit: Exit.Exit<unknown, E>, isStalled: boolean): string | undefined => {
  if (Exit.isSuccess(exit)) return undefined
  if (!Cause.hasInterruptsOnly(exit.cause)) return Cause.pretty(exit.cause)
  return isStalled ? "the client stopped reading" : undefined
}

/** The bytes as they are. If the stream fails, the server destroys the connection. */
export const transfer = <E>(
  request: HttpServerRequest.HttpServerRequest,
  bytes: Stream.Stream<Uint8Array, E>,
  of: TransferOf
): Stream.Stream<Uint8Array, E> =>
  Stream.suspend(() => {
    const { socket } = NodeHttpServerRequest.toIncomingMessage(request)
    let sent = 0
    const counted = Stream.map(bytes, (piece) => {
      sent += piece.length
      return piece
    })
    return Stream.onExit(counted, (exit) => {
      const reason = reasonOf(exit, socket.errored instanceof ReaderStalled)
      if (reason === undefined) return Effect.void
      return Effect.logError("an answer was broken off").pipe(
        Effect.annotateLogs({ ...of, bytes: sent, reason })
      )
    })
  })
