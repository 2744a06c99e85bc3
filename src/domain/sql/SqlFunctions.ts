/**
 * The functions of ClickHouse that a statement of a client may use: those that compute on their
 * arguments alone. None that reads files, other tables, the server or the session, sleeps, throws,
 * takes the name of another function as a text, or compares two texts character by character: that
 * takes time by the square of their length, and nothing stops a function between two rows. What others
 * may look for, and how large what they make may get, is bounded where statements are read.
 */

/** The words of a list that is written as a text. */
export const words = (text: string): ReadonlyArray<string> => text.trim().split(/\s+/)

const OPERATORS = words(`
  and or not xor equals notEquals less greater lessOrEquals greaterOrEquals plus minus multiply divide
  intDiv intDivOrZero modulo moduloOrZero positiveModulo negate abs gcd lcm min2 max2 in notIn globalIn
  globalNotIn nullIn notNullIn like notLike ilike notILike match isNull isNotNull isNullable
  isDistinctFrom isNotDistinctFrom between if multiIf ifNull nullIf coalesce assumeNotNull toNullable
  least greatest tuple tupleElement array arrayElement map cast caseWithExpression
  caseWithoutExpression bitAnd bitOr bitXor bitNot bitShiftLeft bitShiftRight bitTest
  bitCount concat concatWithSeparator 
`)

const NUMBERS = words(`
  round roundBankers floor ceil ceiling trunc truncate sign exp exp2 exp10 log ln log2 log10 log1p sqrt
  cbrt pow power sin cos tan asin acos atan atan2 pi e degrees radians isFinite isInfinite isNaN
  ifNotFinite roundToExp2 roundDown roundDuration roundAge bar formatReadableSize
  formatReadableDecimalSize formatReadableQuantity formatReadableTimeDelta widthBucket width_bucket
`)

const CONVERSIONS = words(`
  toString toFixedString toBool toInt8 toInt16 toInt32 toInt64 toInt128 toInt256 toUInt8 toUInt16
  toUInt32 toUInt64 toUInt128 toUInt256 toFloat32 toFloat64 toDecimal32 toDecimal64 toDecimal128
  toDecimal256 toInt8OrNull toInt16OrNull toInt32OrNull toInt64OrNull toUInt8OrNull toUInt16OrNull
  toUInt32OrNull toUInt64OrNull toFloat32OrNull toFloat64OrNull toInt8OrZero toInt16OrZero toInt32OrZero
  toInt64OrZero toUInt8OrZero toUInt16OrZero toUInt32OrZero toUInt64OrZero toFloat32OrZero
  toFloat64OrZero toInt64OrDefault toUInt64OrDefault toFloat64OrDefault toDecimal64OrNull
  toDecimal64OrZero accurateCast accurateCastOrNull accurateCastOrDefault toTypeName hex unhex bin char
  toDate toDate32 toDateTime toDateTime64 toDateOrNull toDateTimeOrNull toDateTime64OrNull toDateOrZero
  toDateTimeOrZero toDateTime64OrZero parseDateTimeBestEffort parseDateTimeBestEffortOrNull
  parseDateTimeBestEffortOrZero parseDateTime64BestEffort parseDateTime64BestEffortOrNull
  parseDateTime64BestEffortOrZero toIntervalSecond toIntervalMinute toIntervalHour toIntervalDay
  toIntervalWeek toIntervalMonth toIntervalQuarter toIntervalYear toIntervalMillisecond
  toIntervalMicrosecond toIntervalNanosecond toLowCardinality
`)

const TIMES = words(`
  now now64 today yesterday current_timestamp current_date timestamp_sub timestamp_add timestampAdd
  timestampSub toYear toQuarter toMonth toDayOfYear toDayOfMonth toDayOfWeek toHour toMinute toSecond
  toMillisecond toUnixTimestamp toUnixTimestamp64Milli toUnixTimestamp64Micro toUnixTimestamp64Nano
  toUnixTimestamp64Second fromUnixTimestamp fromUnixTimestamp64Milli fromUnixTimestamp64Micro
  fromUnixTimestamp64Nano toStartOfYear toStartOfQuarter toStartOfMonth toStartOfWeek toStartOfDay
  toStartOfHour toStartOfMinute toStartOfSecond toStartOfMillisecond toStartOfFiveMinutes
  toStartOfFiveMinute toStartOfTenMinutes toStartOfFifteenMinutes toStartOfInterval toMonday
  toLastDayOfMonth toLastDayOfWeek toISOWeek toISOYear toWeek toYearWeek toTime toTimeZone timeZoneOf
  toYYYYMM toYYYYMMDD toYYYYMMDDhhmmss toRelativeYearNum toRelativeMonthNum toRelativeWeekNum
  toRelativeDayNum toRelativeHourNum toRelativeMinuteNum toRelativeSecondNum addYears addQuarters
  addMonths addWeeks addDays addHours addMinutes addSeconds addMilliseconds addMicroseconds addInterval
  subtractYears subtractQuarters subtractMonths subtractWeeks subtractDays subtractHours
  subtractMinutes subtractSeconds subtractMilliseconds subtractMicroseconds subtractInterval dateDiff
  date_diff timestampDiff timestamp_diff age dateAdd date_add dateSub date_sub dateTrunc date_trunc
  dateName formatDateTime formatDateTimeInJodaSyntax timeSlot monthName makeDate makeDateTime
  makeDateTime64 date year quarter month day dayOfWeek dayOfMonth dayOfYear week yearweek hour minute
  second last_day extract
`)

const TEXTS = words(`
  length char_length character_length octet_length lengthUTF8 empty notEmpty lower upper lowerUTF8
  upperUTF8 lcase ucase initcap initcapUTF8 reverse reverseUTF8 substring substr mid substringUTF8
  substringIndex substringIndexUTF8 left right leftUTF8 rightUTF8 trim trimLeft trimRight trimBoth ltrim
  rtrim startsWith endsWith startsWithUTF8 endsWithUTF8 position locate positionCaseInsensitive
  positionUTF8 positionCaseInsensitiveUTF8 multiSearchAny multiSearchAnyCaseInsensitive
  multiSearchFirstIndex multiSearchAllPositions hasToken hasTokenCaseInsensitive hasTokenOrNull
  hasSubsequence hasSubsequenceCaseInsensitive countSubstrings countSubstringsCaseInsensitive
  countMatches countMatchesCaseInsensitive extractAll extractAllGroups extractAllGroupsVertical
  extractAllGroupsHorizontal extractGroups regexpExtract regexpQuoteMeta replace replaceAll replaceOne
  replaceRegexpAll replaceRegexpOne translate translateUTF8 format splitByChar splitByString
  splitByRegexp splitByWhitespace splitByNonAlpha alphaTokens arrayStringConcat appendTrailingCharIfAbsent
  toValidUTF8 isValidUTF8 ascii base64Encode base64Decode tryBase64Decode encodeURLComponent
  decodeURLComponent domain domainWithoutWWW topLevelDomain protocol path queryString
  extractURLParameter cutToFirstSignificantSubdomain ngramDistance ngramSearch soundex leftPad rightPad
  lpad rpad leftPadUTF8 rightPadUTF8 ngrams tokens MD5 SHA1 SHA256 sipHash64 cityHash64 xxHash64 xxHash32 murmurHash3_64 crc32 halfMD5 IPv4NumToString
  IPv4StringToNum IPv4StringToNumOrNull toIPv4 toIPv4OrNull toIPv6 toIPv6OrNull isIPv4String isIPv6String
  isIPAddressInRange toUUID toUUIDOrNull repeat space
`)

const JSON_VALUES = words(`
  JSONHas JSONLength JSONKey JSONType JSONExtract JSONExtractUInt JSONExtractInt JSONExtractFloat
  JSONExtractBool JSONExtractString JSONExtractRaw JSONExtractArrayRaw JSONExtractKeys
  JSONExtractKeysAndValues JSONExtractKeysAndValuesRaw JSONArrayLength JSON_EXISTS JSON_QUERY JSON_VALUE
  simpleJSONHas simpleJSONExtractUInt simpleJSONExtractInt simpleJSONExtractFloat simpleJSONExtractBool
  simpleJSONExtractRaw simpleJSONExtractString isValidJSON toJSONString
`)

const ARRAYS = words(`
  has hasAll hasAny hasSubstr indexOf indexOfAssumeSorted arrayCount arrayExists arrayAll arrayMap
  arrayFilter arrayFirst arrayFirstOrNull arrayLast arrayLastOrNull arrayFirstIndex arrayLastIndex arraySum
  arrayAvg arrayMin arrayMax arrayProduct arrayCumSum arrayDifference arrayDistinct arrayUniq arraySort
  arrayReverseSort arrayReverse arraySlice arrayPushBack arrayPushFront arrayPopBack arrayPopFront
  arrayConcat arrayCompact arrayEnumerate arrayEnumerateUniq arrayFlatten flatten arrayZip arrayJoin
  arrayIntersect arrayUnion arrayExcept arrayFill arraySplit arrayFold arrayResize arrayRemove countEqual range
  mapKeys mapValues mapContains mapContainsKey mapFilter mapApply mapAdd mapUpdate mapFromArrays mapSort
  emptyArrayString tupleConcat dotProduct
`)

const AGGREGATES = words(`
  count sum avg min max any anyLast anyHeavy first_value last_value any_value anyValue argMin argMax
  uniq uniqExact uniqCombined uniqCombined64 uniqHLL12 uniqTheta groupArray groupUniqArray
  groupArrayInsertAt groupArraySample groupArraySorted groupArrayLast groupBitAnd groupBitOr groupBitXor
  groupConcat group_concat quantile quantiles quantileExact quantilesExact quantileTDigest
  quantilesTDigest quantileTiming quantilesTiming quantileDeterministic quantileDD quantileBFloat16
  quantileExactWeighted quantileExactLow quantileExactHigh quantileInterpolatedWeighted median
  medianExact medianTDigest topK topKWeighted approx_top_k approx_top_sum stddevPop stddevSamp
  varPop varSamp covarPop covarSamp corr skewPop skewSamp kurtPop kurtSamp simpleLinearRegression
  sumWithOverflow sumKahan sumMap minMap maxMap avgWeighted entropy boundingRatio deltaSum
  deltaSumTimestamp windowFunnel retention sequenceMatch sequenceCount sequenceNextNode histogram
  intervalLengthSum maxIntersections exponentialMovingAverage grouping std stddev_pop stddev_samp
  var_pop var_samp variance_pop bool_and bool_or
  percentile_cont
`)

const WINDOWS = words(`
  row_number rank dense_rank denseRank percent_rank percentRank cume_dist ntile lag lead lagInFrame
  leadInFrame nth_value
`)

/** Those whose first of several arguments is a function. */
const HIGHER_ORDER = words(`
  arrayMap arrayFilter arrayFill arraySplit arrayFirst arrayFirstOrNull arrayFirstIndex arrayLast
  arrayLastOrNull arrayLastIndex arrayCount arrayExists arrayAll arraySum arrayAvg arrayMin arrayMax
  arrayProduct arrayCumSum arrayDifference arrayCompact arraySort arrayReverseSort arrayFold mapFilter
  mapApply mapSort
`)

const lower = (names: ReadonlyArray<string>): ReadonlySet<string> =>
  new Set(names.map((name) => name.toLowerCase()))

const SCALAR = lower([
  ...OPERATORS,
  ...NUMBERS,
  ...CONVERSIONS,
  ...TIMES,
  ...TEXTS,
  ...JSON_VALUES,
  ...ARRAYS,
  ...WINDOWS
])
const AGGREGATE = lower(AGGREGATES)
const HIGHER = lower(HIGHER_ORDER)

/** True for a function that takes a function; ClickHouse takes the name of any there. */
export const takesFunction = (name: string): boolean => HIGHER.has(name.toLowerCase())

/** What ClickHouse lets stand behind the name of an aggregate function. */
const COMBINATORS = /(if|array|distinct|ornull|ordefault|map)$/

/** True for a function of the list, in any case, an aggregate with combinators too. */
export const isAllowedFunction = (name: string): boolean => {
  let rest = name.toLowerCase()
  if (SCALAR.has(rest)) return true
  for (;;) {
    if (AGGREGATE.has(rest)) return true
    const shorter = rest.replace(COMBINATORS, "")
    if (shorter === rest) return false
    rest = shorter
  }
}

/** All names, sorted, for the documentation. */
export const allowedFunctions: ReadonlyArray<string> = [
  ...new Set([
    ...OPERATORS,
    ...NUMBERS,
    ...CONVERSIONS,
    ...TIMES,
    ...TEXTS,
    ...JSON_VALUES,
    ...ARRAYS,
    ...WINDOWS,
    ...AGGREGATES
  ])
].sort()
