/**
 * What became of requests: the sequencer's decisions as they arrive on `alk.receipts`, and the
 * final receipts in the store. Answers here are never taken back: what was final once stays final.
 */
import { Context, type Effect } from "effect"
import type { Receipt } from "../../domain/records/Receipt.ts"
import type { LogUnavailable } from "../../ports/EventLog.ts"
import type { StoreUnavailable } from "../../ports/EventStore.ts"

/** What the sequencer decided on one attempt. */
export type Decision =
  | { readonly kind: "outcome"; readonly receipt: Receipt; readonly receiptOffset: number }
  /** The key was used before with the same body: the first outcome counts. */
  | {
      readonly kind: "repeat"
      readonly receiptId: string
      /** Whether the first request waited for its commit; undefined if not known. */
      readonly waited: boolean | undefined
    }
  /** The key was used before with another body. */
  | { readonly kind: "mismatch" }

export type ReceiptState =
  | { readonly status: "pending" }
  | { readonly status: "committed" | "failed"; readonly receipt: Receipt }

export class Receipts extends Context.Service<
  Receipts,
  {
    /**
     * Register for the decision on an attempt before its command is written. The effect that comes
     * back completes when the decision arrives; it never times out by itself.
     */
    expect(attempt: string): Effect.Effect<Effect.Effect<Decision>>
    /** Where a receipt is now, the same on every process. The id's MAC was checked before. */
    state(
      tenantId: string,
      receiptId: string
    ): Effect.Effect<ReceiptState, StoreUnavailable | LogUnavailable>
    /** Succeeds once the receipt's events are visible to every list. */
    visible(receipt: Receipt): Effect.Effect<void>
  }
>()("alk/Receipts") {}
