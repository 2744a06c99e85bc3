/**
 * Prints documents with a Chromium that is started on first use, kept warm, renewed now and then,
 * and closed when idle. Few documents at once, few that wait: a browser's memory is the service's.
 */
import { Cause, Effect, Layer, Option, RcRef, Schedule, Semaphore } from "effect"
import {
  PdfBusy,
  type PdfDocument,
  PdfFailed,
  PdfRenderer,
  type PdfUnavailable
} from "../../ports/PdfRenderer.ts"
import { type RunningBrowser, startBrowser } from "./Browser.ts"
import type { ChromiumSettings } from "./FindChromium.ts"
import { printDocument } from "./PrintedDocument.ts"

export interface PdfRendererSettings extends ChromiumSettings {
  /** Documents that wait for their turn at most. */
  readonly waitingMax?: number
  /** Milliseconds that one document may take, its turn in the queue not counted. */
  readonly documentMsMax?: number
  /** Documents that one browser prints before another takes its place. */
  readonly documentsPerBrowser?: number
  /** Milliseconds after which an unused browser is closed. */
  readonly idleMs?: number
}

/** Printing is the work of one core; the service needs the others. */
const PRINTED_AT_ONCE = 1
const WAITING_MAX = 16
const DOCUMENT_MS_MAX = 60_000
const DOCUMENTS_PER_BROWSER = 200
const IDLE_MS = 3 * 60_000
const RETRY_AFTER_SECONDS = 5

/**
 * False for a browser that crashed, hangs, or still works on a document that is not waited for any
 * more.
 */
const isDocumentsFault = (cause: Cause.Cause<PdfFailed>): boolean => {
  const failure = Option.getOrUndefined(Cause.findErrorOption(cause))
  return failure?.reason === "too_large" || failure?.reason === "refused"
}

const failureOf = (cause: unknown): PdfFailed =>
  cause instanceof PdfFailed
    ? cause
    : new PdfFailed({
        reason: "crashed",
        message: "the browser broke down while it printed the document",
        cause
      })

const timedOut = (milliseconds: number) =>
  new PdfFailed({
    reason: "timeout",
    message: `the document was not printed within ${milliseconds / 1_000} s`,
    cause: new Cause.TimeoutError()
  })

/** Documents hold what clients sent: without the sandbox one wall less is around it. */
const warnOfNoSandbox = (reason: string) =>
  Effect.logWarning(
    `Chromium prints without its sandbox: ${reason}; or set ALK_CHROMIUM_SANDBOX to off if `
      + "something else keeps it in, to required if it must not print so"
  )

export const layerChromium = (settings: PdfRendererSettings): Layer.Layer<PdfRenderer> => {
  const {
    documentMsMax = DOCUMENT_MS_MAX,
    documentsPerBrowser = DOCUMENTS_PER_BROWSER,
    idleMs = IDLE_MS,
    waitingMax = WAITING_MAX
  } = settings
  return Layer.effect(
    PdfRenderer,
    Effect.gen(function* () {
      let hasStarted = false
      /** Where a browser has started before, one that does not start is no missing browser. */
      const acquire = startBrowser(settings).pipe(
        Effect.tap(({ unsandboxed }) =>
          hasStarted || unsandboxed === undefined ? Effect.void : warnOfNoSandbox(unsandboxed)
        ),
        Effect.tap(() => Effect.sync(() => (hasStarted = true))),
        Effect.mapError((error) => (hasStarted ? failureOf(error) : error))
      )
      const warm = yield* RcRef.make({ acquire, idleTimeToLive: idleMs })
      const turns = yield* Semaphore.make(PRINTED_AT_ONCE)
      let present = 0

      /** The warm browser, or a new one if that has ended or printed enough. */
      const browserInUse = Effect.gen(function* () {
        const running = yield* RcRef.get(warm)
        if (running.browser.isConnected() && running.printed < documentsPerBrowser) return running
        yield* RcRef.invalidate(warm)
        return yield* RcRef.get(warm)
      })

      const printWith = (running: RunningBrowser, document: PdfDocument) =>
        Effect.tryPromise({
          try: () => {
            running.printed += 1
            return printDocument(running.browser, document)
          },
          catch: failureOf
        }).pipe(
          Effect.timeoutOrElse({
            duration: documentMsMax,
            orElse: () => Effect.fail(timedOut(documentMsMax))
          }),
          Effect.onError((cause) =>
            isDocumentsFault(cause) ? Effect.void : RcRef.invalidate(warm)
          )
        )

      const print = (
        document: PdfDocument
      ): Effect.Effect<Uint8Array, PdfUnavailable | PdfFailed> =>
        Effect.scoped(Effect.flatMap(browserInUse, (running) => printWith(running, document))).pipe(
          // The browser may have been killed for what it had not done: one more try, with another.
          Effect.retry({
            schedule: Schedule.recurs(1),
            while: (error) => error._tag === "PdfFailed" && error.reason === "crashed"
          })
        )

      const render = Effect.fn("PdfRenderer.render")(function* (document: PdfDocument) {
        if (present >= PRINTED_AT_ONCE + waitingMax) {
          return yield* new PdfBusy({ waitingMax, retryAfterSeconds: RETRY_AFTER_SECONDS })
        }
        present += 1
        return yield* turns
          .withPermits(1)(print(document))
          .pipe(Effect.ensuring(Effect.sync(() => void (present -= 1))))
      })
      return PdfRenderer.of({ render })
    })
  )
}
