/**
 * Query parameters as data: each says what it is, for the OpenAPI document, and reads itself from
 * text, so that the two can't differ.
 */
import { Result } from "effect"
import { defined } from "../../domain/Defined.ts"
import {
  type ConditionText,
  readCondition,
  readValues,
  type ValueText
} from "../../domain/events/ConditionText.ts"
import {
  METADATA_PATH_SEGMENTS_MAX,
  METADATA_PREFIX,
  metadataPathSegments
} from "../../domain/events/MetadataPath.ts"
import { NO_TIME } from "../../domain/events/where/ConditionValue.ts"
import { momentFromNow, timeSpanOf } from "../../domain/events/where/TimeText.ts"
import { currentTime, parseTimestamp } from "../../domain/Timestamp.ts"
import { invalid } from "./ApiError.ts"
import { whatWasMeant } from "./UnknownParameter.ts"

/** What a document says of a parameter. */
export interface DescribedParameter {
  readonly description: string
  /** JSON Schema of the value. */
  readonly schema: Readonly<Record<string, unknown>>
  readonly example?: unknown
  /** The document says so; the handler refuses a request without it. */
  readonly required?: true
}

/** A parameter in whose text there may be times from now. */
export interface TimedParameter extends DescribedParameter {
  /** The text with the moments that they mean, at a time in canonical microsecond form. */
  readonly withMoments?: (text: string, now: string) => string
}

/** One parameter: its words and schema, and how its text is read. */
export interface Parameter<A> extends TimedParameter {
  /** It may be repeated: the value is a list, of those of each. */
  readonly isRepeatable?: true
  /** The value, at a time in canonical microsecond form, or what is wrong with the text. */
  readonly parse: (text: string, now?: string) => Result.Result<A, string>
}

/** A condition of a filter, as a request gives it. */
export interface GivenCondition extends ConditionText {
  /** What a client calls it; for the field of an error. */
  readonly label: string
}

/** The parameters of a route, by name. */
export type Parameters = Readonly<Record<string, Parameter<unknown>>>

/** The values of those that were given. */
export type ValuesOf<P extends Parameters> = {
  readonly [N in keyof P]?: P[N] extends Parameter<infer A> ? A : never
}

/** The years 1970 to 2261, at the start of a date-time. */
export const SUPPORTED_YEARS = "^(19[7-9][0-9]|2[01][0-9]{2}|22[0-5][0-9]|226[01])-"
const DATE_PATTERN = `${SUPPORTED_YEARS}(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])`
const HOUR_PATTERN = "([01][0-9]|2[0-3])"
const CLOCK_PATTERN =
  `[Tt]${HOUR_PATTERN}(:[0-5][0-9]){2}([.][0-9]+)?` + `([Zz]|[+-]${HOUR_PATTERN}:[0-5][0-9])`
/** Date-times and dates of those years, and times from now. */
export const TIME_PATTERN = `${DATE_PATTERN}(${CLOCK_PATTERN})?$|^now$|^(now)?[+-][0-9]{1,6}[smhdw]$`
/** Conditions on metadata in one request at most. */
export const METADATA_CONDITIONS_MAX = 16
/** Characters of a client's value that an error message repeats. */
const QUOTE_LENGTH_MAX = 80

const quote = (text: string): string =>
  JSON.stringify(text.length > QUOTE_LENGTH_MAX ? `${text.slice(0, QUOTE_LENGTH_MAX)}…` : text)

/** A decimal integer without fraction and exponent, within bounds. */
export const integerParameter = (bounds: {
  readonly minimum: number
  readonly maximum?: number
  readonly default?: number
  readonly description: string
  readonly example?: number
  readonly required?: true
}): Parameter<number> => {
  const { description, maximum = Number.MAX_SAFE_INTEGER, minimum } = bounds
  const allowed =
    bounds.maximum === undefined
      ? `an integer from ${minimum} on`
      : `an integer from ${minimum} to ${maximum}`
  return {
    description,
    schema: {
      type: "integer",
      format: "int64",
      minimum,
      maximum,
      ...defined({ default: bounds.default })
    },
    ...defined({ example: bounds.example, required: bounds.required }),
    parse: (text) => {
      const value = /^-?\d{1,17}$/.test(text) ? Number(text) : NaN
      return Number.isSafeInteger(value) && value >= minimum && value <= maximum
        ? Result.succeed(value)
        : Result.fail(`must be ${allowed}, not ${quote(text)}`)
    }
  }
}

/** One of some names. */
export const choiceParameter = <const Names extends ReadonlyArray<string>>(
  names: Names,
  options: { readonly default?: Names[number]; readonly description: string }
): Parameter<Names[number]> => ({
  description: options.description,
  schema: {
    type: "string",
    enum: names,
    ...defined({ default: options.default })
  },
  parse: (text) =>
    names.includes(text)
      ? Result.succeed(text)
      : Result.fail(`must be one of ${names.join(", ")}, not ${quote(text)}`)
})

/** Any text; its length counts characters, not code units. */
export const textParameter = (options: {
  readonly description: string
  readonly example?: string
  readonly maxLength?: number
}): Parameter<string> => ({
  description: options.description,
  schema: {
    type: "string",
    minLength: 1,
    ...defined({ maxLength: options.maxLength })
  },
  ...defined({ example: options.example }),
  parse: (text) =>
    options.maxLength !== undefined && [...text].length > options.maxLength
      ? Result.fail(`must be at most ${options.maxLength} characters long`)
      : Result.succeed(text)
})

const LISTED = "Several with commas, or repeated: one of them."

/** Some of some names. */
export const choicesParameter = <const Names extends ReadonlyArray<string>>(
  names: Names,
  options: { readonly description: string }
): Parameter<ReadonlyArray<Names[number]>> => ({
  description: `${options.description} ${LISTED}`,
  schema: {
    type: "string",
    pattern: `^(${names.join("|")})(,(${names.join("|")}))*$`
  },
  example: names[0],
  isRepeatable: true,
  parse: (text) => {
    const given = text.split(",")
    const unknown = given.find((one) => !names.includes(one))
    return unknown === undefined
      ? Result.succeed(given)
      : Result.fail(`must be of ${names.join(", ")}, with commas between; not ${quote(unknown)}`)
  }
})

/** Texts as conditions on events have them: one of several, or what starts with one before a `*`. */
export const textsParameter = (options: {
  readonly description: string
  readonly example: string
}): Parameter<ReadonlyArray<ValueText>> => ({
  description:
    `${options.description} ${LISTED} \`*\` at the end of one asks for what starts with it, alone for `
    + "what is there; `\\` before a comma or `*` that is part of it.",
  schema: { type: "string", minLength: 1 },
  example: options.example,
  isRepeatable: true,
  parse: (text) => readValues(text, true)
})

/** RFC 3339; the value is in the canonical microsecond form. */
export const dateTimeParameter = (description: string): Parameter<string> => ({
  description,
  schema: { type: "string", format: "date-time", pattern: SUPPORTED_YEARS },
  example: "2026-01-31T00:00:00Z",
  parse: (text) => {
    const parsed = parseTimestamp(text)
    return parsed === undefined
      ? Result.fail(`must be an RFC 3339 date-time from 1970 to 2261, not ${quote(text)}`)
      : Result.succeed(parsed)
  }
})

/**
 * A bound of time: a date-time, a day of which it is the first or the last moment, or a time from
 * now. The value is in the canonical microsecond form.
 */
export const timeParameter = (description: string, end: "first" | "last"): Parameter<string> => ({
  description:
    `${description} An RFC 3339 date-time, a date (its ${end} moment in UTC), \`now\`, or a time from `
    + "now such as `-24h`; units are s, m, h, d and w.",
  schema: { type: "string", pattern: TIME_PATTERN },
  example: "2026-01-31T00:00:00Z",
  parse: (text, now = currentTime()) => {
    const span = timeSpanOf(text, now)
    if (span !== undefined) return Result.succeed(span[end])
    const plus = text.includes(" ") ? "; write + as %2B" : ""
    return Result.fail(`${NO_TIME}, not ${quote(text)}${plus}`)
  },
  withMoments: (text, now) => momentFromNow(text, now) ?? text
})

/** `true` or `false`. */
export const booleanParameter = (options: {
  readonly default?: boolean
  readonly description: string
}): Parameter<boolean> => ({
  description: options.description,
  schema: { type: "boolean", ...defined({ default: options.default }) },
  parse: (text) =>
    text === "true" || text === "false"
      ? Result.succeed(text === "true")
      : Result.fail(`must be true or false, not ${quote(text)}`)
})

const decoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text.replaceAll("+", " "))
  } catch {
    return undefined
  }
}

/** Name and value of a pair of a query, decoded; undefined if that can't be. */
export const decodedPair = (pair: string) => {
  const at = pair.indexOf("=")
  const name = decoded(at === -1 ? pair : pair.slice(0, at))
  return [name, decoded(at === -1 ? "" : pair.slice(at + 1))] as const
}

/** Names and values of a request target's query, decoded, in order; throws ApiError. */
const pairsOf = (target: string): Pairs => {
  const start = target.indexOf("?")
  if (start === -1) return []
  const end = target.indexOf("#", start)
  const pairs: Array<readonly [string, string]> = []
  for (const pair of target.slice(start + 1, end === -1 ? undefined : end).split("&")) {
    if (pair === "") continue
    const [name, value] = decodedPair(pair)
    if (name === undefined || value === undefined) {
      throw invalid(name ?? "query", "is not percent-encoded UTF-8")
    }
    pairs.push([name, value])
  }
  return pairs
}

/** The path in the name of a condition on metadata; throws ApiError. */
export const metadataPath = (label: string, name: string): string => {
  const path = name.slice(METADATA_PREFIX.length)
  if (path === "") throw invalid(label, "names no path below metadata")
  if (metadataPathSegments(path).length > METADATA_PATH_SEGMENTS_MAX) {
    throw invalid(label, `has more than ${METADATA_PATH_SEGMENTS_MAX} segments`)
  }
  return path
}

/** The parameters that a route knows. */
export interface QueryTable {
  readonly parameters: Parameters
  /** Fields that conditions can be on, by name; then `metadata.<path>` is known too. */
  readonly conditions?: Readonly<Record<string, TimedParameter>>
  /** What is said of a name that is not known, where more is to say than that. */
  readonly hints?: Readonly<Record<string, string>>
}

/** Names and texts, decoded. */
export type Pairs = ReadonlyArray<readonly [name: string, text: string]>

const shortened = (name: string): string =>
  name.length > QUOTE_LENGTH_MAX ? `${name.slice(0, QUOTE_LENGTH_MAX)}…` : name

/** The condition that a parameter would be, named as the client names it. */
const givenCondition = (name: string, text: string): GivenCondition => {
  const condition = readCondition(name, text)
  const { sign, values } = condition
  // A text that isn't in its place is part of the name.
  const own = text === "" && values !== "" ? name.slice(0, -values.length) : name
  if (sign === "=") return { ...condition, label: shortened(name) }
  const plain = own.replace(/(!=?|[<>]=?)$/, "")
  return { ...condition, label: `${shortened(plain)}${sign === "!=" ? "!" : sign}` }
}

const isKnownCondition = (name: string, { conditions }: QueryTable): boolean =>
  conditions !== undefined && (Object.hasOwn(conditions, name) || name.startsWith(METADATA_PREFIX))

const unknownParameter = (
  { label, name }: GivenCondition,
  { conditions, hints = {}, parameters }: QueryTable
) => {
  if (name !== label && Object.hasOwn(parameters, name)) {
    const where = conditions === undefined ? "" : "; where has the other signs, as in where=NOT a"
    return invalid(label, `takes = only${where}`)
  }
  const ofConditions = conditions === undefined ? [] : Object.keys(conditions)
  const metadata = conditions === undefined ? [] : ["metadata.<path>"]
  const known = [...ofConditions, ...Object.keys(parameters), ...metadata]
  const asked = name.startsWith(METADATA_PREFIX) ? METADATA_PREFIX : name
  const hint = Object.hasOwn(hints, asked) ? hints[asked]! : whatWasMeant(name, known)
  return invalid(label === "" ? "query" : label, `is not a parameter of this route; ${hint}`)
}

/**
 * The names and texts of a request target's query; throws ApiError for a parameter that the table
 * doesn't hold, and for one that is given empty, or twice. Conditions may have several values.
 */
export const checkQuery = (target: string, table: QueryTable): Pairs => {
  const pairs = pairsOf(target)
  const seen = new Set<string>()
  for (const [name, text] of pairs) {
    const isParameter = Object.hasOwn(table.parameters, name)
    const condition = isParameter ? undefined : givenCondition(name, text)
    if (condition !== undefined && !isKnownCondition(condition.name, table)) {
      throw unknownParameter(condition, table)
    }
    const label = condition?.label ?? name
    const isOnce = isParameter && table.parameters[name]!.isRepeatable !== true
    if (isOnce && seen.has(name)) throw invalid(name, "is given more than once")
    seen.add(name)
    const given = condition?.values ?? text
    if (given === "") throw invalid(label, "is empty")
    if (given.includes("\0")) throw invalid(label, "holds the character U+0000")
  }
  return pairs
}

/** A query that has been read. */
export interface Query<P extends Parameters> {
  readonly values: ValuesOf<P>
  readonly conditions: ReadonlyArray<GivenCondition>
  /** When it was read, in canonical microsecond form: what times from now are counted from. */
  readonly now: string
}

/** Read texts that `checkQuery` has let through; throws ApiError. */
export const readTexts = <P extends Parameters>(
  parameters: P,
  texts: Pairs,
  now = currentTime()
): Query<P> => {
  const values: Record<string, unknown> = {}
  const conditions: Array<GivenCondition> = []
  for (const [name, text] of texts) {
    const parameter = Object.hasOwn(parameters, name) ? parameters[name] : undefined
    if (parameter === undefined) {
      conditions.push(givenCondition(name, text))
      continue
    }
    const value = parameter.parse(text, now)
    if (Result.isFailure(value)) throw invalid(name, value.failure)
    const before = values[name]
    values[name] =
      before === undefined
        ? value.success
        : [...(before as Array<unknown>), ...(value.success as Array<unknown>)]
  }
  return { values: values as ValuesOf<P>, conditions, now }
}

/** The value of a parameter that a route can't do without; throws ApiError. */
export const required = <A>(value: A | undefined, name: string): A => {
  if (value === undefined) throw invalid(name, "is required")
  return value
}

/** Throws ApiError if nothing can be between a pair of bounds. */
export const refuseInverted = <A extends string | number>(
  names: readonly [string, string],
  from: A | undefined,
  to: A | undefined
): void => {
  if (from !== undefined && to !== undefined && from > to) {
    throw invalid(names[0], `is after ${names[1]}`, "invalid_range")
  }
}
