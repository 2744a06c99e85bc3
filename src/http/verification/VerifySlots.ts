/** How many verifications a tenant may have under way at once, so that others get their turn. */
import { tenantSlots } from "../messages/TenantSlots.ts"

/** Of chains, and of what was kept, in each process with an API. */
export const VERIFICATIONS_AT_ONCE_MAX = 4
/** Of single executions, which are small. */
const EXECUTIONS_AT_ONCE_MAX = 16

/** Takes the place of one verification of a tenant. */
export const takeVerification = tenantSlots("verifications", VERIFICATIONS_AT_ONCE_MAX)
export const takeExecutionVerification = tenantSlots(
  "verifications of executions",
  EXECUTIONS_AT_ONCE_MAX
)

/** What routes say of it. */
const noteOf = (limit: number): string => `${limit} of a tenant at a time, else 429.`
export const atOnceNote = noteOf(VERIFICATIONS_AT_ONCE_MAX)
export const executionsAtOnceNote = noteOf(EXECUTIONS_AT_ONCE_MAX)
