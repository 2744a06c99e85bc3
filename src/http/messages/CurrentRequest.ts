/**
 * What is known of the request being served: its id, its route and who sent it. Provided around
 * every handler by the request frame; a reference, so that reading it asks for nothing.
 */
import { Context } from "effect"
import type { ErrorForm } from "./ApiError.ts"

/** What logs, metrics and error bodies say of a request. */
export interface RequestFacts {
  /** `X-Request-Id`, accepted or made. */
  readonly id: string
  readonly method: string
  /** The route's template, `/v1/events/:id`; never what the client filled in. */
  readonly route: string
  readonly errorForm: ErrorForm
  /** The tenant of the key, once it is known. */
  tenantId: string | undefined
  /** Id of the key, or `admin`, once it is known. */
  keyId: string | undefined
  /** The code of the error that it is answered with. */
  code: string | undefined
  /** The answer depends on what the client accepts. */
  isNegotiated: boolean
}

/** The request that the current fiber serves. */
export const CurrentRequest: Context.Reference<RequestFacts> = Context.Reference<RequestFacts>(
  "alk/http/CurrentRequest",
  {
    defaultValue: () => ({
      id: "none",
      method: "",
      route: "",
      errorForm: "object",
      tenantId: undefined,
      keyId: undefined,
      code: undefined,
      isNegotiated: false
    })
  }
)

/** Whether requests are traced; without a collector they are not, and it costs nothing. */
export const TracesRequests: Context.Reference<boolean> = Context.Reference<boolean>(
  "alk/http/TracesRequests",
  { defaultValue: () => false }
)

/** A client's request id that may be used in headers, logs and answers as it is. */
const REQUEST_ID = /^[A-Za-z0-9._~:/+=@-]{1,128}$/

/** The client's request id if it is harmless, else a new one. */
export const requestIdOf = (header: string | undefined): string =>
  header !== undefined && REQUEST_ID.test(header) ? header : crypto.randomUUID()

/** The path of a request target, without query and fragment. */
export const pathOf = (target: string): string => /^[^?#]*/.exec(target)![0]
