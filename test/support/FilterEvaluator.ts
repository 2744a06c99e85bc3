/**
 * What the filters of the event list mean, written from the documentation and sharing nothing with
 * the program: a request's parameters and an event in, a verdict out.
 */
import type { Json } from "./Client.ts"

/** Name and value of each parameter, as they stand in the query. */
export type Expression = ReadonlyArray<readonly [name: string, value: string]>

const NAMES = [
  "id",
  "actor_id",
  "actor_type",
  "action",
  "resource_id",
  "resource_type",
  "outcome",
  "from",
  "to",
  "from_sequence",
  "to_sequence",
  "q"
]
const CHOICES: Readonly<Record<string, ReadonlyArray<string>>> = {
  actor_type: ["human", "agent", "system"],
  outcome: ["success", "failure", "error"]
}

/** Microseconds since 1970 of the few forms of time that the cases use. */
const microsOf = (time: string): bigint => {
  const [, seconds, fraction = "", offset] =
    /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$/.exec(time)!
  const millis = Date.parse(`${seconds}${offset}`)
  return BigInt(millis) * 1_000n + BigInt(fraction.slice(0, 6).padEnd(6, "0"))
}

/** True if the API has to refuse the expression. */
export const isRefused = (expression: Expression): boolean => {
  const given = new Map(expression)
  if (given.size < expression.length) return true
  for (const [name, value] of expression) {
    const isMetadata = name.startsWith("metadata.") && name.length > "metadata.".length
    if (!NAMES.includes(name) && !isMetadata) return true
    if (value === "" || (CHOICES[name] !== undefined && !CHOICES[name].includes(value))) return true
    if (name === "action" && value.includes("*") && !/^[^*]+\.\*$/.test(value)) return true
  }
  const [from, to] = [given.get("from"), given.get("to")]
  if (from !== undefined && to !== undefined && microsOf(from) > microsOf(to)) return true
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

const isWanted = (value: unknown, wanted: string): boolean => {
  if (Array.isArray(value)) return value.some((element) => isWanted(element, wanted))
  if (typeof value === "object" && value !== null) return false
  return typeof value === "symbol" ? false : `${Object.is(value, -0) ? 0 : value}` === wanted
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

/** Whether an event, as it was sent, satisfies one condition at its place in the chain. */
const satisfies = (event: Json, sequence: number, name: string, value: string): boolean => {
  switch (name) {
    case "id":
      return event["id"] === value
    case "actor_id":
      return event["actor"].id === value
    case "actor_type":
      return event["actor"].type === value
    case "action":
      return value.endsWith(".*")
        ? event["action"].startsWith(value.slice(0, -1))
        : event["action"] === value
    case "resource_id":
      return event["resource"].id === value
    case "resource_type":
      return event["resource"].type === value
    case "outcome":
      return event["outcome"] === value
    case "from":
      return microsOf(event["timestamp"]) >= microsOf(value)
    case "to":
      return microsOf(event["timestamp"]) <= microsOf(value)
    case "from_sequence":
      return sequence >= Number(value)
    case "to_sequence":
      return sequence <= Number(value)
    case "q":
      return textsOf(event).some((text) => folded(text).includes(folded(value)))
    default:
      return isWanted(valueAt(event["metadata"], name.slice("metadata.".length).split(".")), value)
  }
}

/** The sequence numbers of the events that match, ascending; `events` in the order of the chain. */
export const matching = (events: ReadonlyArray<Json>, expression: Expression): Array<number> =>
  events.flatMap((event, index) =>
    expression.every(([name, value]) => satisfies(event, index + 1, name, value)) ? [index + 1] : []
  )
