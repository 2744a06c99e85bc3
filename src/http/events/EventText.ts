/**
 * Stored events as the bytes of a table: lines of the JSON that is stored, each chunk of events one
 * chunk of bytes, or of OCSF, or CSV.
 */
import { Effect, Stream } from "effect"
import { BYTE_ORDER_MARK } from "../../domain/CsvText.ts"
import { tableFields } from "../../domain/events/EventFields.ts"
import { inSlices } from "../../domain/InSlices.ts"
import { lineText } from "../../domain/json/LineText.ts"
import type { Sliced } from "../../domain/Slices.ts"
import { type OcsfSource, ocsfLine } from "../../exports/ocsf/OcsfEvent.ts"
import type { StoreUnavailable } from "../../ports/EventStore.ts"
import { CSV_TYPE } from "../messages/MediaTypes.ts"
import type { ListRequest } from "./QueryContract.ts"
import { selectedJson, selectedTable } from "./SelectedFields.ts"

/** The type of the CSV, with what it is written in and that it has a header (RFC 4180). */
export const CSV_CONTENT_TYPE = `${CSV_TYPE}; charset=utf-8; header=present`

type Chunks = Stream.Stream<ReadonlyArray<string>, StoreUnavailable>
type Bytes = Stream.Stream<Uint8Array, StoreUnavailable>

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
const inPieces = (chunks: Chunks, line: (body: string) => string) =>
  Stream.flatMap(chunks, (bodies) =>
    Stream.unfold(0, (from) =>
      from === bodies.length ? Effect.undefined : inSlices(() => pieceOf(bodies, from, line))
    )
  )

const asLine =
  (shown: (body: string) => string) =>
  (body: string): string =>
    lineText(`${shown(body)}\n`)

const lines = (bodies: ReadonlyArray<string>): string =>
  bodies.length === 0 ? "" : lineText(`${bodies.join("\n")}\n`)

const encoded = (text: Stream.Stream<string, StoreUnavailable>) =>
  text.pipe(
    Stream.filter((piece) => piece !== ""),
    Stream.encodeText
  )

/** The bytes of lines of JSON; with `fields` those fields of each event alone. */
export const eventLines = (fields: ListRequest["fields"], chunks: Chunks): Bytes =>
  encoded(
    fields === undefined
      ? Stream.map(chunks, lines)
      : inPieces(chunks, asLine(selectedJson(fields)))
  )

/** The bytes of CSV. */
export const eventTable = (
  { bom = false, fields = tableFields }: Partial<Pick<ListRequest, "bom" | "fields">>,
  chunks: Chunks
): Bytes => {
  const { header, line } = selectedTable(fields)
  const start = bom ? `${BYTE_ORDER_MARK}${header}` : header
  return encoded(Stream.concat(Stream.succeed(start), inPieces(chunks, line)))
}

/** The bytes of lines of OCSF. */
export const ocsfText = (source: OcsfSource, chunks: Chunks): Bytes =>
  encoded(inPieces(chunks, asLine(ocsfLine(source))))
