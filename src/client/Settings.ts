/**
 * What a client can be told, with its defaults and limits. Reads `ALK_URL` and `ALK_API_KEY` where
 * the runtime has variables.
 */
import { variable } from "./Environment.ts"
import type { DeliveryOptions, Overflow } from "./queue/Delivery.ts"
import type { Key, TransportOptions } from "./Transport.ts"

/** Milliseconds for one request: a service that waits for its log answers within 10 s. */
const TIMEOUT_MS = 30_000

/** How to reach the service. */
export interface ConnectionOptions {
  /** Address of the service, `https://audit.example.com`. Without it `ALK_URL`. */
  readonly url?: string
  /**
   * An API key, or a function that gives the one of now. Without it `ALK_API_KEY`. `null` sends none:
   * for public routes, and for pages that have a session.
   */
  readonly key?: Key | null
  /** Sent with each request. */
  readonly headers?: Readonly<Record<string, string>>
  /** Milliseconds for one attempt of a request, 30,000 by default. */
  readonly timeoutMs?: number
  /** In place of the runtime's own. */
  readonly fetch?: typeof fetch
}

const urlOf = (given: string | undefined): string => {
  const url = given ?? variable("ALK_URL")
  if (url === undefined || url === "") {
    throw new TypeError("url: required; give the address of the service, or set ALK_URL")
  }
  if (!URL.canParse(url) || !/^https?:/.test(url)) {
    throw new TypeError(`url: must begin with http:// or https://, is ${JSON.stringify(url)}`)
  }
  return url
}

const keyOf = (given: Key | null | undefined): Key | undefined => {
  if (given === null) return undefined
  const key = given ?? variable("ALK_API_KEY")
  if (key === undefined || key === "") {
    throw new TypeError("key: required; give an API key, or set ALK_API_KEY")
  }
  if (typeof key === "string" && !/^[\x21-\x7e]+$/.test(key)) {
    throw new TypeError("key: must be visible ASCII characters without spaces; paste it anew")
  }
  return key
}

/** The options with what they leave out. Throws TypeError, which names the option and the fix. */
export const transportOptions = (options: ConnectionOptions): TransportOptions => ({
  url: urlOf(options.url),
  key: keyOf(options.key),
  headers: options.headers ?? {},
  timeoutMs: options.timeoutMs ?? TIMEOUT_MS,
  // Called as a function: browsers refuse fetch as a method of another object.
  fetch: options.fetch ?? ((...given) => fetch(...given))
})

/** Events of one request; the service takes 1,000. */
const BATCH_ITEMS = 500
/** The service takes 1,000 at once. */
const BATCH_ITEMS_MAX = 1_000
/** Bytes of one request: proxies take a mebibyte, unless they are told otherwise. */
const BATCH_BYTES = 512 * 1024
/** Milliseconds that an event waits for others. */
const LINGER_MS = 100
/** Events that wait in memory: at 1,000 a second those of 100 s. */
const QUEUE_ITEMS = 100_000
/** Bytes of their JSON. */
const QUEUE_BYTES = 64 * 1024 * 1024

/** How what is logged waits and is sent. Events and operations on traces have a queue each. */
export interface QueueOptions {
  /** Items of one request at most: 500 by default, 1,000 at most. */
  readonly batchItems?: number
  /** Bytes of one request, 512 KiB by default; a larger item goes alone. */
  readonly batchBytes?: number
  /** Milliseconds that an item waits for others, 100 by default. */
  readonly lingerMs?: number
  /** Items that wait at most, 100,000 by default. */
  readonly queueItems?: number
  /** Bytes of their JSON at most, 64 MiB by default. */
  readonly queueBytes?: number
  /**
   * What `log` does when the queue is full: `drop-newest` by default, and loudly; or `throw`. Traces
   * never throw.
   */
  readonly overflow?: Overflow
}

const positive = (name: string, value: number, max = Number.MAX_SAFE_INTEGER): number => {
  if (Number.isInteger(value) && value >= 1 && value <= max) return value
  throw new TypeError(`${name}: must be an integer from 1 to ${max}, is ${value}`)
}

/** The options with what they leave out. Throws TypeError, which names the option and the fix. */
export const deliveryOptions = (options: QueueOptions): DeliveryOptions => {
  const { overflow = "drop-newest" } = options
  if (overflow !== "drop-newest" && overflow !== "throw") {
    throw new TypeError(`overflow: must be "drop-newest" or "throw", is ${String(overflow)}`)
  }
  return {
    batchItems: positive("batchItems", options.batchItems ?? BATCH_ITEMS, BATCH_ITEMS_MAX),
    batchBytes: positive("batchBytes", options.batchBytes ?? BATCH_BYTES),
    lingerMs: positive("lingerMs", options.lingerMs ?? LINGER_MS),
    itemsMax: positive("queueItems", options.queueItems ?? QUEUE_ITEMS),
    bytesMax: positive("queueBytes", options.queueBytes ?? QUEUE_BYTES),
    overflow
  }
}
