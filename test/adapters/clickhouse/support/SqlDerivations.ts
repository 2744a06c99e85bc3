/** Statements that the grammar of SQL has, made at random, and what becomes of them by small changes. */
import fc from "fast-check"

const words = (text: string): ReadonlyArray<string> =>
  text.split(" ").map((word) => word.replaceAll("~", " "))
const oneOf = (text: string) => fc.constantFrom(...words(text))

/** Up to four of these between two signs. */
const between = (sign: string, parts: ReadonlyArray<string>, minLength = 0) =>
  fc
    .array(fc.constantFrom(...parts), { minLength, maxLength: 4 })
    .map((all) => `${sign}${all.join("")}${sign}`)

const strangeSigns = [
  "a",
  " ",
  "--",
  "/*",
  "*/",
  ";",
  "{p:String}",
  ")",
  "(",
  ",",
  "#!",
  "\u00fc",
  "$$",
  "x"
]
const quoted = fc.oneof(
  between('"', [...strangeSigns, "'"], 1),
  between("`", [...strangeSigns, "'", '"'], 1)
)
const name = fc.oneof(
  { weight: 9, arbitrary: oneOf('id action outcome timestamp metadata n `a~b` "c" events.id e.n') },
  { weight: 1, arbitrary: quoted }
)
const alias = fc.oneof(oneOf('n x y `a~b` "c" total'), quoted)
const number = oneOf("0 1 2 7 1.5 1e3 0x1F 1_000 100")
const text = between("'", [
  ...strangeSigns,
  "''",
  "\\'",
  "\\\\",
  "\\x27",
  "\\{",
  "\\d",
  "\\%",
  '"',
  "`",
  "\n"
])
/** The text of a type, as a literal. */
const typeText = fc.constantFrom(
  "'UInt8'",
  "'Array(String)'",
  "'Enum8(\\'a\\' = 1)'",
  "'Enum8(''a'' = 1, \\'b\\\\\\'c\\' = -2)'",
  "'Enum8(\\'a\\\\\\\\\\' = 1)'",
  "'Enum8(\\'a\\'\\'b\\' = 1)'",
  "'Enum8($$a\\'b$$ = 1)'",
  "'Tuple(`a b` DateTime64(3, \\'UTC\\'))'"
)
const type = fc.constantFrom(
  "String",
  "UInt8",
  "Nullable(Float64)",
  "Array(Tuple(a String, b UInt8))",
  "Decimal(10,2)",
  "DateTime64(3,'UTC')",
  "Enum8('a' = 1, 'b' = -2)"
)
const comparison = fc.constantFrom(
  ..."= == != <> <=> < > <= >=".split(" "),
  "IS DISTINCT FROM",
  "IS NOT DISTINCT FROM"
)
const search = oneOf("LIKE ILIKE REGEXP NOT~LIKE not~ilike")
const arithmetic = oneOf("+ - * / % || MOD DIV AND OR and or")
const postfix = fc.constantFrom("IS NULL", "is not null", "IS TRUE", "IS NOT FALSE", "IS UNKNOWN")
const unit = oneOf("SECOND DAY MONTH YEAR week")

/** Parts in a row, with a space between them. */
const row = (...parts: ReadonlyArray<fc.Arbitrary<string> | string>): fc.Arbitrary<string> =>
  fc
    .tuple(...parts.map((part) => (typeof part === "string" ? fc.constant(part) : part)))
    .map((all) => all.filter((one) => one !== "").join(" "))
const maybe = (part: fc.Arbitrary<string>) => fc.oneof(fc.constant(""), part)
const list = (part: fc.Arbitrary<string>, maxLength = 3) =>
  fc.array(part, { minLength: 1, maxLength }).map((all) => all.join(", "))

type Grammar = {
  readonly expression: string
  readonly window: string
  readonly order: string
  readonly column: string
  readonly table: string
  readonly select: string
  readonly query: string
}

const { query } = fc.letrec<Grammar>((tie: fc.LetrecTypedTie<Grammar>) => {
  const inner = tie("expression")
  const some = list(inner)
  return {
    expression: fc.oneof(
      { maxDepth: 4, depthIdentifier: "sql" },
      name,
      number,
      text,
      oneOf("NULL true false 'a' -1 +2 x'4a' $$a'b$$"),
      row("(", inner, ")"),
      row("(", inner, ",", some, ")"),
      row("[", some, "]"),
      row(inner, arithmetic, inner),
      row(inner, comparison, inner),
      row(inner, search, text),
      row(inner, postfix),
      row("NOT", inner),
      row("-", inner),
      row("- ", number, "+", inner),
      row(inner, maybe(fc.constant("NOT")), "BETWEEN", number, "AND", inner),
      row(inner, oneOf("IN GLOBAL~IN"), "(", number, ",", some, ")"),
      row(inner, "NOT IN (", tie("query"), ")"),
      row(inner, "?", inner, ":", inner),
      row(name, "[", inner, "]"),
      row("(", inner, ").1"),
      row("e.n", ".2"),
      fc.tuple(fc.oneof(name, number), type).map((cast) => cast.join("::")),
      row("toString(", inner, ") ::", type),
      row("CAST(", inner, "AS", type, ")"),
      row("CAST(", inner, ",", typeText, ")"),
      row("CASE", maybe(inner), "WHEN", inner, "THEN", inner, maybe(row("ELSE", inner)), "END"),
      row("INTERVAL", fc.oneof(number, inner), unit),
      row("INTERVAL '7 day' +", inner),
      row("DATE '2026-01-01' -", inner),
      row("EXTRACT(", unit, "FROM", inner, ")"),
      row("dateDiff(", unit, ",", inner, ",", inner, ")"),
      row("DATE_ADD(", unit, ",", inner, ",", inner, ")"),
      row("SUBSTRING(", inner, "FROM", inner, "FOR", number, ")"),
      row("POSITION(", text, "IN", inner, ")"),
      row("TRIM(BOTH ' ' FROM", inner, ")"),
      row(oneOf("toString lower Abs length"), "(", inner, ")"),
      row("if(", inner, ",", inner, "AS", alias, ",", inner, ")"),
      row("arrayMap(x ->", inner, ", [", some, "])"),
      row("arrayFilter((x, y) ->", inner, ", [1], [2])"),
      row("JSONExtract(", inner, ", 'a',", typeText, ")"),
      row("count(", fc.constantFrom("", "*", "DISTINCT id"), ")"),
      row("quantile(0.5)(", inner, ")"),
      row("sumIf(", inner, ",", inner, ")"),
      row("max(", inner, ") FILTER (WHERE", inner, ")"),
      row("sum(", inner, ") OVER (", tie("window"), ")"),
      row("nth_value(", inner, ", 2) IGNORE NULLS OVER w"),
      row("(", tie("query"), ")"),
      row("exists(", tie("query"), ")")
    ),
    window: row(
      maybe(row("PARTITION BY", some)),
      maybe(
        fc.oneof(
          row("ROWS BETWEEN", number, "PRECEDING AND CURRENT ROW"),
          fc.constant("ROWS UNBOUNDED PRECEDING"),
          row("RANGE BETWEEN UNBOUNDED PRECEDING AND", number, "FOLLOWING")
        )
      )
    ),
    order: list(
      row(
        inner,
        maybe(oneOf("ASC DESC")),
        maybe(oneOf("NULLS~FIRST")),
        maybe(row("WITH FILL FROM", number, "TO", number))
      )
    ),
    column: fc.oneof(
      fc.constantFrom("*", "e.*", "* EXCEPT (id, n)", "* EXCEPT id"),
      row(inner, maybe(fc.oneof(alias, row("AS", alias))))
    ),
    table: fc.oneof(
      { maxDepth: 3, depthIdentifier: "sql" },
      oneOf("events executions~AS~e spans~s"),
      row("(", tie("query"), ") AS e")
    ),
    select: row(
      maybe(row("WITH", inner, "AS", alias)),
      "SELECT",
      maybe(fc.constant("DISTINCT")),
      list(tie("column")),
      maybe(
        row(
          "FROM",
          tie("table"),
          maybe(
            fc.oneof(
              row(
                oneOf("JOIN LEFT~JOIN ANY~LEFT~JOIN ASOF~JOIN full~outer~join"),
                tie("table"),
                "ON",
                inner
              ),
              row("INNER JOIN", tie("table"), "USING (id)"),
              row("CROSS JOIN", tie("table")),
              row(",", tie("table")),
              row("ARRAY JOIN", inner, "AS", alias)
            )
          )
        )
      ),
      maybe(row("WHERE", inner)),
      maybe(
        fc.oneof(
          row("GROUP BY", some, maybe(oneOf("WITH~TOTALS WITH~ROLLUP"))),
          fc.constant("GROUP BY ALL"),
          row("GROUP BY GROUPING SETS ((", some, "), ())"),
          row("GROUP BY CUBE(", some, ")")
        )
      ),
      maybe(row("HAVING", inner)),
      maybe(row("WINDOW w AS (", tie("window"), ")")),
      maybe(row("QUALIFY", inner)),
      maybe(
        fc.oneof(
          row("ORDER BY", tie("order")),
          row("ORDER BY", tie("order"), "LIMIT 1 BY", some),
          fc.constantFrom(
            "LIMIT 3",
            "LIMIT 1, 2",
            "LIMIT 2 OFFSET 1",
            "OFFSET 1 ROWS",
            "LIMIT 1 BY id LIMIT 5"
          ),
          fc.constantFrom(
            "ORDER BY id OFFSET 1 ROWS FETCH FIRST 2 ROWS ONLY",
            "ORDER BY 1 LIMIT 2 WITH TIES"
          )
        )
      )
    ),
    query: fc.oneof(
      { maxDepth: 3, depthIdentifier: "sql" },
      tie("select"),
      row("WITH t AS (", tie("query"), ") SELECT * FROM t AS e WHERE", inner),
      row(tie("select"), oneOf("UNION~ALL UNION~DISTINCT EXCEPT INTERSECT"), tie("select")),
      row("(", tie("select"), ") UNION ALL (", tie("query"), ")")
    )
  }
})

/** A statement of the grammar. */
export const derivations: fc.Arbitrary<string> = query

const SPLITS = /('(?:[^'\\]|\\[^]|'')*'|"[^"]*"|`[^`]*`|\w+|\s+|[^])/g
const strange = fc.constantFrom(
  '"a` b"',
  '`a" b`',
  "'a\\\\' b'",
  "'",
  "\\",
  "`",
  '"',
  "(",
  ")",
  ",",
  "--",
  "/*",
  "*/",
  ";",
  ".",
  "::",
  "->",
  "?",
  "{",
  "$$",
  "\0",
  "\u00a0",
  "ü",
  "FROM",
  "SELECT",
  "OVER (",
  "FORMAT",
  "SETTINGS",
  "system.one",
  "file('/etc/passwd')",
  "IN events",
  "1e",
  "0x",
  "#!"
)

/** A statement with tokens left out, doubled, swapped, or strange ones put in. */
export const mutations = (statements: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc
    .tuple(
      statements,
      fc.array(fc.tuple(fc.nat(), fc.nat(3), strange), { minLength: 1, maxLength: 3 })
    )
    .map(([statement, changes]) => {
      const parts = statement.match(SPLITS) ?? []
      for (const [place, kind, other] of changes) {
        const at = place % parts.length
        if (kind === 0) parts.splice(at, 1)
        else if (kind === 1) parts.splice(at, 0, other)
        else if (kind === 2) parts.splice(at, 0, parts[(place * 7) % parts.length]!)
        else parts[at] = other
        if (parts.length === 0) return statement
      }
      return parts.join("")
    })
