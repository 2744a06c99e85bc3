/** What records of `alk.registry` say, for who reads the topic beside the follower. */
import { Schema } from "effect"
import type { RegistryChange } from "../../domain/registry/RegistryEntry.ts"
import { readRegistryRecord } from "../../domain/registry/RegistryEntry.ts"
import type { LogRecord } from "../../ports/EventLog.ts"

/** Records are gone from the registry that count. */
export class RegistryIncomplete extends Schema.TaggedError<RegistryIncomplete>()(
  "RegistryIncomplete",
  { message: Schema.String }
) {
  static readonly text =
    "alk.registry is incomplete: records were deleted from its start, which may have revoked keys or "
    + "deleted tenants. Restore the topic from a backup, or accept what is left: "
    + "npm start -- repair registry --accept-loss"
}

export const REGISTRY = { topic: "registry", partition: 0 } as const

/** Undefined for what this service has not written, or what can't be read: the follower reports it. */
export const registryChangeIn = ({
  key,
  refused,
  value
}: LogRecord): RegistryChange | undefined => {
  if (refused !== undefined) return undefined
  try {
    return readRegistryRecord(key, value)
  } catch {
    return undefined
  }
}
