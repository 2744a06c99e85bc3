/** The record `applied` of `alk.state`, for tests below the sequencer. */
import { digestOfSum } from "../../src/domain/chain/HeadsDigest.ts"
import type { StoredProgress } from "../../src/domain/records/StateRecords.ts"

/** That of a partition in which nothing was applied, but for what is given. */
export const storedProgress = (own: Partial<StoredProgress> = {}): StoredProgress => ({
  command_offset: 0,
  events_next: 0,
  traces_next: 0,
  traces_forgotten: 0,
  heads_digest: digestOfSum(0n),
  writers_total: 0,
  strays_total: 0,
  dedup_first: 0,
  dedup_next: 0,
  idempotency_first: 0,
  idempotency_next: 0,
  received_up_to: 0,
  copies_up_to: 0,
  ...own
})
