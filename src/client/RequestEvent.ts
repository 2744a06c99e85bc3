/**
 * The event of one HTTP request that a server has handled: what the middleware of all frameworks
 * have in common.
 */
import type { EventInput } from "./events/EventInput.ts"

/** The part of a client that middleware use. */
export interface Logs {
  /** A method, so that clients with a catalogue of actions fit too. */
  log(event: EventInput): string
}

/** A request as its server has answered it. */
export interface Handled {
  /** In capitals. */
  readonly method: string
  /** Without the query, which may hold secrets. */
  readonly path: string
  /** Of the answer. */
  readonly status: number
  readonly durationMs: number
}

/** What is recorded of requests. Where a function gives undefined, the request is not recorded. */
export interface AuditOptions<Request> {
  /** Who sent it. */
  readonly actor: (request: Request) => EventInput["actor"] | undefined
  /** By default `http.get`, `http.post`, … */
  readonly action?: (request: Request, handled: Handled) => string | undefined
  /** By default the path. */
  readonly resource?: (request: Request, handled: Handled) => EventInput["resource"] | undefined
  /** Beside method, status and duration, which are in `http`. */
  readonly metadata?: (request: Request, handled: Handled) => Readonly<Record<string, unknown>>
}

/** success: it was done. failure: it was refused. error: it went wrong. */
const outcomeOf = (status: number): NonNullable<EventInput["outcome"]> =>
  status >= 500 ? "error" : status >= 400 ? "failure" : "success"

const eventOf = <Request>(
  options: AuditOptions<Request>,
  request: Request,
  handled: Handled
): EventInput | undefined => {
  const { durationMs, method, path, status } = handled
  const actor = options.actor(request)
  const action = options.action ? options.action(request, handled) : `http.${method.toLowerCase()}`
  const resource = options.resource
    ? options.resource(request, handled)
    : { id: path, type: "path" }
  if (actor === undefined || action === undefined || resource === undefined) return undefined
  const duration_ms = Math.round(durationMs)
  const metadata = {
    ...options.metadata?.(request, handled),
    http: { method, status, duration_ms }
  }
  return { actor, action, resource, outcome: outcomeOf(status), metadata }
}

/** Log what became of a request. Never throws: the request is answered already. */
export const logRequest = <Request>(
  client: Logs,
  options: AuditOptions<Request>,
  request: Request,
  handled: Handled
): void => {
  try {
    const event = eventOf(options, request, handled)
    if (event !== undefined) client.log(event)
  } catch (error) {
    console.error(`alk: ${handled.method} ${handled.path} is not recorded`, error)
  }
}

/** The path of an address without its query. */
export const pathOf = (address: string): string => address.split("?", 1)[0] ?? ""
