/** Interim. */
import { hash as digest } from "node:crypto"
export const SCHEME = "alk-chain-v1"
export const GENESIS_HASH = "0".repeat(64)
export const linkHash = (link: { readonly tenantId: string; readonly sequenceNumber: number; readonly createdAt: string; readonly contentHash: string; readonly prevHash: string }): string =>
  digest("sha256", `${SCHEME}\n${link.tenantId}\n${link.sequenceNumber}\n${link.createdAt}\n${link.contentHash}\n${link.prevHash}`, "hex")
export const appendSuffix = (s: { readonly tenantId: string; readonly sequenceNumber: number; readonly createdAt: string; readonly prevHash: string; readonly contentHash: string; readonly hash: string; readonly detailsSalt?: string; readonly detailsHash?: string }): string =>
  `,"tenant_id":${JSON.stringify(s.tenantId)},"sequence_number":${s.sequenceNumber},"created_at":"${s.createdAt}","prev_hash":"${s.prevHash}"` +
  (s.detailsSalt === undefined ? "" : `,"details_salt":"${s.detailsSalt}"`) + (s.detailsHash === undefined ? "" : `,"details_hash":"${s.detailsHash}"`) +
  `,"content_hash":"${s.contentHash}","hash":"${s.hash}"}`
export declare const recompute: (json: string) => { readonly detailsHash?: string; readonly contentHash: string; readonly hash: string }
