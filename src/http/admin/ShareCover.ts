/** What a share link covers, as its maker and its bearer see it. */
import { defined } from "../../domain/Defined.ts"
import type { ShareLink } from "../../domain/registry/RegistryEntry.ts"
import { shownScope } from "../events/ScopeReader.ts"

/** Scope, end and uses of a link. */
export const coverOf = ({ created_at, expires_at, filter, label, max_uses, uses }: ShareLink) => ({
  ...defined({ label }),
  ...shownScope(filter),
  created_at,
  expires_at,
  ...defined({ max_uses }),
  uses
})

/** True for a link that covers whatever is in its period: conditions select events only. */
export const coversTraces = (link: ShareLink): boolean =>
  Object.keys(coverOf(link).filters).length === 0
