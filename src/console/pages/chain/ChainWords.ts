/** What the two chains and their records are called. Pure. */
import type { ChainName } from "../../state/VerificationRequest.ts"

/** `audit events` or `trace facts`. */
export const recordsOf = (chain: ChainName): string =>
  chain === "events" ? "audit events" : "trace facts"

/** One record: `event` or `trace fact`. */
export const recordOf = (chain: ChainName): string => (chain === "events" ? "event" : "trace fact")

/** Parameter of routes that are about one chain. */
export const chainParameter = (chain: ChainName): string => `chain=${chain}`
