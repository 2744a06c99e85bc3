/**
 * What alk needs from the query store to remove records for good: those of the beginning of a chain,
 * and everything of a tenant. Decides nothing: what goes was decided and logged before.
 */
import { Context } from "effect"
import type { ChainKey } from "../domain/chain/Chains.ts"
import type { StoreResult } from "./EventStore.ts"

export class StoreRemoval extends Context.Service<
  StoreRemoval,
  {
    /**
     * The last sequence before the first record that was recorded at this time (canonical form) or
     * later; 0 if there is none before it.
     */
    recordedBefore(key: ChainKey, time: string): StoreResult<number>
    /**
     * Removes the records of a chain up to a sequence, and what was set aside of them. No answer
     * shows one of them when this returns.
     */
    prune(key: ChainKey, size: number): StoreResult<void>
    /** Removes everything of a tenant but its signed checkpoints. */
    forget(tenantId: string): StoreResult<void>
    /** Rows of a tenant that `forget` would remove. */
    left(tenantId: string): StoreResult<number>
  }
>()("alk/StoreRemoval") {}
