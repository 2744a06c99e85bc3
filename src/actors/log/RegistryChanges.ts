/** What records of `alk.registry` say, for who reads the topic beside the follower. */
import type { RegistryChange } from "../../domain/registry/RegistryEntry.ts"
import { readRegistryRecord } from "../../domain/registry/RegistryEntry.ts"
import type { LogRecord } from "../../ports/EventLog.ts"

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
