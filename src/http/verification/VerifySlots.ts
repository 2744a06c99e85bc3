/** How many verifications a tenant may have under way at once, of events, traces or what was kept. */
import { tenantSlots } from "../messages/TenantSlots.ts"

/** Verifications of a tenant at once, in each process with an API, so that others get their turn. */
export const VERIFICATIONS_AT_ONCE_MAX = 2

/** Takes the place of one verification of a tenant. */
export const takeVerification = tenantSlots("verifications", VERIFICATIONS_AT_ONCE_MAX)

/** What routes say of it. */
export const atOnceNote = `${VERIFICATIONS_AT_ONCE_MAX} of a tenant at a time, else 429.`
