/** The queries that were asked last in this browser, of each tenant its own. */
import { keptList } from "./KeptList.ts"
import { signedIn } from "./Session.ts"

interface Search {
  readonly tenant: string
  readonly where: string
}

const SEARCHES_MAX = 50
/** Characters of a query that is worth keeping. */
const LENGTH_MAX = 500

const isSearch = (one: unknown): one is Search =>
  typeof (one as Search | null)?.tenant === "string" && typeof (one as Search).where === "string"

const searches = keptList("alk.searches", isSearch, SEARCHES_MAX)

const tenantNow = (): string | undefined => {
  const now = signedIn.peek()
  return now.is === "in" ? now.session.tenant_id : undefined
}

/** The newest first. */
export const lastSearches = (): ReadonlyArray<string> => {
  const tenant = tenantNow()
  const own = searches.items.peek().filter((one) => one.tenant === tenant)
  return own.map(({ where }) => where).toReversed()
}

export const noteSearch = (where: string): void => {
  const tenant = tenantNow()
  if (tenant === undefined || where === "" || where.length > LENGTH_MAX) return
  const others = searches.items.peek().filter((one) => one.tenant !== tenant || one.where !== where)
  searches.keep([...others, { tenant, where }])
}
