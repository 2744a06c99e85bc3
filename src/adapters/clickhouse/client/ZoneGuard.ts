/**
 * Names of time zones in a statement for the engine, which opens the file that a name says, and keeps
 * each spelling for ever. So an argument that names a zone has to be a text of the list of zones.
 */
import { takesFunction } from "../../../domain/sql/SqlFunctions.ts"
import { isTimeZone, typeArgument, zoneArgument } from "../../../domain/sql/SqlTimeZones.ts"
import { nameOf, type Tokens, tokensOf } from "./StatementTokens.ts"

const OPEN = /^[([{]$/
const CLOSE = /^[)\]}]$/
const TEXT = /^[xXbB]?'/
/** Table functions that take a text with the types of columns first. */
const OF_COLUMNS = /^(input|values|generateRandom)$/i
const TYPES_WITH_ZONE = /^(DateTime(32|64)?|timestamp)$/i
/** What is no text ever: a number, a word for a value, and a call that makes a time. */
const NO_TEXT = /^(?:\d|(?:NULL|true|false)$|toDate(32|Time|Time64)?\()/i

/** The arguments in the brackets that open at this place. */
const argumentsAt = (tokens: Tokens, open: number): ReadonlyArray<Tokens> => {
  const all: Array<Array<string>> = [[]]
  let depth = 1
  for (let at = open + 1; at < tokens.length; at += 1) {
    const token = tokens[at]!
    if (CLOSE.test(token)) depth -= 1
    if (depth === 0) break
    if (depth === 1 && token === ",") all.push([])
    else all.at(-1)!.push(token)
    if (OPEN.test(token)) depth += 1
  }
  return all
}

const isText = ([first = "", ...more]: Tokens): boolean => TEXT.test(first) && more.length === 0

const isZone = (argument: Tokens): boolean =>
  isText(argument)
    ? isTimeZone(argument[0]!.slice(1, -1))
    : argument.length === 0 || NO_TEXT.test(argument.slice(0, 2).join(""))

/** Of other escapes none has a place in a type, nor what is put for them. */
const ESCAPE = /\\x([\da-fA-F]{2})|\\([^])|''/g
const plain = (found: string, code?: string, sign?: string): string => {
  if (code !== undefined) return String.fromCharCode(Number.parseInt(code, 16))
  return found === "''" || sign === "'" ? "'" : sign === "\\" ? sign : "\0"
}

/** Whether a text names types that have no other zone. */
const isType = (argument: Tokens): boolean => {
  if (!isText(argument)) return false
  const text = argument[0]!
  const tokens = text.startsWith("'") ? tokensOf(text.slice(1, -1).replaceAll(ESCAPE, plain)) : 0
  return typeof tokens !== "number" && !tokens.some((_, at) => takesForeignZone(tokens, at))
}

/** `*`, `t.*` and COLUMNS mean several arguments, which the statement does not show. */
const isStar = (argument: Tokens): boolean =>
  argument.some(
    (token, at) =>
      /^columns$/i.test(token) || (token === "*" && (at === 0 || argument[at - 1] === "."))
  )

/** Whether a function by its bare name gets so many arguments that one of them is a zone. */
const isBareWithZone = (name: string, all: ReadonlyArray<Tokens>): boolean => {
  if (all.length < 2) return false
  const bare = nameOf(all[0]!.find((token) => token !== "(") ?? "")
  const count = all.some(isStar) ? Infinity : /^map/i.test(name) ? 2 : all.length - 1
  return count > zoneArgument(bare) || typeArgument(bare, count) !== undefined
}

/** `VALUES` of an INSERT is no table function. */
const isOfColumns = (tokens: Tokens, at: number): boolean =>
  OF_COLUMNS.test(nameOf(tokens[at]!))
  && (!/^insert$/i.test(tokens[0]!) || /^(from|join|,)$/i.test(tokens[at - 1] ?? ""))

/** Whether something at this place may take another zone than those of the list. */
export const takesForeignZone = (tokens: Tokens, at: number): boolean => {
  if (/^at$/i.test(tokens[at]!)) return /^time zone$/i.test(tokens.slice(at + 1, at + 3).join(" "))
  if (tokens[at + 1] !== "(") return false
  const name = nameOf(tokens[at]!)
  const all = () => argumentsAt(tokens, at + 1)
  if (TYPES_WITH_ZONE.test(name)) return !all().every(isZone)
  if (isOfColumns(tokens, at)) {
    const [first = []] = all()
    return !/^[(\d]|^$/.test(first[0] ?? "") && !isType(first)
  }
  if (takesFunction(name)) return isBareWithZone(name, all())
  const zone = zoneArgument(name)
  if (zone === Infinity && typeArgument(name, 0) === undefined) return false
  if (all().some(isStar) || !all().every((one, place) => place < zone || isZone(one))) return true
  const type = all()[typeArgument(name, all().length) ?? -1]
  return type !== undefined && !isType(type)
}
