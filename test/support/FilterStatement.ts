/**
 * What the filters of the event list mean as SQL over the view `events`, for those that ask neither
 * metadata nor a search. Written from the documentation, sharing nothing with the program.
 */
import {
  askedBy,
  type Condition,
  type Expression,
  isTime,
  spanOf,
  type Tree
} from "./FilterEvaluator.ts"

/** Something that this doesn't say in SQL. */
class Unsaid extends Error {}

const literal = (text: string): string =>
  `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`

const micros = (name: string): string => `toUnixTimestamp64Micro(${name})`

const timeIs = (name: string, sign: Condition["sign"], text: string): string => {
  const [first, last] = spanOf(text)
  if (sign === "=" || sign === "!=") return `${micros(name)} BETWEEN ${first} AND ${last}`
  return `${micros(name)} ${sign} ${sign === ">" || sign === "<=" ? last : first}`
}

const isOneOf = ({ name, sign, values }: Condition): string => {
  const each = values.map(({ isOpen, text }) => {
    if (isOpen && text === "") return `${name} IS NOT NULL`
    if (isTime(name)) return timeIs(name, sign, text)
    if (name === "sequence_number") {
      return `${name} ${sign === "!=" ? "=" : sign} toUInt64(${literal(text)})`
    }
    return isOpen ? `startsWith(${name}, ${literal(text)})` : `${name} = ${literal(text)}`
  })
  return each.map((one) => `ifNull(${one}, 0)`).join(" OR ")
}

const holds = (tree: Tree): string => {
  if ("and" in tree) return tree.and.map(holds).join(" AND ")
  if ("or" in tree) return `(${tree.or.map(holds).join(" OR ")})`
  if ("not" in tree) return `NOT (${holds(tree.not)})`
  if ("search" in tree || tree.name.startsWith("metadata.")) throw new Unsaid()
  return `${tree.sign === "!=" ? "NOT " : ""}(${isOneOf(tree)})`
}

const bound = ([name, value]: readonly [string, string]): string => {
  switch (name) {
    case "from":
      return `${micros("timestamp")} >= ${spanOf(value)[0]}`
    case "to":
      return `${micros("timestamp")} <= ${spanOf(value)[1]}`
    case "from_sequence":
      return `sequence_number >= ${value}`
    case "to_sequence":
      return `sequence_number <= ${value}`
    default:
      throw new Unsaid()
  }
}

/** The statement for the sequence numbers that match, ascending; undefined if there is none here. */
export const statementOf = (expression: Expression): string | undefined => {
  const { others, trees } = askedBy(expression)
  try {
    const conditions = [...trees.map((tree) => `(${holds(tree)})`), ...others.map(bound)]
    const where = conditions.length === 0 ? "" : ` WHERE ${conditions.join(" AND ")}`
    return `SELECT sequence_number FROM events${where} ORDER BY sequence_number`
  } catch (error) {
    if (error instanceof Unsaid) return undefined
    throw error
  }
}
