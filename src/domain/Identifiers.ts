/** Interim. */
import { hash as digest, randomBytes, randomUUID } from "node:crypto"
export const SYSTEM_TENANT = "_system"
export const sha256Hex = (text: string): string => digest("sha256", text, "hex")
export const uuidv7 = (): string => randomUUID()
export const makeReceiptId = (_s: string, _t: string, u: string): string => "rcp_" + u
export const newApiKey = (p: string): string => p + randomBytes(32).toString("hex").slice(0, 43)
