/** Records the requests of an Express application. Its shapes are written down here: nothing is imported. */
import { type AuditOptions, type Logs, logRequest, pathOf } from "../RequestEvent.ts"

export type { AuditOptions, Handled, Logs } from "../RequestEvent.ts"

/** What is used of a request of Express 4 and 5. */
export interface ExpressRequest {
  readonly method: string
  readonly originalUrl: string
}

/** What is used of its response. */
export interface ExpressResponse {
  readonly statusCode: number
  readonly writableFinished: boolean
  once(event: "close", listener: () => void): unknown
}

/** The status that proxies log of a client that did not wait for the answer. */
const CLIENT_CLOSED = 499

/** `app.use(audit(client, { actor: (request) => … }))`, before the routes. */
export const audit =
  <Request extends ExpressRequest>(client: Logs, options: AuditOptions<Request>) =>
  (request: Request, response: ExpressResponse, next: () => void): void => {
    const start = performance.now()
    response.once("close", () => {
      logRequest(client, options, request, {
        method: request.method,
        path: pathOf(request.originalUrl),
        status: response.writableFinished ? response.statusCode : CLIENT_CLOSED,
        durationMs: performance.now() - start
      })
    })
    next()
  }
