/**
 * How columns are taken out of a stored JSON text by ClickHouse itself, and which of them say
 * something else than the text.
 */

/** A temporary value or a column, and the ClickHouse expression that makes it. */
export type NamedExpression = readonly [name: string, expression: string]

/** Regular expression over JSON, as ClickHouse's string literal. */
const STRING_OR_LONG_DIGITS = String.raw`'("(?:[^"\\\\]|\\\\.)*")|([0-9]{19,})'`

/**
 * The text with `e0` after each run of 19 digits or more that is not part of a string: simdjson
 * refuses a whole document for one integer beyond 64 bits, but reads it as a double like this.
 * U+0001 marks the end of each match, because it can't be in JSON.
 */
export const withFloatDigits = (text: string): string => {
  const marked = `replaceRegexpAll(${text}, ${STRING_OR_LONG_DIGITS}, '\\\\1\\\\2\\x01')`
  return String.raw`replaceAll(replaceAll(${marked}, '"\x01', '"'), '\x01', 'e0')`
}

/** The text itself, or where the body was refused, what can be read; costs nothing on the rest. */
export const readable = (text: string, body = "body"): string =>
  `arrayElement(arrayConcat(arrayMap(refused -> ${withFloatDigits("refused")},`
  + ` if(isValidJSON(${body}), [], [${text}])), [${text}]), 1)`

/** A member of the stored record, where the temporary values are at hand. */
export const field = (...path: ReadonlyArray<string>): string =>
  path.reduce((record, name) => `tupleElement(${record}, '${name}')`, "fields")

/**
 * Temporary values that columns are made of, in order; each may use those before it. The members of
 * the record are given as those of a ClickHouse Tuple.
 */
export const temporariesOf = (members: ReadonlyArray<string>): ReadonlyArray<NamedExpression> => [
  ["readable", readable("body")],
  ["fields", `JSONExtract(readable, 'Tuple(${members.join(", ").replaceAll("'", "''")})')`]
]

/** `expression AS name, …` */
export const aliases = (expressions: ReadonlyArray<NamedExpression>): string =>
  expressions.map(([name, expression]) => `${expression} AS ${name}`).join(", ")

/** `WITH …`, if there is any, and the expression for the names of the columns that differ. */
export const disagreementOf = (
  temporaries: ReadonlyArray<NamedExpression>,
  columns: ReadonlyArray<NamedExpression>
) => ({
  with: `WITH ${aliases(temporaries)}`,
  names: `arrayFilter(name -> name != '', [${columns
    .map(([name, expression]) => `if(${name} = (${expression}), '', '${name}')`)
    .join(", ")}])`
})
