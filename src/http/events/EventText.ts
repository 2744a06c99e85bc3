/**
 * Stored events as the bytes of a table: lines of JSON as they are stored, each chunk of events one
 * chunk of bytes, or of OCSF, or CSV. Knows no request.
 */
import { Effect, Stream } from "effect"
import { inSlices } from "../../domain/InSlices.ts"
import type { Sliced } from "../../domain/Slices.ts"
import { type OcsfSource, ocsfLine } from "../../exports/ocsf/OcsfEvent.ts"
import type { StoreUnavailable } from "../../ports/EventStore.ts"
import { CSV_TYPE, NDJSON_TYPE } from "../messages/MediaTypes.ts"
import { CSV_HEADER, csvLine } from "./Csv.ts"
import type { ListRequest } from "./QueryContract.ts"
import { selectedJson, selectedTable } from "./SelectedFields.ts"

/** The type of the CSV, with what it is written in and that it has a header (RFC 4180). */
export const CSV_CONTENT_TYPE = `${CSV_TYPE}; charset=utf-8; header=present`

/** Characters of a piece of text; one line always, and then as many as it takes to have them. */
const PIECE_CHARACTERS = 262_144

/** The next piece of the lines of a chunk, and how far it goes; one event in a step. */
function* pieceOf(
  bodies: ReadonlyArray<string>,
  from: number,
  line: (body: string) => string
): Sliced<readonly [text: string, to: number]> {
  let text = ""
  let to = from
  while (to < bodies.length && text.length < PIECE_CHARACTERS) {
    text += line(bodies[to++]!)
    yield
  }
  return [text, to]
}

/** What may be much longer than what is stored, or takes long: one piece after the other. */
const inPieces = (
  chunks: Stream.Stream<ReadonlyArray<string>, StoreUnavailable>,
  line: (body: string) => string
) =>
  Stream.flatMap(chunks, (bodies) =>
    Stream.unfold(0, (from) =>
      from === bodies.length ? Effect.undefined : inSlices(() => pieceOf(bodies, from, line))
    )
  )

const asLine =
  (shown: (body: string) => string) =>
  (body: string): string =>
    `${shown(body)}\n`

const lines = (bodies: ReadonlyArray<string>): string =>
  bodies.length === 0 ? "" : `${bodies.join("\n")}\n`

const encoded = (text: Stream.Stream<string, StoreUnavailable>) =>
  text.pipe(
    Stream.filter((piece) => piece !== ""),
    Stream.encodeText
  )

const wholeTable = { header: CSV_HEADER, line: csvLine }

/** The bytes; with `fields` those fields of each event alone. */
export const eventText = (
  type: typeof NDJSON_TYPE | typeof CSV_TYPE,
  fields: ListRequest["fields"],
  chunks: Stream.Stream<ReadonlyArray<string>, StoreUnavailable>
): Stream.Stream<Uint8Array, StoreUnavailable> => {
  if (type === NDJSON_TYPE) {
    return encoded(
      fields === undefined
        ? Stream.map(chunks, lines)
        : inPieces(chunks, asLine(selectedJson(fields)))
    )
  }
  const { header, line } = fields === undefined ? wholeTable : selectedTable(fields)
  return encoded(Stream.concat(Stream.succeed(header), inPieces(chunks, line)))
}

/** The bytes of lines of OCSF. */
export const ocsfText = (
  source: OcsfSource,
  chunks: Stream.Stream<ReadonlyArray<string>, StoreUnavailable>
): Stream.Stream<Uint8Array, StoreUnavailable> =>
  encoded(inPieces(chunks, asLine(ocsfLine(source))))
