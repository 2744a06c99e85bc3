/**
 * The texts of an event that `q` searches, one after the other in lower case, as ClickHouse
 * expressions over the columns of its row.
 */
import { literal } from "./EventText.ts"

/** Regular expression over JSON, as ClickHouse's string literal. */
const STRING_OR_KEY = String.raw`'"(?:[^"\\\\]|\\\\.)*":?'`

/** Every string value of a metadata text: its JSON tokens that no colon follows, unescaped. */
export const metadataStrings = (metadata: string): string =>
  "JSONExtract(concat('[', arrayStringConcat(arrayFilter(token -> NOT endsWith(token, ':'),"
  + ` extractAll(${metadata}, ${STRING_OR_KEY})), ','), ']'), 'Array(String)')`

const ESCAPED = `position(concat(actor_email, metadata, resource_name), ${literal("\\")}) > 0`

const inner = (text: string): string => `substring(${text}, 2, length(${text}) - 2)`

/** The search column where nothing is escaped: a quotation mark opens a string or closes it. */
const plainSearch = (): string => {
  const tokens = `extractAll(metadata, ${literal('"[^"]*":?')})`
  const strings =
    `arrayMap(token -> ${inner("token")},`
    + ` arrayFilter(token -> NOT endsWith(token, ':'), ${tokens}))`
  const texts = [
    "action",
    "actor_id",
    inner("actor_email"),
    "resource_id",
    "resource_type",
    inner("resource_name")
  ]
  return (
    `lowerUTF8(concat(${texts.join(", char(0), ")},`
    + ` arrayStringConcat(arrayMap(text -> concat(char(0), text), ${strings}))))`
  )
}

/** The search column of any row. Within the arrayMap, so that it costs nothing on other rows. */
const escapedSearch = (): string => {
  const texts = [
    "toString(action)",
    "toString(actor_id)",
    "JSONExtractString(escaped.1)",
    "resource_id",
    "toString(resource_type)",
    "JSONExtractString(escaped.2)"
  ]
  return (
    `lowerUTF8(arrayStringConcat(arrayConcat([${texts.join(", ")}],`
    + ` ${metadataStrings("escaped.3")}), char(0)))`
  )
}

/** True where the column holds what is to be searched in the details that the row holds. */
export const SEARCH_HOLDS =
  `if(${ESCAPED},`
  + ` arrayExists(escaped -> search = ${escapedSearch()},`
  + ` if(${ESCAPED}, [(actor_email, resource_name, metadata)], [])),`
  + ` search = ${plainSearch()})`

/** What is searched in an event without details. */
export const SEARCH_LEFT =
  "lowerUTF8(arrayStringConcat([toString(action), toString(actor_id), '', resource_id,"
  + " toString(resource_type), ''], '\\0'))"
