/**
 * The tokens of a statement for the engine, as far as there is one way alone to read them. What else
 * ClickHouse reads is no token here: comments, heredocs, and all that is not ASCII outside of quotes.
 */

export type Tokens = ReadonlyArray<string>

/** What is between two quotes: in all of ClickHouse's readings an escape ends where it does here. */
const quoted = (quote: string): string =>
  `${quote}[^${quote}\\\\\0]*(?:(?:\\\\x[\\da-fA-F]{2}|\\\\[^x\0]|${quote}${quote})[^${quote}\\\\\0]*)*${quote}(?!${quote})`

const TOKEN = new RegExp(
  [
    String.raw`[xX]'[\da-fA-F]*'|[bB]'[01]*'`,
    "[A-Za-z_]\\w*(?![\\w'\"`])",
    String.raw`(?:0[xX][\da-fA-F]+(?:\.[\da-fA-F]*)?(?:[pP][+-]?\d+)?|0[bB][01]+|\d[\d_]*(?:\.\d*)?(?:[eE][+-]?\d+)?)(?![\w'"${"`"}])`,
    ...["'", '"', "`"].map(quoted),
    String.raw`\|\||!=|-(?!-)|\/(?![/*])|[()[\]{},.+*%=<>?:;]`
  ].join("|"),
  "y"
)
const SPACE = /[ \t\r\n]*/y

export const QUOTED_NAME = /^[`"]/

const matchAt = (pattern: RegExp, sql: string, at: number): string => {
  pattern.lastIndex = at
  return pattern.exec(sql)?.[0] ?? ""
}

/** The tokens; or the place of the first character that begins none. */
export const tokensOf = (sql: string): Tokens | number => {
  const tokens: Array<string> = []
  let at = matchAt(SPACE, sql, 0).length
  while (at < sql.length) {
    const token = matchAt(TOKEN, sql, at)
    if (token === "") return at
    tokens.push(token)
    at += token.length
    at += matchAt(SPACE, sql, at).length
  }
  return tokens
}

export const nameOf = (token: string): string =>
  QUOTED_NAME.test(token) ? token.slice(1, -1) : token
