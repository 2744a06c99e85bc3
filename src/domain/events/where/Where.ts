/** Expressions as filters carry them: as a text that means the same whenever it is read. */
import { type Expression, WHERE_LENGTH_MAX } from "./Expression.ts"
import { parsePrinted, parseWhere, timesFromNow, WhereError } from "./Parse.ts"
import { printWhere } from "./Print.ts"

/**
 * The text of an expression in which times are those of `now`.
 * @throws WhereError
 */
export const fixedWhere = (text: string, now: string): string => {
  if ([...text].length > WHERE_LENGTH_MAX) {
    throw new WhereError(WHERE_LENGTH_MAX + 1, `more than ${WHERE_LENGTH_MAX} characters`)
  }
  // Names and times in full may take more room than that.
  return printWhere(parseWhere(text, now))
}

/**
 * The text as it was written, with the moments that its times from now mean. One that would be longer
 * than a client may write stays as it is.
 * @throws WhereError
 */
export const whereWithMoments = (text: string, now: string): string => {
  let fixed = text
  for (const { at, end, moment } of timesFromNow(text, now).toReversed()) {
    fixed = fixed.slice(0, at) + moment + fixed.slice(end)
  }
  return [...fixed].length > WHERE_LENGTH_MAX ? text : fixed
}

/** What a text of `fixedWhere` means. */
export const expressionOf = (fixed: string): Expression => parsePrinted(fixed)
