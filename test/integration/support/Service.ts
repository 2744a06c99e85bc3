/**
 * Sequencer, projection and follower together, on topics and a database of a test's own, and the
 * registry commands that are given to them.
 */
import { assert } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { layerLogFollower, RegistryView } from "../../../src/actors/follower/LogFollower.ts"
import { Receipts } from "../../../src/actors/follower/Receipts.ts"
import { runProjection } from "../../../src/actors/projection/Projection.ts"
import { runSequencer } from "../../../src/actors/sequencer/Sequencer.ts"
import { SYSTEM_TENANT } from "../../../src/domain/Identifiers.ts"
import type { Command } from "../../../src/domain/records/Command.ts"
import type { ApiKey, RegistryOperation } from "../../../src/domain/registry/RegistryEntry.ts"
import { commandRecord, ingestCommand } from "../../support/Events.ts"
import { eventually } from "../../support/Eventually.ts"
import { append } from "../../support/Log.ts"
import { checkpointSigner } from "../../support/Signer.ts"
import { TENANT } from "./Evidence.ts"

export const settings = { ...checkpointSigner, windows: { dedup: 100, idempotency: 100 } }

/** Sequencer, projection and follower for as long as the scope is open. */
export const running = Effect.gen(function* () {
  yield* Effect.forkScoped(runSequencer(0, settings, () => Effect.void))
  yield* runProjection({ settleMs: 0 })
  const following = yield* Layer.build(Layer.fresh(layerLogFollower))
  return {
    view: Context.get(following, RegistryView),
    receipts: Context.get(following, Receipts)
  }
})

export type Service = Effect.Success<typeof running>

export const apiKey = (id: string): ApiKey => ({
  id,
  tenant_id: TENANT,
  scopes: ["read"],
  hint: "alk_live_abcd…",
  hash: Buffer.from(id).toString("hex").padEnd(64, "0"),
  created_at: "2026-11-21T00:00:00.000000Z"
})

export const registryCommand = (operation: RegistryOperation): Command => ({
  ...ingestCommand(SYSTEM_TENANT, 1),
  kind: "registry",
  operation
})

/** What became of a command; a view that is not shown yet is asked again. */
export const finalState = (service: Service, tenantId: string, receiptId: string) =>
  eventually(
    `the receipt ${receiptId} is decided`,
    service.receipts
      .state(tenantId, receiptId)
      .pipe(Effect.catch((error) => Effect.succeed({ status: "refused" as const, error }))),
    ({ status }) => status !== "pending" && status !== "refused"
  )

/** A key is made and known; an event is written and listed; its receipt is final. */
export const assertWorks = Effect.fnUntraced(function* (service: Service, id: string) {
  const key = apiKey(id)
  const made = ingestCommand(TENANT, 1)
  const tenant = { id: TENANT, created_at: key.created_at }
  yield* append([
    commandRecord(registryCommand({ op: "create_key", key, tenant })),
    commandRecord(made)
  ])
  yield* eventually(
    `the key ${id} is known`,
    Effect.sync(() => [...service.view.registry().keys.keys()]),
    (ids) => ids.includes(id)
  )
  assert.deepStrictEqual(service.view.registry().keyOfHash(key.hash), key)
  const state = yield* finalState(service, TENANT, made.receiptId)
  assert(state.status === "committed")
  assert.strictEqual(state.receipt.receipt_id, made.receiptId)
})
