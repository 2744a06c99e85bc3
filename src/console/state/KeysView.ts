/** What the page of keys shows, as its address says it, and how a key stands. Pure. */
import type { ApiKey } from "../../client/gen/Api.d.ts"

export const parts = ["keys", "log"] as const
export type Part = (typeof parts)[number]

export interface KeysView {
  /** Tenants with their keys, or the log of acts. */
  readonly part: Part
  /** Whose keys are shown. */
  readonly tenant: string | undefined
  readonly tenantsPage: number
  readonly keysPage: number
  /** Only acts of this kind. */
  readonly action: string | undefined
  readonly logPage: number
}

const readPage = (text: string | undefined): number =>
  text !== undefined && /^[1-9]\d{0,4}$/.test(text) ? Number(text) : 1

export const keysViewOf = (query: Readonly<Record<string, string>>): KeysView => ({
  part: query["show"] === "log" ? "log" : "keys",
  tenant: query["tenant"] || undefined,
  tenantsPage: readPage(query["tenants"]),
  keysPage: readPage(query["page"]),
  action: query["action"] || undefined,
  logPage: readPage(query["log"])
})

const pageText = (page: number): string => (page === 1 ? "" : String(page))

/** The address of a view. */
export const keysAddress = (view: KeysView): string => {
  const members = {
    show: view.part === "log" ? "log" : "",
    tenant: view.tenant ?? "",
    tenants: pageText(view.tenantsPage),
    page: pageText(view.keysPage),
    action: view.action ?? "",
    log: pageText(view.logPage)
  }
  const query = new URLSearchParams(Object.entries(members).filter(([, text]) => text !== ""))
  return query.size === 0 ? "/keys" : `/keys?${query}`
}

export type KeyState = "valid" | "expires soon" | "expired" | "revoked"

/** Milliseconds before its end in which a key is said to expire soon. */
const SOON_MS = 7 * 86_400_000

/** How a key stands at a time in milliseconds since 1970. */
export const keyStateOf = (
  { expires_at, revoked_at }: Pick<ApiKey, "expires_at" | "revoked_at">,
  now: number
): KeyState => {
  if (revoked_at !== undefined) return "revoked"
  if (expires_at === undefined) return "valid"
  const left = Date.parse(expires_at) - now
  return left <= 0 ? "expired" : left <= SOON_MS ? "expires soon" : "valid"
}

/** When a key may expire: never, after so many days, or at the end of a chosen day. */
export const expiries = ["never", "30", "90", "365", "date"] as const
export type Expiry = (typeof expiries)[number]

/** The member of a new key that says when it expires. `day` as a date field has it. */
export const expiryInput = (
  expiry: string,
  day: string
): { readonly expires_in?: number; readonly expires_at?: string } => {
  if (expiry === "never") return {}
  return expiry === "date"
    ? { expires_at: `${day}T23:59:59.999999Z` }
    : { expires_in: Number(expiry) * 86_400 }
}

/** Two lines for a terminal that try a new key. */
export const tryKeyText = (key: string, url: string): string =>
  `export ALK_API_KEY='${key}'\ncurl -H "Authorization: Bearer $ALK_API_KEY" '${url}/v1/me'`
