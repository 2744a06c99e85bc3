/** Values as they stand between two commas of CSV (RFC 4180). */

/** What a spreadsheet may take for the start of a formula. */
const FORMULA = /^[=+\-@\t\r]/
const NEEDS_QUOTES = /[",\r\n]/

/** A number, or another text that no client has written. */
export const csvCell = (text: string): string =>
  NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text

/** A text of a client: one that a spreadsheet would run as a formula gets an apostrophe. */
export const csvText = (text: string): string => csvCell(FORMULA.test(text) ? `'${text}` : text)

/** The end of each line. */
export const CSV_LINE_END = "\r\n"

/** Before everything, where it is asked for: Excel reads UTF-8 by it. */
export const BYTE_ORDER_MARK = "\ufeff"
