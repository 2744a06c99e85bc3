/**
 * Lists of texts as sets for a statement's `IN (…)`: far more of them than fit into parameters, which
 * travel in the address. As hex digits inside `unhex('…')` no character of theirs can mean anything
 * to the parser.
 */

const items = (value: ReadonlyArray<unknown>, type: string): string => {
  const hex = Buffer.from(JSON.stringify(value), "utf8").toString("hex")
  return `SELECT arrayJoin(JSONExtract(unhex('${hex}'), 'Array(${type})')) AS item`
}

export const textSet = (texts: Iterable<string>): string => items([...new Set(texts)], "String")

export const pairSet = (pairs: ReadonlyArray<readonly [string, string]>): string =>
  `SELECT tupleElement(item, 1), tupleElement(item, 2) FROM (${
    items(pairs, "Tuple(String, String)")
  })`
