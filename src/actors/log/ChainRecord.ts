/** A record of `alk.events` or `alk.traces` as a link of its chain. */

import { type ChainLink, linkOf } from "../../domain/chain/ChainLink.ts"
import type { Chain, Head } from "../../domain/chain/Chains.ts"
import type { LogRecord } from "../../ports/EventLog.ts"

/** Undefined for what is not a link of the tenant that the record's key names. */
export const linkOfRecord = (
  chain: Chain,
  { key, value }: Pick<LogRecord, "key" | "value">
): ChainLink | undefined => {
  const link = value === null ? undefined : linkOf(value, chain)
  return link !== undefined && link.tenantId === key?.toString() ? link : undefined
}

/** The chain's head once it ends with this link. */
export const headOfLink = ({ createdAt, hash, sequenceNumber }: ChainLink): Head => ({
  sequence_number: sequenceNumber,
  hash,
  created_at: createdAt
})
