/** What the single writer of the registry says of an operation. */
import type { RegistryChange } from "./RegistryEntry.ts"

/** Why an operation is refused. */
export type RefusalCode =
  | "id_conflict"
  | "not_found"
  | "limit_reached"
  | "legal_hold"
  | "tenant_deleted"

export type RegistryDecision =
  | { readonly granted: true; readonly entries: ReadonlyArray<RegistryChange> }
  | { readonly granted: false; readonly code: RefusalCode; readonly message: string }

export const refused = (code: RefusalCode, message: string): RegistryDecision => ({
  granted: false,
  code,
  message
})
