/** Records the requests of a Hono application. Its shapes are written down here: nothing is imported. */
import { type AuditOptions, type Logs, logRequest } from "../RequestEvent.ts"

export type { AuditOptions, Handled, Logs } from "../RequestEvent.ts"

/** What is used of a context of Hono 4. */
export interface HonoContext {
  readonly req: { readonly method: string; readonly path: string }
  readonly res: { readonly status: number }
}

/** The status of an answer that a thrown error has taken the place of. */
const INTERNAL_ERROR = 500

/** `app.use(audit(client, { actor: (context) => … }))`, before the routes. */
export const audit =
  <Context extends HonoContext>(client: Logs, options: AuditOptions<Context>) =>
  async (context: Context, next: () => Promise<void>): Promise<void> => {
    const start = performance.now()
    const log = (status: number): void => {
      const { method, path } = context.req
      const durationMs = performance.now() - start
      logRequest(client, options, context, { method, path, status, durationMs })
    }
    try {
      await next()
    } catch (error) {
      log(INTERNAL_ERROR)
      throw error
    }
    log(context.res.status)
  }
