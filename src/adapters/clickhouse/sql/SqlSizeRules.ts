/**
 * How large what a function makes can get, by its arguments. Each function that may be called is in one
 * of these tables; of any other nothing is known. A test holds them against the engine.
 */
import {
  computed,
  elementOf,
  isList,
  joined,
  list,
  listed,
  memberOf,
  NARROW,
  nothing,
  number,
  ofType,
  oneOf,
  text,
  UNKNOWN,
  unknown,
  type Value,
  WIDE
} from "./SqlValues.ts"

export interface Call {
  readonly name: string
  readonly values: ReadonlyArray<Value>
  /** What is in brackets of its own before them, of an aggregate function. */
  readonly given: ReadonlyArray<Value>
  /** What a lambda makes of one element. */
  readonly made?: Value
  /** The literal that an argument is. */
  readonly literal: (at: number) => string | undefined
  /** What the number at `at` is at most; fails if that is not known. */
  readonly howMany: (at: number) => number
  readonly howManyGiven: (at: number) => number
  /** What the number at `at` is at most, if it is never below zero. */
  readonly cut: (at: number) => number | undefined
  /** Rows that an aggregate function sees, as they are counted. */
  readonly rows: number
  /** Bytes of all types and names that the statement has. */
  readonly types: number
}

type Rule = (call: Call) => Value

const rules = new Map<string, Rule>()
const set = (rule: Rule, names: string): void => {
  for (const name of names.trim().split(/\s+/)) rules.set(name, rule)
}

const first = ({ values }: Call): Value => values[0] ?? nothing
const last = ({ values }: Call): Value => values.at(-1) ?? nothing
const second = ({ values }: Call): Value => values[1] ?? nothing
const bytes = (value: Value): number => value.printed
const countOf = (values: ReadonlyArray<Value>): number =>
  values.reduce((most, { count }) => Math.max(most, count), 0)
const summed = (values: ReadonlyArray<Value>): number =>
  values.reduce((sum, { printed }) => sum + printed, 0)
/** Parts of a text, and one more for what is behind the last of them. */
const partsOf = ({ printed }: Value): Value => list(printed + 1, text(printed), printed)
/** A function that also takes lists, and keeps their elements. */
const sameList = (call: Call): Value => oneOf(call.values.slice(0, 1))

// What has a fixed number of characters.
set(
  () => number(),
  `and or not xor equals notequals less greater lessorequals greaterorequals in notin globalin globalnotin
  nullin notnullin like notlike ilike notilike match isnull isnotnull isnullable isdistinctfrom
  isnotdistinctfrom between notbetween bittest bitcount exists
  exp exp2 exp10 log ln log2 log10 log1p sqrt cbrt pow power sin cos tan asin acos atan atan2 pi e degrees
  radians isfinite isinfinite isnan roundduration roundage sign widthbucket width_bucket min2 max2
  tobool toint8 toint16 toint32 toint64 touint8 touint16 touint32 touint64 tofloat32 tofloat64 toint8ornull
  toint16ornull toint32ornull toint64ornull touint8ornull touint16ornull touint32ornull touint64ornull
  tofloat32ornull tofloat64ornull toint8orzero toint16orzero toint32orzero toint64orzero touint8orzero
  touint16orzero touint32orzero touint64orzero tofloat32orzero tofloat64orzero toint64ordefault
  touint64ordefault tofloat64ordefault
  todate todate32 todatetime todatetime64 todateornull todatetimeornull todatetime64ornull todateorzero
  todatetimeorzero todatetime64orzero parsedatetimebesteffort parsedatetimebesteffortornull
  parsedatetimebesteffortorzero parsedatetime64besteffort parsedatetime64besteffortornull
  parsedatetime64besteffortorzero
  now now64 today yesterday current_timestamp current_date toyear toquarter tomonth todayofyear todayofmonth
  todayofweek tohour tominute tosecond tomillisecond tounixtimestamp tounixtimestamp64milli
  tounixtimestamp64micro tounixtimestamp64nano tounixtimestamp64second fromunixtimestamp
  fromunixtimestamp64milli fromunixtimestamp64micro fromunixtimestamp64nano tostartofyear tostartofquarter
  tostartofmonth tostartofweek tostartofday tostartofhour tostartofminute tostartofsecond
  tostartofmillisecond tostartoffiveminutes tostartoffiveminute tostartoftenminutes
  tostartoffifteenminutes tostartofinterval tomonday tolastdayofmonth tolastdayofweek toisoweek toisoyear
  toweek toyearweek totime totimezone timezoneof toyyyymm toyyyymmdd toyyyymmddhhmmss torelativeyearnum
  torelativemonthnum torelativeweeknum torelativedaynum torelativehournum torelativeminutenum
  torelativesecondnum addyears addquarters addmonths addweeks adddays addhours addminutes addseconds
  addmilliseconds addmicroseconds subtractyears subtractquarters subtractmonths subtractweeks subtractdays
  subtracthours subtractminutes subtractseconds subtractmilliseconds subtractmicroseconds datediff
  date_diff timestampdiff timestamp_diff age datetrunc date_trunc datename timeslot monthname makedate
  makedatetime makedatetime64 date year quarter month day dayofweek dayofmonth dayofyear week yearweek hour
  minute second last_day
  length char_length character_length octet_length lengthutf8 empty notempty startswith endswith
  startswithutf8 endswithutf8 position locate positioncaseinsensitive positionutf8
  positioncaseinsensitiveutf8 multisearchany multisearchanycaseinsensitive multisearchfirstindex hastoken
  hastokencaseinsensitive hastokenornull hassubsequence hassubsequencecaseinsensitive countsubstrings
  countsubstringscaseinsensitive countmatches countmatchescaseinsensitive isvalidutf8 ascii ngramdistance
  ngramsearch soundex md5 sha1 sha256 siphash64 cityhash64 xxhash64 xxhash32 murmurhash3_64 crc32 halfmd5
  ipv4numtostring ipv4stringtonum ipv4stringtonumornull toipv4 toipv4ornull toipv6 toipv6ornull isipv4string
  isipv6string isipaddressinrange touuid touuidornull
  jsonhas jsonlength jsontype jsonextractuint jsonextractint jsonextractfloat jsonextractbool
  jsonarraylength json_exists simplejsonhas simplejsonextractuint simplejsonextractint
  simplejsonextractfloat simplejsonextractbool isvalidjson
  has hasall hasany hassubstr indexof indexofassumesorted arraycount arrayexists arrayall arrayfirstindex
  arraylastindex arrayuniq countequal mapcontains mapcontainskey dotproduct
  row_number rank dense_rank denserank percent_rank percentrank cume_dist ntile
  count uniq uniqexact uniqcombined uniqcombined64 uniqhll12 uniqtheta quantiletiming stddevpop
  stddevsamp varpop varsamp covarpop covarsamp corr skewpop skewsamp kurtpop kurtsamp entropy boundingratio
  windowfunnel sequencematch sequencecount exponentialmovingaverage grouping std stddev_pop stddev_samp
  var_pop var_samp variance_pop bool_and bool_or intervallengthsum avgweighted`
)
set(
  () => number(WIDE),
  `toint128 toint256 touint128 touint256 todecimal32 todecimal64 todecimal128 todecimal256
  todecimal64ornull todecimal64orzero`
)
// Numbers of their arguments, or lists of them.
set(
  ({ values }) => computed(values),
  `plus minus multiply divide intdiv intdivorzero modulo moduloorzero positivemodulo negate abs gcd lcm round
  roundbankers floor ceil ceiling trunc truncate roundtoexp2 ifnotfinite timestamp_sub timestamp_add
  timestampadd timestampsub addinterval subtractinterval dateadd date_add datesub date_sub`
)
set((call) => computed([first(call)]), "rounddown")
set(
  ({ values }) => oneOf([...values, { ...number(WIDE), size: 1 }]),
  "bitand bitor bitxor bitnot bitshiftright"
)
set((call) => {
  const { printed, size } = first(call)
  return { size: 2 * size + 1, printed: Math.max(WIDE, 2 * printed), count: 0 }
}, "bitshiftleft")
set(
  () => list(1, number()),
  `tointervalsecond tointervalminute tointervalhour tointervalday tointervalweek tointervalmonth
  tointervalquarter tointervalyear tointervalmillisecond tointervalmicrosecond tointervalnanosecond`
)
set(() => text(200), "formatreadablesize formatreadabledecimalsize formatreadablequantity")
set(() => text(400), "formatreadabletimedelta")
// One of their arguments.
set(
  ({ values }) => oneOf(values),
  `if multiif ifnull nullif coalesce assumenotnull tonullable greatest least casewithexpression
  casewithoutexpression tolowcardinality lag lead laginframe leadinframe nth_value`
)

// Texts.
const shorter = (call: Call): Value => text(bytes(first(call)))
set(
  shorter,
  `lower upper lcase ucase initcap ltrim rtrim unhex base64decode
  trybase64decode decodeurlcomponent tostring domain domainwithoutwww topleveldomain protocol path querystring
  extracturlparameter cuttofirstsignificantsubdomain extract regexpextract translate jsonkey
  simplejsonextractraw simplejsonextractstring substringindex substringindexutf8`
)
// Either of the two may be what is trimmed.
set(({ values }) => text(bytes(oneOf(values))), "trim trimleft trimright trimboth")
set((call) => (isList(first(call)) ? first(call) : shorter(call)), "reverse reverseutf8")
const cutAt =
  (at: number, width: number): Rule =>
  (call) =>
    text(Math.min(bytes(first(call)), width * (call.cut(at) ?? UNKNOWN)))
set(cutAt(1, 1), "left right")
set(cutAt(1, 4), "leftutf8 rightutf8")
set(cutAt(2, 1), "substring substr mid")
set(cutAt(2, 4), "substringutf8")
const times =
  (factor: number, more = 0): Rule =>
  (call) =>
    text(factor * bytes(first(call)) + more)
set(times(2, 64), "hex")
set(times(8, 256), "bin")
set(times(2, 4), "base64encode regexpquotemeta")
set(times(3), "encodeurlcomponent tovalidutf8 lowerutf8 upperutf8 initcaputf8")
set(times(4), "translateutf8")
set(times(6), "jsonextractstring jsonextractraw json_query json_value")
set(
  (call) => text(6 * bytes(first(call)) + (call.types + 12) * (1 + first(call).size)),
  "tojsonstring"
)
set((call) => text((200 + call.types) * (1 + first(call).size)), "totypename")
set((call) => text(10 * bytes(second(call)) + NARROW), "formatdatetime")
set((call) => text(40 * bytes(second(call)) + NARROW), "formatdatetimeinjodasyntax")
set(({ values }) => text(4 * values.length), "char")
set((call) => text(bytes(first(call)) + 1), "appendtrailingcharifabsent")
set(({ values }) => joined(values), "concat arrayconcat arrayunion tupleconcat mapadd mapupdate")
set(
  (call) => text(summed(call.values) + bytes(first(call)) * call.values.length),
  "concatwithseparator"
)
set((call) => {
  const each = call.values.slice(1).reduce((most, { printed }) => Math.max(most, printed), 0)
  return text(bytes(first(call)) * (1 + each))
}, "format")
set(
  (call) => text(bytes(first(call)) * Math.max(1, bytes(last(call))) + bytes(last(call))),
  "replace replaceall"
)
set((call) => text(bytes(first(call)) + bytes(last(call))), "replaceone")
// Two characters of what is put in may be put for all that was found.
set(
  (call) => text((bytes(first(call)) + 1) * (2 * bytes(last(call)) + 1)),
  "replaceregexpall replaceregexpone"
)
set(
  (call) => text(bytes(first(call)) + (first(call).count + 1) * bytes(second(call))),
  "arraystringconcat"
)
set((call) => text(3 * Math.min(1_001, (call.cut(3) ?? 1_000) + 1)), "bar")
set((call) => text(Math.max(1, bytes(first(call))) * call.howMany(1)), "repeat")
set((call) => text(call.howMany(0)), "space")
set((call) => text(bytes(first(call)) + call.howMany(1)), "leftpad rightpad lpad rpad")
set((call) => text(bytes(first(call)) + 4 * call.howMany(1)), "leftpadutf8 rightpadutf8")
set((call) => text(call.howMany(1)), "tofixedstring")

// Types.
const typed = (call: Call, at: number, source = first(call)): Value => {
  const type = call.literal(at)
  return type === undefined ? unknown : ofType(type, source)
}
/** A text of JSON whose numbers and signs are written otherwise. */
const ofJson = (call: Call): Value => ({ ...first(call), printed: 6 * bytes(first(call)) })
set((call) => typed(call, 1), "cast accuratecast accuratecastornull")
set((call) => oneOf([typed(call, 1), ...call.values.slice(2)]), "accuratecastordefault")
set((call) => typed(call, call.values.length - 1, ofJson(call)), "jsonextract")
set((call) => {
  const json = ofJson(call)
  const key = text(bytes(json))
  const value = typed(call, call.values.length - 1, json)
  return list(json.size, list(2, oneOf([key, value])))
}, "jsonextractkeysandvalues")
set((call) => {
  const { printed, size } = ofJson(call)
  return list(size, list(2, text(printed)), 2 * printed + 12 * size)
}, "jsonextractkeysandvaluesraw")
set((call) => {
  const { printed, size } = ofJson(call)
  return list(size, text(printed), printed)
}, "jsonextractarrayraw jsonextractkeys")

// Lists.
set(
  (call) => partsOf(first(call)),
  "splitbywhitespace splitbynonalpha alphatokens tokens extractall"
)
set((call) => partsOf(second(call)), "splitbyregexp")
set((call) => partsOf(oneOf(call.values.slice(0, 2))), "splitbychar splitbystring")
set((call) => {
  const [text, { printed: groups }] = [first(call), second(call)]
  const each = list(groups + 1, partsOf(text).each!)
  return list(text.printed + groups + 1, each, 9 * (text.printed + 1) * (groups + 1))
}, "extractallgroups extractallgroupsvertical extractallgroupshorizontal")
set((call) => list(bytes(second(call)), text(bytes(first(call)))), "extractgroups")
set((call) => {
  const printed = bytes(first(call))
  return list(printed + 1, text(Math.min(printed, 4 * call.howMany(1))))
}, "ngrams")
set((call) => list(last(call).count, number()), "multisearchallpositions")
set(({ values }) => listed(values), "array tuple map")
set(
  (call) => elementOf(first(call)),
  "arrayelement arrayfirst arrayfirstornull arraylast arraylastornull"
)
// Of a map it makes pairs.
set((call) => {
  const element = elementOf(first(call))
  const pair = list(2, element)
  return isList(element)
    ? oneOf([element, pair])
    : { size: pair.size, printed: pair.printed, count: 0 }
}, "arrayjoin")
set((call) => memberOf(first(call)), "tupleelement")
set(
  sameList,
  `arrayfilter arraydistinct arraysort arrayreversesort arrayreverse arrayslice arraypopback arraypopfront
  arraycompact arrayexcept arrayfill arrayremove mapfilter mapsort`
)
set(({ values }) => oneOf(values), "arrayintersect")
set((call) => {
  const [values, ...others] = call.values
  return joined([values ?? nothing, listed(others)])
}, "arraypushback arraypushfront")
set((call) => {
  const [values = nothing, , ...others] = call.values
  const each = oneOf([elementOf(values), ...others])
  return list(call.howMany(1), each)
}, "arrayresize")
set((call) => list(countOf(call.values), number()), "arrayenumerate arrayenumerateuniq")
set((call) => {
  const values = call.made === undefined ? call.values.map(elementOf) : [call.made]
  return list(countOf(call.values), computed(values))
}, "arraycumsum arraydifference")
set(
  (call) => computed(call.made === undefined ? call.values.map(elementOf) : [call.made]),
  "arraysum arrayavg arrayproduct"
)
set((call) => (call.made === undefined ? elementOf(first(call)) : call.made), "arraymin arraymax")
set((call) => list(countOf(call.values), call.made ?? unknown), "arraymap")
set((call) => list(countOf(call.values), elementOf(call.made ?? unknown)), "mapapply")
// What its steps make is computed where it is read.
set(() => unknown, "arrayfold")
set((call) => {
  const value = first(call)
  return list(value.count, value, value.printed)
}, "arraysplit")
set((call) => {
  const value = first(call)
  return list(value.size, memberOf(elementOf(value)), value.printed)
}, "arrayflatten flatten")
set((call) => {
  const each = listed(call.values.map(elementOf))
  return list(countOf(call.values), each, summed(call.values) * 2 + 9 * countOf(call.values))
}, "arrayzip")
set(({ values }) => {
  const each = oneOf(values.map(elementOf))
  return list(2 * countOf(values), each, summed(values))
}, "mapfromarrays")
set((call) => {
  const value = first(call)
  return list(value.count, elementOf(value), value.printed)
}, "mapkeys mapvalues")
set(() => list(0, nothing), "emptyarraystring")
set((call) => {
  const counts = call.values.map((_, at) => call.howMany(at))
  const most = counts.reduce((max, one) => Math.max(max, one), 1)
  const count = counts.length === 1 ? most : counts.slice(0, 2).reduce((sum, one) => sum + one, 0)
  return list(count, number(Math.ceil(Math.log10(most + 1)) + 2))
}, "range")

// Aggregate functions.
set(({ values }) => computed(values), "sum avg sumwithoverflow sumkahan deltasum deltasumtimestamp")
set(({ values }) => computed(values), "groupbitand groupbitor groupbitxor maxintersections")
set(
  ({ values }) => oneOf(values),
  `min max any anylast anyheavy first_value last_value any_value anyvalue argmin argmax sequencenextnode`
)
const quantile = ({ values }: Call): Value => oneOf([number(), ...values])
set(
  quantile,
  `quantile quantileexact quantiletdigest quantiledeterministic quantiledd quantilebfloat16
  quantileexactweighted quantileexactlow quantileexacthigh quantileinterpolatedweighted median medianexact
  mediantdigest percentile_cont`
)
set(
  (call) => list(call.given.length + 1, quantile(call)),
  "quantiles quantilesexact quantilestdigest quantilestiming"
)
set(
  (call) => list(call.rows, first(call)),
  "grouparray groupuniqarray grouparraysample grouparraysorted grouparraylast"
)
set((call) => {
  const each = oneOf([first(call), ...call.given.slice(0, 1)])
  // So many as its parameters say, if they say it, and else so many as the last position.
  const count = call.given.length > 1 ? call.howManyGiven(1) : 0
  return list(count > 0 ? count : call.howMany(1) + 1, each)
}, "grouparrayinsertat")
set(({ given, rows, values }) => {
  // The separator and the largest count may be before them, or behind them.
  return text(rows * summed([...values, ...given]))
}, "groupconcat group_concat")
set((call) => {
  const count = call.given.length === 0 ? 10 : call.howManyGiven(0)
  return list(count, listed([first(call), number(), number()]))
}, "topk topkweighted approx_top_k approx_top_sum")
set((call) => list(call.howManyGiven(0), list(3, number())), "histogram")
set(() => list(2, number()), "simplelinearregression")
set(({ values }) => list(values.length, number()), "retention")
set((call) => {
  const members = call.values.map(memberOf)
  const each = oneOf([number(WIDE), ...members])
  return list(2, list(call.rows * (1 + countOf(members)), each))
}, "summap minmap maxmap")

/** What ClickHouse takes behind the name of an aggregate function. */
const COMBINATORS = /(if|array|distinct|ornull|ordefault|map)$/

/** Of a call, whose name is in small letters; nothing is known of one that is in none of the tables. */
export const made = (call: Call): Value => {
  const rule = rules.get(call.name)
  if (rule !== undefined) return rule(call)
  const combinator = COMBINATORS.exec(call.name)?.[0]
  if (combinator === undefined) return unknown
  const inner = { ...call, name: call.name.slice(0, -combinator.length) }
  const members = call.values.map(combinator === "array" ? elementOf : memberOf)
  const rows = call.rows * (1 + countOf(call.values))
  if (combinator === "array") return made({ ...inner, values: members, rows })
  if (combinator !== "map") return made(inner)
  return list(2 * rows, oneOf([made({ ...inner, values: members }), ...members]))
}

/** True for a function that one of the tables has, an aggregate with combinators too. */
export const hasRule = (name: string): boolean => {
  if (rules.has(name)) return true
  const shorter = name.replace(COMBINATORS, "")
  return shorter !== name && hasRule(shorter)
}
