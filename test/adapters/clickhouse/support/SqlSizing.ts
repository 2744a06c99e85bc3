/** Calls of all functions and random expressions of constants, and whether their bounds hold. */
import type { ClickHouseClient } from "@clickhouse/client"
import fc from "fast-check"
import { readStatement } from "../../../../src/adapters/clickhouse/sql/SqlStatement.ts"
import { elementOf, type Value } from "../../../../src/adapters/clickhouse/sql/SqlValues.ts"
import {
  allowedFunctions,
  isAllowedFunction,
  takesFunction
} from "../../../../src/domain/sql/SqlFunctions.ts"

const SETTINGS = { max_execution_time: 10, output_format_json_named_tuples_as_objects: 0 } as const
/** Statements that are asked at once. */
const AT_ONCE = 4

const texts = [
  "'a'",
  "''",
  "'a.b-c d'",
  "'%Y %M %W'",
  "'\u2588\u0390\u0130\u0149'",
  "'a\\'b\\\\\\n\\t\\0\\x01'",
  "unhex('ff80fe')",
  "'2026-09-30 23:59:59'",
  "'10.0.0.1'",
  "'https://a.example.com/b/c?d=e&f=g#h'",
  '\'{"a":1e20,"b":["c\\u0001",[2e19,{"d":null}]],"e":{"f":"///"}}\'',
  "'((a)|b)c?'",
  "'[a-z]'",
  "'a.*'",
  "'{0}{}{1}'",
  "'day'",
  "'UTC'",
  "'$.e'",
  "'b'",
  "'\\\\0\\\\1\\\\0'"
]
const numbers = [
  "0",
  "1",
  "2",
  "3",
  "10",
  "100",
  "-1",
  "-2.5",
  "0.5",
  "1e300",
  "-1.2345678901234567e-7",
  "18446744073709551615",
  "toInt256('-57896044618658097711785492504343953926634992332820282019728792003956564819968')",
  "CAST('-0.123', 'Decimal(76, 70)')",
  "toDecimal64(1.5, 17)",
  "NULL",
  "true"
]
const times = [
  "toDate('2026-09-30')",
  "toDateTime('2026-09-30 23:59:59', 'America/Argentina/ComodRivadavia')",
  "toDateTime64('2026-09-30 23:59:59.123456789', 9, 'UTC')",
  "INTERVAL 1 DAY",
  "INTERVAL '1 day 2 hour'",
  "INTERVAL 1 DAY + INTERVAL 1 MONTH"
]
const lists = [
  "[]",
  "[1, 2, 3]",
  "range(20)",
  "['a', 'b\\'\\n', NULL]",
  "['a.b', '', 'abcabc']",
  "[[1, 2], [], [3]]",
  "[('a', 1), ('b', 2)]",
  "('a', 1, [2])",
  "(1, 2, 3)",
  "map('a', 1, 'b', 300)",
  "map('a', ['b', 'c'])",
  "splitByString('', 'abc')",
  "[CAST('a', 'FixedString(20)')]",
  "CAST([], 'Array(FixedString(20))')"
]
const types = [
  "'String'",
  "'FixedString(30)'",
  "'Array(String)'",
  "'Array(Array(FixedString(7)))'",
  "'Map(String, Int256)'",
  "'Tuple(a FixedString(9), b Array(Decimal(76, 3)), c Nullable(String))'",
  "'Enum8(\\'a\\' = 1, \\'long name\\' = 2)'",
  "'Nullable(Int256)'",
  "'Variant(FixedString(40), Int256)'"
]
/** Types in one another, and values of these shapes to read and to convert. */
const nested: fc.Arbitrary<string> = fc.letrec<{ readonly of: string }>((tie) => ({
  of: fc.oneof(
    { maxDepth: 4, depthIdentifier: "types" },
    fc.constantFrom("FixedString(90)", "String", "Int256", "Enum8('a long name' = 1)", "Bool"),
    tie("of").map((one) => `Array(${one})`),
    tie("of").map((one) => `Map(String, ${one})`),
    fc.tuple(tie("of"), tie("of")).map(([one, other]) => `Tuple(a ${one}, b ${other})`)
  )
})).of
const nestedValues: fc.Arbitrary<string> = fc
  .letrec<{ readonly of: unknown }>((tie) => ({
    of: fc.oneof(
      { maxDepth: 5, depthIdentifier: "values" },
      fc.constantFrom<unknown>("a", 1, null, {}, [], [[], [], []], [{}, {}, {}], { a: [], b: {} }),
      fc.array(tie("of"), { maxLength: 5 }),
      fc.dictionary(fc.constantFrom("a", "b", "c"), tie("of"))
    )
  }))
  .of.map((one) => JSON.stringify(one))
/** Values of JSON read as such types, and texts converted into them. */
export const conversions: fc.Arbitrary<string> = fc
  .tuple(nested, nestedValues, fc.boolean())
  .map(([type, from, isRead]) => {
    const named = type.replaceAll("'", "\\'")
    return isRead
      ? `JSONExtract('${from}', '${named}')`
      : `CAST('${from.replaceAll('"', "\\'")}', '${named}')`
  })
const lambdas = [
  "x -> x",
  "x -> [x, x]",
  "x -> 1",
  "(x, y) -> (x, y)",
  "(x, y) -> concat(toString(x), toString(y))",
  "x -> concat('ab', toString(x), '\u2588')",
  "(x, y) -> x + y",
  "hex",
  "toString"
]
const oneOf = (...all: ReadonlyArray<ReadonlyArray<string>>) => fc.constantFrom(...all.flat())
const value = fc.oneof(
  oneOf(texts),
  oneOf(texts),
  oneOf(numbers),
  oneOf(lists),
  oneOf(lists),
  oneOf(times)
)
const whole = oneOf(["0", "1", "3", "7", "20"])
/** Arguments of one kind, of kinds that follow one another in many functions, and of any. */
const argumentsOf = fc.oneof(
  fc.array(value, { maxLength: 4 }),
  fc.constant([]),
  fc.tuple(whole),
  fc.tuple(whole, whole),
  fc.tuple(value),
  fc.tuple(value),
  fc.tuple(oneOf(texts), oneOf(texts)),
  fc.tuple(oneOf(numbers), oneOf(numbers)),
  fc.array(oneOf(texts), { minLength: 1, maxLength: 4 }),
  fc.array(oneOf(numbers), { minLength: 1, maxLength: 3 }),
  fc.array(oneOf(lists), { minLength: 1, maxLength: 3 }),
  fc.tuple(oneOf(texts), whole),
  fc.tuple(oneOf(texts), whole, oneOf(texts)),
  fc.tuple(oneOf(texts), whole, whole),
  fc.tuple(oneOf(lists), whole),
  fc.tuple(oneOf(lists), value),
  fc.tuple(oneOf(times), fc.oneof(oneOf(texts), oneOf(numbers), oneOf(times))),
  fc.tuple(oneOf(texts), oneOf(times), oneOf(times)),
  fc.tuple(value, oneOf(types)),
  fc.tuple(oneOf(texts), oneOf(texts), oneOf(types)),
  fc.tuple(value, whole, whole, whole)
)

/** Those that may have brackets of their own before their arguments. */
const isAggregate = (name: string): boolean => isAllowedFunction(`${name}OrNullIf`)

const callOf = (name: string): fc.Arbitrary<string> => {
  const plain = argumentsOf.map((all) => `${name}(${all.join(", ")})`)
  const given = fc
    .tuple(fc.array(fc.oneof(whole, oneOf(["0.5", "'a'", "','"])), { maxLength: 3 }), argumentsOf)
    .map(([first, all]) => `${name}(${first.join(", ")})(${all.join(", ")})`)
  const applied = fc
    .tuple(oneOf(lambdas), fc.array(value, { minLength: 1, maxLength: 2 }))
    .map(([lambda, all]) => `${name}(${[lambda, ...all].join(", ")})`)
  if (takesFunction(name)) return fc.oneof(plain, applied, applied)
  return isAggregate(name) ? fc.oneof(plain, given) : plain
}

const combined = [
  "If",
  "Array",
  "Distinct",
  "OrNull",
  "OrDefault",
  "Map",
  "ArrayIf",
  "DistinctArray"
]
const aggregates = "groupArray groupUniqArray max sum quantiles topK any groupConcat count".split(
  " "
)

/** What makes more than it is given, each in another way; all are computed. */
export const growingCalls: ReadonlyArray<string> = [
  "bar(1, 0, 1, 1000)",
  "arrayStringConcat(arrayMap(x -> bar(1, 0, 1, 100), extractAll(bar(1, 0, 1, 20), '\u2588')))",
  "translateUTF8(hex('abc'), '0123456789ABCDEF', '\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588')",
  "groupArrayInsertAt('', 1000)('a', 999)",
  "groupArrayInsertAt('a', 999)",
  "CAST(['a', 'b'] AS Array(FixedString(250)))",
  "['a', 'b']::Array(FixedString(0xFA))",
  "CAST('a', 'FixedString /* */ (250)')",
  "JSONExtract('[1,\"a\",3]', 'Array(FixedString(250))')",
  "JSONExtract('{}', 'Tuple(a FixedString(100), b FixedString(100))')",
  "JSONExtract('[[[],[],[],[]]]', 'Array(Array(Tuple(FixedString(250), FixedString(250))))')",
  "JSONExtract('{\"a\":[{},{}]}', 'Map(String, Array(Tuple(FixedString(250))))')",
  "CAST([[['a', 'b']], []] AS Array(Array(Array(FixedString(250)))))",
  "CAST('a' AS Variant(FixedString(250), UInt8))",
  "arrayResize(CAST([], 'Array(FixedString(100))'), 50)",
  "toString(toInt256('-57896044618658097711785492504343953926634992332820282019728792003956564819968'))",
  "[toDecimal256('-1234567890123456789012345678901234567890.12345', 30)]",
  "concat(CAST(1, 'Int256') * -1, '', toUInt256(18446744073709551615) * 18446744073709551615)",
  "[-1.7976931348623157e308, -0.0000012345678901234567, 1e20]",
  "toString(INTERVAL '1 day 2 hour 3 minute' + INTERVAL 1 SECOND)",
  "(INTERVAL 1 DAY + INTERVAL 1 HOUR) + (INTERVAL 1 MINUTE + INTERVAL 1 SECOND)",
  "toTypeName([(1, 'a', CAST(1, 'Enum8(\\'a long name\\' = 1)'))])",
  "toTypeName(JSONType('1'))",
  "JSONExtractKeysAndValues('{\"a\":1,\"b\":2}', 'FixedString(50)')",
  "JSONExtractRaw('{\"a\":[1e20,1e20,1e20]}', 'a')",
  "splitByString('', 'abcdef')",
  "extractAllGroups('aaaa', '((((a))))')",
  "ngrams('\u65e5\u672c\u8a9e\u65e5\u672c\u8a9e', 3)",
  "topK(1000)(arrayJoin(range(500)))",
  "histogram(250)(arrayJoin(range(500)))",
  "groupArray(arrayJoin(range(500)))",
  "groupConcat(',')(arrayJoin(range(500)))",
  "quantiles(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)(1.5)",
  "leftPadUTF8('', 100, '\u{1f600}')",
  "upperUTF8('\u0390\u0390\u0390')",
  "lowerUTF8('\u0130\u0130\u0130')",
  "toValidUTF8(unhex('ff80ff80'))",
  "encodeURLComponent('\u65e5\u672c')",
  "toJSONString(map(unhex('0101'), [(1, 'a')::Tuple(name Int8, other String)]))",
  "hex(toInt256(-1)) || bin(toInt256(-1)) || bin('abc') || hex(1.5)",
  "base64Encode('a') || regexpQuoteMeta('....')",
  "formatDateTime(toDateTime64('2026-09-30 23:59:59.123456789', 9, 'UTC'), '%W %M %r %D %F %T %z %f')",
  "formatDateTimeInJodaSyntax(toDateTime('2026-09-30 23:59:59', 'America/Argentina/ComodRivadavia'), 'zzzz')",
  "formatReadableTimeDelta(123456789.123456789, 'years', 'nanoseconds') || formatReadableQuantity(-1e300)",
  "arrayStringConcat(['a', 'b', 'c'], repeat('-', 100))",
  "replaceAll('aaaa', 'a', repeat('b', 100))",
  "replaceRegexpAll('aaaa', '(a+)', '\\\\1\\\\1\\\\0')",
  "format('{0}{0}{1}', repeat('a', 50), 'b')",
  "concatWithSeparator(repeat('-', 50), 'a', 'b', 'c')",
  "['\\'', '\\\\', '\\n', NULL, '\\0']",
  "map('\\'', ['\\\\'])",
  "arrayZip(['a', 'b'], [[1], [2, 3]])",
  "arrayFlatten([[[1, 2], [3]], [[4, 5, 6]]])",
  "mapFromArrays(['a', 'b'], [1, 2])",
  "arrayJoin(map('a', [1, 2, 3]))",
  "arrayMap(hex, ['abc', 'd'])",
  "arrayFold(concat, ['a', 'b', 'c'], '')",
  "arrayMap(x -> repeat(left(x, 3), 100), ['abcdef', 'abcdef', 'abcdef'])",
  "left('abcdef', -1) || substring('abcdef', 1, -1)",
  "TRIM(BOTH '-' FROM '--abcdef--')",
  "SUBSTRING('abcdef' FROM 2 FOR 3) || POSITION('c' IN 'abc')",
  "EXTRACT(EPOCH FROM toDateTime64('2026-09-30 23:59:59.123456789', 9, 'UTC'))",
  "CASE WHEN 1 THEN repeat('a', 50) ELSE 'b' END",
  "date_add(DAY, 1, INTERVAL 1 HOUR)",
  "(SELECT (range(5), groupArray(n)) FROM (SELECT arrayJoin(range(50)) AS n) WHERE n > 1)",
  "arrayMap(x -> x.1, [([1, 2, 3], 'a')])",
  "(CAST(([1, 2, 3], 'a'), 'Tuple(a Array(Int8), b String)') AS t).a",
  "range(-5, 5)",
  "bitShiftLeft('ab', 15)",
  "IPv4NumToString(4294967295) || toString(toIPv6('ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'))"
]

/** Calls of each function that may be called. */
export const callsOfAll = (each: number): ReadonlyMap<string, ReadonlyArray<string>> =>
  new Map(
    [...allowedFunctions, ...aggregates.flatMap((one) => combined.map((more) => one + more))].map(
      (name) => [name, fc.sample(callOf(name), { numRuns: each })]
    )
  )

interface Kinds {
  readonly text: string
  readonly list: string
  readonly any: string
}

/** T, L and A stand for a text, a list and anything. */
const growing = {
  text:
    "hex(T) bin(T) upperUTF8(T) lowerUTF8(T) toString(A) toJSONString(A) concat(T,A) T||A||T toTypeName(A)"
    + " arrayStringConcat(L,T) arrayStringConcat(arrayMap(x->bar(1,0,1,20),L)) replaceAll(T,'a',T)"
    + " replaceAll(T,'1',hex(T)) replaceOne(T,'a',T) replaceRegexpAll(T,'(.)','\\\\1\\\\0\\\\1')"
    + " replaceRegexpOne(T,'(.*)','\\\\1\\\\1') translateUTF8(T,'abc1234','\u2588\u2588\u2588\u2588\u2588\u2588\u2588')"
    + " arrayFold((a,x)->concat(a,toString(x)),L,T) format('{0}{1}{0}',T,T) leftPadUTF8(T,9,'\u2588')"
    + " toValidUTF8(T) regexpQuoteMeta(T) encodeURLComponent(T) base64Encode(T) groupConcat(T) repeat(T,3)"
    + " CAST(A,'String') CAST(T,'FixedString(200)') left(T,5) JSONExtractString(T,'a') any(T)"
    + " formatDateTime(toDate('2026-09-30'),T) toString(L[1]) bar(length(T),0,9,20) toString(-length(T))",
  list:
    "[A] [T,T] [L,L] (A,A) tuple(A,L) splitByString('',T) splitByChar('a',T) extractAll(T,'.')"
    + " arrayMap(x->(x,T),L) arrayMap(x->concat(toString(x),T),L) arrayMap(x->bar(1,0,1,100),L)"
    + " arrayMap(toString,L) arrayFilter(x->1,L) arrayConcat(L,L) groupArray(A) groupArray(2)(A) arrayZip(L,L)"
    + " arrayFlatten(L) arrayResize(L,7) arrayPushBack(L,A) arrayReverse(L) map(T,A) mapFromArrays(L,L)"
    + " mapValues(map(T,L)) extractAllGroups(T,'(.)(.)') range(length(T)) arraySplit(x->1,L) arrayEnumerate(L)"
    + " groupArrayInsertAt(T,5)(T,2) quantiles(0.5,0.9)(length(T)) topK(3)(A) histogram(5)(length(T))"
    + " CAST(L,'Array(FixedString(200))') CAST(arrayMap(x->'1',L),'Array(Decimal(76,70))') L[1]"
    + " JSONExtract(toJSONString(A),'Array(String)') JSONExtractArrayRaw(toJSONString(L)) ngrams(T,2)"
    + " arrayCumSum(range(length(T))) arrayFold((a,x)->arrayPushBack(a,x),L,L) map(T,A)",
  any: "T T T L L L length(T) -length(T) length(T)+1 T::String tuple(A).1 [A][1] arrayJoin(L) max(A)"
}

/** Expressions of constants, with calls inside of one another. */
export const constants: fc.Arbitrary<string> = fc.letrec<Kinds>((tie) => {
  const parts = { T: tie("text"), L: tie("list"), A: tie("any") } as const
  const of = (text: string): fc.Arbitrary<string> =>
    fc
      .tuple(
        ...text
          .split(/\b(?=[TLA]\b)|(?<=\b[TLA])\b/)
          .map((one) => (one === "T" || one === "L" || one === "A" ? parts[one] : fc.constant(one)))
      )
      .map((all) => all.join(""))
  const kind = (texts: string, values: ReadonlyArray<string>) =>
    fc.oneof(
      { maxDepth: 5, depthIdentifier: "constants" },
      fc.constantFrom(...values),
      ...texts.split(" ").map(of)
    )
  return {
    text: kind(growing.text, texts),
    list: kind(growing.list, lists),
    any: kind(growing.any, [...texts, ...numbers, ...times, ...lists])
  }
}).any

interface Made {
  readonly x: unknown
  readonly printed: number | null
}

/** Undefined if what was made is no larger than its bound. */
const excessOf = (bound: Value, x: unknown): string | undefined => {
  if (x === null || typeof x === "number" || typeof x === "boolean") return undefined
  if (typeof x === "string") {
    const bytes = Buffer.byteLength(x)
    const isKnown = !x.includes("\ufffd") && bound.size < bytes && bound.printed < bytes
    return isKnown ? `a text of ${bytes} bytes` : undefined
  }
  const elements = Array.isArray(x) ? x : Object.entries(x as object).flat()
  if (elements.length > bound.count && elements.length > bound.size)
    return `${elements.length} elements`
  return elements.map((one) => excessOf(elementOf(bound), one)).find((one) => one !== undefined)
}

/** What an expression makes; undefined if the engine refuses it, or the grammar does. */
const madeOf = async (client: ClickHouseClient, expression: string) => {
  let read: ReturnType<typeof readStatement>
  try {
    read = readStatement(`SELECT ${expression} AS x`, [])
  } catch {
    return undefined
  }
  const query = `SELECT length(toString(x)) AS printed, x FROM (${read.text([])}) LIMIT 1`
  const made = await client
    .query({ query, format: "JSONEachRow", clickhouse_settings: SETTINGS })
    .then((answer) => answer.json<Made>())
    .catch(() => [])
  return made[0] === undefined ? undefined : ([read.sizeOf("x"), made[0]] as const)
}

/** Expressions of which the engine makes more than their bound, and how many it computes. */
export const beyondBounds = async (
  client: ClickHouseClient,
  expressions: ReadonlyArray<string>,
  enough = expressions.length
): Promise<{ readonly computed: number; readonly beyond: ReadonlyArray<string> }> => {
  const beyond: Array<string> = []
  let computed = 0
  const left = [...expressions]
  const work = async () => {
    for (let one = left.pop(); one !== undefined && computed < enough; one = left.pop()) {
      const made = await madeOf(client, one)
      if (made === undefined) continue
      computed += 1
      const [bound, { printed, x }] = made
      const why = Number(printed ?? 0) > bound.printed ? `${printed} bytes` : excessOf(bound, x)
      if (why !== undefined) beyond.push(`${one} makes ${why}: ${JSON.stringify(bound)}`)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  return { computed, beyond }
}
