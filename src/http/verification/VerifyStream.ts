/**
 * A long check as lines: progress now and then, the report last. A check that fails before its
 * first line is refused like any other request; a client that hangs up ends it.
 */
import { type Cause, Clock, Effect, Exit, Queue, Scope, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import type { VerifyProgress, VerifyReport } from "../../verify/Verifier.ts"
import { NDJSON_TYPE } from "../messages/MediaTypes.ts"

/** Milliseconds between two lines of progress. */
const PROGRESS_MS = 1_000
/** Lines that wait for a slow reader; the check waits with them. */
const LINES_MAX = 16

const progressLine = ({
  breaksTotal,
  eventsChecked,
  hash,
  of,
  upToSequence
}: VerifyProgress): string =>
  `${JSON.stringify({
    events_checked: eventsChecked,
    up_to_sequence: upToSequence,
    of,
    hash,
    breaks_total: breaksTotal
  })}\n`

/** Called with the progress while the check runs. */
export type OnProgress = (progress: VerifyProgress) => Effect.Effect<void>

/** The answer to a check that says how far it has come. */
export const reportLines = <E, R>(
  check: (onProgress: OnProgress) => Effect.Effect<VerifyReport, E, R>
): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R> =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const lines = yield* Queue.bounded<string, E | Cause.Done>(LINES_MAX)
    let toldAt = yield* Clock.currentTimeMillis
    const onProgress: OnProgress = (progress) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        if (now - toldAt < PROGRESS_MS) return Effect.void
        toldAt = now
        return Effect.asVoid(Queue.offer(lines, progressLine(progress)))
      })
    const close = Scope.close(scope, Exit.void)
    const first = yield* check(onProgress).pipe(
      Effect.flatMap((report) => Queue.offer(lines, `${JSON.stringify(report)}\n`)),
      Queue.into(lines),
      Effect.forkIn(scope),
      Effect.andThen(Queue.take(lines)),
      // There is always a report before the end.
      Effect.catchIf(isDone, () => Effect.die(new Error("a check without a report"))),
      Effect.onError(() => close)
    )
    const text = Stream.concat(Stream.succeed(first), Stream.fromQueue(lines))
    return HttpServerResponse.stream(text.pipe(Stream.encodeText, Stream.ensuring(close)), {
      contentType: NDJSON_TYPE
    })
  }) as Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>

const isDone = (error: unknown): error is Cause.Done =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === "Done"
