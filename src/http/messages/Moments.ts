/**
 * The target of a request with moments in place of times from now, for links: `from=-24h` means
 * another time on the next page. Knows names and texts, not what they ask for.
 */
import { readCondition } from "../../domain/events/ConditionText.ts"
import { decodedPair, type QueryTable } from "./QueryParameters.ts"

/** What a target is read by, and when. */
export interface ReadAt {
  readonly table: QueryTable
  /** In canonical microsecond form. */
  readonly now: string
}

const momentsOf = (
  known: QueryTable["conditions"] = {},
  name: string,
  text: string,
  now: string
): string =>
  (Object.hasOwn(known, name) ? known[name]!.withMoments?.(text, now) : undefined) ?? text

/** A pair as it was sent, unless a time from now is in it. */
const pairWithMoments = (pair: string, { now, table }: ReadAt): string => {
  const [name, text] = decodedPair(pair)
  if (name === undefined || text === undefined) return pair
  if (Object.hasOwn(table.parameters, name)) {
    const fixed = momentsOf(table.parameters, name, text, now)
    return fixed === text ? pair : `${name}=${encodeURIComponent(fixed)}`
  }
  const condition = readCondition(name, text)
  const fixed = momentsOf(table.conditions, condition.name, condition.values, now)
  if (fixed === condition.values) return pair
  // Without an `=`, the values are at the end of the name.
  const sign = text === "" ? name.slice(0, -condition.values.length) : `${name}=`
  return `${encodeURIComponent(sign).replace(/%3D$/, "=")}${encodeURIComponent(fixed)}`
}

/** A target whose query was read. */
export const targetWithMoments = (target: string, at: ReadAt): string => {
  const start = target.indexOf("?") + 1
  if (start === 0) return target
  const pairs = target.slice(start).split("&")
  return target.slice(0, start) + pairs.map((pair) => pairWithMoments(pair, at)).join("&")
}
