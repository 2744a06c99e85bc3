/** Which statements of other processes reach the embedded engine. */
import { readdirSync, readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { isRead, refusalOf } from "../../../../src/adapters/clickhouse/client/StatementGuard.ts"
import { statementsIn } from "../../../../src/adapters/clickhouse/Migrations.ts"
import { readStatement } from "../../../../src/adapters/clickhouse/sql/SqlStatement.ts"
import { sqlTableNames } from "../../../../src/domain/sql/SqlTables.ts"
import { honestStatements } from "../support/HonestStatements.ts"
import { zoneStatements } from "../support/HostileStatements.ts"
import { hiddenCalls, quoteForms } from "../support/QuoteForms.ts"

describe("refusalOf", () => {
  it.each([
    "SELECT * FROM file('/etc/hostname', 'LineAsString')",
    "FROM file('/etc/hostname', 'LineAsString') SELECT *",
    "SELECT * FROM FILE ('/etc/hostname')",
    "SELECT * FROM `file`('/etc/hostname')",
    "SELECT * FROM \"file\"('/etc/hostname')",
    "SELECT * FROM `fi\\x6ce`('/etc/hostname')",
    "SELECT * FROM file/* a comment */('/etc/hostname')",
    "SELECT * FROM file -- a comment\n('/etc/hostname')",
    "SELECT 'it''s', file('/etc/hostname')",
    "SELECT $a$'$a$, file('/etc/hostname')",
    "SELECT * FROM url('http://127.0.0.1/', 'CSV')",
    "SELECT * FROM executable('id', 'CSV', 'a String')",
    "SELECT * FROM s3('http://h/b', 'CSV')",
    "SELECT * FROM remote('127.0.0.1', 'system.one')",
    "INSERT INTO FUNCTION file('/tmp/a', 'CSV') SELECT 1",
    "INSERT INTO TABLE FUNCTION url('http://h/', 'CSV') SELECT 1",
    "SELECT 1 INTO OUTFILE '/tmp/a'",
    "SELECT 1 into -- now\n outfile '/tmp/a'",
    "INSERT INTO t FROM INFILE '/tmp/a' FORMAT CSV",
    "CREATE TABLE t (a String) ENGINE = File(CSV, '/tmp/a')",
    "CREATE TABLE t (a String) ENGINE URL('http://h/', 'CSV')",
    "CREATE TABLE t (a String) ENGINE = `File`(CSV)",
    "CREATE TABLE t (a String) ENGINE = KeeperMap",
    "CREATE DICTIONARY d (a String) PRIMARY KEY a SOURCE(EXECUTABLE(COMMAND 'id' FORMAT 'CSV'))",
    "BACKUP TABLE t TO File('/tmp/a')",
    "BACKUP TABLE t TO Disk('default', 'a')",
    "ATTACH TABLE t FROM '/tmp/a' (a String) ENGINE = MergeTree ORDER BY a",
    // The engine opens files by the names of tables.
    "SELECT * FROM '/etc/hostname'",
    "SELECT * FROM `/etc/hostname`",
    'SELECT * FROM "/etc/hostname"',
    "SELECT * FROM numbers(1) AS n, '/etc/hostname'",
    "SELECT * FROM t JOIN '/etc/hostname' ON 1",
    "SELECT (SELECT * FROM '/etc/hostname')",
    "SELECT * FROM default.`/etc/hostname`",
    "DESCRIBE TABLE '/etc/hostname'",
    "DESCRIBE '/etc/hostname'",
    "desc `/etc/hostname`",
    "EXISTS '/etc/hostname'",
    "SELECT 1 IN `/etc/hostname`",
    "SELECT 1 WHERE 1 IN (`/etc/hostname`)",
    "SELECT * FROM loop(`/etc/hostname`)",
    "SELECT * FROM loop(db, `/etc/hostname`)",
    "SELECT joinGet(`/etc/hostname`, 'a', 1)",
    "CREATE TABLE t AS `/etc/hostname`",
    "CREATE OR REPLACE VIEW v AS SELECT 1 AS `/etc/hostname`",
    // Of this database files are tables by their bare names too.
    "SELECT * FROM default.secret",
    "SELECT * FROM `default`.secret",
    'SELECT * FROM Default /* now */ . "secret"',
    "SELECT 1 IN default.secret",
    "SELECT * FROM loop(default, secret)",
    "SELECT * FROM loop(`default`, secret)",
    "SELECT * FROM merge('default', '.*')",
    "SELECT joinGet('default.secret', 'a', 1)",
    "CREATE TABLE t (a String) ENGINE = Buffer('default', 'secret', 1, 1, 1, 1, 1, 1, 1)",
    // What reaches models, hosts and catalogs.
    "SELECT aiGenerate('a', 'b')",
    "SELECT catboostEvaluate('/etc/hostname', 1)",
    "CREATE DATABASE d ENGINE = DataLakeCatalog('http://h/')",
    // What outlives the statement, or is about the engine and its users.
    "SET allow_ddl = 0",
    "/* a comment */ SET allow_ddl = 0",
    "USE default",
    "SYSTEM FLUSH LOGS",
    "SYSTEM SHUTDOWN",
    "RENAME DATABASE default TO d",
    "ATTACH DATABASE d",
    "DETACH TABLE t",
    "CREATE USER u",
    "CREATE OR REPLACE FUNCTION f AS (x) -> x",
    "CREATE NAMED COLLECTION c AS url = 'http://h/'",
    "ALTER USER default SETTINGS readonly = 0",
    "DROP ROW POLICY p ON t",
    "GRANT ALL ON *.* TO u",
    "BACKUP TABLE t TO Null",
    "EXPLAIN SELECT * FROM file('/etc/hostname')",
    "SELECT * FROM (EXPLAIN SELECT * FROM file('/etc/hostname'))",
    "SELECT * FROM (EXPLAIN AST optimize = 1 SELECT * FROM file('/etc/hostname'))",
    "SELECT * FROM (EXPLAIN AST SELECT * FROM file('/etc/hostname'))",
    "SELECT arrayMap(file, ['/etc/hostname'])",
    "SELECT \u2018 ' \u2019, file('/etc/hostname'), \u2018 ' \u2019",
    "SELECT \u201c ' \u201d, file('/etc/hostname'), \u201c ' \u201d",
    "SELECT 1 FORMAT Template SETTINGS format_template_row = '/etc/hostname'",
    "SELECT 1 FORMAT Protobuf SETTINGS output_format_schema = '/tmp/x'",
    // Formats and settings that are not among those that alk needs.
    "SELECT 1 FORMAT Template",
    "SELECT 1 format `CapnProto`",
    "SELECT 1 FORMAT SQLInsert",
    "INSERT INTO t FORMAT Avro",
    "SELECT 1 SETTINGS max_threads = 1, format_schema_path = '/tmp'",
    "SELECT 1 SETTINGS max_threads = (1), `allow_ddl` = 0",
    "SELECT * FROM (SELECT 1 SETTINGS allow_experimental_codecs = 1)",
    "SELECT 1 SETTINGS readonly = 0",
    "CREATE TABLE t (a String) ENGINE = MergeTree ORDER BY a SETTINGS disk = disk(type = local, path = '/')",
    "CREATE TABLE t (a String) ENGINE = MergeTree ORDER BY a SETTINGS index_granularity = 1, storage_policy = 's'",
    "ALTER TABLE t MODIFY SETTING disk = 'd'",
    "SELECT 1 SETTINGS compile_expressions = 1",
    "SELECT arrayMap((`file`), ['/etc/hostname'])",
    "SELECT arrayFilter(file AS f, ['/etc/hostname'])",
    "SELECT * FROM (EXPLAIN AST SELECT 1), file('/etc/hostname')",
    "SELECT * FROM (EXPLAIN AST SELECT 1) UNION ALL SELECT * FROM file('/etc/hostname')",
    "SELECT * FROM (EXPLAIN AST SELECT 1; DROP TABLE t)",
    // A function by its bare name.
    "SELECT * APPLY(file) FROM (SELECT '/etc/hostname' AS x)",
    "SELECT * APPLY file FROM (SELECT '/etc/hostname' AS x)",
    "SELECT * APPLY `file` FROM (SELECT '/etc/hostname' AS x)",
    "SELECT * APPLY file('d') FROM (SELECT '/etc/hostname' AS x)",
    "SELECT COLUMNS('x') APPLY(file) FROM (SELECT '/etc/hostname' AS x)",
    "SELECT x.* APPLY(toString) APPLY(file) FROM (SELECT '/etc/hostname' AS x) AS x",
    "SELECT * APPLY(f -> file(f)) FROM (SELECT '/etc/hostname' AS x)",
    "SELECT `arrayMap`(file, ['/etc/hostname'])",
    "SELECT arrayMap((file AS f), ['/etc/hostname'])",
    "SELECT mapApply(file, map('a', 'b'))",
    "WITH (x -> file(x)) AS f SELECT f('/etc/hostname')",
    "WITH lambda(tuple(x), file(x)) AS f SELECT f('/etc/hostname')",
    "WITH x -> x AS f SELECT f('/etc/hostname')",
    // Databases and tables by names that are computed.
    "SELECT * FROM (SELECT * FROM loop(concat('def','ault'), '/tmp/canary.csv') LIMIT 2)",
    "SELECT hasColumnInTable(concat('defau','lt'), '/tmp/canary.csv', 'colA')",
    "SELECT hasColumnInTable('127.0.0.1:1', 'system', 'one', 'dummy')",
    "SELECT * FROM merge(REGEXP('defaul.'), 'canary.csv')",
    "SELECT * FROM mergeTreeIndex(concat('def', 'ault'), 'x')",
    "SELECT joinGet(concat('default', '.x'), 'a', 1)",
    "SELECT dictGet(concat('default', '.x'), 'a', 1)",
    "SELECT 1 IN loop(concat('def', 'ault'), 'x')",
    "SELECT 1 FROM t JOIN loop(concat('def', 'ault'), 'x') ON 1",
    "DESCRIBE TABLE loop(concat('def', 'ault'), 'x')",
    "CREATE TABLE t AS loop(concat('def', 'ault'), 'x')",
    "INSERT INTO TABLE FUNCTION loop(concat('def', 'ault'), 'x') SELECT 1",
    "CREATE DATABASE d ENGINE = Overlay('a', 'default')",
    "CREATE DATABASE d ENGINE = Filesystem('/tmp')",
    "CREATE TABLE t (a String) ENGINE = Merge(concat('def', 'ault'), '.*')",
    // What no list knows.
    "SELECT someLaterFunction('/etc/hostname')",
    "SELECT * FROM someLaterTable('/etc/hostname')",
    "SELECT addressToSymbol(1), demangle('a')",
    "SELECT filesystemAvailable()",
    // What ClickHouse takes for a space, and for a part of a name.
    ..."\u0085\u180e\u200b\u200c\u200d\u2060\ufeff"
      .split("")
      .map((space) => `SELECT file${space}('/etc/hostname')`),
    "SELECT * FROM default\u200b.`canary.csv`",
    "SELECT 1 AS a$x$, file('/etc/hostname') AS b$x$",
    "SELECT 1 AS a$$, file('/etc/hostname') AS b$$",
    "SELECT 1.,file('/etc/hostname')",
    "DROP TABLE IF EXISTS t PARALLEL WITH CREATE TABLE u (a String) ENGINE = File(CSV)",
    "DROP TABLE IF EXISTS t PARALLEL WITH CREATE FUNCTION f AS (x) -> x",
    "SELECT 1; DROP TABLE t",
    "SELECT ';'; SELECT 2",
    // What hides behind a comment, a quote, or what could be one.
    "SELECT 1 // '\n , file('/etc/hostname') // '\n FORMAT TSV",
    "SELECT 1//'\n,2//'",
    "SELECT 1 --1",
    ...quoteForms.map((form) => `SELECT 1 ${form.replaceAll("□", "x")}\n`),
    ...quoteForms.map((form) => `SELECT 'a', a${form.replaceAll("□", "'")}\n`),
    // Names of zones, in types and in tables as well.
    "SELECT toTimeZone(now(), 'file:/tmp/canary')",
    "SELECT * FROM values('a DateTime(\\'file:/tmp/canary\\')', ('x'))",
    "SELECT * FROM values('a DateTime(''file:/tmp/canary'')', ('x'))",
    "SELECT * FROM values(concat('a Date', 'Time(1)'), ('x'))",
    "SELECT * FROM generateRandom('a DateTime64(3, \\'Fixed/UTC+00:00:10\\')')",
    "INSERT INTO t SELECT a FROM input('a DateTime(\\'../zoneinfo/UTC\\')') FORMAT Native",
    "SELECT reinterpret(1, 'DateTime(\\'file:/tmp/canary\\')')",
    "SELECT CAST(1, '\\x44ateTime(\\'file:/tmp/canary\\')')",
    "CREATE TABLE t (a DateTime64(6, 'Fixed/UTC+00:00:10')) ENGINE = Memory",
    "ALTER TABLE t MODIFY COLUMN a Nullable(DateTime('file:/tmp/canary'))",
    "SELECT {a:String}::DateTime(x'555443')",
    // Rows behind a statement are read in another way.
    "INSERT INTO t FORMAT TSV\n'\n; SELECT 1\n'",
    "INSERT INTO t SELECT 1 FORMAT CSV 1",
    "WITH 1 AS x INSERT INTO t FORMAT Values ('a')"
  ])("is there for %s", (sql) => {
    assert.isString(refusalOf(sql))
  })

  it("is there for a call behind any two of what hides it, unless it is within one text", () => {
    const all = ["'", '"', "`"].flatMap((quote) => hiddenCalls("file(1)", quote))
    const passed = all.filter((sql) => refusalOf(sql) === undefined)
    assert.isBelow(passed.length, all.length / 100)
    const text = /(['"`])(?:\\[^]|(?!\1)[^])*\1/g
    for (const sql of passed) assert.notInclude(sql.replaceAll(text, ""), "file", sql)
  })

  it("is there for zones that are unknown or computed", () => {
    for (const sql of zoneStatements) assert.isString(refusalOf(sql), sql)
  })

  it("is not there for what is run for clients", () => {
    for (const sql of honestStatements) {
      assert.isUndefined(refusalOf(readStatement(sql, sqlTableNames).text([])), sql)
    }
  })

  it.each([
    "SELECT 'file(1)', \"a b\" FROM t WHERE x = 'url(2)' AND y IN ('a', 'b')",
    "SELECT '-- // /* # $$ \u2018' AS \"// '\", 2 AS `/* '`, 1 - -2, 4 / 2, x'4A', B'01', 0xFFp3, 1_0.5E-3",
    "SELECT '\\d\\n\\x4a\\'', '''', 'a''b', tuple(1).1, t.1.2 FROM t",
    "SELECT file, url FROM t",
    "SELECT 1 AS `metadata.a\\x60/b` FROM t",
    "SELECT 1 FROM system.columns WHERE database = 'd' AND table = 'events' AND name = 'json'",
    "SELECT file = (1) FROM t",
    "SELECT settings, format FROM t WHERE settings = 1 AND format = 'Template' AND format('{}', a) = b",
    "SELECT 1 FORMAT PrettyCompact SETTINGS max_threads = 1, mutations_sync = 2",
    "SELECT * FROM (SELECT 1 SETTINGS max_threads = 1) WHERE compile_expressions = 1",
    "ALTER TABLE t MODIFY SETTING old_parts_lifetime = 1",
    "CREATE TABLE t (a String) ENGINE = MergeTree ORDER BY a SETTINGS index_granularity = 8192 COMMENT 'x'",
    "SELECT '\u2018', a FROM t WHERE key_path = 'x' SETTINGS format_csv_delimiter = ';'",
    "SELECT lower(url), arraySort(file), arrayConcat(file, ['a']) FROM t",
    "WITH 1 AS x INSERT INTO t SELECT x",
    "INSERT INTO t (a, b) SELECT a, 'b' FROM input('a String') FORMAT Native",
    "INSERT INTO t VALUES ('a', 'b')",
    "ALTER TABLE t UPDATE a = 'b' WHERE c = 'd'",
    "ALTER TABLE t MODIFY COLUMN a String DEFAULT 'b'",
    "SELECT a FROM t ARRAY JOIN ['b', 'c'] AS d LIMIT 1 SETTINGS result_overflow_mode = 'v'",
    "SELECT a FROM t FINAL PREWHERE b = 'c' FORMAT JSON",
    "CREATE TABLE d.t (a String) ENGINE = ReplacingMergeTree ORDER BY a COMMENT 'text'",
    "SELECT arrayJoin(['a']) FROM numbers(3) UNION ALL SELECT 'x'",
    "SELECT 1;",
    "FROM t SELECT x",
    "(SELECT 1) UNION ALL (SELECT 2)",
    "CREATE OR REPLACE TABLE d.t (a UInt8 DEFAULT 1) ENGINE = Memory",
    "CREATE MATERIALIZED VIEW d.v ENGINE = Memory AS SELECT 1 AS a",
    "RENAME TABLE d.t TO d.u",
    "EXCHANGE TABLES d.t AND d.u",
    "INSERT INTO t VALUES (DEFAULT, 1)",
    "INSERT INTO t VALUES ('é', 'toDateTime(''x'')')",
    "INSERT INTO t SELECT a FROM input('a DateTime64(6, \\'UTC\\'), b Array(String)') FORMAT Native",
    "SELECT now64(6, 'UTC'), CAST(a, 'Tuple(b DateTime(\\x27Europe/Berlin\\x27))'), 'file:a' FROM t",
    "SELECT 1 WHERE database IN ('default', 'a') AND name = 'default.x'",
    "SELECT engine FROM system.tables WHERE engine = 'MergeTree' AND engine IN ('File')",
    "SELECT * APPLY(toString) APPLY x -> upper(x) APPLY quantile(0.5) FROM t",
    "SELECT countArray(n), quantilesExactInclusiveArray(0.5, 0.9)(n) FROM t",
    "SELECT arrayMap(toString, [1]), arraySum(x AS y), arrayMap((file, b) -> file, [1], [2]) FROM t",
    "SELECT sumIfState(a, b), uniqExactMerge(c), groupBitmapState(d) FROM t",
    "INSERT INTO d.file (a, b) VALUES ('é', 1.5e3)",
    "CREATE TABLE IF NOT EXISTS d.`file` (a Nullable(DateTime64(3)) CODEC(ZSTD(1))) ENGINE = Memory",
    "SELECT 'é' AS `ü`, ' file(1) ', 1.5 FROM numbers(1), values('a String', ('b'))",
    "KILL MUTATION WHERE 1",
    "SYSTEM STOP MERGES d.t",
    "SELECT '\\'; DROP TABLE t'"
  ])("is not there for %s", (sql) => {
    assert.isUndefined(refusalOf(sql))
  })
})

describe("the schema", () => {
  const folder = new URL("../../../../schemas/clickhouse/", import.meta.url)
  it.each(readdirSync(folder).filter((name) => name.endsWith(".sql")))(
    "%s is passed on",
    (name) => {
      const statements = statementsIn(readFileSync(new URL(name, folder), "utf8"))
      for (const sql of statements) assert.isUndefined(refusalOf(sql), sql)
    }
  )
})

describe("isRead", () => {
  it.each([
    ["SELECT 1", true],
    ["(SELECT 1)", true],
    ["with 1 AS x SELECT x, 'INSERT'", true],
    ["EXPLAIN SELECT 1", true],
    ["WITH 1 AS x INSERT INTO t SELECT x", false],
    ["WITH 1 AS x insert INTO t SELECT x", false],
    ["INSERT INTO t VALUES (1)", false],
    ["DROP TABLE t", false],
    ["", false]
  ])("of %s is %s", (sql, expected) => {
    assert.strictEqual(isRead(sql), expected)
  })
})
