/**
 * One stored event as an example of the published contracts: the first of its chain, with details,
 * all hashes true. Made by the functions that make the real ones.
 */
import { Schema } from "effect"
import { GENESIS_HASH } from "../domain/chain/Chains.ts"
import { AuditEvent } from "../domain/events/AuditEvent.ts"
import {
  appendSuffix,
  bodyText,
  type CanonicalFields,
  contentHash,
  coreText,
  detailsHash,
  detailsText,
  linkHash
} from "../domain/events/HashChain.ts"
import { quote } from "../domain/json/CanonicalJson.ts"
import { parseJson } from "../domain/json/Json.ts"

const texts: CanonicalFields = {
  id: quote("evt-1"),
  timestamp: quote("2026-11-21T10:00:01.000001Z"),
  actorId: quote("user_1"),
  actorType: quote("human"),
  actorEmail: quote("ada@example.com"),
  action: quote("document.read"),
  resourceId: quote("doc_1"),
  resourceType: quote("document"),
  resourceName: quote("Annual report"),
  outcome: quote("success"),
  metadata: `{"ip":"192.0.2.1","pages":3}`
}

const detailsSalt = "000102030405060708090a0b0c0d0e0f"
const ownDetailsHash = detailsHash(detailsSalt, detailsText(texts) ?? "")

const link = {
  tenantId: "acme",
  sequenceNumber: 1,
  createdAt: "2026-11-21T10:00:01.204711Z",
  contentHash: contentHash(coreText(texts, ownDetailsHash)),
  prevHash: GENESIS_HASH
}

/** The value of the record, byte for byte. */
export const exampleValue: string =
  bodyText(texts)
  + appendSuffix({ ...link, hash: linkHash(link), detailsSalt, detailsHash: ownDetailsHash })

/** The same, read. */
export const exampleEvent: AuditEvent = Schema.decodeUnknownSync(AuditEvent)(
  parseJson(exampleValue)
)

/** What its headers are made from. */
export const exampleLink = link
