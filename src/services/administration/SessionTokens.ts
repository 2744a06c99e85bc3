/**
 * The texts that sign in: the token of a session, which says when it was last used, and the code
 * that makes a session once. Both carry a MAC under a key derived from `ALK_SECRET`, so every
 * process reads them without a request to another one.
 */
import { createHmac, timingSafeEqual } from "node:crypto"
import { Redacted } from "effect"
import { randomHex } from "../../domain/Identifiers.ts"

const TOKEN = /^(ses_[0-9a-f]{32})\.([0-9A-Za-z]{43})\.([0-9]{1,12})\.([0-9a-f]{64})$/
const CODE = /^([0-9a-f]{32})\.([A-Za-z0-9_-]{1,128})\.([0-9]{1,12})\.([0-9a-f]{64})$/

const secondsNow = (): number => Math.floor(Date.now() / 1_000)

/** MACs of texts for one purpose. */
const macsOf = (secret: Redacted.Redacted, purpose: string) => {
  const key = createHmac("sha256", Redacted.value(secret)).update(`alk-${purpose}`).digest()
  const mac = (...parts: ReadonlyArray<string>): Buffer =>
    createHmac("sha256", key).update(parts.join("\n")).digest()
  return {
    of: (...parts: ReadonlyArray<string>): string => mac(...parts).toString("hex"),
    isOf: (hex: string, ...parts: ReadonlyArray<string>): boolean =>
      timingSafeEqual(Buffer.from(hex, "hex"), mac(...parts))
  }
}

export interface TokenParts {
  readonly id: string
  /** What only the browser knows. */
  readonly own: string
  /** Seconds since the token says that it was used. */
  readonly unused: number
}

export interface CodeParts {
  readonly id: string
  readonly keyId: string
}

const idOf = (nonce: string): string => `ses_${nonce}`

export const newSessionId = (): string => idOf(randomHex())

export const sessionTokens = (secret: Redacted.Redacted) => {
  const uses = macsOf(secret, "session-use")
  const codes = macsOf(secret, "session-code")
  return {
    /** A token that was used now. */
    token: (id: string, own: string): string => {
      const used = String(secondsNow())
      return `${id}.${own}.${used}.${uses.of(id, used)}`
    },
    /** Undefined: it was not made here. */
    readToken: (text: string): TokenParts | undefined => {
      const [, id = "", own = "", used = "", mac = ""] = TOKEN.exec(text) ?? []
      if (mac === "" || !uses.isOf(mac, id, used)) return undefined
      return { id, own, unused: secondsNow() - Number(used) }
    },
    /** A code for a session with this key, valid for `seconds`. */
    code: (keyId: string, seconds: number): string => {
      const parts = [randomHex(), keyId, String(secondsNow() + seconds)] as const
      return `${parts.join(".")}.${codes.of(...parts)}`
    },
    /** The only session that the code may become. Undefined: not made here, or expired. */
    readCode: (text: string): CodeParts | undefined => {
      const [, nonce = "", keyId = "", until = "", mac = ""] = CODE.exec(text) ?? []
      if (mac === "" || !codes.isOf(mac, nonce, keyId, until)) return undefined
      return Number(until) <= secondsNow() ? undefined : { id: idOf(nonce), keyId }
    }
  }
}
