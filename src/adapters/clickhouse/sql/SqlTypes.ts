/**
 * The types of ClickHouse that a statement of a client may name: those of plain values. Not Dynamic
 * nor JSON: of these, a name after a dot is a type as well, whatever it is called by.
 */
import { isTimeZone } from "../../../domain/sql/SqlTimeZones.ts"
import type { SqlReader } from "./SqlReader.ts"
import { writtenName } from "./SqlTokens.ts"

const TYPES = new Set(
  (
    "Int8 Int16 Int32 Int64 Int128 Int256 UInt8 UInt16 UInt32 UInt64 UInt128 UInt256 Float32 Float64"
    + " BFloat16 Decimal Decimal32 Decimal64 Decimal128 Decimal256 Bool String FixedString UUID IPv4 IPv6"
    + " Date Date32 Time Time64 DateTime DateTime32 DateTime64 Enum Enum8 Enum16 Array Tuple Map Nullable"
    + " LowCardinality Nothing Variant IntervalNanosecond IntervalMicrosecond IntervalMillisecond"
    + " IntervalSecond IntervalMinute IntervalHour IntervalDay IntervalWeek IntervalMonth"
    + " IntervalQuarter IntervalYear"
    + " boolean tinyint smallint int integer bigint float double real dec numeric text char varchar"
    + " timestamp inet4 inet6"
  )
    .split(" ")
    .map((name) => name.toLowerCase())
)

/** What to write instead of a type that can't be used. */
const INSTEAD: ReadonlyMap<string, string> = new Map([
  ["json", "read a member by JSONExtract, as in JSONExtractString(metadata, 'a', 'b')"],
  ["dynamic", "name the type of the value"]
])

/** Of a number in a type: FixedString(n) is as long in each row. */
const ARGUMENT_MAX = 1_000

/** Characters of a text that a message shows. */
const SHOWN_MAX = 50

/** Why a text can't be where a time zone is; without one, why that has to be one. */
export const zoneProblem = (text?: string): string | undefined => {
  if (text !== undefined && isTimeZone(text)) return undefined
  const why =
    text === undefined
      ? "a time zone has to be a text"
      : `'${text.slice(0, SHOWN_MAX)}' is no time zone that alk knows`
  return `${why}: write one such as 'Europe/Berlin' or 'UTC'`
}

/** An argument of a type: a type, a number, a text, `'a' = 1` of an Enum, `name Type` of a Tuple. */
const argument = (reader: SqlReader, isOfEnum: boolean): string => {
  const token = reader.peek()
  if (token.kind === "number") {
    if (!(Number(token.text) <= ARGUMENT_MAX))
      reader.fail(`a type has no number over ${ARGUMENT_MAX.toLocaleString("en-US")}`)
    return reader.next().text
  }
  if (token.kind === "text") {
    const problem = isOfEnum ? undefined : zoneProblem(token.text)
    if (problem !== undefined) reader.fail(problem)
    const text = `'${reader.next().text}'`
    if (!reader.takeSign("=")) return text
    const sign = reader.takeSign("-") ? "-" : ""
    if (reader.peek().kind !== "number") reader.unexpected("a number")
    return `${text} = ${sign}${reader.next().text}`
  }
  const { kind } = reader.peek(1)
  const isNamed = kind === "word" || kind === "name"
  return isNamed ? `${writtenName(reader.name())} ${typeOf(reader)}` : typeOf(reader)
}

/** Reads a type. */
export const typeOf = (reader: SqlReader): string =>
  reader.deeper(() => {
    const token = reader.peek()
    const name = reader.word() === "" ? reader.unexpected("a type") : reader.next().text
    if (!TYPES.has(name.toLowerCase())) {
      const instead = INSTEAD.get(name.toLowerCase())
      const problem = `the type ${name} can't be used`
      reader.fail(instead === undefined ? problem : `${problem}: ${instead}`, token)
    }
    const more = reader.takeOne("PRECISION", "UNSIGNED", "SIGNED", "VARYING")
    if (more !== undefined) return `${name} ${more}`
    if (!reader.isSign("(")) return name
    const isEnum = /^enum/i.test(name)
    const read = () => reader.list(() => argument(reader, isEnum))
    return `${name}(${reader.inBrackets(read).join(", ")})`
  })
