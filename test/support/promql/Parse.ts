/**
 * The part of PromQL that the alert rules and the dashboard use, as a tree: selectors with matchers
 * and ranges, functions, aggregations, arithmetic, comparisons and set operators. Refuses what it
 * does not know.
 */

export interface Matcher {
  readonly label: string
  readonly operator: "=" | "!=" | "=~" | "!~"
  readonly value: string
}

export type Expression =
  | { readonly kind: "number"; readonly value: number }
  | {
      readonly kind: "selector"
      readonly metric: string
      readonly matchers: ReadonlyArray<Matcher>
      /** Seconds of a range vector. */
      readonly range: number | undefined
    }
  | { readonly kind: "call"; readonly name: string; readonly arguments: ReadonlyArray<Expression> }
  | {
      readonly kind: "aggregation"
      readonly name: string
      readonly by: ReadonlyArray<string>
      readonly of: Expression
    }
  | {
      readonly kind: "binary"
      readonly operator: string
      readonly left: Expression
      readonly right: Expression
    }

export const AGGREGATIONS: ReadonlySet<string> = new Set(["sum", "max", "min", "avg", "count"])

const TOKEN =
  /\s*(?:(\d+(?:\.\d+)?)(?![a-z])|(\[\s*\d+[smhd]\s*\])|([a-zA-Z_:][\w:]*)|("(?:[^"\\]|\\.)*")|(=~|!~|!=|==|>=|<=|[-+*/<>=(){},]))/y

/** From the loosest to the tightest. */
const LEVELS: ReadonlyArray<ReadonlySet<string>> = [
  new Set(["or"]),
  new Set(["and", "unless"]),
  new Set(["==", "!=", ">", "<", ">=", "<="]),
  new Set(["+", "-"]),
  new Set(["*", "/"])
]

const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 }

/** Seconds of a duration such as `5m`. */
export const secondsOf = (text: string): number => {
  const [, count, unit = ""] = /^(\d+)([smhd])$/.exec(text) ?? []
  const seconds = SECONDS[unit]
  if (count === undefined || seconds === undefined) throw new Error(`no duration: ${text}`)
  return Number(count) * seconds
}

const tokensOf = (text: string): Array<string> => {
  const tokens: Array<string> = []
  TOKEN.lastIndex = 0
  while (TOKEN.lastIndex < text.trimEnd().length) {
    const at = TOKEN.lastIndex
    const found = TOKEN.exec(text)
    if (found === null) throw new Error(`not understood at ${at}: ${text.slice(at)}`)
    tokens.push(found[0].trim())
  }
  return tokens
}

class Parser {
  readonly #tokens: Array<string>

  constructor(text: string) {
    this.#tokens = tokensOf(text)
  }

  whole(): Expression {
    const expression = this.#level(0)
    if (this.#tokens.length > 0) throw new Error(`left over: ${this.#tokens.join(" ")}`)
    return expression
  }

  #take(wanted?: string): string {
    const token = this.#tokens.shift()
    if (token === undefined || (wanted !== undefined && token !== wanted)) {
      throw new Error(`${wanted ?? "something"} was expected, not ${token}`)
    }
    return token
  }

  #level(level: number): Expression {
    const operators = LEVELS[level]
    if (operators === undefined) return this.#primary()
    let left = this.#level(level + 1)
    while (operators.has(this.#tokens[0] ?? "")) {
      const operator = this.#take()
      left = { kind: "binary", operator, left, right: this.#level(level + 1) }
    }
    return left
  }

  #primary(): Expression {
    const token = this.#take()
    if (/^\d/.test(token)) return { kind: "number", value: Number(token) }
    if (token === "(") {
      const inner = this.#level(0)
      this.#take(")")
      return inner
    }
    if (!/^[a-zA-Z_:]/.test(token)) throw new Error(`not expected: ${token}`)
    if (AGGREGATIONS.has(token)) return this.#aggregation(token)
    return this.#tokens[0] === "(" ? this.#call(token) : this.#selector(token)
  }

  #list<A>(close: string, item: () => A): ReadonlyArray<A> {
    const items: Array<A> = []
    while (this.#tokens[0] !== close) {
      if (items.length > 0) this.#take(",")
      items.push(item())
    }
    this.#take(close)
    return items
  }

  #aggregation(name: string): Expression {
    let by: ReadonlyArray<string> = []
    if (this.#tokens[0] === "by") {
      this.#take()
      this.#take("(")
      by = this.#list(")", () => this.#take())
    }
    this.#take("(")
    const of = this.#level(0)
    this.#take(")")
    return { kind: "aggregation", name, by, of }
  }

  #call(name: string): Expression {
    this.#take("(")
    return { kind: "call", name, arguments: this.#list(")", () => this.#level(0)) }
  }

  #selector(metric: string): Expression {
    let matchers: ReadonlyArray<Matcher> = []
    if (this.#tokens[0] === "{") {
      this.#take()
      matchers = this.#list("}", () => ({
        label: this.#take(),
        operator: this.#take() as Matcher["operator"],
        value: JSON.parse(this.#take()) as string
      }))
    }
    const range = this.#tokens[0]?.startsWith("[")
      ? secondsOf(this.#take().slice(1, -1).trim())
      : undefined
    return { kind: "selector", metric, matchers, range }
  }
}

/** @throws Error for what it does not know */
export const parse = (text: string): Expression => new Parser(text).whole()

/** Every selector of an expression. */
export const selectorsOf = (
  expression: Expression
): ReadonlyArray<Expression & { kind: "selector" }> => {
  switch (expression.kind) {
    case "number":
      return []
    case "selector":
      return [expression]
    case "call":
      return expression.arguments.flatMap(selectorsOf)
    case "aggregation":
      return selectorsOf(expression.of)
    case "binary":
      return [...selectorsOf(expression.left), ...selectorsOf(expression.right)]
  }
}
