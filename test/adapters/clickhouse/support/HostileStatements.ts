/**
 * Statements of which none may run: expressions that read what is not of the views, in each place where
 * an expression can stand, and tables that are not the views, in each place of a table. A place has
 * a hole, `□`. Some are no SQL at all in their place; these have to be refused like the others.
 */

/** A file, a table, a subquery on its right, and a function that only its name stands for. */
const everywhere = [
  "file('/etc/passwd')",
  "(SELECT count() FROM alk_sql_contract.events)",
  "1 IN (SELECT sequence_number FROM alk_sql_contract.events)",
  "arrayMap(file, ['/etc/passwd'])"
]

/** What is refused in the same way; each stands in some of the places. */
const others = [
  "length(file('/etc/passwd'))",
  "(SELECT count() FROM `alk_sql_contract`.`events`)",
  "(SELECT count() FROM system.tables)",
  "'x' IN alk_sql_contract.events",
  "(SELECT count() FROM file('/etc/passwd', 'LineAsString', 'line String'))",
  "getSetting('max_threads')",
  "throwIf(1)",
  "{p:Identifier}",
  "`file`('/etc/passwd')",
  "\"file\"('/etc/passwd')",
  "file /* */ ('/etc/passwd')",
  "url('http://127.0.0.1:1/')",
  "'x' IN (alk_sql_contract.events)",
  "'x' NOT IN alk.events",
  "'x' GLOBAL IN alk.events",
  "in('x', alk_sql_contract.events)",
  "notIn('x', `alk_sql_contract`.`events`)",
  "nullIn('x', alk.events)",
  "(SELECT count() FROM alk.events)",
  "(SELECT count() FROM alk_sql_contract.events AS events)",
  "(SELECT count() FROM events, alk_sql_contract.events AS other)",
  "(SELECT count() FROM remote('127.0.0.1', 'alk_sql_contract', 'events'))",
  "(SELECT count() FROM merge('alk_sql_contract', '.*'))",
  "(SELECT count() FROM view(SELECT * FROM alk_sql_contract.events))",
  "(WITH x AS (SELECT * FROM alk_sql_contract.events) SELECT count() FROM x)",
  "(SELECT 1 UNION ALL SELECT count() FROM alk_sql_contract.events)",
  "(SELECT 1 SETTINGS max_threads = 1)",
  "(SELECT count() FROM numbers(10))",
  "(EXPLAIN SELECT 1)",
  "EXISTS (SELECT * FROM alk_sql_contract.events)",
  "1 = ANY (SELECT sequence_number FROM alk_sql_contract.events)",
  "1 = ALL (SELECT sequence_number FROM alk_sql_contract.events)",
  "dictGet('d', 'a', 1)",
  "dictGetOrDefault('d', 'a', 1, 2)",
  "joinGet('alk_sql_contract.events', 'id', 1)",
  "joinGet(alk_sql_contract.events, 'id', 1)",
  "hasColumnInTable('alk_sql_contract', 'events', 'id')",
  "sleep(1)",
  "sleepEachRow(1)",
  "arrayReduce('sum', [1])",
  "arrayFilter(throwIf, [1])",
  "arraySort(`throwIf`, [1, 2])",
  "arrayMap(x -> file(x), ['/etc/passwd'])",
  "arrayMap((x, y) -> hasColumnInTable(x, y, 'id'), ['alk_sql_contract'], ['events'])",
  "CAST(unhex('00') AS AggregateFunction(sum, UInt8))",
  "CAST('', 'AggregateFunction(quantile, Float64)')",
  "unhex('00')::AggregateFunction(sum, UInt8)",
  "JSONExtract('{\"a\":\"\"}', 'a', 'AggregateFunction(sum, UInt8)')",
  "accurateCastOrNull(unhex('00'), 'AggregateFunction(sum, UInt8)')",
  "finalizeAggregation(sumState(1))",
  "sumState(1)",
  "COLUMNS('.*')",
  "COLUMNS(id, action)",
  "events.COLUMNS('.*')",
  "* APPLY file",
  "* APPLY (x -> file(x))",
  "* REPLACE (file('/etc/passwd') AS id)",
  "COLUMNS('id') APPLY (throwIf)",
  "@@version",
  "currentUser()",
  "hostName()",
  "version()",
  "getServerPort('tcp_port')",
  "{p:String}"
]

/** Every how many places one of `others` stands in. */
const STRIDE = 20

const placesOfExpressions = [
  // The list of a SELECT, and around it.
  "SELECT □ FROM events",
  "SELECT □",
  "SELECT 1 AS a, □ AS b, a FROM events",
  "SELECT (□ AS a), a FROM events",
  "SELECT 1 AS □ FROM events",
  "SELECT DISTINCT □ FROM events",
  "SELECT DISTINCT ON (□) id FROM events",
  "SELECT *, □ FROM events",
  "SELECT * EXCEPT (□) FROM events",
  "SELECT TOP 1 □ FROM events",
  "FROM events SELECT □",
  "SELECT id FROM (SELECT id, □ AS x FROM events)",
  "SELECT (SELECT □)",
  "SELECT ((((□))))",
  "SELECT '\\'', \"id\", `id`, □ FROM events",
  "SELECT 'a -- ', /* ' */ □ /* ' */ FROM events -- '",
  // Inside of functions and operators.
  "SELECT concat('a', toString(□)) FROM events",
  "SELECT lower(□) FROM events",
  "SELECT if(□ = 1, 2, 3) FROM events",
  "SELECT arrayMap(x -> □, [1]) FROM events",
  "SELECT arrayMap(x -> x + 1, [□]) FROM events",
  "SELECT arrayFold((a, x) -> (a + length(toString(□))), [1], 0) FROM events",
  "SELECT mapFilter((k, v) -> v = □, map('a', 1)) FROM events",
  "SELECT arraySort(x -> arrayMap(y -> □, [x])[1], [1, 2]) FROM events",
  "SELECT quantile(□)(sequence_number) FROM events",
  "SELECT quantiles(0.5, □)(sequence_number) FROM events",
  "SELECT quantile(0.5)(□) FROM events",
  "SELECT count(DISTINCT □) FROM events",
  "SELECT sumIf(1, □ = 1) FROM events",
  "SELECT count() FILTER (WHERE □ = 1) FROM events",
  "SELECT JSONExtractString(metadata, □) FROM events",
  "SELECT (□, 1).1, tuple(1, □) FROM events",
  "SELECT [1, □] FROM events",
  "SELECT [1, 2][□] FROM events",
  "SELECT map('a', □)['a'] FROM events",
  "SELECT map('a', 1)[□] FROM events",
  "SELECT -□, NOT □ FROM events",
  "SELECT 1 + □ * 2 FROM events",
  "SELECT 'a' || □ FROM events",
  "SELECT □ IS NULL FROM events",
  "SELECT id LIKE □ FROM events",
  "SELECT 1 IN (1, □) FROM events",
  "SELECT (1, 2) IN ((1, □), (3, 4)) FROM events",
  "SELECT 1 BETWEEN □ AND 2 FROM events",
  "SELECT 1 NOT BETWEEN 0 AND □ FROM events",
  "SELECT 1 ? □ : 2 FROM events",
  "SELECT □ ? 1 : 2 FROM events",
  "SELECT CASE WHEN □ = 1 THEN 1 END FROM events",
  "SELECT CASE WHEN 1 THEN □ ELSE 1 END FROM events",
  "SELECT CASE 1 WHEN □ THEN 1 END FROM events",
  "SELECT CASE □ WHEN 1 THEN 1 ELSE □ END FROM events",
  "SELECT CAST(□ AS String) FROM events",
  "SELECT CAST(□, 'String') FROM events",
  "SELECT □::String FROM events",
  "SELECT (□)::Nullable(String) FROM events",
  "SELECT timestamp + INTERVAL □ DAY FROM events",
  "SELECT INTERVAL (□) DAY FROM events",
  "SELECT EXTRACT(DAY FROM □) FROM events",
  "SELECT SUBSTRING(□ FROM 1 FOR 2), SUBSTRING(id FROM □) FROM events",
  "SELECT TRIM(BOTH 'x' FROM □) FROM events",
  "SELECT POSITION(□ IN id) FROM events",
  "SELECT dateDiff(day, timestamp, □) FROM events",
  "SELECT date_add(DAY, □, timestamp) FROM events",
  // The other clauses.
  "SELECT id FROM events WHERE □",
  "SELECT id FROM events WHERE outcome = 'x' OR id = □",
  "SELECT id FROM events WHERE id IN (SELECT id FROM events WHERE □ = 1)",
  "SELECT id FROM events WHERE EXISTS (SELECT □)",
  "SELECT id FROM events PREWHERE □ = 1",
  "SELECT count() FROM events GROUP BY □",
  "SELECT count() FROM events GROUP BY id, □ WITH ROLLUP",
  "SELECT count() FROM events GROUP BY ROLLUP(id, □)",
  "SELECT count() FROM events GROUP BY CUBE(□)",
  "SELECT count() FROM events GROUP BY GROUPING SETS ((id), (□))",
  "SELECT count() FROM events GROUP BY id HAVING □ = 1",
  "SELECT id FROM events QUALIFY □ = 1",
  "SELECT id FROM events QUALIFY row_number() OVER (ORDER BY □) = 1",
  "SELECT id FROM events ORDER BY □",
  "SELECT id FROM events ORDER BY id, □ DESC NULLS LAST",
  "SELECT sequence_number AS n FROM events ORDER BY n WITH FILL FROM □",
  "SELECT sequence_number AS n FROM events ORDER BY n WITH FILL FROM 1 TO □",
  "SELECT sequence_number AS n FROM events ORDER BY n WITH FILL STEP □",
  "SELECT sequence_number AS n FROM events ORDER BY n WITH FILL STALENESS □",
  "SELECT sequence_number AS n, id AS v FROM events ORDER BY n WITH FILL INTERPOLATE (v AS □)",
  "SELECT id FROM events LIMIT □",
  "SELECT id FROM events LIMIT □, 1",
  "SELECT id FROM events LIMIT 1 OFFSET □",
  "SELECT id FROM events OFFSET □",
  "SELECT id FROM events OFFSET □ ROWS FETCH FIRST 1 ROWS ONLY",
  "SELECT id FROM events ORDER BY id OFFSET 1 ROW FETCH NEXT □ ROWS WITH TIES",
  "SELECT id FROM events LIMIT 1 BY □",
  "SELECT id FROM events LIMIT □ BY id",
  "SELECT id FROM events LIMIT 1 OFFSET □ BY id LIMIT 2",
  "SELECT id FROM events SAMPLE □",
  "SELECT id FROM events SETTINGS max_threads = □",
  // Windows.
  "SELECT count() OVER (PARTITION BY □) FROM events",
  "SELECT count() OVER (PARTITION BY id ORDER BY id, □ DESC) FROM events",
  "SELECT count() OVER (ORDER BY id ROWS □ PRECEDING) FROM events",
  "SELECT count() OVER (ORDER BY id ROWS BETWEEN □ PRECEDING AND CURRENT ROW) FROM events",
  "SELECT count() OVER (ORDER BY 1 RANGE BETWEEN CURRENT ROW AND □ FOLLOWING) FROM events",
  "SELECT count() OVER (ORDER BY count() OVER (ORDER BY □)) FROM events",
  "SELECT count() OVER (ORDER BY id WITH FILL FROM □) FROM events",
  "SELECT sum(□) OVER (ORDER BY id) FROM events",
  "SELECT nth_value(id, 2) IGNORE NULLS OVER (ORDER BY '(', □, ')') FROM events",
  "SELECT count() FILTER (WHERE □ = 1) OVER (ORDER BY id) FROM events",
  "SELECT count() OVER w FROM events WINDOW w AS (PARTITION BY □)",
  "SELECT 1 FROM events WINDOW v AS (ORDER BY id), w AS (v ROWS BETWEEN □ PRECEDING AND CURRENT ROW)",
  "SELECT 1 FROM events WINDOW w AS (ORDER BY count() OVER (ORDER BY □))",
  "SELECT id FROM events ORDER BY count() OVER (ORDER BY □)",
  // Joins.
  "SELECT 1 FROM events AS a JOIN events AS b ON a.id = b.id AND □ = 1",
  "SELECT 1 FROM events AS a LEFT JOIN events AS b ON □",
  "SELECT 1 FROM events AS a JOIN events AS b USING (□)",
  "SELECT 1 FROM events AS a ASOF JOIN events AS b ON a.id = b.id AND a.timestamp > □",
  "SELECT 1 FROM events ARRAY JOIN [□] AS x",
  "SELECT 1 FROM events LEFT ARRAY JOIN [1] AS x, [□] AS y",
  "SELECT 1 FROM events AS a JOIN (SELECT □ AS id) AS b ON a.id = b.id",
  // WITH, UNION and their like.
  "WITH □ AS x SELECT x FROM events",
  "WITH □ AS x SELECT 1 FROM events",
  "WITH 1 AS a, a + length(toString(□)) AS x SELECT x",
  "WITH x AS (SELECT □ AS a) SELECT a FROM x",
  "WITH x AS (SELECT 1 AS a), y AS (SELECT a FROM x WHERE □ = 1) SELECT a FROM y",
  "WITH (SELECT □) AS x SELECT x",
  "WITH (a -> □) AS f SELECT f(1)",
  "SELECT 1 UNION ALL SELECT □",
  "SELECT □ UNION DISTINCT SELECT 1",
  "SELECT 1 INTERSECT SELECT □",
  "SELECT id FROM (SELECT 1 AS id EXCEPT SELECT □)",
  "(SELECT 1) UNION ALL ((SELECT 2) UNION ALL (SELECT □))",
  "SELECT id FROM (((SELECT □ AS id)))"
]

const hostileTables = [
  "alk_sql_contract.events",
  "alk.events",
  "`alk_sql_contract`.`events`",
  '"alk_sql_contract"."events"',
  "`alk_sql_contract.events`",
  "alk_sql_contract . events",
  "alk_sql_contract/* */./* */events",
  "alk_sql_contract.facts",
  "facts",
  "`events `",
  "system.tables",
  "system.query_log",
  "information_schema.tables",
  "default.events",
  "{t:Identifier}",
  "{d:Identifier}.events",
  "file('/etc/passwd', 'LineAsString', 'line String')",
  "`file`('/etc/passwd', 'LineAsString', 'line String')",
  "url('http://127.0.0.1:1/', 'CSV', 'a String')",
  "remote('127.0.0.1', 'alk_sql_contract', 'events')",
  "cluster('default', alk_sql_contract.events)",
  "merge('alk_sql_contract', '.*')",
  "mergeTreeIndex('alk_sql_contract', 'events')",
  "view(SELECT * FROM alk_sql_contract.events)",
  "viewExplain('EXPLAIN', '', (SELECT 1))",
  "loop(alk_sql_contract.events)",
  "numbers(10)",
  "values('a String', 'x')",
  "dictionary('d')",
  "executable('id', 'CSV', 'a String')",
  "python('x')",
  "(EXPLAIN SELECT 1)"
]

const placesOfTables = [
  "SELECT * FROM □",
  "SELECT * FROM □ AS events",
  "SELECT events.* FROM □ events",
  "FROM □ SELECT count()",
  "SELECT * FROM events, □",
  "SELECT * FROM events AS a LEFT JOIN □ AS b ON 1 = 1",
  "SELECT * FROM □ AS a CROSS JOIN events AS b",
  "SELECT * FROM events AS a GLOBAL ANY JOIN □ AS b USING (id)",
  "SELECT * FROM (SELECT * FROM □)",
  "SELECT * FROM ((SELECT 1) UNION ALL (SELECT count() FROM □))",
  "SELECT count() FROM events WHERE id IN (SELECT id FROM □)",
  "SELECT count() FROM events WHERE id IN □",
  "SELECT count() FROM events WHERE EXISTS (SELECT * FROM □)",
  "SELECT (SELECT count() FROM □)",
  "SELECT count() OVER (ORDER BY (SELECT count() FROM □)) FROM events",
  "SELECT count() OVER w FROM events WINDOW w AS (PARTITION BY 1 IN (SELECT 1 FROM □))",
  "SELECT 1 UNION ALL SELECT count() FROM □",
  "SELECT 1 INTERSECT SELECT count() FROM □",
  "WITH x AS (SELECT * FROM □) SELECT * FROM x",
  "WITH x AS (SELECT 1), y AS (SELECT * FROM x, □) SELECT 1",
  "WITH (SELECT count() FROM □) AS x SELECT x",
  "WITH events AS (SELECT * FROM □) SELECT * FROM events",
  "SELECT * FROM □ ARRAY JOIN [1] AS x",
  "SELECT * FROM □ FINAL",
  "TABLE □"
]

/** Every how many places one of `hostileTables` stands in. */
const TABLE_STRIDE = 8

const into = (place: string, what: string): string => place.split("□").join(what)

/** Each in every `stride`th place, beginning with another one. */
const spread = (
  what: ReadonlyArray<string>,
  places: ReadonlyArray<string>,
  stride: number
): ReadonlyArray<string> =>
  what.flatMap((one, first) =>
    places.filter((_, at) => (at + first) % stride === 0).map((place) => into(place, one))
  )

/** A table of WITH, and others that are each made of the one before. */
const chain = (next: (at: number) => string): string =>
  ["a0 AS (SELECT 1 AS x)", ...Array.from({ length: 14 }, (_, at) => next(at))].join(", ")

const bars = (list: string): string => `arrayStringConcat(arrayMap(x -> bar(1,0,1,1000), ${list}))`
const manyBars = (count: number): string => bars(`extractAll(${bars(`range(${count})`)}, '\u2588')`)
const BLOCKS = "\u2588".repeat(16)

/**
 * What computes for minutes, or longer, on a single row, where no limit counts: large constants, texts
 * that are looked for in others of their length, and patterns whose matches take time by the square of
 * the text.
 */
const endless = [
  "SELECT position(repeat('a', 100000000), concat(repeat('a', 50000000), 'b'))",
  "SELECT position(repeat('a', 100000), concat(repeat('a', 50000), 'b'))",
  `SELECT position(${manyBars(60)}, concat(${manyBars(10)}, 'b'))`,
  `SELECT length(h), length(n), position(h, n) FROM (SELECT ${manyBars(1)} AS h, concat(${bars("range(1)")}, 'b') AS n)`,
  `SELECT position(h, n) FROM (SELECT ${bars("range(100)")} AS h, left(${bars("range(1)")}, 1001) AS n)`,
  `SELECT ${"translateUTF8(hex(".repeat(8)}'a'${`), '0123456789ABCDEF', '${BLOCKS}')`.repeat(8)}`,
  "SELECT position(metadata, left(metadata, -1)) FROM events",
  "SELECT arrayMap(x -> repeat(left(x, 1000), 1000), arrayMap(x -> repeat('a', 1000), range(500)))",
  "SELECT arrayMap(x -> arrayMap(y -> y, groupArrayInsertAt('', 1000000)('a', 999999)), [1, 2])",
  "SELECT groupArrayInsertAt('a', sequence_number) FROM events",
  "SELECT arrayMap(x -> CAST(['a'] AS Array(FixedString(1000))), range(2000))",
  "SELECT toString(arrayMap(x -> CAST('a', 'FixedString(1000)'), range(2000)))",
  "SELECT toString(arrayMap(x -> toInt256(x), range(20000)))",
  "SELECT position(arrayStringConcat(g), 'ab') FROM (SELECT groupArray('aaa') AS g FROM (SELECT arrayJoin(range(1000))) AS a, (SELECT arrayJoin(range(1000))) AS b)",
  "WITH t AS (SELECT arrayJoin(range(100)) AS n) SELECT groupArray(1) FROM t AS a, t AS b, t AS c, t AS d",
  "SELECT topK(60000)(id), histogram(1000000)(sequence_number), groupConcat(repeat('a', 99999))(id) FROM events",
  "SELECT arrayResize(range(3), least(sequence_number - 1000000000, 5)) FROM events",
  "SELECT arrayMap(range, range(5000)), arrayFold(arrayConcat, [range(50000), range(50000)], range(950000))",
  "SELECT position(repeat('a', 90000), left(concat(repeat('a', 990), id), 1000)) FROM events",
  "SELECT POSITION(resource_name IN metadata) FROM events",
  "SELECT locate(metadata, metadata) FROM events",
  "SELECT countSubstrings(metadata, lower(metadata)) FROM events",
  "SELECT replaceAll(metadata, resource_name, '') FROM events",
  "SELECT splitByString(resource_name, metadata) FROM events",
  "SELECT multiSearchAny(metadata, splitByChar(' ', metadata)) FROM events",
  "SELECT hasAll(groupArray(id), groupArray(actor_id)) FROM events",
  "SELECT hasSubstr(groupArray(id), arrayReverse(groupArray(id))) FROM events",
  "SELECT id FROM events WHERE metadata LIKE concat('%', resource_name)",
  "SELECT id FROM events WHERE metadata NOT ILIKE resource_name",
  "SELECT like(metadata, resource_name) FROM events",
  `SELECT id FROM events WHERE metadata LIKE '${"%a".repeat(501)}'`,
  "SELECT match(metadata, resource_name) FROM events",
  "SELECT id FROM events WHERE metadata REGEXP action",
  "SELECT extractAll(metadata, 'a*b|a') FROM events",
  "SELECT extractAll(metadata, 'a\\x2ab\\x7ca') FROM events",
  "WITH 'a+b|a' AS p SELECT replaceRegexpAll(metadata, p, '') FROM events",
  "WITH 'a' AS action SELECT extractAll(metadata, action) FROM events",
  "SELECT countMatches(metadata, '(?:a*b)?a') FROM events",
  "SELECT splitByRegexp('(a{2,}b|a)', metadata) FROM events",
  "SELECT extractAllGroups(metadata, '((a+b)?)(a)') FROM events",
  "SELECT match(metadata, '((a{10}){10}){11}') FROM events",
  `SELECT match(metadata, '${"a".repeat(501)}') FROM events`,
  "SELECT repeat(repeat(repeat('a', 1000), 1000), 1000)",
  "SELECT repeat('a', sequence_number) FROM events",
  "SELECT space(1000001), leftPad('', 1000001), rpad('', 1000001, 'a')",
  "SELECT arraySum(arrayMap(x -> arraySum(arrayMap(y -> x * y, range(10000))), range(10000)))",
  "SELECT JSON_EXISTS('[]', '$[0 to 100000000]')",
  "SELECT JSON_VALUE('[]', '$[0 to 100000000]')",
  "SELECT JSON_EXISTS('[[]]', '$[*][*]')",
  "SELECT arrayMap(lambda(tuple(x), repeat('a', 10000)), range(1000))",
  "SELECT arraySum(arrayMap(x -> length(toString(indexOf(range(62000), x+100000))), range(62000)))",
  "SELECT arraySum(arrayMap(x -> length(arrayIntersect([x], range(48000))), range(48000)))",
  "WITH range(48000) AS r SELECT arraySum(arrayMap(x -> length(arrayIntersect([x], r)), r))",
  "WITH range(20000) AS r SELECT arraySum(arrayMap(x -> countEqual(r, x), r))",
  "SELECT arrayCount(x -> has(range(20000), x), range(20000))",
  "SELECT arrayFilter(x -> empty(arrayDistinct(arrayConcat(range(9000), [x]))), range(9000))",
  "SELECT arrayMap(x -> length(arrayMap(y -> length(hex(toString(y))), range(5000))), range(5000))",
  "SELECT arrayFold((a, x) -> a + length(range(9000)), range(9000), 0)",
  "SELECT arrayFold((a, x) -> if(indexOf(a, x) > 1, [x], a), range(9000), range(9000))",
  "SELECT mapApply((k, v) -> (k, length(range(9000))), mapFromArrays(range(9000), range(9000)))",
  "SELECT arrayResize([1], 100000000), range(0, 100000000, 3)",
  "SELECT arrayDistinct(range(100000000)), arrayIntersect(range(100000000), range(100000000))",
  "SELECT arrayFold((a, x) -> concat(a, a), range(40), 'a')",
  "SELECT arrayFold((a, x) -> replaceAll(a, 'a', 'aaaa'), range(40), 'a')",
  "SELECT arrayFold((a, x) -> a + arrayFold((b, y) -> b + y, range(9999), 0), range(9999), 0)",
  "SELECT replaceAll(repeat('a', 2000), '', repeat('b', 2000))",
  "SELECT replaceRegexpAll(repeat('a', 2000), 'a', repeat('b', 2000))",
  "SELECT format(repeat('{0}', 1000), repeat('a', 1000))",
  "SELECT arrayStringConcat(arrayMap(x -> 'a', range(2000)), repeat('a', 2000))",
  "SELECT ngrams(repeat('a', 10000), 5000)",
  "SELECT timeSlots(toDateTime(0), toUInt32(4000000000), 1)",
  "SELECT toFixedString('a', 10000000)",
  "SELECT CAST('a' AS FixedString(10000000))",
  "SELECT hex(hex(hex(bin(bin(bin(repeat('a', 1000)))))))",
  `SELECT 'aaaaaaaaaa' AS n0, ${Array.from({ length: 20 }, (_, n) => `n${n}||n${n} AS n${n + 1}`).join(", ")}`,
  `SELECT ${Array.from({ length: 20 }, (_, n) => `concat(n${n + 1}, n${n + 1}) AS n${n}`).join(", ")}, 'aaaaaaaaaa' AS n20`,
  `WITH ${Array.from({ length: 20 }, (_, n) => `[n${n}, n${n}] AS n${n + 1}`).join(", ")} SELECT n20, 'aaaaaaaaaa' AS n0`,
  `${"SELECT n||n||n||n AS n FROM (".repeat(12)}SELECT 'aaaaaaaaaa' AS n${")".repeat(12)}`,
  "SELECT repeat(`repeat('a', 10000)`, 10000) FROM (SELECT repeat('a', 10000))",
  "SELECT position(metadata, v) FROM (SELECT 'a' AS v ORDER BY 1 WITH FILL INTERPOLATE (v AS concat(v, v)))",
  `SELECT ${"arrayMap(x -> ".repeat(6)}x${", [1])".repeat(6)}`,
  `WITH ${chain((n) => `a${n + 1} AS (SELECT p.x FROM a${n} AS p, a${n})`)} SELECT count() FROM a14`,
  `WITH ${chain((n) => `a${n + 1} AS (SELECT * FROM a${n} UNION ALL SELECT * FROM a${n})`)} SELECT * FROM a14`,
  `WITH ${chain((n) => `a${n + 1} AS (SELECT x FROM a${n} WHERE x IN (SELECT x FROM a${n}))`)} SELECT * FROM a14`,
  `SELECT 1 AS ${"a".repeat(257)}`,
  `SELECT ${"sum".repeat(6_000)}(1)`
]

/** Functions that the views call: a lambda of such a name would stand for them. */
const calledByViews = ["unhex", "equals", "if", "and", "JSONExtractString", "empty", "notEmpty"]

/** A lambda that has a name. ClickHouse calls it wherever the name is called, in the views as well. */
const namedLambdas = calledByViews.flatMap((name) => [
  `WITH lambda(tuple(x), 'umbrella') AS ${name} SELECT count() FROM events`,
  `WITH LAMBDA(tuple(x, y), 1) AS "${name}" SELECT count() FROM events`,
  `WITH (x -> 'umbrella') AS ${name} SELECT count() FROM events`,
  `WITH (x, y) -> 1 AS ${name} SELECT ${name}(1, 2) FROM events`,
  `SELECT count() FROM events WHERE notEmpty(arrayMap((lambda(tuple(x), 'umbrella') AS ${name}), ['a']))`,
  `SELECT count() FROM events WHERE notEmpty(arrayMap(((x -> 'umbrella') AS ${name}), ['a']))`,
  `SELECT x -> 1 AS ${name}, count() FROM events`
])

/** Files, endless spellings, and what ClickHouse would compute to a text of its own. */
const zones = [
  "'file:/proc/self/fd/12'",
  "'Fixed/UTC+00:00:10'",
  "'../zoneinfo/UTC'",
  "'posix/UTC'",
  "'right/UTC'",
  "'utc'",
  "'UTC '",
  "''",
  "'U\\x54C'",
  "x'555443'"
]
const computedZones = [
  "concat('Fixed/UTC', '+00:00:10')",
  "'Fixed/UTC' || '+00:00:10'",
  "if(1, 'file:/etc/passwd', 'UTC')",
  "toString('UTC')",
  "id",
  "events.id",
  "('UTC' AS id)",
  "(SELECT 'UTC')",
  "['UTC'][1]",
  "('UTC', 1).1",
  "'UTC'::String",
  "CAST('UTC' AS String)",
  "*",
  "events.*",
  "* EXCEPT (id)",
  "{p:String}"
]

const placesOfZones = [
  "SELECT toTimeZone(timestamp, □) FROM events",
  "SELECT timestamp AT TIME ZONE □ FROM events",
  "SELECT now(□) FROM events",
  "SELECT NOW(□), CURRENT_TIMESTAMP(□) FROM events",
  "SELECT now64(3, □) FROM events",
  "SELECT toString(timestamp, □) FROM events",
  "SELECT toDateTime('2026-01-01 00:00:00', □) FROM events",
  "SELECT toDateTime('2026-01-01 00:00:00', 3, □) FROM events",
  "SELECT toDateTime64OrNull('2026-01-01 00:00:00', 3, □) FROM events",
  "SELECT parseDateTimeBestEffortOrNull(id, □) FROM events",
  "SELECT parseDateTime64BestEffort(id, 3, □) FROM events",
  "SELECT date_trunc('day', timestamp, □) FROM events",
  "SELECT dateDiff('day', timestamp, created_at, □) FROM events",
  "SELECT DATE_DIFF(DAY, timestamp, created_at, □) FROM events",
  "SELECT age('day', timestamp, created_at, □) FROM events",
  "SELECT toStartOfInterval(timestamp, INTERVAL 1 DAY, □) FROM events",
  "SELECT toStartOfInterval(timestamp, INTERVAL 1 DAY, toDateTime(0), □) FROM events",
  "SELECT toUnixTimestamp(id, □) FROM events",
  "SELECT toYYYYMM(timestamp, □), HOUR(timestamp) FROM events",
  "SELECT Hour(timestamp, □) FROM events",
  "SELECT toWeek(timestamp, 1, □) FROM events",
  "SELECT addDays(timestamp, 1, □) FROM events",
  "SELECT formatDateTime(timestamp, '%Y', □) FROM events",
  "SELECT fromUnixTimestamp(1, '%Y', □) FROM events",
  "SELECT makeDateTime(2026, 1, 1, 1, 1, 1, □) FROM events",
  "SELECT arrayMap(x -> toHour(x, □), [timestamp]) FROM events",
  "SELECT uniqIf(1, toHour(timestamp, □) = 1) FROM events WHERE toHour(timestamp, □) = 1"
]
const placesInTypes = [
  "SELECT CAST(id AS DateTime(□)) FROM events",
  "SELECT id::Nullable(DateTime64(3, □)) FROM events",
  "SELECT CAST(id AS Tuple(a Array(DateTime32(□)))) FROM events",
  "SELECT CAST(metadata AS JSON(a TIMESTAMP(□))) FROM events",
  "SELECT CAST(metadata AS Variant(String, Tuple(a TIMESTAMP(□)))) FROM events"
]
const placesInTexts = [
  "SELECT CAST(id, 'DateTime(□)') FROM events",
  "SELECT accurateCastOrNull(id, 'Map(String, DateTime64(3, □))') FROM events",
  "SELECT JSONExtract(metadata, 'a', 'Tuple(a DateTime(□))') FROM events"
]

/** Zones that no statement may name, or that can't be seen. */
export const zoneStatements: ReadonlyArray<string> = [
  ...[...zones, ...computedZones].flatMap((zone) =>
    [...placesOfZones, ...placesInTypes].map((place) => into(place, zone))
  ),
  ...zones.flatMap((zone) =>
    placesInTexts.map((place) => into(place, zone.replaceAll(/['\\]/g, "\\$&")))
  ),
  // Arguments that are not written where they are used.
  "SELECT toTimeZone(*) FROM (SELECT now() AS a, 'file:/etc/passwd' AS b)",
  "SELECT JSONExtract(*) FROM (SELECT '{}' AS a, 'DateTime(\\'Fixed/UTC+00:00:10\\')' AS b)",
  "SELECT arrayMap(toString, [now()], ['file:/etc/passwd'])",
  "SELECT arrayMap((toString), [now()], ['file:/etc/passwd'])",
  "SELECT arrayMap(toHour, x.*) FROM (SELECT [now()] AS a, ['file:/etc/passwd'] AS b) AS x",
  "SELECT mapApply(toString, map(now(), 'file:/etc/passwd'))",
  "SELECT arrayMap(CAST, [1], ['DateTime(\\'Fixed/UTC+00:00:10\\')'])",
  // A name behind a dot that is a type.
  ...[
    "1::Dynamic",
    "CAST(1, 'Dynamic')",
    "JSONExtract('1', 'Dynamic')",
    "(1, 2)::Tuple(a Dynamic, b Int8)"
  ].flatMap((dynamic) => [
    `SELECT d."DateTime('file:/etc/passwd')" FROM (SELECT ${dynamic} AS d)`,
    `SELECT "d.DateTime('file:/etc/passwd')" FROM (SELECT ${dynamic} AS d)`,
    `SELECT d."FixedString(1000000)" FROM (SELECT ${dynamic} AS d)`
  ]),
  ...[
    "metadata::JSON",
    "CAST(metadata, 'JSON')",
    "JSONExtract(metadata, 'json')",
    "[metadata]::Array(JSON(a Int8))"
  ].map(
    (json) => `SELECT j.a.:"DateTime('file:/etc/passwd')" FROM (SELECT ${json} AS j FROM events)`
  )
]

export const hostileStatements: ReadonlyArray<string> = [
  ...zoneStatements,
  ...namedLambdas,
  ...endless,
  ...spread(everywhere, placesOfExpressions, 1),
  ...spread(others, placesOfExpressions, STRIDE),
  ...spread(hostileTables, placesOfTables, TABLE_STRIDE)
]
