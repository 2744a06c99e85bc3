/**
 * Stored events as the bytes of a table, each chunk of events one chunk of bytes: lines of JSON as
 * they are stored, or of OCSF, or CSV. Knows no request.
 */
import { Stream } from "effect"
import { type OcsfSource, ocsfLine } from "../../exports/ocsf/OcsfEvent.ts"
import type { StoreUnavailable } from "../../ports/EventStore.ts"
import { CSV_TYPE, NDJSON_TYPE } from "../messages/MediaTypes.ts"
import { CSV_HEADER, csvLine } from "./Csv.ts"
import type { ListRequest } from "./QueryContract.ts"
import { selectedJson, selectedTable } from "./SelectedFields.ts"

/** The type of the CSV, with what it is written in and that it has a header (RFC 4180). */
export const CSV_CONTENT_TYPE = `${CSV_TYPE}; charset=utf-8; header=present`

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
  const { header, line } = fields === undefined ? wholeTable : selectedTable(fields)
  const shown = fields === undefined ? undefined : selectedJson(fields)
  const text =
    type === NDJSON_TYPE
      ? Stream.map(chunks, (bodies) => lines(shown === undefined ? bodies : bodies.map(shown)))
      : Stream.concat(
          Stream.succeed(header),
          Stream.map(chunks, (bodies) => bodies.map(line).join(""))
        )
  return encoded(text)
}

/** The bytes of lines of OCSF. */
export const ocsfText = (
  source: OcsfSource,
  chunks: Stream.Stream<ReadonlyArray<string>, StoreUnavailable>
): Stream.Stream<Uint8Array, StoreUnavailable> => {
  const line = ocsfLine(source)
  return encoded(Stream.map(chunks, (bodies) => lines(bodies.map(line))))
}
