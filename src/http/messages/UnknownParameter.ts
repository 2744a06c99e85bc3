/**
 * What is said of a query parameter that a route doesn't know: the name that was probably meant, or
 * those that there are.
 */
import { nearestName } from "../../domain/NearestName.ts"

/** Names that other APIs give to what ours call otherwise; the first one that a route has. */
const otherNames: Readonly<Record<string, ReadonlyArray<string>>> = {
  actor: ["actor_id"],
  user: ["actor_id"],
  user_id: ["actor_id"],
  agent: ["agent_id", "actor_id"],
  resource: ["resource_id"],
  object: ["resource_id"],
  type: ["resource_type", "actor_type"],
  event: ["action"],
  event_type: ["action"],
  status: ["outcome"],
  result: ["outcome"],
  since: ["from"],
  start: ["from"],
  start_time: ["from"],
  until: ["to"],
  end: ["to"],
  end_time: ["to"],
  limit: ["page_size"],
  per_page: ["page_size"],
  size: ["page_size", "limit"],
  page_size: ["limit"],
  offset: ["page"],
  page_number: ["page"],
  cursor: ["after_sequence", "before_size"],
  after: ["after_sequence"],
  last_event_id: ["after_sequence"],
  before: ["before_sequence", "before_size"],
  sort: ["order"],
  sort_by: ["order"],
  order_by: ["order"],
  direction: ["order"],
  group: ["group_by"],
  query: ["q"],
  search: ["q"],
  text: ["q"]
}

/** Names that a message lists at most. */
const LISTED_MAX = 26

/** The end of the sentence "<name>: is not a parameter of this route". */
export const whatWasMeant = (name: string, known: ReadonlyArray<string>): string => {
  const other = Object.hasOwn(otherNames, name) ? otherNames[name]! : []
  const meant = other.find((candidate) => known.includes(candidate)) ?? nearestName(name, known)
  if (meant !== undefined) return `did you mean ${meant}?`
  return known.length === 0
    ? "it takes none"
    : `it takes ${known.slice(0, LISTED_MAX).join(", ")}${known.length > LISTED_MAX ? ", …" : ""}`
}
