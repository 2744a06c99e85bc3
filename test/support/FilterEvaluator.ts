/**
 * What the filters of the event list mean, written from the documentation and sharing nothing with
 * the program: a request's parameters and an event in, a verdict out.
 */
import type { Json } from "./Client.ts"

/** What a text of `where` was made to mean; the evaluator doesn't read the text. */
export type Tree =
  | { readonly and: ReadonlyArray<Tree> }
  | { readonly or: ReadonlyArray<Tree> }
  | { readonly not: Tree }
  | { readonly search: string }
  | Condition

/** A field by the name of its parameter, or `metadata.` and a path. */
export interface Condition {
  readonly name: string
  readonly sign: "=" | "!=" | ">" | ">=" | "<" | "<="
  readonly values: ReadonlyArray<Value>
}

export interface Value {
  readonly text: string
  /** A `*` follows it. */
  readonly isOpen: boolean
}

/** Name and value of each parameter, as they stand in the query; of `where` also what it means. */
export type Expression = ReadonlyArray<readonly [name: string, value: string, tree?: Tree]>

const BESIDE = ["from", "to", "from_sequence", "to_sequence", "q", "where"]
const TEXTS = [
  "id",
  "actor_id",
  "actor_type",
  "actor_email",
  "action",
  "resource_id",
  "resource_type",
  "resource_name",
  "outcome"
]
const TIMES = ["timestamp", "created_at"]
const CHOICES: Readonly<Record<string, ReadonlyArray<string>>> = {
  actor_type: ["human", "agent", "system"],
  outcome: ["success", "failure", "error"]
}

/** Fields with times. */
export const isTime = (name: string): boolean => TIMES.includes(name)

/** First and last microsecond since 1970 of the few forms of time that the cases use. */
export const spanOf = (time: string): readonly [first: bigint, last: bigint] => {
  const ago = /^-(\d+)h$/.exec(time)
  if (ago !== null) {
    const at = BigInt(Date.now() - Number(ago[1]) * 3_600_000) * 1_000n
    return [at, at]
  }
  if (time.length === 10) {
    const first = BigInt(Date.parse(`${time}T00:00:00Z`)) * 1_000n
    return [first, first + 86_400_000_000n - 1n]
  }
  const [, seconds = "", fraction = "", offset] =
    /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$/.exec(time)!
  const millis = Date.parse(`${seconds}${offset}`)
  const micros = BigInt(millis) * 1_000n + BigInt(fraction.slice(0, 6).padEnd(6, "0"))
  return [micros, micros]
}

/** Name, sign and text of a parameter; a sign without an `=` after it takes the text along. */
const signed = (name: string, value: string): readonly [string, Condition["sign"], string] => {
  let plain = ""
  for (let at = 0; at < name.length; at++) {
    if (name[at] === "\\" && "\\!<>=".includes(name[at + 1] ?? "?")) {
      at += 1
      plain += name[at]
      continue
    }
    const rest = name.slice(at)
    if (value !== "") {
      if (rest === "!" || rest === "!=") return [plain, "!=", value]
      if (rest === ">" || rest === ">=") return [plain, ">=", value]
      if (rest === "<" || rest === "<=") return [plain, "<=", value]
    } else {
      const [, sign, text] = /^(!=|[<>]=?)([^<>=!]+)$/.exec(rest) ?? []
      if (text !== undefined) return [plain, sign as Condition["sign"], text]
    }
    plain += name[at]
  }
  return [plain, "=", value]
}

/** The values in a text; undefined for one that has an empty value, or a `*` inside of one. */
const split = (text: string, isList: boolean): ReadonlyArray<Value> | undefined => {
  const values: Array<Value> = []
  let value = ""
  let isOpen = false
  for (let at = 0; at <= text.length; at++) {
    const letter = text[at]
    if (letter === undefined || (letter === "," && isList)) {
      if (value === "" && !isOpen) return undefined
      values.push({ text: value, isOpen })
      value = ""
      isOpen = false
    } else if (isOpen) {
      return undefined
    } else if (letter === "\\" && ["\\", ",", "*"].includes(text[at + 1] ?? "")) {
      at += 1
      value += text[at]
    } else if (letter === "*") {
      isOpen = true
    } else {
      value += letter
    }
  }
  return values
}

const isOrder = ({ sign }: Condition): boolean => sign !== "=" && sign !== "!="

const conditionOf = (name: string, text: string): Condition | undefined => {
  const [plain, sign, rest] = signed(name, text)
  const isList = !plain.startsWith("metadata.") && (sign === "=" || sign === "!=")
  const values = split(rest, isList)
  if (values === undefined) return undefined
  const isWhole = /^(id|actor_(id|email)|resource_(id|type|name))$/.test(plain)
  const whole = isWhole && values.length > 1 && values.length <= 16
  return { name: plain, sign, values: whole ? [...values, { text: rest, isOpen: false }] : values }
}

const isNumber = (text: string): boolean =>
  /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text) && Number.isFinite(Number(text))

const isRefusedCondition = (condition: Condition): boolean => {
  const { name, values } = condition
  if (name.startsWith("metadata.")) {
    if (name === "metadata.") return true
    return isOrder(condition) && values.some(({ isOpen, text }) => isOpen || !isNumber(text))
  }
  if (TEXTS.includes(name)) {
    const choices = CHOICES[name]
    if (isOrder(condition)) return true
    return values.some(
      ({ isOpen, text }) => !isOpen && choices !== undefined && !choices.includes(text)
    )
  }
  if (values.some(({ isOpen, text }) => isOpen && (text !== "" || isOrder(condition)))) return true
  if (name === "sequence_number") {
    return values.some(({ isOpen, text }) => !isOpen && !/^\d{1,15}$/.test(text))
  }
  return !TIMES.includes(name)
}

const keyOf = (name: string, { isOpen, text }: Value): string =>
  TIMES.includes(name) && !isOpen ? spanOf(text).join(" ") : JSON.stringify([text, isOpen])

/** Values that are asked for and excluded, and bounds between which nothing is. */
const isContradictory = (conditions: ReadonlyArray<Condition>): boolean => {
  for (const condition of conditions) {
    const { name, sign, values } = condition
    const beside = conditions.filter((other) => other.name === name)
    if (sign === "!=") {
      const wanted = beside.filter((other) => other.sign === "=").flatMap((other) => other.values)
      const keys = wanted.map((value) => keyOf(name, value))
      if (values.some((value) => keys.includes(keyOf(name, value)))) return true
    }
    if (!isOrder(condition)) continue
    if (beside.filter((other) => other.sign === sign).length > 1) return true
    if (sign.startsWith("<") || name.startsWith("metadata.")) continue
    const boundOf = (of: Condition): bigint | number => {
      const { text } = of.values[0]!
      if (name === "sequence_number") return Number(text)
      return spanOf(text)[of.sign === ">" || of.sign === "<=" ? 1 : 0]
    }
    const upper = beside.filter((other) => other.sign.startsWith("<"))
    if (upper.some((other) => boundOf(condition) > boundOf(other))) return true
  }
  return false
}

/** True if the API has to refuse the expression. */
export const isRefused = (expression: Expression): boolean => {
  const given = new Map<string, string>()
  const conditions: Array<Condition> = []
  for (const [name, value] of expression) {
    if (BESIDE.includes(name)) {
      if (given.has(name) || value === "") return true
      given.set(name, value)
      continue
    }
    const condition = conditionOf(name, value)
    if (condition === undefined || isRefusedCondition(condition)) return true
    conditions.push(condition)
  }
  if (isContradictory(conditions)) return true
  const [from, to] = [given.get("from"), given.get("to")]
  if (from !== undefined && to !== undefined && spanOf(from)[0] > spanOf(to)[1]) return true
  const [first, last] = [given.get("from_sequence"), given.get("to_sequence")]
  return first !== undefined && last !== undefined && Number(first) > Number(last)
}

const NOTHING = Symbol("nothing")

/** At each object the longest key that is there is tried before the shorter ones. */
const valueAt = (value: unknown, path: ReadonlyArray<string>): unknown => {
  if (path.length === 0) return value
  if (typeof value !== "object" || value === null || Array.isArray(value)) return NOTHING
  for (let taken = path.length; taken > 0; taken--) {
    const key = path.slice(0, taken).join(".")
    if (!Object.hasOwn(value, key)) continue
    const found = valueAt((value as Json)[key], path.slice(taken))
    if (found !== NOTHING) return found
  }
  return NOTHING
}

const scalarsIn = (value: unknown): ReadonlyArray<unknown> => {
  if (Array.isArray(value)) return value.flatMap(scalarsIn)
  return typeof value === "object" && value !== null ? [] : [value]
}

const isValue = (found: unknown, { isOpen, text }: Value): boolean =>
  isOpen
    ? typeof found === "string" && found.startsWith(text)
    : `${Object.is(found, -0) ? 0 : (found as string)}` === text

const isOrdered = <A extends number | bigint>(left: A, sign: Condition["sign"], right: A) => {
  switch (sign) {
    case ">":
      return left > right
    case ">=":
      return left >= right
    case "<":
      return left < right
    default:
      return left <= right
  }
}

/** One character after the other, so that no character's neighbours matter; a sigma is a sigma. */
const folded = (text: string): string =>
  Array.from(text, (letter) => (letter === "ς" ? "σ" : letter.toLowerCase())).join("")

const stringsIn = (value: unknown): ReadonlyArray<string> => {
  if (typeof value === "string") return [value]
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(stringsIn) : []
}

const textsOf = ({ action, actor, metadata, resource }: Json): ReadonlyArray<string> => [
  action,
  actor.id,
  actor.email ?? "",
  resource.id,
  resource.type,
  resource.name ?? "",
  ...stringsIn(metadata)
]

const isFound = (event: Json, text: string): boolean =>
  textsOf(event).some((one) => folded(one).includes(folded(text)))

const isOfMetadata = (event: Json, { name, sign, values }: Condition): boolean => {
  const found = valueAt(event["metadata"], name.slice("metadata.".length).split("."))
  if (found === NOTHING) return false
  const scalars = scalarsIn(found)
  if (sign === "=" || sign === "!=") {
    return values.some(
      (value) => (value.isOpen && value.text === "") || scalars.some((one) => isValue(one, value))
    )
  }
  const bound = Number(values[0]!.text)
  return scalars.some((one) => typeof one === "number" && isOrdered(one, sign, bound))
}

const isOfTime = (at: bigint, sign: Condition["sign"], text: string): boolean => {
  const [first, last] = spanOf(text)
  if (sign === "=" || sign === "!=") return at >= first && at <= last
  return isOrdered(at, sign, sign === ">" || sign === "<=" ? last : first)
}

/** Whether one of the values is asked for; the sign `!=` is not looked at. */
const isAsked = (event: Json, sequence: number, condition: Condition): boolean => {
  const { name, sign, values } = condition
  if (name.startsWith("metadata.")) return isOfMetadata(event, condition)
  const isAny = values.some(({ isOpen, text }) => isOpen && text === "")
  if (TIMES.includes(name)) {
    // The service's own time is about now; the cases ask for hours.
    const at = name === "timestamp" ? spanOf(event["timestamp"])[0] : BigInt(Date.now()) * 1_000n
    return isAny || values.some(({ text }) => isOfTime(at, sign, text))
  }
  if (name === "sequence_number") {
    return (
      isAny
      || values.some(({ text }) =>
        isOrder(condition) ? isOrdered(sequence, sign, Number(text)) : sequence === Number(text)
      )
    )
  }
  const [part = "", member] = name.split("_")
  const value = member === undefined ? event[part] : event[part][member]
  return value !== undefined && (isAny || values.some((one) => isValue(value, one)))
}

const isTrue = (event: Json, sequence: number, tree: Tree): boolean => {
  if ("and" in tree) return tree.and.every((one) => isTrue(event, sequence, one))
  if ("or" in tree) return tree.or.some((one) => isTrue(event, sequence, one))
  if ("not" in tree) return !isTrue(event, sequence, tree.not)
  if ("search" in tree) return isFound(event, tree.search)
  return isAsked(event, sequence, tree) === (tree.sign !== "!=")
}

/** Whether an event, as it was sent, satisfies what is no condition at its place in the chain. */
const satisfies = (event: Json, sequence: number, name: string, value: string): boolean => {
  switch (name) {
    case "from":
      return spanOf(event["timestamp"])[0] >= spanOf(value)[0]
    case "to":
      return spanOf(event["timestamp"])[0] <= spanOf(value)[1]
    case "from_sequence":
      return sequence >= Number(value)
    case "to_sequence":
      return sequence <= Number(value)
    default:
      return isFound(event, value)
  }
}

/** What an expression asks for: all of the conditions, and of what is no condition name and value. */
export interface Asked {
  readonly trees: ReadonlyArray<Tree>
  readonly others: ReadonlyArray<readonly [name: string, value: string]>
}

export const askedBy = (expression: Expression): Asked => {
  const asked = new Map<string, Condition>()
  for (const [name, value] of expression) {
    if (BESIDE.includes(name)) continue
    const condition = conditionOf(name, value)!
    const key = `${condition.sign} ${condition.name}`
    // Repeated, a parameter has the values of all.
    const values = [...(asked.get(key)?.values ?? []), ...condition.values]
    asked.set(key, { ...condition, values })
  }
  const trees: ReadonlyArray<Tree> = [
    ...asked.values(),
    ...expression.flatMap(([, , tree]) => (tree === undefined ? [] : [tree]))
  ]
  const others = expression
    .filter(([name]) => BESIDE.includes(name) && name !== "where")
    .map(([name, value]) => [name, value] as const)
  return { trees, others }
}

/** The sequence numbers of the events that match, ascending; `events` in the order of the chain. */
export const matching = (events: ReadonlyArray<Json>, expression: Expression): Array<number> => {
  const { others, trees } = askedBy(expression)
  return events.flatMap((event, index) =>
    trees.every((tree) => isTrue(event, index + 1, tree))
    && others.every(([name, value]) => satisfies(event, index + 1, name, value))
      ? [index + 1]
      : []
  )
}
