/** Records the requests of a Fastify application. Its shapes are written down here: nothing is imported. */
import { type AuditOptions, type Logs, logRequest, pathOf } from "../RequestEvent.ts"

export type { AuditOptions, Handled, Logs } from "../RequestEvent.ts"

/** What is used of a request of Fastify 4 and 5. */
export interface FastifyRequest {
  readonly method: string
  readonly url: string
}

/** What is used of its reply. */
export interface FastifyReply {
  readonly statusCode: number
  /** Milliseconds. */
  readonly elapsedTime: number
}

/** What is used of an instance. */
export interface FastifyInstance<Request> {
  addHook(
    name: "onResponse",
    hook: (request: Request, reply: FastifyReply, done: () => void) => void
  ): unknown
}

/** Tells Fastify that the hooks are for the whole application, not for what the plugin registers. */
const SKIP_OVERRIDE = Symbol.for("skip-override")

/** `app.register(audit(client, { actor: (request) => … }))`, before the routes. */
export const audit = <Request extends FastifyRequest>(
  client: Logs,
  options: AuditOptions<Request>
) => {
  const plugin = (app: FastifyInstance<Request>, _: unknown, registered: () => void): void => {
    app.addHook("onResponse", (request, reply, done) => {
      const { elapsedTime: durationMs, statusCode: status } = reply
      const { method, url } = request
      logRequest(client, options, request, { method, path: pathOf(url), status, durationMs })
      done()
    })
    registered()
  }
  return Object.assign(plugin, { [SKIP_OVERRIDE]: true })
}
