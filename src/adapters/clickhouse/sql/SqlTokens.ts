/** The words, names, texts, numbers and signs that a statement of a client is made of. */

export interface Token {
  /** `word` is a bare name or a keyword, `name` one in quotes, `end` what comes after the last one. */
  readonly kind: "word" | "name" | "text" | "number" | "sign" | "end"
  /**
   * As it stands there; of a name what is between its quotes, of a text that as it is written for
   * ClickHouse.
   */
  readonly text: string
  /** Where it begins, in UTF-16 code units. */
  readonly at: number
}

/** Why a statement isn't run, and where in it that is. */
export class SqlProblem extends Error {
  readonly at: number

  constructor(message: string, at: number) {
    super(message)
    this.at = at
  }
}

/** Line and column of a place, from 1. */
export const placeOf = (sql: string, at: number): string => {
  const lines = sql.slice(0, at).split("\n")
  return `line ${lines.length}, column ${[...lines.at(-1)!].length + 1}`
}

const SKIPPED = /(?:\s+|--[^\n]*|\/\/[^\n]*|#[! ][^\n]*|\/\*[^]*?\*\/)+/y
const TOKEN =
  /(?<digits>[xX]'[\da-fA-F]*'|[bB]'[01]*')|(?<word>[A-Za-z_]\w*)|\$(?<tag>\w*)\$(?<here>[^]*?)\$\k<tag>\$|'(?<text>(?:[^'\\]|\\x[\da-fA-F]{2}|\\[^x]|'')*)'|`(?<back>[^`]*)`(?!`)|"(?<double>[^"]*)"(?!")|(?<sign><=>|->|::|\|\||<=|>=|<>|!=|==|[()[\],.*+\-/%=<>?:;])/y
const NUMBER =
  /(?:0[xX][\da-fA-F]+(?:\.[\da-fA-F]*)?(?:[pP][+-]?\d+)?|0[bB][01]+|(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])/y
const WHOLE_NUMBER = /\d+(?!\w)/y
const PLAIN_NAME = /^[^`\\\x00-\x1f\x7f]+$/

/** What has begun and does not end, by its first character. */
const UNENDED: Readonly<Record<string, string>> = {
  "'": "this text does not end: a ' is missing, or two hexadecimal digits behind \\x",
  "`": "this name does not end: a ` is missing",
  '"': 'this name does not end: a " is missing',
  "/": "this comment does not end: */ is missing",
  $: "this text does not end: write texts in single quotes",
  "@": "variables can't be used: write the value",
  "{": "query parameters can't be given: write the value"
}

/** What a token that ends in an operand lets a `.` behind it mean: a part of it, and no number. */
const endsOperand = (token: Token | undefined): boolean =>
  token !== undefined
  && (token.kind !== "sign" ? token.kind !== "text" : token.text === ")" || token.text === "]")

/** As ClickHouse writes a character in any text or name. */
const hex = (sign: string): string => `\\x${sign.charCodeAt(0).toString(16).padStart(2, "0")}`

/** A text as a literal, and a name in backticks: whatever they hold, they end where they have to. */
export const literalOf = (value: string): string =>
  `'${value.replaceAll(/['\\{}\x00-\x1f\x7f]/g, hex)}'`
export const writtenName = (name: string): string =>
  `\`${name.replaceAll(/[`\\{}\x00-\x1f\x7f]/g, hex)}\``

/**
 * A text between single quotes as it is written for ClickHouse, without the quotes: its escapes stay,
 * and what would look like the end of it, or like a parameter to the embedded engine, becomes one.
 */
const writtenText = (text: string): string =>
  text.replaceAll(/\\([^])|''|[{}\x00-\x1f\x7f]/g, (found, escaped?: string) => {
    if (found === "''") return "\\'"
    if (escaped === undefined) return hex(found)
    return /[{}\x00-\x1f\x7f]/.test(escaped) ? `\\\\${hex(escaped)}` : found
  })

/** What a text says; undefined if it has other escapes than those that are written here. */
export const contentOf = (text: string): string | undefined => {
  let isKnown = true
  const content = text.replaceAll(/\\x([0-7][\da-f])|\\([^])/g, (_, code?: string, sign = "") => {
    isKnown &&= code !== undefined || sign === "'" || sign === "\\"
    return code === undefined ? sign : String.fromCharCode(Number.parseInt(code, 16))
  })
  return isKnown ? content : undefined
}

const matchAt = (pattern: RegExp, sql: string, at: number): RegExpExecArray | undefined => {
  pattern.lastIndex = at
  return pattern.exec(sql) ?? undefined
}

const skipped = (sql: string, at: number): number =>
  at + (matchAt(SKIPPED, sql, at)?.[0].length ?? 0)

const numberAt = (sql: string, at: number, before: ReadonlyArray<Token>): string | undefined => {
  const { kind, text } = before.at(-1) ?? {}
  if (kind === "sign" && text === ".") return matchAt(WHOLE_NUMBER, sql, at)?.[0]
  if (sql[at] === "." && endsOperand(before.at(-1))) return undefined
  return matchAt(NUMBER, sql, at)?.[0]
}

const problemAt = (sql: string, at: number): SqlProblem => {
  const sight = String.fromCodePoint(sql.codePointAt(at)!)
  const why = UNENDED[sight] ?? (/\d/.test(sight) ? "this is no number" : undefined)
  return new SqlProblem(why ?? `the character ${JSON.stringify(sight)} has no place here`, at)
}

const nameAt = (text: string, at: number): Token => {
  const name = contentOf(text)
  if (name !== undefined && PLAIN_NAME.test(name)) return { kind: "name", text: name, at }
  const why =
    "a name is empty, or holds a backslash, a backtick or a control character: choose another"
  throw new SqlProblem(why, at)
}

const otherAt = (sql: string, at: number): readonly [token: Token, length: number] => {
  const match = matchAt(TOKEN, sql, at)
  const { back, digits, double, here, sign, text, word } = match?.groups ?? {}
  if (match === undefined || (sign === "/" && sql[at + 1] === "*")) throw problemAt(sql, at)
  const length = match[0].length
  if (word !== undefined) return [{ kind: "word", text: word, at }, length]
  if (sign !== undefined) return [{ kind: "sign", text: sign, at }, length]
  if (digits !== undefined) return [{ kind: "number", text: digits, at }, length]
  if (text !== undefined) return [{ kind: "text", text: writtenText(text), at }, length]
  if (here !== undefined) return [{ kind: "text", text: literalOf(here).slice(1, -1), at }, length]
  return [nameAt((back ?? double)!, at), length]
}

/** @error SqlProblem for what is none of them */
export const tokensOf = (sql: string): ReadonlyArray<Token> => {
  const tokens: Array<Token> = []
  let at = skipped(sql, 0)
  while (at < sql.length) {
    const number = numberAt(sql, at, tokens)
    const [token, length] =
      number === undefined
        ? otherAt(sql, at)
        : [{ kind: "number", text: number, at } as const, number.length]
    tokens.push(token)
    at = skipped(sql, at + length)
  }
  tokens.push({ kind: "end", text: "", at: sql.length })
  return tokens
}
