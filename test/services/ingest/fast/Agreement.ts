/** What the fast path makes of a request, held against what StrictJson and Prepare make of it. */
import { assert } from "vitest"
import { appendSuffix, recompute } from "../../../../src/domain/events/HashChain.ts"
import { parseStrictBatch, parseStrictLines } from "../../../../src/domain/json/StrictBatch.ts"
import { parseStrict, type StrictResult } from "../../../../src/domain/json/StrictJson.ts"
import { BATCH_ITEMS_MAX } from "../../../../src/domain/records/Command.ts"
import {
  eventsOf,
  type PreparedEvent,
  readEventBatch
} from "../../../../src/domain/records/EventBatch.ts"
import { finish } from "../../../../src/domain/Slices.ts"
import { FastAccept, type RequestForm } from "../../../../src/services/ingest/fast/FastAccept.ts"
import { prepareRequest } from "../../../../src/services/ingest/fast/PrepareRequest.ts"
import {
  type PrepareItemsOptions,
  prepareItems,
  readingOf
} from "../../../../src/services/ingest/Ingest.ts"
import { defaultPrepareLimits } from "../../../../src/services/ingest/Prepare.ts"
import { HostileEvents } from "./HostileEvents.ts"

export const accept = new FastAccept()

export const optionsFor = (
  form: RequestForm,
  given: Partial<PrepareItemsOptions> = {}
): PrepareItemsOptions => ({
  mode: form === "single" ? "single" : "batch",
  tenantId: "acme",
  secret: "0123456789abcdef0123456789abcdef",
  limits: defaultPrepareLimits,
  idempotency: undefined,
  ...given
})

/** The items as StrictJson reads them; undefined if it refuses the request as a whole. */
const readSlowly = (
  body: Buffer,
  form: RequestForm,
  options: PrepareItemsOptions
): ReadonlyArray<StrictResult> | undefined => {
  const reading = readingOf(options)
  if (form === "single") return [parseStrict(body, reading)]
  const batch =
    form === "lines"
      ? finish(parseStrictLines(body, BATCH_ITEMS_MAX, reading))
      : finish(parseStrictBatch(body, "events", BATCH_ITEMS_MAX, reading))
  return "items" in batch ? batch.items : undefined
}

const NEW_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const TIME_LENGTH = 27

/** The body without a new id, and without the time of acceptance where it was used. */
const withoutNew = ({ body, id }: PreparedEvent, isNew: boolean, hasTime: boolean): string => {
  const start = isNew ? `{"id":"${id}"`.length : 0
  const time = body.indexOf('"timestamp":"') + '"timestamp":"'.length
  return hasTime ? body.slice(start) : body.slice(start, time) + body.slice(time + TIME_LENGTH)
}

/** Fail unless both events are one: apart from new ids, salts, and what is hashed with them. */
const compareEvents = (fast: PreparedEvent, slow: PreparedEvent, hasTime: boolean): void => {
  const isNew = NEW_ID.test(slow.id) && fast.id !== slow.id
  if (isNew) assert.match(fast.id, NEW_ID)
  else assert.strictEqual(fast.id, slow.id)
  assert.strictEqual(fast.index, slow.index)
  assert.strictEqual(withoutNew(fast, isNew, hasTime), withoutNew(slow, isNew, hasTime))
  assert.strictEqual(fast.dedupKey, slow.dedupKey)
  assert.strictEqual(fast.fingerprint, slow.fingerprint)
  assert.strictEqual(fast.detailsSalt === undefined, slow.detailsSalt === undefined)
  const stored =
    fast.body
    + appendSuffix({
      tenantId: "acme",
      sequenceNumber: 1,
      createdAt: "2026-11-21T10:00:00.000000Z",
      prevHash: "0".repeat(64),
      contentHash: fast.contentHash,
      hash: "0".repeat(64),
      detailsSalt: fast.detailsSalt,
      detailsHash: fast.detailsHash
    })
  const event = recompute(stored)
  assert.isTrue(event?.exact, stored)
  assert.strictEqual(event?.detailsHash, fast.detailsHash)
  assert.strictEqual(event?.contentHash, fast.contentHash)
}

/** Items of a request that the fast path did, and all of them. */
export interface Share {
  readonly done: number
  readonly events: number
}

/** Fail unless both paths make the same of a request. */
export const compare = (
  body: Buffer,
  form: RequestForm,
  given: Partial<PrepareItemsOptions> = {}
): Share => {
  const options = optionsFor(form, given)
  const fast = finish(prepareRequest(accept, body, form, options))
  const items = readSlowly(body, form, options)
  const slow = items === undefined ? undefined : finish(prepareItems(items, options))
  const events = slow?.events.count ?? 0
  if (fast === undefined) return { done: 0, events }
  assert.isDefined(slow, "the fast path takes what StrictJson refuses")
  assert.strictEqual(fast.count, items!.length)
  assert.deepStrictEqual(fast.items.errors, slow!.errors)
  assert.deepStrictEqual(fast.items.warnings, slow!.warnings)
  const { bodies, count, entries } = fast.items.events
  assert.strictEqual(count, events)
  // It checks every entry.
  readEventBatch(count, Buffer.concat([entries, bodies]))
  const expected = eventsOf(slow!.events)
  for (const [place, event] of eventsOf(fast.items.events).entries()) {
    const item = items![event.index]!
    const sent = "value" in item ? (item.value as Record<string, unknown>) : {}
    compareEvents(event, expected[place]!, (sent["timestamp"] ?? null) !== null)
  }
  return { done: fast.count - fast.slow, events }
}

const KEYS = [undefined, { method: "POST", path: "/v1/events/batch", key: "a key é" }]

/** A request of one to three hostile items, or rarely of none or damaged as a whole. */
const requestOf = (events: HostileEvents, form: RequestForm): string => {
  if (form === "single") return `${events.pick(["", " \n"])}${events.item()}`
  const count = 1 + events.below(3)
  const items = Array.from({ length: count }, () => events.item())
  if (form === "lines") return items.map((item) => item.replaceAll(/[\r\n]/g, " ")).join("\n")
  const list = `[${items.join(events.pick([",", " , "]))}]`
  const batch = events.below(3) === 0 ? list : `{"events":${list}}`
  const text = `${events.pick(["", "\n "])}${batch}${events.pick(["", " "])}`
  return events.below(50) === 0 ? events.damaged(text) : text
}

/** Compare hostile requests with so many items; an error names the seed and the request. */
export const fuzz = (seed: number, items: number): Share => {
  const events = new HostileEvents(seed)
  let done = 0
  let valid = 0
  for (let run = 0; run * 2 < items; run++) {
    const form = events.pick(["batch", "batch", "lines", "single"] as const)
    const request = requestOf(events, form)
    try {
      const share = compare(Buffer.from(request), form, {
        idempotency: events.pick(KEYS),
        anyAction: events.below(4) === 0,
        numbersAsText: events.below(4) === 0
      })
      done += share.done
      valid += share.events
    } catch (error) {
      throw new Error(`seed ${seed}, run ${run}, ${form}: ${JSON.stringify(request)}`, {
        cause: error
      })
    }
  }
  return { done, events: valid }
}
