/**
 * How long the records of tenants are kept, as an administrator sets it: retention, legal holds and
 * the deletion of a tenant. Every act is in the log of the system tenant. What removes records is
 * elsewhere.
 */
import { Context, Effect, Layer } from "effect"
import { AdminRefused, Keys } from "../../actors/follower/Keys.ts"
import { RegistryView } from "../../actors/follower/LogFollower.ts"
import type { PrunedPoint } from "../../domain/chain/PrunedPoint.ts"
import { defined } from "../../domain/Defined.ts"
import { DATA_VERSION, DATA_VERSION_ID } from "../../domain/registry/RegistryEntry.ts"
import { deletedText } from "../../domain/registry/Retention.ts"
import type {
  Retention,
  RetentionOperation,
  Tombstone
} from "../../domain/registry/RetentionEntry.ts"
import { currentTime } from "../../domain/Timestamp.ts"
import { dataVersionOf } from "../administration/DataVersions.ts"
import { type SystemActFailure, SystemAuditLog } from "../administration/SystemAuditLog.ts"

/** What is known of a tenant's retention. */
export interface RetentionState {
  readonly tenantId: string
  readonly retention: Retention | undefined
  /** Of the events, then of the traces. */
  readonly pruned: ReadonlyArray<PrunedPoint>
}

/** Who asks, and for which tenant. */
export interface RetentionRequest {
  readonly tenantId: string
  /** Id of the key; `admin` for the admin token. */
  readonly keyId: string
}

type Act<A> = Effect.Effect<A, SystemActFailure>

export class Retentions extends Context.Service<
  Retentions,
  {
    /** Fails with `not_found` for a tenant that there is not, `tenant_deleted` for a deleted one. */
    of(tenantId: string): Effect.Effect<RetentionState, AdminRefused>
    tombstone(tenantId: string): Effect.Effect<Tombstone | undefined>
    /** `days` undefined: its records are kept for ever. */
    keepFor(request: RetentionRequest, days: number | undefined): Act<RetentionState>
    hold(request: RetentionRequest, reason: string): Act<RetentionState>
    release(request: RetentionRequest, reason: string | undefined): Act<RetentionState>
    /** The first of two steps: nothing is removed yet. */
    requestDeletion(request: RetentionRequest, reason: string | undefined): Act<RetentionState>
    cancelDeletion(request: RetentionRequest): Act<RetentionState>
    /** The second: from now on the tenant is gone. */
    confirmDeletion(request: RetentionRequest): Act<Tombstone>
  }
>()("alk/Retentions") {}

/** An operation, and what the log says of it. */
interface RetentionAct {
  readonly operation: RetentionOperation
  readonly action: string
  readonly metadata?: Record<string, unknown>
}

const keeping = ({ tenantId }: RetentionRequest, days: number | undefined): RetentionAct => ({
  operation: {
    op: "set_retention",
    tenant_id: tenantId,
    ...defined({ days }),
    changed_at: currentTime()
  },
  action: "retention.set",
  metadata: { days: days ?? "for ever" }
})

const holding = ({ keyId, tenantId }: RetentionRequest, reason: string): RetentionAct => ({
  operation: {
    op: "hold",
    tenant_id: tenantId,
    hold: { reason, by: keyId, since: currentTime() }
  },
  action: "retention.held",
  metadata: { reason }
})

const releasing = ({ tenantId }: RetentionRequest, reason: string | undefined): RetentionAct => ({
  operation: { op: "release_hold", tenant_id: tenantId, changed_at: currentTime() },
  action: "retention.released",
  metadata: defined({ reason })
})

const requesting = (
  { keyId, tenantId }: RetentionRequest,
  reason: string | undefined
): RetentionAct => ({
  operation: {
    op: "request_deletion",
    tenant_id: tenantId,
    deletion: { by: keyId, requested_at: currentTime() }
  },
  action: "tenant.deletion_requested",
  metadata: defined({ reason })
})

const cancelling = ({ tenantId }: RetentionRequest): RetentionAct => ({
  operation: { op: "cancel_deletion", tenant_id: tenantId, changed_at: currentTime() },
  action: "tenant.deletion_cancelled"
})

/** What earlier programs would misread: chains without their beginning, tenants that are gone. */
const removing: ReadonlyArray<RetentionOperation["op"]> = ["set_retention", "request_deletion"]

const make = Effect.fnUntraced(function* (program: string) {
  const view = yield* RegistryView
  const auditLog = yield* SystemAuditLog
  const keys = yield* Keys

  const of: Retentions["Service"]["of"] = Effect.fnUntraced(function* (tenantId) {
    const registry = view.registry()
    const tombstone = registry.tombstone(tenantId)
    if (tombstone !== undefined) {
      return yield* new AdminRefused({
        code: "tenant_deleted",
        message: deletedText(tombstone)
      })
    }
    if (!(yield* keys.tenants).some(({ id }) => id === tenantId)) {
      return yield* new AdminRefused({ code: "not_found", message: "there is no such tenant" })
    }
    return {
      tenantId,
      retention: registry.retention(tenantId),
      pruned: [tenantId, `${tenantId}/traces`].flatMap((tree) => registry.pruned(tree) ?? [])
    }
  })

  /** Programs that know nothing of it don't start from now on. */
  const raiseDataVersion = Effect.fnUntraced(function* (keyId: string) {
    if ((view.registry().dataVersion()?.version ?? 0) >= DATA_VERSION) return
    yield* auditLog.record(
      { op: "note_data_version", data_version: dataVersionOf(program, DATA_VERSION) },
      {
        actor: keyId,
        action: "data.version_raised",
        resource: { type: "topics", id: DATA_VERSION_ID },
        metadata: { version: DATA_VERSION }
      }
    )
  })

  /** Logs and does an act on a tenant that there is. */
  const act = Effect.fnUntraced(function* (
    { keyId, tenantId }: RetentionRequest,
    { action, metadata = {}, operation }: RetentionAct
  ) {
    yield* of(tenantId)
    if (removing.includes(operation.op)) yield* raiseDataVersion(keyId)
    const resource = { type: "tenant", id: tenantId }
    yield* auditLog.record(operation, { actor: keyId, action, resource, metadata })
  })

  const stateAfter = (request: RetentionRequest, asked: () => RetentionAct) =>
    Effect.andThen(
      Effect.suspend(() => act(request, asked())),
      of(request.tenantId)
    )

  return Retentions.of({
    of,
    tombstone: (tenantId) => Effect.sync(() => view.registry().tombstone(tenantId)),
    keepFor: (request, days) => stateAfter(request, () => keeping(request, days)),
    hold: (request, reason) => stateAfter(request, () => holding(request, reason)),
    release: (request, reason) => stateAfter(request, () => releasing(request, reason)),
    requestDeletion: (request, reason) => stateAfter(request, () => requesting(request, reason)),
    cancelDeletion: (request) => stateAfter(request, () => cancelling(request)),
    confirmDeletion: (request) =>
      Effect.suspend(() => {
        const { keyId, tenantId } = request
        const tombstone = { tenant_id: tenantId, deleted_at: currentTime(), deleted_by: keyId }
        const operation = { op: "delete_tenant", tombstone } as const
        return Effect.as(act(request, { operation, action: "tenant.deleted" }), tombstone)
      })
  })
})

/** By the registry; `program` is the version of alk. */
export const layerRetentions = (
  program: string
): Layer.Layer<Retentions, never, Keys | RegistryView | SystemAuditLog> =>
  Layer.effect(Retentions, make(program))
