/** A statement of a client, token by token: what comes next, and how much of it there is. */
import { SqlProblem, type Token, tokensOf } from "./SqlTokens.ts"

/** Expressions, tables and clauses of a statement at most. */
export const SQL_NODES_MAX = 2_000
/** Brackets and subqueries inside of one another at most. */
export const SQL_DEPTH_MAX = 50

/** Lambdas inside of one another at most. */
const LAMBDAS_MAX = 5
/** Characters of a name at most. */
const NAME_LENGTH_MAX = 256

/** Words with which parts of statements begin that have no place here. */
const REFUSED: Readonly<Record<string, string>> = {
  SETTINGS: "settings can't be given",
  FORMAT: "FORMAT can't be written in the statement: use `format`",
  INTO: "INTO OUTFILE can't be used",
  SAMPLE: "SAMPLE can't be used",
  FINAL: "FINAL can't be used: the tables have each row once",
  PREWHERE: "PREWHERE can't be used: write WHERE",
  APPLY: "APPLY can't be used: name the columns",
  REPLACE: "REPLACE behind * can't be used: name the columns",
  RECURSIVE: "WITH RECURSIVE can't be used",
  PARALLEL: "several statements at once can't be asked"
}

const shown = ({ kind, text }: Token): string =>
  kind === "end" ? "the end" : kind === "text" ? "this text" : text

export class SqlReader {
  readonly #tokens: ReadonlyArray<Token>
  #at = 0
  readonly #isBounded: boolean
  #nodes = 0
  #depth = 0
  #lambdas = 0

  /** @error SqlProblem, as of all that follows */
  constructor(sql: string, isBounded = true) {
    this.#tokens = tokensOf(sql)
    this.#isBounded = isBounded
    const long = this.#tokens.find(
      ({ kind, text }) => (kind === "word" || kind === "name") && text.length > NAME_LENGTH_MAX
    )
    if (isBounded && long !== undefined)
      this.fail(`a name has at most ${NAME_LENGTH_MAX} characters`, long)
  }

  peek(ahead = 0): Token {
    return this.#tokens[Math.min(this.#at + ahead, this.#tokens.length - 1)]!
  }

  next(): Token {
    const token = this.peek()
    this.#at += 1
    return token
  }

  fail(message: string, { at }: Token = this.peek()): never {
    throw new SqlProblem(message, at)
  }

  unexpected(expected: string): never {
    const token = this.peek()
    const refused = token.kind === "word" ? REFUSED[token.text.toUpperCase()] : undefined
    if (refused !== undefined) this.fail(refused)
    return this.fail(`${expected} is expected here, not ${shown(token)}`)
  }

  /** The keyword that comes, in capitals; empty for anything else. */
  word(ahead = 0): string {
    const { kind, text } = this.peek(ahead)
    return kind === "word" ? text.toUpperCase() : ""
  }

  isSign(sign: string, ahead = 0): boolean {
    const { kind, text } = this.peek(ahead)
    return kind === "sign" && text === sign
  }

  areWords(...words: ReadonlyArray<string>): boolean {
    return words.every((word, ahead) => this.word(ahead) === word)
  }

  take(...words: ReadonlyArray<string>): boolean {
    const isThere = this.areWords(...words)
    if (isThere) this.#at += words.length
    return isThere
  }

  takeSign(sign: string): boolean {
    const isThere = this.isSign(sign)
    if (isThere) this.#at += 1
    return isThere
  }

  expect(...words: ReadonlyArray<string>): void {
    if (!this.take(...words)) this.unexpected(words.join(" "))
  }

  expectSign(sign: string): void {
    if (!this.takeSign(sign)) this.unexpected(sign)
  }

  /** One of the words, if one of them comes. */
  takeOne(...words: ReadonlyArray<string>): string | undefined {
    return words.find((word) => this.take(word))
  }

  /** A name, bare or in quotes. */
  name(what = "a name"): string {
    const { kind } = this.peek()
    return kind === "word" || kind === "name" ? this.next().text : this.unexpected(what)
  }

  /** What is in one pair of brackets. */
  inBrackets<A>(read: () => A): A {
    this.expectSign("(")
    const value = read()
    this.expectSign(")")
    return value
  }

  /** One or more, with commas between them. */
  list<A>(read: () => A): ReadonlyArray<A> {
    const all = [read()]
    while (this.takeSign(",")) all.push(read())
    return all
  }

  count(): void {
    this.#nodes += 1
    if (this.#isBounded && this.#nodes > SQL_NODES_MAX)
      this.fail(`the statement has more than ${SQL_NODES_MAX.toLocaleString("en-US")} parts`)
  }

  deeper<A>(read: () => A): A {
    this.count()
    this.#depth += 1
    if (this.#isBounded && this.#depth > SQL_DEPTH_MAX)
      this.fail(`more than ${SQL_DEPTH_MAX} brackets and subqueries are inside of one another`)
    const value = read()
    this.#depth -= 1
    return value
  }

  inLambda<A>(read: () => A): A {
    this.#lambdas += 1
    if (this.#lambdas > LAMBDAS_MAX)
      this.fail(`more than ${LAMBDAS_MAX} lambdas are inside of one another`)
    const value = read()
    this.#lambdas -= 1
    return value
  }
}
