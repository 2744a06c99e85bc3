/**
 * What a client asks by SQL: SELECT over views of its tenant. A statement is read into what this grammar
 * knows, and only what is written from that runs: ClickHouse sees no character that was not read here.
 */
import { SqlRefused } from "../../../ports/SqlStore.ts"
import { SqlExpressions } from "./SqlExpressions.ts"
import { none } from "./SqlSizes.ts"
import { placeOf, SqlProblem, writtenName } from "./SqlTokens.ts"
import type { Value } from "./SqlValues.ts"

const VIEW = "view"

/** No table of the store has such a name, so a view that is missing is never another table. */
export const viewName = (view: string): string => writtenName(`${VIEW} ${view}`)

const JOIN =
  /^((NATURAL )?(GLOBAL )?((ANY|ALL|ASOF|SEMI|ANTI) )?((INNER|LEFT|RIGHT|FULL)( OUTER)? )?((ANY|ALL|ASOF|SEMI|ANTI) )?|(GLOBAL )?CROSS |PASTE )JOIN$/
const JOIN_WORDS = new Set(
  "NATURAL GLOBAL ANY ALL ASOF SEMI ANTI INNER LEFT RIGHT FULL OUTER CROSS PASTE JOIN".split(" ")
)
/** Words that go on with a SELECT, so that they are not names of what is before them. */
const NO_ALIAS = new Set(
  (
    "FROM WHERE PREWHERE GROUP HAVING ORDER LIMIT OFFSET FETCH UNION EXCEPT INTERSECT WITH WINDOW QUALIFY"
    + " ARRAY ON USING SETTINGS FORMAT INTO SAMPLE FINAL ASC DESC NULLS COLLATE INTERPOLATE SELECT"
    + " PARALLEL AND OR NOT IN LIKE ILIKE BETWEEN IS AS APPLY REPLACE"
  ).split(" ")
)
const QUERY_BEGINS = new Set(["SELECT", "WITH", "FROM"])
const SET_OPERATIONS = ["UNION", "EXCEPT", "INTERSECT"]

/** Rows that WITH FILL, ROLLUP and CUBE are counted to add. */
const ROWS_FILLED = 1_000

/** Tables and SELECTs of a statement at most, each of WITH as often as it is named. */
const TABLES_MAX = 500

/** A table that a part of a statement may name. */
interface Table {
  /** As it is written. */
  readonly written: string
  /** Tables and SELECTs that ClickHouse reads in its place. */
  readonly tables: number
  /** Whether it makes rows of lists. */
  readonly makesRows?: boolean
}
type Tables = ReadonlyMap<string, Table>

class SqlStatement extends SqlExpressions {
  #tables: Tables
  #named = 0
  /** Tables and SELECTs that were read, with those of WITH that they name. */
  #expanded = 0
  readonly #views: ReadonlyArray<string>
  readonly #used = new Set<string>()
  readonly #isWritten: boolean

  /** `isWritten`: it is one that was written here, with the names that tables have then. */
  constructor(sql: string, views: ReadonlyArray<string>, isWritten = false) {
    super(sql, !isWritten)
    this.#views = isWritten ? views.map((view) => `${VIEW} ${view}`) : views
    this.#isWritten = isWritten
    this.#tables = new Map(
      this.#views.map((view) => [view, { written: this.#written(VIEW, view), tables: 1 }])
    )
  }

  #written(kind: string, name: string): string {
    return writtenName(this.#isWritten ? name : `${kind} ${name}`)
  }

  /** How large what a name means can get. */
  sizeOf(name: string): Value {
    return this.sizes.sizeOf(name)
  }

  /** The statement, and the views that it names. */
  whole(): readonly [sql: string, views: ReadonlyArray<string>] {
    if (!this.isQuery() && !this.isSign("(")) {
      this.fail(this.peek().kind === "end" ? "a SELECT is expected" : "only SELECT can be asked")
    }
    const sql = this.deeper(() => this.query())
    const isEnded = this.takeSign(";")
    while (this.takeSign(";"));
    const isEnd = this.peek().kind === "end"
    if (isEnded && !isEnd) this.fail("one statement can be asked at a time")
    if (!isEnd) this.unexpected("the end")
    if (!this.#isWritten) this.sizes.check()
    return [sql, this.#views.filter((view) => this.#used.has(view))]
  }

  protected isQuery(): boolean {
    return QUERY_BEGINS.has(this.word())
  }

  protected isSetOperation(): boolean {
    if (!SET_OPERATIONS.includes(this.word())) return false
    let ahead = this.word(1) === "ALL" || this.word(1) === "DISTINCT" ? 2 : 1
    while (this.isSign("(", ahead)) ahead += 1
    return QUERY_BEGINS.has(this.word(ahead))
  }

  /** What a SELECT names by WITH holds in those behind it too, as in ClickHouse. */
  protected query(first?: string): string {
    const outside = this.#tables
    const parts = [first ?? this.#operandOfSet()]
    while (this.isSetOperation()) {
      const operation = this.takeOne(...SET_OPERATIONS)!
      this.sizes.union()
      const isOfUnion = operation === "UNION"
      const kind = this.takeOne("ALL", "DISTINCT") ?? (isOfUnion ? "DISTINCT" : undefined)
      parts.push(kind === undefined ? operation : `${operation} ${kind}`, this.#operandOfSet())
    }
    this.#tables = outside
    return parts.join(" ")
  }

  #operandOfSet(): string {
    if (!this.isSign("(")) return this.#select()
    return `(${this.inBrackets(() => this.deeper(() => this.query()))})`
  }

  #select(): string {
    this.count()
    this.#expanded += 1
    const parts: Array<string> = []
    if (this.take("WITH")) parts.push(`WITH ${this.list(() => this.#definition()).join(", ")}`)
    const from = this.take("FROM") ? this.#from() : undefined
    if (!this.take("SELECT")) this.unexpected("SELECT")
    parts.push("SELECT")
    if (!this.take("ALL") && this.take("DISTINCT")) {
      parts.push("DISTINCT")
      if (this.take("ON")) parts.push(`ON (${this.inBrackets(() => this.expressions())})`)
    }
    if (this.word() === "TOP" && this.peek(1).kind === "number") {
      this.next()
      parts.push(`TOP ${this.next().text}`)
    }
    parts.push(this.#columns())
    if (from !== undefined) parts.push(from)
    else if (this.take("FROM")) parts.push(this.#from())
    return [...parts, ...this.#clauses()].join(" ")
  }

  #definition(): string {
    const isTable =
      this.word(1) === "AS"
      && this.isSign("(", 2)
      && (QUERY_BEGINS.has(this.word(3)) || this.isSign("(", 3))
    if (!isTable) {
      if (this.word() === "RECURSIVE") this.unexpected("a name")
      const value = this.expression().sql
      this.expect("AS")
      return `${value} AS ${writtenName(this.defined())}`
    }
    const token = this.peek()
    const name = this.name()
    if (this.#views.includes(name)) this.fail(`the name ${name} is taken by a table`, token)
    this.expect("AS")
    const before = this.#expanded
    const makers = this.sizes.rowMakers()
    const select = this.#tableQuery()
    const tables = this.#expanded - before
    this.#expanded = before
    this.#named += 1
    const written = this.#written(`with ${this.#named}`, name)
    this.#tables = new Map(this.#tables).set(name, {
      written,
      tables,
      makesRows: this.sizes.rowMakers() > makers
    })
    return `${written} AS (${select})`
  }

  #columns(): string {
    const columns = [this.#column()]
    while (this.takeSign(",") && !this.areWords("FROM")) columns.push(this.#column())
    return columns.join(", ")
  }

  #column(): string {
    const star = this.star()
    if (star !== undefined) return star.sql
    const { is, sql } = this.expression()
    const alias = this.#alias()
    if (alias === "" && is !== "name") this.sizes.define()
    return `${sql}${alias}`
  }

  #alias(name = () => this.defined()): string {
    const { kind } = this.peek()
    const isBare = kind === "name" || (kind === "word" && !NO_ALIAS.has(this.word()))
    return this.take("AS") || isBare ? ` AS ${writtenName(name())}` : ""
  }

  #from(): string {
    const parts = [`FROM ${this.#table()}`]
    for (;;) {
      if (this.takeSign(",")) parts.push(`, ${this.#table()}`)
      else if (this.take("ARRAY", "JOIN")) parts.push(` ARRAY JOIN ${this.#arrays()}`)
      else if (this.take("LEFT", "ARRAY", "JOIN")) parts.push(` LEFT ARRAY JOIN ${this.#arrays()}`)
      else if (this.#isJoin()) parts.push(this.#join())
      else return parts.join("")
    }
  }

  #arrays(): string {
    return this.list(() => {
      const { sql } = this.expression()
      this.sizes.rows()
      return `${sql}${this.#alias()}`
    }).join(", ")
  }

  #isJoin(): boolean {
    let ahead = 0
    while (JOIN_WORDS.has(this.word(ahead)) && this.word(ahead) !== "JOIN") ahead += 1
    return this.word(ahead) === "JOIN"
  }

  #join(): string {
    const token = this.peek()
    const words: Array<string> = []
    while (words.at(-1) !== "JOIN") words.push(this.next().text.toUpperCase())
    const join = words.join(" ")
    if (!JOIN.test(join)) this.fail(`${join} can't be used`, token)
    const table = ` ${join} ${this.#table()}`
    if (this.take("ON")) return `${table} ON ${this.expression().sql}`
    if (/CROSS|PASTE|NATURAL/.test(join)) return table
    if (!this.take("USING")) return this.unexpected("ON or USING")
    const columns = () => this.list(() => writtenName(this.name("a column"))).join(", ")
    return `${table} USING (${this.isSign("(") ? this.inBrackets(columns) : columns()})`
  }

  #tableQuery(): string {
    return this.sizes.of(none, () => this.inBrackets(() => this.deeper(() => this.query())))
  }

  #table(): string {
    this.count()
    if (this.isSign("(")) {
      return `(${this.#tableQuery()})${this.#tableAlias()}`
    }
    const token = this.peek()
    let name = this.name("a table")
    if (this.isSign("(")) this.fail(`the table function ${name} can't be used`, token)
    while (this.takeSign(".")) name += `.${this.name()}`
    const table = this.#tables.get(name)
    if (table === undefined || token.text !== name) {
      this.fail(
        `there is no table ${name}: there are ${[...this.#tables.keys()].join(", ")}`,
        token
      )
    }
    if (this.#views.includes(name)) this.#used.add(name)
    this.#expanded += table.tables
    if (table.makesRows) this.sizes.table(table.tables)
    if (table.tables > 1 && this.#expanded > TABLES_MAX) {
      this.fail(
        `the tables of WITH stand for more than ${TABLES_MAX} tables and SELECTs: name them less often`,
        token
      )
    }
    return `${table.written}${this.#tableAlias() || ` AS ${writtenName(name)}`}`
  }

  #tableAlias(): string {
    return this.#isJoin() || this.areWords("LEFT", "ARRAY", "JOIN")
      ? ""
      : this.#alias(() => this.name())
  }

  #clauses(): ReadonlyArray<string> {
    const parts: Array<string> = []
    if (this.take("WHERE")) parts.push(`WHERE ${this.aliased().sql}`)
    if (this.take("GROUP", "BY")) parts.push(`GROUP BY ${this.#grouping()}`)
    if (this.take("HAVING")) parts.push(`HAVING ${this.aliased().sql}`)
    if (this.take("WINDOW")) {
      const windows = this.list(() => {
        const name = writtenName(this.name("a window"))
        this.expect("AS")
        return `${name} AS (${this.inBrackets(() => this.window())})`
      })
      parts.push(`WINDOW ${windows.join(", ")}`)
    }
    if (this.take("QUALIFY")) parts.push(`QUALIFY ${this.aliased().sql}`)
    if (this.take("ORDER", "BY")) parts.push(this.#order())
    return [...parts, ...this.#limits()]
  }

  #grouping(): string {
    const parts = [this.#groups()]
    while (this.word() === "WITH") {
      this.next()
      this.sizes.union(ROWS_FILLED)
      parts.push(
        `WITH ${this.takeOne("ROLLUP", "CUBE", "TOTALS") ?? this.unexpected("ROLLUP, CUBE or TOTALS")}`
      )
    }
    return parts.join(" ")
  }

  #groups(): string {
    if (this.take("ALL")) return "ALL"
    if (this.take("GROUPING", "SETS")) {
      const set = () => this.inBrackets(() => `(${this.isSign(")") ? "" : this.expressions()})`)
      const sets = () => (this.isSign("(") ? set() : `(${this.expression().sql})`)
      return `GROUPING SETS (${this.inBrackets(() => this.list(sets)).join(", ")})`
    }
    const kind = this.isSign("(", 1) ? this.takeOne("ROLLUP", "CUBE") : undefined
    if (kind !== undefined) this.sizes.union(ROWS_FILLED)
    return kind === undefined
      ? this.expressions()
      : `${kind}(${this.inBrackets(() => this.expressions())})`
  }

  #order(): string {
    if (this.take("ALL")) return `ORDER BY ALL${this.#direction()}`
    const elements = this.list(() => this.#orderElement()).join(", ")
    if (!this.take("INTERPOLATE")) return `ORDER BY ${elements}`
    if (!this.isSign("(")) return `ORDER BY ${elements} INTERPOLATE`
    const columns = this.inBrackets(() =>
      this.list(() => {
        const column = this.name("a column")
        const name = writtenName(column)
        // What it is in one row may be made of what it was in the row before.
        this.sizes.defineColumn(column)
        return this.take("AS") ? `${name} AS ${this.expression().sql}` : name
      })
    )
    return `ORDER BY ${elements} INTERPOLATE (${columns.join(", ")})`
  }

  #direction(): string {
    const parts: Array<string> = []
    if (this.takeOne("ASC", "ASCENDING")) parts.push(" ASC")
    else if (this.takeOne("DESC", "DESCENDING")) parts.push(" DESC")
    if (this.take("NULLS")) {
      parts.push(` NULLS ${this.takeOne("FIRST", "LAST") ?? this.unexpected("FIRST or LAST")}`)
    }
    return parts.join("")
  }

  #orderElement(): string {
    const parts = [this.expression().sql, this.#direction()]
    if (this.take("COLLATE")) {
      if (this.peek().kind !== "text") this.unexpected("the name of a language in quotes")
      parts.push(` COLLATE '${this.next().text}'`)
    }
    if (!this.take("WITH", "FILL")) return parts.join("")
    parts.push(" WITH FILL")
    this.sizes.union(ROWS_FILLED)
    for (const word of ["FROM", "TO", "STEP", "STALENESS"]) {
      if (this.take(word)) parts.push(` ${word} ${this.expression().sql}`)
    }
    return parts.join("")
  }

  #limits(): ReadonlyArray<string> {
    const parts: Array<string> = []
    while (this.take("LIMIT")) {
      parts.push("LIMIT", this.expression().sql)
      if (this.takeSign(",")) parts.push(",", this.expression().sql)
      else if (this.word() === "OFFSET") parts.push(this.#offset())
      if (this.take("WITH", "TIES")) parts.push("WITH TIES")
      if (!this.take("BY")) return parts
      parts.push(`BY ${this.take("ALL") ? "ALL" : this.expressions()}`)
    }
    if (parts.length > 0) return parts
    if (this.word() === "OFFSET") parts.push(this.#offset())
    if (this.take("FETCH")) parts.push(this.#fetch())
    return parts
  }

  #fetch(): string {
    const first = this.takeOne("FIRST", "NEXT") ?? this.unexpected("FIRST")
    const rows = this.takeOne("ROW", "ROWS")
    const count = rows === undefined ? this.expression().sql : "1"
    const unit = rows ?? this.takeOne("ROW", "ROWS") ?? this.unexpected("ROWS")
    const fetch = `FETCH ${first} ${count} ${unit}`
    if (this.take("ONLY")) return `${fetch} ONLY`
    this.expect("WITH", "TIES")
    return `${fetch} WITH TIES`
  }

  #offset(): string {
    this.next()
    const count = this.expression().sql
    const rows = this.takeOne("ROW", "ROWS")
    return rows === undefined ? `OFFSET ${count}` : `OFFSET ${count} ${rows}`
  }

  protected window(): string {
    const parts: Array<string> = []
    const isNamed =
      !this.isSign(")") && !["PARTITION", "ORDER", "ROWS", "RANGE", "GROUPS"].includes(this.word())
    if (isNamed) parts.push(writtenName(this.name("a window")))
    if (this.take("PARTITION", "BY")) parts.push(`PARTITION BY ${this.expressions()}`)
    if (this.take("ORDER", "BY")) {
      parts.push(`ORDER BY ${this.list(() => this.#orderElement()).join(", ")}`)
    }
    const unit = this.takeOne("ROWS", "RANGE", "GROUPS")
    if (unit === undefined) return parts.join(" ")
    if (!this.take("BETWEEN")) return [...parts, unit, this.#bound()].join(" ")
    const from = this.#bound()
    this.expect("AND")
    return [...parts, unit, "BETWEEN", from, "AND", this.#bound()].join(" ")
  }

  #bound(): string {
    if (this.take("CURRENT", "ROW")) return "CURRENT ROW"
    const count = this.take("UNBOUNDED") ? "UNBOUNDED" : this.expression().sql
    const side = this.takeOne("PRECEDING", "FOLLOWING")
    return `${count} ${side ?? this.unexpected("PRECEDING or FOLLOWING")}`
  }
}

/** A statement that was read. */
export interface ReadStatement {
  /** The views that it names. */
  readonly views: ReadonlyArray<string>
  /** As ClickHouse gets it; `definitions` are `name AS (SELECT …)` for each of its views. */
  readonly text: (definitions: ReadonlyArray<string>) => string
  /** How large what a name of it means can get. */
  readonly sizeOf: (name: string) => Value
}

/** Whether what is written says the same when it is read again: nothing in it ends before it should. */
const isReadAlike = (text: string, views: ReadonlyArray<string>): boolean => {
  try {
    return new SqlStatement(text, views, true).whole()[0] === text
  } catch {
    return false
  }
}

/** @error SqlRefused, in words for its author */
export const readStatement = (sql: string, views: ReadonlyArray<string>): ReadStatement => {
  try {
    const statement = new SqlStatement(sql, views)
    const [text, used] = statement.whole()
    if (!isReadAlike(text, views))
      throw new SqlProblem("the statement can't be run: write it in a simpler way", 0)
    return {
      views: used,
      text: (definitions) => withDefinitions(text, definitions),
      sizeOf: (name) => statement.sizeOf(name)
    }
  } catch (problem) {
    if (!(problem instanceof SqlProblem)) throw problem
    throw new SqlRefused({ message: `${placeOf(sql, problem.at)}: ${problem.message}` })
  }
}

const WITH = "WITH "

const withDefinitions = (text: string, definitions: ReadonlyArray<string>): string => {
  if (definitions.length === 0) return text
  const all = `${WITH}${definitions.join(", ")}`
  if (text.startsWith(WITH)) return `${all}, ${text.slice(WITH.length)}`
  return text.startsWith("(") ? `${all} SELECT * FROM (${text})` : `${all} ${text}`
}
