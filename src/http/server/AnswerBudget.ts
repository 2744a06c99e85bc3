/**
 * How many bytes large answers may hold together while they are on their way, in this process and of
 * a tenant, whose share links count for themselves. When that is used up, slow readers give way, then
 * those of the tenant that holds the most, and what does not fit is refused.
 */
import type { ServerResponse } from "node:http"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Context } from "effect"
import { HttpBody, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { ApiError, unavailable } from "../messages/ApiError.ts"
import { BodyBudget, type Holder } from "../messages/BodyBudget.ts"
import { SSE_TYPE } from "../messages/MediaTypes.ts"
import { isShared } from "../messages/StaticAnswer.ts"
import { ReaderStalled } from "./ReaderStalled.ts"

const MIB = 1_048_576
/** Answers below are not counted: a connection has one. */
const COUNTED_FROM = 65_536
/** What a stream of lines or a file holds on its way, however long it is. */
const STREAM_BYTES = 4 * MIB
/** The part of all that is one tenant's: half. */
const TENANT_SHARE = 2
/** Bytes per second below which a reader gives way when others need the room. */
const SLOW_BYTES_PER_SECOND = 65_536
/** Milliseconds that every reader is given before it can be called slow. */
const SLOW_AFTER_MS = 10_000

/** Bytes that all answers of this process may hold, and when a reader can be called slow. */
export const AnswerLimits = Context.Reference<{
  readonly bytesMax: number
  readonly slowAfterMs: number
}>("alk/http/AnswerLimits", {
  defaultValue: () => ({ bytesMax: 256 * MIB, slowAfterMs: SLOW_AFTER_MS })
})

/** What node counts of a socket, down to the system's own buffer. */
interface WithHandle {
  readonly _handle?: { readonly bytesWritten: number; readonly writeQueueSize: number } | null
}

class HeldAnswer implements Holder {
  readonly #slowAfterMs: number
  readonly #response: ServerResponse
  /** From where its reader is measured: its start, or the last look that found it fast. */
  #since: { readonly at: number; readonly left: number }
  readonly #budgets: Array<BodyBudget> = []
  readonly #size: number
  bytes = 0

  constructor(response: ServerResponse, size: number, now: number, slowAfterMs: number) {
    this.#response = response
    this.#size = size
    this.#slowAfterMs = slowAfterMs
    this.#since = { at: now, left: this.#left }
  }

  /** Bytes that have left its connection, of those too that were given to it as one piece. */
  get #left(): number {
    const { _handle: handle } = (this.#response.socket ?? {}) as WithHandle
    return handle ? handle.bytesWritten - handle.writeQueueSize : 0
  }

  rate(now: number): number {
    const { at, left } = this.#since
    return ((this.#left - left) / Math.max(1, now - at)) * 1_000
  }

  /** True if the budget has room for it. */
  fits(budget: BodyBudget): boolean {
    if (!budget.take(this.#size, 0, this)) return false
    this.bytes = this.#size
    this.#budgets.push(budget)
    return true
  }

  close(): void {
    this.bytes = 0
    for (const budget of this.#budgets.splice(0)) budget.put(this.#size, this)
  }

  slowness(now: number): number | undefined {
    if (now - this.#since.at < this.#slowAfterMs) return undefined
    const rate = this.rate(now)
    // Where nothing waits, what makes the answer is slow.
    const waits = (this.#response.socket?.writableLength ?? 0) > 0
    if (waits && rate < SLOW_BYTES_PER_SECOND) return rate
    this.#since = { at: now, left: this.#left }
    return undefined
  }

  yield(): void {
    this.close()
    this.#response.socket?.destroy(new ReaderStalled())
  }
}

/** Bytes that an answer is counted for. */
const sizeOf = ({ body, headers }: HttpServerResponse.HttpServerResponse): number => {
  if (body._tag === "Uint8Array") {
    return body.contentLength < COUNTED_FROM || isShared(body.body) ? 0 : body.contentLength
  }
  // Live streams have limits of their own.
  const isLive = headers["content-type"]?.startsWith(SSE_TYPE) === true
  return body._tag === "Stream" && !isLive ? STREAM_BYTES : 0
}

const inMib = (bytes: number): string => `${Math.floor(bytes / MIB)} MiB`

const ofTenant = (bytes: number): ApiError =>
  new ApiError({
    code: "rate_limited",
    message:
      `answers of this tenant that are not read yet hold ${inMib(bytes)}, the most allowed; `
      + "read them, or try again"
  })

const ofAll = (): ApiError =>
  unavailable("answers that are not read yet have used up their memory; try again")

/** Text as bytes, so that the text and what the connection makes of it are not held as well. */
const asBytes = (response: HttpServerResponse.HttpServerResponse) => {
  const { body } = response
  return body._tag === "Uint8Array" && body.text !== undefined
    ? HttpServerResponse.setBody(response, HttpBody.uint8Array(body.body, body.contentType))
    : response
}

export class AnswerBudget {
  readonly #all: BodyBudget
  readonly #bytesMax: number
  readonly #slowAfterMs: number
  /** By tenant; its share links have one of their own. */
  readonly #owners = new Map<string, BodyBudget>()

  constructor({ bytesMax, slowAfterMs }: { bytesMax: number; slowAfterMs: number }) {
    this.#bytesMax = bytesMax
    this.#slowAfterMs = slowAfterMs
    this.#all = new BodyBudget(bytesMax)
  }

  /** True once there is room in all: of owners that hold more, the largest gives way first. */
  #fits(held: HeldAnswer, own: BodyBudget): boolean {
    while (!held.fits(this.#all)) {
      const others = [...this.#owners.values()].filter(({ bytes }) => bytes > own.bytes)
      const largest = others.sort((left, right) => right.bytes - left.bytes)[0]
      if (largest === undefined) return false
      largest.giveWay()
    }
    return true
  }

  /** The answer, which is counted until its connection has taken all of it; or why it is refused. */
  held(
    request: HttpServerRequest.HttpServerRequest,
    answer: HttpServerResponse.HttpServerResponse,
    owner = ""
  ): HttpServerResponse.HttpServerResponse | ApiError {
    const bytesMax = this.#bytesMax / TENANT_SHARE
    // One that is larger still comes alone.
    const size = request.method === "HEAD" ? 0 : Math.min(sizeOf(answer), bytesMax)
    if (size === 0) return answer
    const response = NodeHttpServerRequest.toServerResponse(request) as ServerResponse
    if (response.destroyed) return answer
    const own = this.#owners.get(owner) ?? new BodyBudget(bytesMax)
    const held = new HeldAnswer(response, size, this.#all.now(), this.#slowAfterMs)
    if (!held.fits(own)) return ofTenant(bytesMax)
    if (!this.#fits(held, own)) {
      held.close()
      return ofAll()
    }
    this.#owners.set(owner, own)
    response.once("close", () => {
      held.close()
      if (own.bytes === 0 && this.#owners.get(owner) === own) this.#owners.delete(owner)
    })
    return asBytes(answer)
  }
}
