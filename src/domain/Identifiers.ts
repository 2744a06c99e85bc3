/**
 * Everything that names something: ids made here, ids that clients choose, receipt ids that any
 * process recognises, API keys. Knows the forms only, never what an id belongs to.
 */
import { createHmac, hash, randomBytes, randomFillSync, timingSafeEqual } from "node:crypto"
import { CLIENT_ID_FORM, PARTY_ID_FORM } from "./IdForms.ts"

/** The tenant whose chain holds the acts on the service itself; no client can have this id. */
export const SYSTEM_TENANT = "_system"
/** Owner of the probes' receipts. No tenant can have this name, and no event is ever appended. */
export const PROBE_TENANT = "_probe"

const TENANT_ID_FORM = /^[a-z0-9][a-z0-9_-]{0,62}$/
const RECEIPT_ID_FORM = /^rcp_[0-9a-f]{52}$/
const API_KEY_FORM = /^(?:alk|svc)_live_[0-9A-Za-z]{32,128}$/

/** Random bytes fetched at once: asking for 16 each time costs more than using them. */
const POOL_BYTES = 8_192
const RANDOM_BYTES = 16

const pool = Buffer.alloc(POOL_BYTES)
let hexPool = ""
let hexPosition = 0

/** 16 random bytes as 32 hex digits. */
export const randomHex = (): string => {
  if (hexPosition === hexPool.length) {
    hexPool = randomFillSync(pool).toString("hex")
    hexPosition = 0
  }
  hexPosition += 2 * RANDOM_BYTES
  return hexPool.slice(hexPosition - 2 * RANDOM_BYTES, hexPosition)
}

const VARIANTS = "89ab"

/** 32 hex digits as a UUID of the given version, variant of RFC 9562. */
const toUuid = (hex: string, version: "7" | "8"): string => {
  const variant = VARIANTS[Number.parseInt(hex[16]!, 16) & 3]!
  return (
    `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${version}${hex.slice(13, 16)}`
    + `-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
  )
}

/** A new UUIDv7 (RFC 9562): milliseconds of the wall clock, then random bits. */
export const uuidv7 = (): string =>
  toUuid(Date.now().toString(16).padStart(12, "0") + randomHex().slice(12), "7")

/** What is hashed for a derived UUID: each part's length in UTF-8 bytes, a colon and the part. */
export const derivedText = (...parts: ReadonlyArray<string>): string =>
  parts.map((part) => `${Buffer.byteLength(part)}:${part}`).join("")

/** The UUIDv8 (RFC 9562) that always belongs to these parts: the first bits of a SHA-256. */
export const derivedUuid = (...parts: ReadonlyArray<string>): string =>
  toUuid(sha256Hex(derivedText(...parts)), "8")

/** 64 hex digits: SHA-256 of the text in UTF-8. */
export const sha256Hex = (text: string | Buffer): string => hash("sha256", text, "hex")

/** True for 1 to ID_LENGTH_MAX whole Unicode characters without C0, DEL and C1 controls. */
export const isClientId = (text: string): boolean => CLIENT_ID_FORM.test(text)

/** The same for 1 to PARTY_ID_LENGTH_MAX of them. */
export const isPartyId = (text: string): boolean => PARTY_ID_FORM.test(text)

/** True for the ids that tenants may have; SYSTEM_TENANT is not one of them. */
export const isTenantId = (text: string): boolean => TENANT_ID_FORM.test(text)

/** Hex digits of the MAC in a receipt id. */
const RECEIPT_MAC_LENGTH = 20

/** `rcp_`, the UUID's 32 hex digits, then 20 of an HMAC-SHA256 over tenant and UUID. */
export const makeReceiptId = (secret: string, tenantId: string, uuid: string): string => {
  const id = uuid.replaceAll("-", "")
  const mac = createHmac("sha256", secret).update(`alk-receipt\n${tenantId}\n${id}`).digest("hex")
  return `rcp_${id}${mac.slice(0, RECEIPT_MAC_LENGTH)}`
}

/** True if a process with this secret made the receipt id for this tenant. Constant time. */
export const verifyReceiptId = (secret: string, tenantId: string, receiptId: string): boolean => {
  if (!RECEIPT_ID_FORM.test(receiptId)) return false
  const expected = makeReceiptId(secret, tenantId, receiptId.slice(4, 36))
  return timingSafeEqual(Buffer.from(receiptId), Buffer.from(expected))
}

export type ApiKeyPrefix = "alk_live_" | "svc_live_"

const BASE_62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const KEY_BYTES = 32
/** The digits that 256 bits need in base 62. */
const KEY_LENGTH = 43

const randomDigits = (): string => {
  let rest = BigInt(`0x${randomBytes(KEY_BYTES).toString("hex")}`)
  let digits = ""
  for (let count = 0; count < KEY_LENGTH; count++) {
    digits = BASE_62[Number(rest % 62n)]! + digits
    rest /= 62n
  }
  return digits
}

/** A new API key: the prefix and 256 random bits. */
export const newApiKey = (prefix: ApiKeyPrefix): string => prefix + randomDigits()

/** A new token of a share link: `shr_` and 256 random bits. */
export const newShareToken = (): string => `shr_${randomDigits()}`

/** A new token of a session: 256 random bits. */
export const newSessionToken = (): string => randomDigits()

/** True for either prefix and 32 to 128 base62 characters. */
export const isApiKeyForm = (text: string): boolean => API_KEY_FORM.test(text)
