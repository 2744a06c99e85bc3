/** Reads of many events take turns, so that those of one tenant don't make the others wait. */
import { tenantTurns } from "../messages/TenantSlots.ts"

/** Pages, statistics and facets of a tenant that the store works on at once, per process. */
const READS_AT_ONCE_MAX = 4

export const inReadTurn = tenantTurns(READS_AT_ONCE_MAX)
