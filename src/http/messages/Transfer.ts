/**
 * Long answers on their way: what a client gets is whole, or visibly broken off and in the log. A
 * reader that stops reading is cut off; the service may take its time over the next piece.
 */
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Cause, Context, Effect, Exit, Stream } from "effect"
import type { HttpServerRequest } from "effect/http"

/**
 * Milliseconds after which a connection is cut whose client takes nothing of what waits for it:
 * without a limit, the work that makes the answer would wait as long as the client likes.
 */
export const StalledAfter = Context.Reference<number>("alk/http/StalledAfter", {
  defaultValue: () => 60_000
})

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

/**
 * The bytes as they are. While a piece waits for the client, and only then, the connection's own
 * timer runs: it starts anew whenever any bytes leave. If the stream fails, the server destroys the
 * connection, so that no client takes a part for the whole.
 */
export const transfer = <E>(
  request: HttpServerRequest.HttpServerRequest,
  bytes: Stream.Stream<Uint8Array, E>,
  of: TransferOf
): Stream.Stream<Uint8Array, E> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const stalledMs = yield* StalledAfter
      const { socket } = NodeHttpServerRequest.toIncomingMessage(request)
      let sent = 0
      let isStalled = false
      const stalled = () => {
        isStalled = true
      }
      socket.on("timeout", stalled)
      const watched = Stream.transformPull(bytes, (pull) =>
        Effect.succeed(
          Effect.suspend(() => {
            socket.setTimeout(0)
            return pull
          }).pipe(
            Effect.tap((pieces) =>
              Effect.sync(() => {
                for (const piece of pieces) sent += piece.length
                socket.setTimeout(stalledMs)
              })
            )
          )
        )
      )
      return Stream.onExit(watched, (exit) => {
        socket.off("timeout", stalled)
        // The end of the answer may still wait for the client.
        socket.setTimeout(stalledMs)
        const reason = reasonOf(exit, isStalled)
        if (reason === undefined) return Effect.void
        return Effect.logError("an answer was broken off").pipe(
          Effect.annotateLogs({ ...of, bytes: sent, reason })
        )
      })
    })
  )
