/** What of a client's SQL is run, in which words, and why the rest is not. */
import { assert, describe, it } from "@effect/vitest"
import { hasRule } from "../../../src/adapters/clickhouse/sql/SqlSizeRules.ts"
import { readStatement } from "../../../src/adapters/clickhouse/sql/SqlStatement.ts"
import { allowedFunctions } from "../../../src/domain/sql/SqlFunctions.ts"
import { sqlTableNames } from "../../../src/domain/sql/SqlTables.ts"
import { SqlRefused } from "../../../src/ports/SqlStore.ts"
import { honestStatements } from "./support/HonestStatements.ts"
import { hostileStatements } from "./support/HostileStatements.ts"

const written = (sql: string): string => {
  const { text, views } = readStatement(sql, sqlTableNames)
  return text(views.map((view) => `<${view}>`))
}

const refusalOf = (sql: string): string => {
  try {
    return assert.fail(`${sql} was read as ${written(sql)}`)
  } catch (cause) {
    assert.instanceOf(cause, SqlRefused, sql)
    return (cause as SqlRefused).message
  }
}

const repeated = (count: number, one: string, between: string): string =>
  Array.from({ length: count }, () => one).join(between)

describe("a statement of a client", () => {
  it.each([
    [
      "SELECT count() n FROM events",
      "WITH <events> SELECT count() AS `n` FROM `view events` AS `events`"
    ],
    [
      "select id from spans s where -1 < - a.b",
      "WITH <spans> SELECT `id` FROM `view spans` AS `s` WHERE less(-1, negate(`a`.`b`))"
    ],
    ["SELECT a AND b AND c OR NOT d = e", "SELECT or(and(`a`, `b`, `c`), not(equals(`d`, `e`)))"],
    [
      "SELECT 1 + 2 * 3 - 4, (1 + 2) * 3",
      "SELECT minus(plus(1, multiply(2, 3)), 4), multiply(plus(1, 2), 3)"
    ],
    [
      "SELECT 'it''s', '\\'', $$a'\\$$, '{p:String}', '\\{'",
      "SELECT 'it\\'s', '\\'', 'a\\x27\\x5c', '\\x7bp:String\\x7d', '\\\\\\x7b'"
    ],
    ['SELECT "a b", `{x}` /* \' */ -- `', "SELECT `a b`, `\\x7bx\\x7d`"],
    [
      "SELECT x::Int8, 1::Int8, CAST(x AS Enum('a' = -1))",
      "SELECT CAST(`x` AS Int8), (1::Int8), CAST(`x` AS Enum('a' = -1))"
    ],
    [
      "SELECT arrayMap((x, y) -> x ? y : 1, a, b)",
      "SELECT arrayMap((`x`, `y`) -> if(`x`, `y`, 1), `a`, `b`)"
    ],
    [
      "SELECT CAST(a, 'Enum8(\\'b\\\\\\'c\\' = 1)'), (a).`b'c`, x'4a'",
      "SELECT CAST(`a`, 'Enum8(\\x27b\\x5c\\x27c\\x27 = 1)'), tupleElement(`a`, 'b\\x27c'), x'4a'"
    ],
    [
      "SELECT CAST(1, 'Enum8(\\'a\\'\\'=$$z$$?$$Int8$$:$$Int8$$) AS x, (SELECT 2) AS y -- \\' = 1)')",
      "SELECT CAST(1, 'Enum8(\\x27a\\x5c\\x27=$$z$$?$$Int8$$:$$Int8$$) AS x, (SELECT 2) AS y -- \\x27 = 1)')"
    ],
    ["SELECT arrayMap(lower, a)", "SELECT arrayMap(`lower`, `a`)"],
    [
      "WITH x AS (SELECT 1) SELECT * FROM x, (WITH x AS (SELECT * FROM x) SELECT * FROM x) AS y",
      "WITH `with 1 x` AS (SELECT 1) SELECT * FROM `with 1 x` AS `x`, (WITH `with 2 x` AS (SELECT * FROM `with 1 x` AS `x`) SELECT * FROM `with 2 x` AS `x`) AS `y`"
    ],
    [
      "(SELECT 1) UNION SELECT id FROM events",
      "WITH <events> SELECT * FROM ((SELECT 1) UNION DISTINCT SELECT `id` FROM `view events` AS `events`)"
    ],
    [
      "SELECT sum(a) OVER (w ORDER BY b ROWS 2 PRECEDING) FROM events WINDOW w AS (PARTITION BY c);",
      "WITH <events> SELECT sum(`a`) OVER (`w` ORDER BY `b` ROWS 2 PRECEDING) FROM `view events` AS `events` WINDOW `w` AS (PARTITION BY `c`)"
    ]
  ])("%s", (sql, expected) => {
    assert.strictEqual(written(sql), expected)
  })

  it.each([
    ["", "line 1, column 1: a SELECT is expected"],
    ["DROP TABLE events", "line 1, column 1: only SELECT can be asked"],
    ["SELECT 1; SELECT 2", "line 1, column 11: one statement can be asked at a time"],
    [
      "SELECT 1\nFROM system.tables",
      "line 2, column 6: there is no table system.tables: there are events, executions, spans, trace_events"
    ],
    ["SELECT * FROM `events.x`", "line 1, column 15: there is no table events.x"],
    ["SELECT '😀', file('x')", "line 1, column 13: the function file can't be used"],
    ["SELECT arrayMap(file, ['x'])", "line 1, column 17: a lambda is needed here: x -> …"],
    [
      "SELECT arrayMap((file) AS lower, ['x'])",
      "line 1, column 17: a lambda is needed here: x -> …"
    ],
    [
      "SELECT id IN (events) FROM events",
      "line 1, column 14: IN needs values or a subquery on its right: write IN (SELECT …)"
    ],
    [
      "SELECT CAST('' AS AggregateFunction(sum, Int8))",
      "line 1, column 19: the type AggregateFunction can't be used"
    ],
    [
      'SELECT 1 AS "a`, (SELECT 1) AS `b"',
      "line 1, column 13: a name is empty, or holds a backslash, a backtick"
    ],
    ["SELECT CAST(1, ('Int8' AS x))", "line 1, column 16: the type has to be a text"],
    [
      "SELECT JSONExtract(a, 'b', concat('In', 't8'))",
      "line 1, column 28: the type has to be a text"
    ],
    [
      "SELECT JSON_QUERY(a, '$[*]')",
      'line 1, column 22: the path of JSON_QUERY has to be a text without *, and without "to"'
    ],
    [
      "SELECT id,\n  repeat(repeat(id, 1000), 1000) FROM events",
      "line 2, column 3: the texts and lists that the statement makes can have more than 1,000,000 characters"
    ],
    [
      "SELECT repeat('a', sequence_number) FROM events",
      "line 1, column 8: how many repeat makes has to be a number, length(x), or least(x, 100)"
    ],
    [
      "SELECT position(metadata, resource_name) FROM events",
      "line 1, column 8: what position looks for has to be a text of at most 1,000 characters, or left(x, 100)"
    ],
    [
      "SELECT id FROM events WHERE id REGEXP concat('a', 'b')",
      "line 1, column 32: the pattern of REGEXP has to be a text"
    ],
    [
      "SELECT extractAll(metadata, '\\\\d+|\\\\w+') FROM events",
      "line 1, column 8: the pattern of extractAll has *, + or {1,} in alternatives, or in a group that is repeated: write {1,99}"
    ],
    [`SELECT ${"a".repeat(19_000)}(1)`, "line 1, column 8: a name has at most 256 characters"],
    [
      "SELECT 1,\n  toTimeZone(now(), 'Berlin')",
      "line 2, column 21: 'Berlin' is no time zone that alk knows: write one such as 'Europe/Berlin' or 'UTC'"
    ],
    [
      "SELECT toHour(timestamp, id) FROM events",
      "line 1, column 26: a time zone has to be a text: write one such as 'Europe/Berlin' or 'UTC'"
    ],
    [
      "SELECT CAST(id AS Nullable(DateTime64(3, 'Fixed/UTC+00:00:10')))",
      "line 1, column 42: 'Fixed/UTC+00:00:10' is no time zone that alk knows"
    ],
    ["SELECT toHour(*) FROM events", "line 1, column 15: toHour takes no *: name the columns"],
    ["SELECT 1 FROM", "line 1, column 14: a table is expected here, not the end"],
    ["SELECT 'a", "line 1, column 8: this text does not end: a ' is missing"],
    ["SELECT '\\x4', 'a'", "line 1, column 8: this text does not end: a ' is missing, or two hex"],
    [
      "SELECT id FROM events FORMAT JSON",
      "line 1, column 23: FORMAT can't be written in the statement: use `format`"
    ],
    ["SELECT x -> 1", "line 1, column 14: a lambda has to be an argument of a function"]
  ])("%s is refused", (sql, message) => {
    const refusal = refusalOf(sql)
    assert.isTrue(refusal.startsWith(message), refusal)
  })

  it("is read if analysts ask it, and never if it reaches elsewhere", () => {
    assert.isAbove(honestStatements.length, 300)
    for (const sql of honestStatements) assert.isNotEmpty(written(sql), sql)
    assert.isAbove(hostileStatements.length, 1_000)
    for (const sql of hostileStatements) assert.isAbove(refusalOf(sql).length, 20, sql)
  })

  it("calls functions alone of which it is known how large what they make can get", () => {
    assert.deepStrictEqual(
      allowedFunctions.filter((name) => !hasRule(name.toLowerCase())),
      []
    )
  })

  it("is read in a time that grows with its length alone", () => {
    const nested = (call: string, depth: number): string =>
      Array.from({ length: depth }).reduce<string>((list) => call.replace("□", list), "[1]")
    const named = (count: number, one: (at: number) => string): string =>
      `SELECT ${Array.from({ length: count }, (_, at) => one(at)).join(", ")}`
    const timeOf = (sql: string): number => {
      const began = performance.now()
      try {
        written(sql)
      } catch (cause) {
        assert.match((cause as Error).message, /made of one another in too many ways|more than 1,0/)
      }
      return performance.now() - began
    }
    const ordinary = named(390, (at) => `a${at} || 'x'`)
    timeOf(ordinary)
    for (const involved of [
      `SELECT ${nested("arrayMap(x -> x, □)", 22)}`,
      `SELECT ${nested("arrayMap(x -> (x, x), □)", 18)}`,
      `SELECT ${nested("arrayFilter(x -> x, □)", 18)}`,
      `SELECT ${nested("arrayFold((s, x) -> s, □, [1])", 9)}`,
      named(320, (at) => `concat(a${(at + 1) % 320}, 'x') AS a${at}`),
      named(390, (at) => `a${(at + 389) % 390} || 'x' AS a${at}`),
      named(320, () => "concat(a, 'x') AS a"),
      `SELECT match(a, p), ${named(180, () => "match(a, p)").slice(7)}, ${named(220, () => `'${"[a]".repeat(20)}' AS p`).slice(7)}`,
      named(160, (at) => `a || b || 'x' AS ${at % 2 === 0 ? "a" : "b"}`)
    ]) {
      const ratios = [1, 2, 3].map(() => timeOf(involved) / timeOf(ordinary))
      assert.isBelow(Math.min(...ratios), 20, involved.slice(0, 100))
    }
    assert.isNotEmpty(written(`SELECT ${nested("arrayMap(x -> x, □)", 44)}`))
    // Names in any order are no ring.
    const mixed = named(
      320,
      (at) => `concat(a${((at * 79) % 320) + 1}, 'x') AS a${(at * 79) % 320}`
    )
    assert.isNotEmpty(written(mixed))
  })

  it("has a bound on its parts and on what is inside of one another", () => {
    const nested = (depth: number) => `SELECT ${"(".repeat(depth)}1${")".repeat(depth)}`
    assert.strictEqual(written(nested(48)), "SELECT 1")
    for (const deep of [
      nested(49),
      nested(9_000),
      `SELECT ${"NOT ".repeat(60)}1`,
      `SELECT ${"- ".repeat(60)}a`,
      `SELECT ${"a(".repeat(60)}`,
      `${"SELECT * FROM (".repeat(60)}SELECT 1${")".repeat(60)}`,
      `SELECT CAST(1 AS ${"Array(".repeat(60)}Int8${")".repeat(60)})`
    ]) {
      assert.match(refusalOf(deep), /more than 50 brackets|the function a can't/, deep)
    }
    assert.isNotEmpty(written(`SELECT ${repeated(500, "1", "+")}`))
    for (const long of [
      `SELECT ${repeated(1_100, "1", "+")}`,
      `SELECT ${repeated(1_100, "a", ",")}, ${repeated(1_000, "b", "||")}`,
      `SELECT 1 FROM ${repeated(2_100, "events", ",")}`,
      `SELECT a${".1".repeat(2_100)}`,
      `${repeated(2_100, "SELECT 1", " UNION ALL ")}`
    ]) {
      assert.match(refusalOf(long), /more than 2,000 parts/, long.slice(0, 100))
    }
  })
})
