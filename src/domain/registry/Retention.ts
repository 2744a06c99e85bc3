/**
 * What may be done to the retention of a tenant: the decisions of the single writer of the registry.
 * A hold wins over everything that removes, because both are decided in one order.
 */
import { type PrunedPoint, treeOfPoint } from "../chain/PrunedPoint.ts"
import { type RegistryDecision, refused } from "./Decision.ts"
import {
  type ApiKey,
  type KeyUse,
  type RegistryChange,
  registryKey,
  type Session,
  type ShareLink,
  type Tenant
} from "./RegistryEntry.ts"
import type { Retention, RetentionOperation, Tombstone } from "./RetentionEntry.ts"

/** What these decisions read. */
export interface RetentionReader {
  tenant(id: string): Tenant | undefined
  keyUse(keyId: string): KeyUse | undefined
  keysOf(tenantId: string): Iterable<ApiKey>
  linksOf(tenantId: string): Iterable<ShareLink>
  sessionsOf(tenantId: string): Iterable<Session>
  retention(tenantId: string): Retention | undefined
  /** By the name of the tree. */
  pruned(tree: string): PrunedPoint | undefined
  tombstone(tenantId: string): Tombstone | undefined
}

const granted = (...entries: ReadonlyArray<RegistryChange>): RegistryDecision => ({
  granted: true,
  entries
})

const put = (retention: Retention): RegistryDecision => granted({ kind: "retention", retention })

/** Why nothing of a tenant may be removed, or undefined. */
export const holdRefusal = (
  registry: Pick<RetentionReader, "retention">,
  tenantId: string
): string | undefined => {
  const hold = registry.retention(tenantId)?.hold
  return hold && `tenant ${tenantId} is under a legal hold: ${hold.reason}`
}

/** What is said of a tenant that was deleted. */
export const deletedText = ({ tenant_id }: Tombstone): string =>
  `tenant ${tenant_id} was deleted for good`

const decidePrune = (registry: RetentionReader, pruned: PrunedPoint): RegistryDecision => {
  const held = holdRefusal(registry, pruned.tenant_id)
  if (held !== undefined) return refused("legal_hold", held)
  if (registry.retention(pruned.tenant_id)?.days === undefined) {
    return refused("not_found", `the records of tenant ${pruned.tenant_id} are kept for ever`)
  }
  const known = registry.pruned(treeOfPoint(pruned))
  return known !== undefined && known.size >= pruned.size
    ? refused("id_conflict", `it is pruned up to ${known.size} already`)
    : granted({ kind: "pruned", pruned })
}

const decideRemoved = (registry: RetentionReader, pruned: PrunedPoint): RegistryDecision => {
  const known = registry.pruned(treeOfPoint(pruned))
  return known?.size !== pruned.size || known.removed_at !== undefined
    ? refused("id_conflict", `${treeOfPoint(pruned)} is not pruned up to ${pruned.size} just now`)
    : granted({ kind: "pruned", pruned })
}

const removed = (key: string): RegistryChange => ({ kind: "removed", key })

/** Everything that the registry knows of a tenant goes, but what is left of it. */
const leavingWith = (
  registry: RetentionReader,
  tenantId: string
): ReadonlyArray<RegistryChange> => [
  ...[...registry.keysOf(tenantId)].flatMap((key) => [
    removed(registryKey({ kind: "key", key })),
    ...(registry.keyUse(key.id) === undefined ? [] : [removed(`key_use/${key.id}`)])
  ]),
  ...[...registry.linksOf(tenantId)].map((link) => removed(registryKey({ kind: "link", link }))),
  ...[...registry.sessionsOf(tenantId)].map((session) =>
    removed(registryKey({ kind: "session", session }))
  ),
  ...[tenantId, `${tenantId}/traces`]
    .filter((tree) => registry.pruned(tree) !== undefined)
    .map((tree) => removed(`pruned/${tree}`)),
  ...(registry.tenant(tenantId) === undefined ? [] : [removed(`tenant/${tenantId}`)]),
  removed(`retention/${tenantId}`)
]

const decideDeletion = (registry: RetentionReader, tombstone: Tombstone): RegistryDecision => {
  const { tenant_id } = tombstone
  const held = holdRefusal(registry, tenant_id)
  if (held !== undefined) return refused("legal_hold", held)
  return registry.retention(tenant_id)?.deletion === undefined
    ? refused("not_found", `nobody has asked for tenant ${tenant_id} to be deleted`)
    : granted({ kind: "tombstone", tombstone }, ...leavingWith(registry, tenant_id))
}

const decideCompletion = (registry: RetentionReader, tombstone: Tombstone): RegistryDecision => {
  const known = registry.tombstone(tombstone.tenant_id)
  return known === undefined || known.removed_at !== undefined
    ? refused("id_conflict", `tenant ${tombstone.tenant_id} is not being deleted`)
    : granted({ kind: "tombstone", tombstone })
}

const tenantOf = (operation: RetentionOperation): string => {
  switch (operation.op) {
    case "prune":
    case "note_removed":
      return operation.pruned.tenant_id
    case "delete_tenant":
    case "complete_tombstone":
      return operation.tombstone.tenant_id
    default:
      return operation.tenant_id
  }
}

/** What an operation changes, or why it is refused. */
export const decideRetention = (
  registry: RetentionReader,
  operation: RetentionOperation
): RegistryDecision => {
  const tenantId = tenantOf(operation)
  if (operation.op === "complete_tombstone") return decideCompletion(registry, operation.tombstone)
  const tombstone = registry.tombstone(tenantId)
  if (tombstone !== undefined) return refused("tenant_deleted", deletedText(tombstone))
  const known = registry.retention(tenantId)
  switch (operation.op) {
    case "set_retention": {
      const { changed_at, days } = operation
      const { days: _before, ...rest } = known ?? { tenant_id: tenantId }
      return put({ ...rest, ...(days === undefined ? {} : { days }), changed_at })
    }
    case "hold": {
      const { hold } = operation
      const held = holdRefusal(registry, tenantId)
      return held !== undefined
        ? refused("id_conflict", held)
        : put({ ...known, tenant_id: tenantId, hold, changed_at: hold.since })
    }
    case "release_hold": {
      if (known?.hold === undefined) {
        return refused("not_found", `tenant ${tenantId} is under no legal hold`)
      }
      const { hold: _hold, ...rest } = known
      return put({ ...rest, changed_at: operation.changed_at })
    }
    case "prune":
      return decidePrune(registry, operation.pruned)
    case "note_removed":
      return decideRemoved(registry, operation.pruned)
    case "request_deletion": {
      const held = holdRefusal(registry, tenantId)
      if (held !== undefined) return refused("legal_hold", held)
      const { deletion } = operation
      return put({
        ...known,
        tenant_id: tenantId,
        deletion,
        changed_at: deletion.requested_at
      })
    }
    case "cancel_deletion": {
      if (known?.deletion === undefined) {
        return refused("not_found", `nobody has asked for tenant ${tenantId} to be deleted`)
      }
      const { deletion: _deletion, ...rest } = known
      return put({ ...rest, changed_at: operation.changed_at })
    }
    case "delete_tenant":
      return decideDeletion(registry, operation.tombstone)
  }
}
