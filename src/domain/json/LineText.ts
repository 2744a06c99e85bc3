/** JSON as lines for any reader: some end a line where JSON does not (str.splitlines, Java's Scanner). */

const SEPARATORS = ["\u0085", "\u2028", "\u2029"]
const ANY_SEPARATOR = /[\u0085\u2028\u2029]/g

const escaped = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`

/**
 * The same JSON, with escapes for the characters that end a line beside LF. They can be in strings
 * only; those below U+0020 are escaped in all JSON.
 */
export const lineText = (json: string): string =>
  SEPARATORS.some((separator) => json.includes(separator))
    ? json.replaceAll(ANY_SEPARATOR, escaped)
    : json
