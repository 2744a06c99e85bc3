/**
 * How large a value of ClickHouse can be: a number, a text, a list (arrays, maps and tuples), or
 * anything of a type. Sizes are upper bounds; nothing here knows functions or statements.
 */
import { type Token, tokensOf } from "./SqlTokens.ts"

export interface Value {
  /** Bytes of a text, elements of a list with what they hold; 1 for a number. */
  readonly size: number
  /** Bytes of it as a text. */
  readonly printed: number
  /** Elements of a list. A tuple has its members, a map its keys and its values. */
  readonly count: number
  /** Any of the elements. Without it, one may be as large as the whole. */
  readonly each?: Value
}

/** More than any bound, for a value of which nothing is known. */
export const UNKNOWN = 1e9
/** Above all that is compared. */
const SIZE_LIMIT = 1e15
/** Bytes of numbers, times, addresses and UUIDs as texts, but for those that are wide. */
export const NARROW = 40
/** Bytes of integers of 256 bits and decimals as texts. */
export const WIDE = 80
/** Lists inside of one another of which the elements are known apart. */
const LISTS_MAX = 4

const bounded = (size: number): number => Math.min(SIZE_LIMIT, size)

export const number = (printed = NARROW): Value => ({
  size: 1,
  printed: bounded(printed),
  count: 0
})
export const text = (bytes: number): Value => {
  const size = bounded(bytes)
  return { size, printed: size, count: 0 }
}
/** A value of any type. */
export const anything = (size: number, printed = size): Value => ({
  size: bounded(size),
  printed: bounded(printed),
  count: bounded(size)
})
export const unknown = anything(UNKNOWN)
export const nothing: Value = { size: 0, printed: 0, count: 0 }

export const isList = ({ count, each }: Value): boolean => count > 0 || each !== undefined
export const elementOf = (value: Value): Value => value.each ?? value
const depthOf = ({ each }: Value): number => (each === undefined ? 0 : 1 + depthOf(each))

/** `total`: bytes of all elements as texts. */
export const list = (count: number, each: Value, total = count * each.printed): Value => {
  const all = Math.min(count * each.printed, total)
  const size = bounded(Math.max(count, Math.min(count * each.size, all)))
  // In a list a text has quotes, and quotes, backslashes and ends of lines in it are two characters.
  const printed = bounded(2 * all + 5 * count + 2)
  return depthOf(each) < LISTS_MAX
    ? { size, printed, count: bounded(count), each }
    : anything(Math.max(size, 2), printed)
}

const most = (values: ReadonlyArray<Value>, of: (value: Value) => number): number =>
  values.reduce((max, value) => Math.max(max, of(value)), 0)
const all = (values: ReadonlyArray<Value>, of: (value: Value) => number): number =>
  values.reduce((sum, value) => sum + of(value), 0)

/** One of them. */
export const oneOf = (values: ReadonlyArray<Value>): Value => {
  if (values.length === 1) return values[0]!
  const lists = values.filter(isList)
  const isKnown = lists.length > 0 && lists.every(({ each }) => each !== undefined)
  return {
    size: most(values, ({ size }) => size),
    printed: most(values, ({ printed }) => printed),
    count: most(values, ({ count }) => count),
    ...(isKnown ? { each: oneOf(lists.map(elementOf)) } : {})
  }
}

/** What lists hold together, or texts. */
export const joined = (values: ReadonlyArray<Value>): Value => {
  const printed = bounded(all(values, (value) => value.printed))
  if (!values.some(isList)) return text(printed)
  const { each } = oneOf(values)
  const size = bounded(all(values, (value) => Math.max(value.size, value.printed)))
  const count = bounded(all(values, (value) => value.count))
  return { size, printed, count, ...(each === undefined ? {} : { each }) }
}

/** A list of these elements. */
export const listed = (values: ReadonlyArray<Value>): Value =>
  list(
    values.length,
    values.length === 0 ? nothing : oneOf(values),
    all(values, ({ printed }) => printed)
  )

/** It, or anything in it. */
export const memberOf = (value: Value): Value =>
  value.each === undefined ? value : oneOf([value, memberOf(value.each)])

/** What is computed of numbers, or of lists of them, one by one; sums of intervals are lists. */
export const computed = (values: ReadonlyArray<Value>): Value => {
  if (!values.some(isList))
    return number(values.some(({ printed }) => printed > NARROW) ? WIDE : NARROW)
  const size = all(values, (value) => value.size)
  return anything(size, all(values, ({ printed }) => printed) + WIDE * size)
}

export const isSame = (one: Value, other: Value): boolean =>
  one === other
  || (one.size === other.size
    && one.printed === other.printed
    && one.count === other.count
    && (one.each === undefined || other.each === undefined
      ? one.each === other.each
      : isSame(one.each, other.each)))

interface Type {
  readonly name: string
  readonly inner: ReadonlyArray<Type>
  /** Of numbers among its arguments. */
  readonly length: number
  /** Bytes of a value as a text, beside those of what it is read from. */
  readonly least: number
  /** Bytes of it for each byte of what it is read from: each may be an element at any depth. */
  readonly each: number
}

const TEXTS = /^(string|text|char|varchar)$/
const WIDE_NUMBERS = /^(u?int(128|256)|dec|decimal\d*|numeric)$/
const WRAPPERS = /^(nullable|lowcardinality)$/
const LISTS = /^(array|map)$/
/** Those that hold one value of each type in them, or one value of one of them. */
const HOLDERS = /^(tuple|variant|nullable|lowcardinality)$/

/** `inner`: bytes of the types in it, each with its quotes and what is between them. */
const leastOf = (name: string, length: number, inner: number): number => {
  if (TEXTS.test(name)) return 0
  if (name === "fixedstring" || name.startsWith("enum")) return length
  if (LISTS.test(name)) return 2
  if (HOLDERS.test(name)) return 2 + inner
  return WIDE_NUMBERS.test(name) ? WIDE : NARROW
}

const typeOf = (name: string, length: number, inner: ReadonlyArray<Type>): Type => {
  const held = inner.reduce((sum, { least }) => sum + 2 * least + 5, 0)
  const each = inner.reduce((sum, one) => sum + one.each, LISTS.test(name) ? held : 0)
  return { name, length, inner, least: bounded(leastOf(name, length, held)), each: bounded(each) }
}

/** The types in brackets, of which the first was read; names of members have no meaning here. */
const typesOf = (tokens: Array<Token>): { inner: ReadonlyArray<Type>; length: number } => {
  const inner: Array<Type> = []
  let length = 0
  for (let token = tokens.shift(); token !== undefined; token = tokens.shift()) {
    if (token.text === ")" && token.kind === "sign") break
    if (token.kind === "number") length = Math.max(length, Number(token.text.replaceAll("_", "")))
    else if (token.kind === "text") length = Math.max(length, Buffer.byteLength(token.text))
    const next = tokens[0]
    const isNamed = next?.kind === "word" || next?.kind === "name"
    if (token.kind !== "word" || isNamed) continue
    const isLong = next?.kind === "sign" && next.text === "("
    if (isLong) tokens.shift()
    const of = isLong ? typesOf(tokens) : { inner: [], length: 0 }
    inner.push(typeOf(token.text.toLowerCase(), of.length, of.inner))
  }
  return { inner, length }
}

const ofRead = (type: Type | undefined, source: Value): Value => {
  if (type === undefined) return unknown
  const { inner, length, name } = type
  const values = (from: Value) => inner.map((one) => ofRead(one, from))
  if (TEXTS.test(name)) return text(source.printed)
  if (name === "fixedstring" || name.startsWith("enum")) return text(length)
  if (WRAPPERS.test(name)) return ofRead(inner[0], source)
  // An element at any depth has at least one byte in what is read.
  const elements = Math.max(source.size, source.printed)
  const total = source.printed + type.least + elements * type.each
  if (name === "variant") return anything(6 * total + NARROW)
  if (name.startsWith("interval")) return list(1, number())
  if (name === "tuple") {
    const members = values(memberOf(source))
    return list(
      inner.length,
      oneOf(members),
      Math.min(
        total,
        all(members, (one) => one.printed)
      )
    )
  }
  if (LISTS.test(name)) {
    const isArray = name === "array" && isList(source)
    const count = isArray ? source.count : source.size
    const from = isArray ? elementOf(source) : memberOf(source)
    return list(count, oneOf(values(from)), total)
  }
  return number(WIDE_NUMBERS.test(name) ? WIDE : NARROW)
}

/** A value of a type that is made of another value; `type` as a statement names it. */
export const ofType = (type: string, source: Value): Value => {
  const { inner } = typesOf([...tokensOf(type)])
  return ofRead(inner[0], source)
}
