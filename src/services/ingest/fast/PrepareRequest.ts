/**
 * From the bytes of a request to its validated items: the fast path makes most of the events, and
 * StrictJson and Prepare see the items that are left, one by one. The result is what they alone
 * would have made of the request.
 */
import { isUtf8 } from "node:buffer"
import { derivedText } from "../../../domain/Identifiers.ts"
import {
  parseInSteps,
  type StrictOptions,
  type StrictResult
} from "../../../domain/json/StrictJson.ts"
import { BATCH_ITEMS_MAX, dedupStart } from "../../../domain/records/Command.ts"
import { mergeBatches } from "../../../domain/records/EventBatch.ts"
import type { Sliced } from "../../../domain/Slices.ts"
import { currentTime } from "../../../domain/Timestamp.ts"
import {
  keyOption,
  type PreparedItems,
  type PrepareItemsOptions,
  prepareEach,
  readingOf
} from "../Ingest.ts"
import { idParts } from "../Prepare.ts"
import type { FastAccept, RequestForm, RestItem } from "./FastAccept.ts"

/** A request whose items are validated. */
export interface PreparedRequest {
  /** Items of the request. */
  readonly count: number
  /** Items that the fast path did not do. */
  readonly slow: number
  readonly items: PreparedItems
}

/** What hashed ids of this request begin with; undefined if its ids are new. */
const derivedStart = ({ idempotency, tenantId }: PrepareItemsOptions): string | undefined => {
  const { idempotencyKey } = keyOption(idempotency)
  return idempotencyKey === undefined
    ? undefined
    : derivedText(...idParts(tenantId, idempotencyKey))
}

/** The items that are left, read; undefined if one of them is no JSON, so that no item counts. */
function* readRest(
  rest: ReadonlyArray<RestItem>,
  form: RequestForm,
  reading: StrictOptions
): Sliced<ReadonlyArray<readonly [number, StrictResult]> | undefined> {
  const read: Array<readonly [number, StrictResult]> = []
  for (const { bytes, index } of rest) {
    yield
    const item = yield* parseInSteps(bytes, reading)
    if (form !== "lines" && "problem" in item && item.problem.code === "invalid_json") {
      return undefined
    }
    read.push([index, item])
  }
  return read
}

/**
 * Read and validate a request. Undefined if it has to be read as a whole: it is not JSON, not of
 * the plain form, too large or has too many items.
 */
export function* prepareRequest(
  accept: FastAccept,
  body: Buffer,
  form: RequestForm,
  options: PrepareItemsOptions
): Sliced<PreparedRequest | undefined> {
  if (!isUtf8(body)) return undefined
  const acceptedAt = currentTime()
  const { limits, secret, tenantId } = options
  const result = accept.read(body, form, {
    itemsMax: BATCH_ITEMS_MAX,
    limits,
    acceptedAt,
    secret,
    dedupStart: dedupStart(tenantId),
    derivedStart: derivedStart(options)
  })
  if (result === undefined) return undefined
  const rest = yield* readRest(result.rest, form, readingOf(options))
  if (rest === undefined) return undefined
  const { events, ...others } = yield* prepareEach(rest, options, acceptedAt)
  return {
    count: result.count,
    slow: rest.length,
    items: { ...others, events: mergeBatches(result.done, events) }
  }
}
