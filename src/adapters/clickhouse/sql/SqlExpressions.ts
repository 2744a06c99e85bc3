/**
 * Expressions of a statement of a client. Each is read and written in one step, so what runs is what
 * was read. What is written is closed: a call, a literal, a name in backticks, or something in brackets,
 * so that nothing around it can change how ClickHouse reads it.
 */
import { isAllowedFunction, takesFunction } from "../../../domain/sql/SqlFunctions.ts"
import { typeArgument, zoneArgument } from "../../../domain/sql/SqlTimeZones.ts"
import { SqlReader } from "./SqlReader.ts"
import { interval, lambda, largest, SqlSizes, sum } from "./SqlSizes.ts"
import { contentOf, literalOf, type Token, writtenName } from "./SqlTokens.ts"
import { typeOf, zoneProblem } from "./SqlTypes.ts"

/** An expression as it is written. */
export interface Expression {
  readonly sql: string
  readonly is: "name" | "literal" | "text" | "query" | "lambda" | "other"
  /** Of a bare name, or of several in brackets, what a lambda may call its arguments. */
  readonly names?: ReadonlyArray<string>
}

const other = (sql: string): Expression => ({ sql, is: "other" })
const call = (name: string, ...operands: ReadonlyArray<string>): Expression =>
  other(`${name}(${operands.join(", ")})`)

/** What may stand between two operands, or behind one. */
interface Operator {
  readonly words: ReadonlyArray<string>
  /** Higher ones bind before lower ones. */
  readonly level: number
  readonly name: string
  readonly kind?: "chain" | "postfix" | "between" | "in"
  /** The right side, where the words say it. */
  readonly right?: string
}

const OR = 3
const AND = 4
const NOT = 5
const COMPARISON = 9

const operator = (
  text: string,
  level: number,
  name: string,
  rest: Pick<Operator, "kind" | "right"> = {}
): Operator => ({ words: text.split(" "), level, name, ...rest })
const chain = { kind: "chain" } as const
const postfix = { kind: "postfix" } as const
const between = { kind: "between" } as const
const membership = { kind: "in" } as const

/** As ClickHouse has them, longer ones before those that they begin with. */
const OPERATORS = [
  operator("OR", OR, "or", chain),
  operator("AND", AND, "and", chain),
  operator("IS NOT DISTINCT FROM", 6, "isNotDistinctFrom"),
  operator("IS DISTINCT FROM", 6, "isDistinctFrom"),
  operator("IS NOT NULL", 6, "isNotNull", postfix),
  operator("IS NULL", 6, "isNull", postfix),
  operator("IS UNKNOWN", 6, "isNull", postfix),
  operator("IS NOT UNKNOWN", 6, "isNotNull", postfix),
  ...["true", "false"].flatMap((right) => [
    operator(`IS ${right.toUpperCase()}`, 6, "isNotDistinctFrom", { ...postfix, right }),
    operator(`IS NOT ${right.toUpperCase()}`, 6, "isDistinctFrom", { ...postfix, right })
  ]),
  operator("NOT BETWEEN", 7, "NOT BETWEEN", between),
  operator("BETWEEN", 7, "BETWEEN", between),
  operator("=", COMPARISON, "equals"),
  operator("==", COMPARISON, "equals"),
  operator("!=", COMPARISON, "notEquals"),
  operator("<>", COMPARISON, "notEquals"),
  operator("<=>", COMPARISON, "isNotDistinctFrom"),
  operator("<", COMPARISON, "less"),
  operator(">", COMPARISON, "greater"),
  operator("<=", COMPARISON, "lessOrEquals"),
  operator(">=", COMPARISON, "greaterOrEquals"),
  operator("LIKE", COMPARISON, "like"),
  operator("ILIKE", COMPARISON, "ilike"),
  operator("NOT LIKE", COMPARISON, "notLike"),
  operator("NOT ILIKE", COMPARISON, "notILike"),
  operator("REGEXP", COMPARISON, "match"),
  operator("IN", COMPARISON, "in", membership),
  operator("NOT IN", COMPARISON, "notIn", membership),
  operator("GLOBAL IN", COMPARISON, "globalIn", membership),
  operator("GLOBAL NOT IN", COMPARISON, "globalNotIn", membership),
  operator("||", 10, "concat", chain),
  operator("AT TIME ZONE", 13, "toTimeZone"),
  operator("+", 11, "plus"),
  operator("-", 11, "minus"),
  operator("*", 12, "multiply"),
  operator("/", 12, "divide"),
  operator("%", 12, "modulo"),
  operator("MOD", 12, "modulo"),
  operator("DIV", 12, "intDiv")
]

const ofFirstWord = Map.groupBy(OPERATORS, ({ words }) => words[0]!)

const MEMBERSHIP = /^(global)?(not)?(null)?in(ignoreset)?$/i
const UNIT =
  /^(NANOSECOND|MICROSECOND|MILLISECOND|SECOND|MINUTE|HOUR|DAY|WEEK|MONTH|QUARTER|YEAR)S?$/
const SHORT_UNITS: Readonly<Record<string, string>> = {
  NS: "NANOSECOND",
  US: "MICROSECOND",
  MS: "MILLISECOND",
  SS: "SECOND",
  S: "SECOND",
  MI: "MINUTE",
  N: "MINUTE",
  HH: "HOUR",
  H: "HOUR",
  DD: "DAY",
  D: "DAY",
  WK: "WEEK",
  WW: "WEEK",
  W: "WEEK",
  MM: "MONTH",
  M: "MONTH",
  QQ: "QUARTER",
  Q: "QUARTER",
  YYYY: "YEAR",
  YY: "YEAR",
  Y: "YEAR"
}

/** The unit of time that a word is, as `Day`. */
const unitOf = (word: string): string | undefined => {
  const unit = SHORT_UNITS[word] ?? UNIT.exec(word)?.[1]
  return unit && unit[0] + unit.slice(1).toLowerCase()
}

/** Functions whose first argument is a unit, as a word or as a text. */
const UNIT_FIRST = /^(date_?diff|timestamp_?diff)$/i
/** `DATE_ADD(DAY, 1, x)` and `DATE_ADD(x, INTERVAL 1 DAY)`. */
const MOVES: Readonly<Record<string, string>> = {
  date_add: "plus",
  dateadd: "plus",
  timestamp_add: "plus",
  timestampadd: "plus",
  date_sub: "minus",
  datesub: "minus",
  timestamp_sub: "minus",
  timestampsub: "minus"
}
/** A path of JSON that one value matches. */
const ONE_MATCH = /^'(?:(?! to |\*)[^])*'$/
/** What means all columns, as it is written. */
const STAR = /^(`[^`]*`\.)*\*/
const DIGITS_AS_TEXT = /^[xb]'/i
/** As the origin of toStartOfInterval. */
const TIME = /^toDate(32|Time|Time64)?\(/i
/** What EXTRACT takes of a time. */
const PARTS =
  /^(NANOSECOND|MICROSECOND|MILLISECOND|SECOND|MINUTE|HOUR|DAY|WEEK|MONTH|QUARTER|YEAR|DOW|DOY|ISODOW|ISOYEAR|EPOCH|CENTURY|DECADE|MILLENNIUM)$/
const LITERALS: Readonly<Record<string, string>> = {
  NULL: "NULL",
  TRUE: "true",
  FALSE: "false",
  INF: "inf",
  NAN: "nan"
}
/** Words that go on with a statement, so that an operand is missing before them. */
const NO_OPERAND = new Set(
  (
    "FROM WHERE PREWHERE GROUP ORDER HAVING LIMIT OFFSET FETCH UNION INTERSECT SELECT WITH AND OR IN LIKE"
    + " ILIKE BETWEEN AS ON USING JOIN WHEN THEN ELSE QUALIFY SETTINGS INTO"
  ).split(" ")
)

export abstract class SqlExpressions extends SqlReader {
  protected readonly sizes = new SqlSizes()

  /** Reads a SELECT, or several with set operations between them. */
  protected abstract query(first?: string): string
  protected abstract isQuery(): boolean
  protected abstract isSetOperation(): boolean
  /** Reads what is in the brackets behind OVER. */
  protected abstract window(): string

  /** Reads an expression, but for a lambda. */
  protected expression(): Expression {
    const read = this.#anyExpression()
    return read.is === "lambda" ? this.fail("a lambda has to be an argument of a function") : read
  }

  protected expressions(): string {
    return this.list(() => this.expression().sql).join(", ")
  }

  /** Reads an expression that may have a name, `x AS y`. */
  protected aliased(): Expression {
    return this.#named(this.expression())
  }

  #named(read: Expression): Expression {
    if (read.is === "lambda" || !this.take("AS")) return read
    const is = read.is === "name" ? "name" : "other"
    return { sql: `(${read.sql} AS ${writtenName(this.defined())})`, is }
  }

  /** The name of what was read before it. */
  protected defined(): string {
    const name = this.name()
    this.sizes.define(name)
    return name
  }

  #anyExpression(): Expression {
    return this.deeper(() => {
      const begin = this.sizes.begin()
      const read = this.#wholeExpression()
      this.sizes.end(begin, (parts) => (read.is === "lambda" ? lambda : largest)(parts))
      return read
    })
  }

  #wholeExpression(): Expression {
    const read = this.#operation(OR)
    if (this.isSign("->")) return this.#lambda(read)
    if (!this.takeSign("?")) return read
    const then = this.#operation(NOT + 1).sql
    this.expectSign(":")
    return call("if", read.sql, then, this.#operation(NOT + 1).sql)
  }

  #lambda({ names }: Expression): Expression {
    if (names === undefined)
      return this.fail("a lambda needs names before ->: x -> …, or (x, y) -> …")
    this.next()
    const body = this.inLambda(() => this.expression().sql)
    return { sql: `(${names.map(writtenName).join(", ")}) -> ${body}`, is: "lambda" }
  }

  #operatorAt(): Operator | undefined {
    const { kind, text } = this.peek()
    const first = kind === "sign" ? text : this.word()
    return ofFirstWord
      .get(first)
      ?.find(({ words }) => words.every((word, ahead) => ahead === 0 || this.word(ahead) === word))
  }

  /** Without IN, that is left to the caller. */
  #operation(level: number, isWithIn = true): Expression {
    const begin = this.sizes.begin()
    let left = this.#operand()
    for (;;) {
      const token = this.peek()
      const found = this.#operatorAt()
      const isOver = found === undefined || found.level < level
      if (isOver || (found.kind === "in" && !isWithIn)) {
        this.sizes.end(begin, largest)
        return left
      }
      left = found.kind === "chain" ? this.#chained(found, left) : this.#applied(found, left)
      this.sizes.operation(found.name, token)
    }
  }

  #operator({ words }: Operator): void {
    for (const _ of words) this.next()
    this.count()
  }

  /** An operator that takes any number of operands, with all that follow. */
  #chained(found: Operator, left: Expression): Expression {
    const operands = [left.sql]
    while (this.#operatorAt() === found) {
      this.#operator(found)
      operands.push(this.#operation(found.level + 1).sql)
    }
    return call(found.name, ...operands)
  }

  #applied(found: Operator, left: Expression): Expression {
    this.#operator(found)
    const { kind, level, name, right: given, words } = found
    if (kind === "postfix") return call(name, left.sql, ...(given === undefined ? [] : [given]))
    if (kind === "in") {
      const right = this.#members(this.peek(), this.#operand())
      if ((this.#operatorAt()?.level ?? 0) > level) this.unexpected("the end of what is behind IN")
      return call(name, left.sql, right)
    }
    const written = `${left.sql} ${words.join(" ")}`
    const each = level === COMPARISON && this.isSign("(", 1) && this.takeOne("ANY", "ALL")
    if (each) return other(`(${written} ${each} ${this.#subquery(each)})`)
    const token = this.peek()
    const operand = this.#operation(level + 1)
    if (name === "toTimeZone") this.#zone(operand, token)
    const right = operand.sql
    if (/like$/i.test(name) && this.take("ESCAPE")) {
      const sign = this.#simple()
      return other(`(${written} ${right} ESCAPE ${sign.sql})`)
    }
    if (kind === "between") {
      this.expect("AND")
      return other(`(${left.sql} ${name} ${right} AND ${this.#operation(level + 1).sql})`)
    }
    return call(name, left.sql, right)
  }

  /** The right side of IN: a bare name there would be a table. */
  #members(token: Token, { is, sql }: Expression): string {
    return is === "name"
      ? this.fail("IN needs values or a subquery on its right: write IN (SELECT …)", token)
      : sql
  }

  #operand(): Expression {
    if (this.take("NOT")) return call("not", this.deeper(() => this.#operation(NOT)).sql)
    if (this.isSign("-") && this.word(1) === "INF") {
      this.next()
      this.sizes.number(this.next().text)
      return this.#parts({ sql: "-inf", is: "literal" })
    }
    if (this.peek(1).kind === "number") {
      if (this.isSign("-")) {
        const sign = this.next()
        const sql = `-${this.#number()}`
        this.sizes.apply("negate", 1, sign)
        return this.#parts({ sql, is: "literal" })
      }
      if (this.takeSign("+")) return this.#parts(other(this.#number()))
    }
    if (this.takeSign("+")) return this.deeper(() => this.#operand())
    const sign = this.peek()
    if (this.takeSign("-")) {
      const { sql } = this.deeper(() => this.#operand())
      this.sizes.apply("negate", 1, sign)
      return call("negate", sql)
    }
    return this.#parts(this.sizes.of(largest, () => this.#simple()))
  }

  /** What is taken of an operand: an element, a member, another type. */
  #parts(whole: Expression): Expression {
    let read = whole
    for (;;) {
      const token = this.peek()
      if (this.takeSign("[")) {
        read = call("arrayElement", read.sql, this.expression().sql)
        this.expectSign("]")
        this.sizes.apply("arrayelement", 2, token)
      } else if (this.takeSign("::")) {
        const type = this.#type()
        this.sizes.apply("cast", 2, token)
        const isLiteral = read.is === "literal" || read.is === "text"
        read = other(isLiteral ? `(${read.sql}::${type})` : `CAST(${read.sql} AS ${type})`)
      } else if (this.takeSign(".")) {
        read = call(
          "tupleElement",
          read.sql,
          this.sizes.of(largest, () => this.#member())
        )
        this.sizes.apply("tupleelement", 2, token)
      } else return read
      this.count()
    }
  }

  #member(): string {
    if (this.peek().kind === "number") return this.next().text
    if (this.isSign("(")) return this.inBrackets(() => this.expression().sql)
    return literalOf(this.name("the name or number of a member"))
  }

  /** A type, which is a part like a text that names it. */
  #type(): string {
    const type = typeOf(this)
    this.sizes.text(literalOf(type).slice(1, -1))
    return type
  }

  #number(): string {
    const { text } = this.next()
    this.sizes.number(text)
    return text
  }

  #text(): string {
    const { text } = this.next()
    this.sizes.text(text)
    return `'${text}'`
  }

  #simple(): Expression {
    this.count()
    const token = this.peek()
    const { kind, text } = token
    if (kind === "number") return { sql: this.#number(), is: "literal" }
    if (kind === "text") return { sql: this.#text(), is: "text" }
    if (kind === "name") return this.#identifier()
    if (kind === "word") return this.#worded(this.word(), text)
    if (text === "(") return this.#bracketed()
    if (!this.takeSign("[")) return this.unexpected("an expression")
    const elements = this.sizes.of(
      (parts) => this.sizes.call("array", parts, token),
      () => (this.isSign("]") ? [] : this.list(() => this.expression()))
    )
    this.expectSign("]")
    return listed(`[${elements.map(({ sql }) => sql).join(", ")}]`, elements)
  }

  #worded(word: string, written: string): Expression {
    const follows = this.peek(1)
    if (Object.hasOwn(LITERALS, word)) {
      this.sizes.number(this.next().text)
      return { sql: LITERALS[word]!, is: "literal" }
    }
    if (word === "CASE") return this.#case()
    if (word === "INTERVAL" && this.#isAmount()) {
      this.next()
      return this.sizes.of(interval, () => this.#interval())
    }
    if (follows.kind === "text" && (word === "DATE" || word === "TIMESTAMP")) {
      this.next()
      return call(word === "DATE" ? "toDate" : "toDateTime", this.#text())
    }
    if (this.isSign("(", 1)) return this.#call(written)
    return NO_OPERAND.has(word) ? this.unexpected("an expression") : this.#identifier()
  }

  /** A name, or several with dots between them. */
  #identifier(): Expression {
    const names = [this.name()]
    const follows = () => this.peek(1).kind
    while (this.isSign(".") && (follows() === "word" || follows() === "name")) {
      this.next()
      names.push(this.name())
    }
    this.sizes.name(names)
    const sql = names.map(writtenName).join(".")
    return names.length === 1 ? { sql, is: "name", names } : { sql, is: "name" }
  }

  #bracketed(): Expression {
    const token = this.peek()
    return this.sizes.of(
      (parts, { is }) => (is === "query" ? sum(parts) : this.sizes.together(parts, token)),
      () => this.#inBrackets()
    )
  }

  #inBrackets(): Expression {
    return this.inBrackets(() => {
      if (this.isSign(")")) return other("()")
      if (this.isQuery()) return { sql: `(${this.deeper(() => this.query())})`, is: "query" }
      const first = this.aliased()
      if (first.is === "query" && this.isSetOperation())
        return { sql: `(${this.query(first.sql)})`, is: "query" }
      if (!this.isSign(",")) return first
      const elements = [first]
      while (this.takeSign(",") && !this.isSign(")")) elements.push(this.aliased())
      if (elements.length === 1) return call("tuple", first.sql)
      const tuple = listed(`(${elements.map(({ sql }) => sql).join(", ")})`, elements)
      const names = elements.flatMap((one) => one.names ?? [])
      return names.length === elements.length ? { ...tuple, names } : tuple
    })
  }

  /** Whether what follows INTERVAL is how many units there are. */
  #isAmount(): boolean {
    const { kind, text } = this.peek(1)
    if (kind === "sign") return text === "(" || text === "-"
    return kind !== "end" && !NO_OPERAND.has(this.word(1))
  }

  #case(): Expression {
    this.next()
    const parts = ["CASE"]
    if (this.word() !== "WHEN") parts.push(this.expression().sql)
    do {
      this.expect("WHEN")
      parts.push("WHEN", this.expression().sql)
      this.expect("THEN")
      parts.push("THEN", this.expression().sql)
    } while (this.word() === "WHEN")
    if (this.take("ELSE")) parts.push("ELSE", this.expression().sql)
    this.expect("END")
    return other(`(${parts.join(" ")} END)`)
  }

  #unit(): string {
    const unit = unitOf(this.word())
    if (unit === undefined) return this.unexpected("a unit of time, as DAY,")
    this.next()
    return unit
  }

  /** `INTERVAL 7 DAY`, `INTERVAL '7' DAY`, `INTERVAL '7 day'`, `INTERVAL '1 day 2 hour'`. */
  #interval(): Expression {
    const token = this.peek()
    if (token.kind === "text") {
      this.#text()
      if (/^-?\d+$/.test(token.text)) return call(`toInterval${this.#unit()}`, `'${token.text}'`)
      const parts = [...token.text.matchAll(/(-?\d+) ([A-Za-z]+)(?: |$)/gy)].map(
        ([, number, word]) => {
          const unit = unitOf(word!.toUpperCase())
          return unit && `toInterval${unit}(${number})`
        }
      )
      const isWhole = /^(-?\d+ [A-Za-z]+( |$))+$/.test(token.text) && !parts.includes(undefined)
      if (isWhole) return other(parts.length === 1 ? parts[0]! : `(${parts.join(", ")})`)
      this.fail("an interval in quotes is whole numbers with units, as '7 day'", token)
    }
    const amount = this.#operation(OR).sql
    return call(`toInterval${this.#unit()}`, amount)
  }

  #call(written: string): Expression {
    const token = this.next()
    const word = written.toLowerCase()
    if (word === "exists") return call("exists", this.#subquery(word.toUpperCase()))
    if (word === "columns") this.fail("COLUMNS(…) can't be used: name the columns", token)
    if (!isAllowedFunction(written)) this.fail(`the function ${written} can't be used`, token)
    const begin = this.sizes.begin()
    const read = this.#special(word, written) ?? this.#plainCall(written)
    this.sizes.end(begin, (parts) => this.sizes.call(word, parts, token))
    return read
  }

  #subquery(before: string): string {
    const read = this.#bracketed()
    return read.is === "query" ? read.sql : this.fail(`${before} needs a subquery: (SELECT …)`)
  }

  /** Calls with words of SQL between their brackets. */
  #special(word: string, written: string): Expression | undefined {
    switch (word) {
      case "cast":
        return this.#cast()
      case "trim":
        return this.#trim()
      case "position":
        return this.#position()
      case "substring":
      case "substr":
      case "mid":
        return this.#substring(written)
      case "extract":
        return this.#extracted()
      default:
        return this.#ofTime(word)
    }
  }

  #cast(): Expression {
    return this.inBrackets(() => {
      const value = this.expression().sql
      if (this.take("AS")) return other(`CAST(${value} AS ${this.#type()})`)
      this.expectSign(",")
      const token = this.peek()
      return call("CAST", value, this.#typeText(this.expression(), token))
    })
  }

  /** A text that names a type, which ClickHouse reads as one. */
  #typeText({ is, sql }: Expression, token: Token): string {
    const text = is === "text" ? contentOf(sql.slice(1, -1)) : undefined
    if (text === undefined) return this.fail("the type has to be a text", token)
    try {
      const reader = new SqlReader(text)
      const type = typeOf(reader)
      if (reader.peek().kind !== "end") reader.unexpected("the end of the type")
      return literalOf(type)
    } catch (cause) {
      return this.fail((cause as Error).message, token)
    }
  }

  #trim(): Expression | undefined {
    const side = ["BOTH", "LEADING", "TRAILING"].indexOf(this.word(1))
    if (side < 0 || this.isSign(",", 2) || this.isSign(")", 2)) return undefined
    return this.inBrackets(() => {
      this.next()
      const signs = this.expression().sql
      this.expect("FROM")
      return call(["trimBoth", "trimLeft", "trimRight"][side]!, this.expression().sql, signs)
    })
  }

  /** `position(text, part)` and `POSITION(part IN text)`. */
  #position(): Expression {
    return this.inBrackets(() => {
      const first = this.#operation(OR, false).sql
      if (this.take("IN")) return call("position", `(${this.expression().sql})`, first)
      this.expectSign(",")
      return call("position", `(${first})`, this.expressions())
    })
  }

  /** `substring(x, 2, 3)` and `SUBSTRING(x FROM 2 FOR 3)`. */
  #substring(written: string): Expression {
    return this.inBrackets(() => {
      const text = this.expression().sql
      if (!this.take("FROM")) {
        this.expectSign(",")
        return call(written, text, this.expressions())
      }
      const from = this.expression().sql
      return call(written, text, from, ...(this.take("FOR") ? [this.expression().sql] : []))
    })
  }

  #extracted(): Expression | undefined {
    const part = this.word(1)
    if (!PARTS.test(part) || this.word(2) !== "FROM") return undefined
    return this.inBrackets(() => {
      this.expect(part, "FROM")
      return other(`EXTRACT(${part} FROM ${this.expression().sql})`)
    })
  }

  #ofTime(word: string): Expression | undefined {
    const isUnit = unitOf(this.word(1)) !== undefined && this.isSign(",", 2)
    if (isUnit && UNIT_FIRST.test(word)) {
      return this.inBrackets(() => {
        const unit = this.#unit().toLowerCase()
        this.expectSign(",")
        let at = 0
        const operands = this.list(() => {
          const token = this.peek()
          const read = this.expression()
          at += 1
          if (at >= zoneArgument(word)) this.#zone(read, token)
          return read.sql
        })
        return call(word, `'${unit}'`, ...operands)
      })
    }
    return Object.hasOwn(MOVES, word) ? this.#moved(MOVES[word]!, isUnit) : undefined
  }

  #moved(name: string, isUnit: boolean): Expression {
    return this.inBrackets(() => {
      const unit = isUnit ? this.#unit() : undefined
      if (isUnit) this.expectSign(",")
      const first = this.expression().sql
      this.expectSign(",")
      const second = this.expression().sql
      return unit === undefined
        ? call(name, first, second)
        : call(name, second, call(`toInterval${unit}`, first).sql)
    })
  }

  /** `f(x)` and `f(0.5)(x)`, with FILTER, NULLS and OVER after them. */
  #plainCall(written: string): Expression {
    const parts = [written, this.#arguments(written)]
    if (this.isSign("(")) {
      this.sizes.given()
      parts.push(this.#arguments(written))
    }
    if (this.take("FILTER")) {
      const condition = this.inBrackets(() => {
        this.expect("WHERE")
        return this.expression().sql
      })
      parts.push(` FILTER (WHERE ${condition})`)
    }
    const nulls = this.takeOne("RESPECT", "IGNORE")
    if (nulls !== undefined) {
      this.expect("NULLS")
      parts.push(` ${nulls} NULLS`)
    }
    if (this.take("OVER")) {
      const isNamed = !this.isSign("(")
      parts.push(
        ` OVER ${isNamed ? writtenName(this.name("a window")) : `(${this.inBrackets(() => this.window())})`}`
      )
    }
    return other(parts.join(""))
  }

  #arguments(written: string): string {
    return this.inBrackets(() => {
      if (this.isSign(")")) return "()"
      const begin = this.take("DISTINCT") ? "(DISTINCT " : "("
      const starts: Array<Token> = []
      const read = this.list(() => {
        starts.push(this.peek())
        return this.#argument()
      })
      const [first, second] = read
      if (takesFunction(written) && second !== undefined) {
        const isOfStar = read.some(({ sql }) => STAR.test(sql))
        const count = isOfStar ? Infinity : /^map/i.test(written) ? 2 : read.length - 1
        this.#function(first!, starts[0]!, count)
      }
      if (MEMBERSHIP.test(written) && second !== undefined) this.#members(starts[1]!, second)
      // Several matches take it time by their square.
      if (/^json_(query|exists|value)$/i.test(written) && !ONE_MATCH.test(second?.sql ?? ""))
        this.fail(`the path of ${written} has to be a text without *, and without "to"`, starts[1])
      const texts = read.map(({ sql }) => sql)
      const zone = zoneArgument(written)
      const typed = typeArgument(written, read.length)
      if (zone < Infinity || typed !== undefined) {
        const star = read.findIndex(({ sql }) => STAR.test(sql))
        if (star >= 0) this.fail(`${written} takes no *: name the columns`, starts[star])
      }
      for (const [at, one] of read.entries()) if (at >= zone) this.#zone(one, starts[at]!)
      if (typed !== undefined && typed < read.length)
        texts[typed] = this.#typeText(read[typed]!, starts[typed]!)
      return `${begin}${texts.join(", ")})`
    })
  }

  /** What ClickHouse may take for a time zone: the name of one, or a value that is no text. */
  #zone({ is, sql }: Expression, token: Token): void {
    const problem = is === "text" ? zoneProblem(sql.slice(1, -1)) : zoneProblem()
    const isNoText = is === "literal" ? !DIGITS_AS_TEXT.test(sql) : TIME.test(sql)
    if (problem !== undefined && !isNoText) this.fail(problem, token)
  }

  /** A bare name there is a function of ClickHouse, any of them; it gets so many arguments. */
  #function({ is, names }: Expression, token: Token, count: number): void {
    const name = names?.length === 1 ? names[0]! : ""
    const isTyped = typeArgument(name, count) !== undefined
    const isKnown = isAllowedFunction(name) && count <= zoneArgument(name) && !isTyped
    if (is === "name" && !isKnown) this.fail("a lambda is needed here: x -> …", token)
  }

  #argument(): Expression {
    return this.star() ?? this.#named(this.#anyExpression())
  }

  /** `*` or `t.*`, without some columns. */
  protected star(): Expression | undefined {
    const names: Array<string> = []
    let ahead = 0
    while (this.peek(ahead).kind === "word" || this.peek(ahead).kind === "name") {
      if (!this.isSign(".", ahead + 1)) return undefined
      names.push(`${writtenName(this.peek(ahead).text)}.`)
      ahead += 2
    }
    if (!this.isSign("*", ahead)) return undefined
    this.sizes.star()
    for (let at = 0; at <= ahead; at++) this.next()
    this.count()
    if (!this.take("EXCEPT")) return other(`${names.join("")}*`)
    const isPattern = this.peek(this.isSign("(") ? 1 : 0).kind === "text"
    if (isPattern) return other(`${names.join("")}* EXCEPT(${this.#simple().sql})`)
    const column = () => writtenName(this.name("a column"))
    const columns = this.isSign("(") ? this.inBrackets(() => this.list(column)) : [column()]
    return other(`${names.join("")}* EXCEPT (${columns.join(", ")})`)
  }
}

const listed = (sql: string, elements: ReadonlyArray<Expression>): Expression => ({
  sql,
  is: elements.every(({ is }) => is === "literal" || is === "text") ? "literal" : "other"
})
