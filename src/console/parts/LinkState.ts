/** How a share link stands at a time. Pure; the service decides. */
import type { ShareLink } from "../../client/gen/Api.d.ts"

export type LinkState = "usable" | "expired" | "revoked" | "used up"

/** When a link ended, or will; undefined for one that ended with its key. */
export const endOf = (link: ShareLink, state: LinkState): string | undefined => {
  if (state === "revoked") return link.revoked_at
  return (state === "used up" ? link.last_used_at : undefined) ?? link.expires_at
}

export const linkStateOf = (link: ShareLink, now: number): LinkState => {
  if (link.revoked_at !== undefined || link.ended === "revoked") return "revoked"
  if (Date.parse(link.expires_at) <= now) return "expired"
  return link.max_uses !== undefined && link.uses >= link.max_uses ? "used up" : "usable"
}
