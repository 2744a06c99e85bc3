/**
 * The heads of all chains as the sequencers have written them to `alk.state`: quick, and good for
 * serving. What verification expects is the last record of the chain's own topic, see ChainEnds.
 */
import { Context, type Effect } from "effect"
import type { Chain, ChainKey, Head } from "../../domain/chain/Chains.ts"
import type { Losses, Own } from "../../domain/records/OwnOffsets.ts"
import type { LogRecord, LogUnavailable } from "../../ports/EventLog.ts"
import type { Decided } from "../log/OwnRecords.ts"

export class Heads extends Context.Service<
  Heads,
  {
    /**
     * The tenant's head, at least as new as everything committed before the call; undefined while
     * nothing was appended.
     */
    head(tenantId: string): Effect.Effect<Head | undefined, LogUnavailable>
    /** The same for the tenant's chain of trace facts. */
    traceHead(tenantId: string): Effect.Effect<Head | undefined, LogUnavailable>
    /**
     * Offset after the last record of the chain's topic that the heads known here include; 0 while
     * nothing is known.
     */
    written(chain: Chain, partition: number): Effect.Effect<number>
    /** Which records of the chains' topics a sequencer has written, as far as is known here. */
    own(partition: number): Effect.Effect<Own>
    /**
     * Of records that were read from the chain's topic, in order, those of which it is decided by
     * now whether a sequencer has written them; waits until that is decided of the first.
     */
    decided(
      chain: Chain,
      partition: number,
      records: ReadonlyArray<LogRecord>
    ): Effect.Effect<Decided>
    /** What of a partition's history is not proven, or is gone; undefined while that is not known. */
    losses(partition: number): Effect.Effect<Losses | undefined>
    /**
     * The tenant's head, as soon as the heads known here include all before this offset of the
     * chain's topic, and this one has come to this sequence number.
     */
    reached(key: ChainKey, offset: number, sequenceNumber: number): Effect.Effect<Head | undefined>
    /** The name of the tree of every chain, as far as this process has heard. */
    readonly trees: Effect.Effect<ReadonlyArray<string>>
  }
>()("alk/Heads") {}

/** The head of one chain. */
export const headOf = (heads: Heads["Service"], { chain, tenantId }: ChainKey) =>
  chain === "events" ? heads.head(tenantId) : heads.traceHead(tenantId)
