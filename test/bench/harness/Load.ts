/**
 * Load through the HTTP API: as fast as it goes, or at a rate. Bodies are made before, so that the
 * generator takes little of the machine.
 */
import { setTimeout as sleep } from "node:timers/promises"
import type { Api } from "./Api.ts"
import { batchBody, eventText, type Size } from "./Events.ts"

export interface LoadShape {
  /** Events of a request; 1 is a request to the route of single events. */
  readonly batch: number
  readonly size: Size
  /** Answered when the events are in every list, instead of when they are durable. */
  readonly sync: boolean
  /** Requests at once. */
  readonly clients: number
}

export interface LoadResult {
  readonly events: number
  /** From the first request until the newest events are in every list. */
  readonly seconds: number
  /** Requests that were answered 503 or 429 and sent again. */
  readonly refused: number
  /** Looks whether everything else is there: of many tenants that costs as much as the load. */
  readonly settled: () => Promise<void>
}

/** Receipts of the newest requests that the clock waits for. */
const NEWEST = 64

const BODIES_BYTES_MAX = 64_000_000
const BODIES_MAX = 64
/** Milliseconds until a refused request is sent again. */
const REFUSED_PAUSE_MS = 50

/** Different bodies, as many as are reasonable to hold. */
export const bodiesOf = ({ batch, size }: LoadShape): ReadonlyArray<Buffer> => {
  if (batch === 1) {
    return Array.from({ length: BODIES_MAX * 100 }, (_, n) => Buffer.from(eventText(n, size)))
  }
  const bytes = batchBody(0, batch, size).length
  const count = Math.max(1, Math.min(BODIES_MAX, Math.floor(BODIES_BYTES_MAX / bytes)))
  return Array.from({ length: count }, (_, n) => batchBody(n * batch, batch, size))
}

export const pathOf = ({ batch, sync }: Pick<LoadShape, "batch" | "sync">): string =>
  `/v1/events${batch === 1 ? "" : "/batch"}${sync ? "?sync=true" : ""}`

/** Sends one body until it is taken; gives the receipt, and how often it was refused. */
const send = async (api: Api, path: string, body: Buffer): Promise<readonly [string, number]> => {
  for (let refused = 0; ; refused++) {
    const { status, text } = await api.call(path, { body })
    if (status === 429 || status === 503) {
      await sleep(REFUSED_PAUSE_MS)
      continue
    }
    if (status < 200 || status > 202) throw new Error(`${path}: ${status} ${text}`)
    return [status === 202 ? JSON.parse(text).receipt_id : "", refused]
  }
}

/**
 * As fast as the clients get answers, the tenants in turn, until `goOn` says no; then waits for the
 * last events. `goOn` gets the events sent so far.
 */
export const sendWhile = async (
  tenants: ReadonlyArray<Api>,
  shape: LoadShape,
  bodyAt: (request: number) => Buffer,
  goOn: (events: number) => boolean
): Promise<LoadResult> => {
  const path = pathOf(shape)
  // Of each client and tenant the last receipt: what the client sent before was durable before.
  const last = new Map<string, readonly [Api, string]>()
  let [requests, refused] = [0, 0]
  const started = performance.now()
  const client = async (_: unknown, number: number): Promise<void> => {
    while (goOn(requests * shape.batch)) {
      const at = requests++
      const tenant = at % tenants.length
      const [receipt, again] = await send(tenants[tenant]!, path, bodyAt(at))
      refused += again
      if (receipt === "") continue
      // In the order of the newest.
      last.delete(`${number}:${tenant}`)
      last.set(`${number}:${tenant}`, [tenants[tenant]!, receipt])
    }
  }
  await Promise.all(Array.from({ length: shape.clients }, client))
  // The newest first: with it most of the others are there, and asking costs the program too.
  const newest = [...last.values()].reverse()
  for (const [api, receipt] of newest.slice(0, NEWEST)) await api.settled(receipt)
  const seconds = (performance.now() - started) / 1_000
  if (refused > 0) process.stderr.write(`        ${refused} requests were refused and sent again\n`)
  return {
    events: requests * shape.batch,
    seconds,
    refused,
    settled: async () => {
      for (const [api, receipt] of newest.slice(NEWEST)) await api.settled(receipt)
    }
  }
}

/** As fast as it goes for so many seconds. */
export const sendFor = (
  tenants: ReadonlyArray<Api>,
  shape: LoadShape,
  bodies: ReadonlyArray<Buffer>,
  seconds: number
): Promise<LoadResult> => {
  const until = performance.now() + seconds * 1_000
  return sendWhile(
    tenants,
    shape,
    (request) => bodies[request % bodies.length]!,
    () => performance.now() < until
  )
}

/** Load at a rate that goes on in the background. */
export interface PacedLoad {
  /** Ends it; gives the events a second that came in, and how many. */
  readonly stop: () => Promise<{ readonly rate: number; readonly events: number }>
}

/** Milliseconds between two batches of the paced load. */
const PACE_MS = 50
/** Requests in flight above which the load waits: it is then below its rate, and says so. */
const PACED_REQUESTS_MAX = 32

/** Asynchronous batches to one tenant, so that together they are so many events a second. */
export const sendPaced = (api: Api, perSecond: number): PacedLoad => {
  const batch = Math.max(1, Math.round((perSecond * PACE_MS) / 1_000))
  const shape: LoadShape = { batch, size: "400 bytes", sync: false, clients: 1 }
  const bodies = bodiesOf(shape)
  const path = pathOf(shape)
  const started = performance.now()
  const inFlight = new Set<Promise<void>>()
  let [sent, stopped, receipt] = [0, false, ""]
  const loop = async (): Promise<void> => {
    while (!stopped) {
      const due = started + (sent * 1_000 * batch) / perSecond
      const wait = due - performance.now()
      if (wait > 0) await sleep(wait)
      if (inFlight.size >= PACED_REQUESTS_MAX) await Promise.race(inFlight)
      const request = send(api, path, bodies[sent++ % bodies.length]!).then(([id]) => {
        receipt = id
        inFlight.delete(request)
      })
      // The loop may sleep when it fails: whoever waits for it sees the failure.
      request.catch(() => undefined)
      inFlight.add(request)
    }
    await Promise.all(inFlight)
  }
  const done = loop()
  // A failure is thrown by stop.
  done.catch(() => undefined)
  return {
    stop: async () => {
      stopped = true
      const seconds = (performance.now() - started) / 1_000
      await done
      if (receipt !== "") await api.settled(receipt)
      return { rate: (sent * batch) / seconds, events: sent * batch }
    }
  }
}
