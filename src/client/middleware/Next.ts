/**
 * Records the requests of route handlers of Next, and of all others that take a Request and give a
 * Response. Its shapes are written down here: nothing is imported.
 */
import { type AuditOptions, type Logs, logRequest } from "../RequestEvent.ts"

export type { AuditOptions, Handled, Logs } from "../RequestEvent.ts"

/** What is used of a Request. */
export interface HandlerRequest {
  readonly method: string
  readonly url: string
}

export interface NextOptions<Request> extends AuditOptions<Request> {
  /**
   * `after` of `next/server`. A serverless function may be frozen once it has answered; with it the
   * queue is sent before.
   */
  readonly after?: (task: () => Promise<void>) => void
}

/** The part of a client that is flushed. */
export interface Flushes extends Logs {
  flush(): Promise<void>
}

const INTERNAL_ERROR = 500

/** `export const POST = audited(client, { actor: (request) => … }, async (request) => …)`. */
export const audited = <
  Request extends HandlerRequest,
  Rest extends ReadonlyArray<unknown>,
  Answer extends { readonly status: number }
>(
  client: Flushes,
  options: NextOptions<Request>,
  handler: (request: Request, ...rest: Rest) => Answer | Promise<Answer>
) => {
  const log = (request: Request, status: number, start: number): void => {
    const { method, url } = request
    const durationMs = performance.now() - start
    logRequest(client, options, request, {
      method,
      path: new URL(url).pathname,
      status,
      durationMs
    })
    // What is not stored was reported.
    options.after?.(() => client.flush().catch(() => {}))
  }
  return async (request: Request, ...rest: Rest): Promise<Answer> => {
    const start = performance.now()
    try {
      const answer = await handler(request, ...rest)
      log(request, answer.status, start)
      return answer
    } catch (error) {
      log(request, INTERNAL_ERROR, start)
      throw error
    }
  }
}
