/**
 * Lists inside one execution as answers: a page of JSON with a cursor, or every item as a line.
 * What a list holds is not decided here.
 */
import { Result, Stream } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { inSlices } from "../../domain/InSlices.ts"
import { parseJson } from "../../domain/json/Json.ts"
import { lineText } from "../../domain/json/LineText.ts"
import type { Sliced } from "../../domain/Slices.ts"
import type { StoreUnavailable } from "../../ports/EventStore.ts"
import type { EventPlace, SpanPlace } from "../../ports/TraceStore.ts"
import { JSON_TYPE, NDJSON_TYPE, negotiate } from "../messages/MediaTypes.ts"
import type { Parameter } from "../messages/QueryParameters.ts"
import { type TransferOf, transfer } from "../messages/Transfer.ts"

/** Characters of lines that are written at once: between them the process does other things. */
const WRITTEN_AT_ONCE = 262_144

/** A place in a list, as clients hold it: opaque to them. */
interface CursorOf<Place> {
  readonly parameter: Parameter<Place>
  readonly write: (place: Place) => string
}

const readFields = (text: string): ReadonlyArray<unknown> => {
  try {
    const value: unknown = parseJson(Buffer.from(text, "base64url").toString())
    return Array.isArray(value) ? value : []
  } catch {
    // No cursor of ours.
    return []
  }
}

const cursorOf = <Place>(
  kind: string,
  fieldsOf: (place: Place) => ReadonlyArray<number | string>,
  placeOf: (fields: ReadonlyArray<unknown>) => Place | undefined
): CursorOf<Place> => ({
  parameter: {
    description: "`next_cursor` of the page before, or the one that its `Link` header names.",
    schema: { type: "string", minLength: 1 },
    parse: (text) => {
      const [found, ...fields] = readFields(text)
      const place = found === kind ? placeOf(fields) : undefined
      return place === undefined
        ? Result.fail("is not a cursor of this list: take `next_cursor` as it was given")
        : Result.succeed(place)
    }
  },
  write: (place) => Buffer.from(JSON.stringify([kind, ...fieldsOf(place)])).toString("base64url")
})

const isWhole = (value: unknown): value is number => Number.isSafeInteger(value)

export const eventCursor = cursorOf<EventPlace>(
  "event",
  ({ hash, sequenceNumber }) => [sequenceNumber, hash],
  ([sequenceNumber, hash]) =>
    isWhole(sequenceNumber) && sequenceNumber >= 0 && typeof hash === "string"
      ? { sequenceNumber, hash }
      : undefined
)

export const spanCursor = cursorOf<SpanPlace>(
  "span",
  ({ factNumber, startedAt }) => [startedAt, factNumber],
  ([startedAt, factNumber]) =>
    isWhole(startedAt) && isWhole(factNumber) && factNumber >= 0
      ? { startedAt, factNumber }
      : undefined
)

/** True for a client that prefers lines; one that names neither form gets JSON. */
export const wantsLines = (request: HttpServerRequest.HttpServerRequest): boolean =>
  negotiate(request.headers["accept"], [JSON_TYPE, NDJSON_TYPE]) === NDJSON_TYPE

const textOf = (items: ReadonlyArray<unknown>): Uint8Array =>
  Buffer.from(lineText(items.map((item) => `${JSON.stringify(item)}\n`).join("")))

/** Texts in groups that are written at once. */
const grouped = (texts: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> => {
  const groups: Array<Array<string>> = []
  let length = WRITTEN_AT_ONCE
  for (const text of texts) {
    if (length + text.length > WRITTEN_AT_ONCE) {
      groups.push([])
      length = 0
    }
    groups.at(-1)!.push(text)
    length += text.length
  }
  return groups
}

/** Stored texts as a stream of small pieces, each made of its texts when it is asked for. */
export const inPieces = <E>(
  chunks: Stream.Stream<ReadonlyArray<string>, E>,
  itemsOf: (texts: ReadonlyArray<string>) => Sliced<ReadonlyArray<unknown>>
): Stream.Stream<ReadonlyArray<unknown>, E> =>
  chunks.pipe(
    Stream.flatMap((texts) => Stream.fromIterable(grouped(texts))),
    Stream.rechunk(1),
    Stream.mapEffect((texts) => inSlices(() => itemsOf(texts)))
  )

/** Every item as a line of NDJSON. */
export const linesResponse = (
  request: HttpServerRequest.HttpServerRequest,
  items: Stream.Stream<ReadonlyArray<unknown>, StoreUnavailable>,
  of: TransferOf
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.stream(
    transfer(
      request,
      items.pipe(
        Stream.filter((some) => some.length > 0),
        Stream.map(textOf)
      ),
      of
    ),
    { contentType: NDJSON_TYPE }
  )
