/**
 * The accuser: recomputes what is stored and says where it does not hold. Shares only the domain
 * with the writer and believes nothing but bytes and the head that the log tells.
 */
import { Context, type Effect } from "effect"
import type { LogUnavailable } from "../ports/EventLog.ts"
import type { StoreUnavailable } from "../ports/EventStore.ts"

export interface VerifyRequest {
  readonly tenantId: string
  /** Bounds by event time, canonical microsecond form, inclusive. */
  readonly from?: string
  readonly to?: string
  readonly fromSequence?: number
  readonly toSequence?: number
  /** Compare the end with the log's head when no upper bound is given. */
  readonly requireHead: boolean
}

export type BreakReason =
  | "content_mismatch"
  | "hash_mismatch"
  | "prev_hash_mismatch"
  | "sequence_gap"
  | "duplicate_sequence"
  | "tail_missing"
  | "checkpoint_mismatch"

export interface Break {
  readonly sequence_number: number
  readonly event_id: string | null
  readonly reason: BreakReason
  readonly expected: string
  readonly actual: string
}

/** The answer of every verification. */
export interface VerifyReport {
  readonly valid: boolean
  readonly status: "valid" | "broken" | "incomplete" | "empty"
  readonly tenant_id: string
  readonly scheme: "alk-chain-v1"
  readonly bounds: {
    readonly from: string
    readonly to: string
    readonly from_sequence: number | null
    readonly to_sequence: number | null
  }
  readonly events_checked: number
  readonly events_in_bounds: number
  readonly first_sequence_number: number | null
  readonly last_sequence_number: number | null
  readonly head: {
    readonly sequence_number: number
    readonly hash: string
    readonly created_at: string
  } | null
  readonly erased_events: number
  readonly assurance: "self_attested" | "signed" | "timestamped"
  readonly breaks: ReadonlyArray<Break>
  readonly breaks_total: number
  readonly verified_at: string
  readonly duration_ms: number
}

export class Verifier extends Context.Service<
  Verifier,
  {
    verify(
      request: VerifyRequest
    ): Effect.Effect<VerifyReport, StoreUnavailable | LogUnavailable>
  }
>()("alk/Verifier") {}
