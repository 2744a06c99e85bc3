/**
 * Lists of texts for a statement's `IN (…)`: more of them than fit into parameters, which travel
 * in the address. As literals, by which the primary key is searched twice as fast as by a subquery.
 */

/** What could end a literal, or look like a parameter on the way. */
const MEANINGFUL = /[\\'{}\u0000-\u001f]/g

const escaped = (mark: string): string => `\\x${mark.charCodeAt(0).toString(16).padStart(2, "0")}`

/** A literal that can't break out, whatever the text is. */
const literal = (text: string): string => `'${text.replace(MEANINGFUL, escaped)}'`

/** At least one. */
export const textSet = (texts: Iterable<string>): string =>
  `(${[...new Set(texts)].map(literal).join(", ")})`

/** At least one. */
export const pairSet = (pairs: ReadonlyArray<readonly [string, string]>): string =>
  `(${pairs.map(([first, second]) => `(${literal(first)}, ${literal(second)})`).join(", ")})`
