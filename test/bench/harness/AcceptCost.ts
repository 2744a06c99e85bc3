/**
 * Microseconds of CPU that accept takes for an event, from the bytes of a batch to a command's
 * events, on the fast path and on the slow one. Batches of 1,000 events.
 */
import { parseStrictBatch } from "../../../src/domain/json/StrictBatch.ts"
import { BATCH_ITEMS_MAX } from "../../../src/domain/records/Command.ts"
import { finish } from "../../../src/domain/Slices.ts"
import { FastAccept } from "../../../src/services/ingest/fast/FastAccept.ts"
import { prepareRequest } from "../../../src/services/ingest/fast/PrepareRequest.ts"
import { type PrepareItemsOptions, prepareItems } from "../../../src/services/ingest/Ingest.ts"
import { defaultPrepareLimits } from "../../../src/services/ingest/Prepare.ts"

const EVENTS = 1_000
/** Batches of a measurement. */
const ROUNDS = 100
/** The best of so many: what disturbs a measurement only makes it longer. */
const TRIES = 3

const options: PrepareItemsOptions = {
  mode: "batch",
  tenantId: "acme",
  secret: "0123456789abcdef0123456789abcdef",
  limits: defaultPrepareLimits,
  idempotency: undefined
}

const event = (at: number) => ({
  actor: { id: `user_${at % 97}`, type: "human", email: `u${at}@example.com` },
  action: "document.read",
  resource: { id: `doc_${at % 501}`, type: "document", name: `Report — ${at} 日本` },
  outcome: at % 7 === 0 ? "failure" : "success",
  timestamp: `2026-11-20T10:00:00.${String(at).padStart(6, "0")}Z`,
  metadata: {
    ip: "10.1.2.3",
    ua: "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36",
    req: "abcdef0123456789"
  }
})

const batchOf = (make: (at: number) => object): Buffer =>
  Buffer.from(JSON.stringify({ events: Array.from({ length: EVENTS }, (_, at) => make(at)) }))

const bodies: Readonly<Record<string, Buffer>> = {
  "new ids": batchOf(event),
  "ids of the client": batchOf((at) => ({ id: `event-${at}`, ...event(at) })),
  "a field in ten that is not known": batchOf((at) =>
    at % 10 === 0 ? { ...event(at), unknown: 1 } : event(at)
  ),
  "a field in each that is not known": batchOf((at) => ({ ...event(at), unknown: 1 }))
}

const accept = new FastAccept()

const paths: Readonly<Record<string, (body: Buffer) => unknown>> = {
  fast: (body) => finish(prepareRequest(accept, body, "batch", options)),
  slow: (body) => {
    const batch = finish(parseStrictBatch(body, "events", BATCH_ITEMS_MAX))
    return "items" in batch && finish(prepareItems(batch.items, options))
  }
}

/** Microseconds of CPU an event. */
const measure = (run: (body: Buffer) => unknown, body: Buffer, rounds: number): number => {
  const start = process.cpuUsage()
  for (let round = 0; round < rounds; round++) run(body)
  const { system, user } = process.cpuUsage(start)
  return (user + system) / rounds / EVENTS
}

export interface AcceptCost {
  readonly name: string
  readonly path: string
  /** Of an event as sent. */
  readonly bytes: number
  readonly micros: number
}

/** One after another, as they are measured. */
export function* acceptCosts(rounds = ROUNDS): Generator<AcceptCost> {
  for (const [name, body] of Object.entries(bodies)) {
    for (const [path, run] of Object.entries(paths)) {
      measure(run, body, rounds)
      const tries = Array.from({ length: TRIES }, () => measure(run, body, rounds))
      yield { name, path, bytes: body.length / EVENTS, micros: Math.min(...tries) }
    }
  }
}
