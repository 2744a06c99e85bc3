/** The queries that were asked last in this browser. */
import { keptList } from "./KeptList.ts"

const SEARCHES_MAX = 20
/** Characters of a query that is worth keeping. */
const LENGTH_MAX = 500

const isSearch = (one: unknown): one is string => typeof one === "string" && one !== ""

const searches = keptList("alk.searches", isSearch, SEARCHES_MAX)

/** The newest first. */
export const lastSearches = (): ReadonlyArray<string> => searches.items.value.toReversed()

export const noteSearch = (where: string): void => {
  if (where === "" || where.length > LENGTH_MAX) return
  searches.keep([...searches.items.peek().filter((one) => one !== where), where])
}
