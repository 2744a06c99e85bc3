/** Public keys in texts of any kind, and the line of keys that a pack and its reader make. */

import { bytesOfBase64, hexOf } from "../../domain/Bytes.ts"
import {
  type CheckedKey,
  type Endorsement,
  endorsementIn,
  type LineInput,
  standingsOf
} from "../../domain/chain/KeyStandings.ts"
import { type NamedKey, NOT_IN_NOTES } from "../../domain/chain/NoteText.ts"
import { isObject } from "../../domain/json/Json.ts"
import { parseTimestamp } from "../../domain/Timestamp.ts"
import { jsonOf } from "./Lines.ts"
import {
  type BareKey,
  type Host,
  keyOfVkey,
  NOTE_LENGTH_MAX,
  noteOf,
  signatureState
} from "./Notes.ts"

const KEYS_MAX = 256
/** What the 32 bytes of a key have before them in PEM. */
export const SPKI_PREFIX = "302a300506032b6570032100"

/** A key that a reader has from elsewhere, and what else that says of it. */
export type GivenKey = (BareKey | NamedKey) & {
  /** The statement of the key before it. */
  readonly endorsement?: string
  readonly retiredAt?: string
}

/** Undefined if it is no `x` of a JWK for Ed25519. */
export const rawOfJwk = (x: unknown): Uint8Array | undefined =>
  typeof x === "string" && /^[A-Za-z0-9_-]{43}$/.test(x)
    ? bytesOfBase64(`${x.replaceAll("-", "+").replaceAll("_", "/")}=`)
    : undefined

/**
 * The keys in a text, at most KEYS_MAX, each once: C2SP keys, JWKs, a PEM, or 32 bytes in base64.
 * Bare keys have no name.
 */
export const bareKeysOfText = (text: string): ReadonlyArray<BareKey | NamedKey> => {
  if (text.length > NOTE_LENGTH_MAX) return []
  const named = [...new Set(text.split(/[ \t\r\n",]+/u))]
    .map(keyOfVkey)
    .filter((key) => key !== undefined)
    .slice(0, KEYS_MAX)
  if (named.length > 0) return named
  const trimmed = text.replace(/^[ \t\r\n]+/, "")
  const raws: Array<Uint8Array | undefined> = []
  if (trimmed.startsWith("{")) {
    for (const [, x] of trimmed.matchAll(/"x"[ \t\r\n]*:[ \t\r\n]*"([A-Za-z0-9_-]{43})"/g)) {
      raws.push(rawOfJwk(x))
    }
  } else {
    const body = bytesOfBase64(trimmed.replace(/-----[^-]+-----/g, "").replace(/[ \t\r\n]+/g, ""))
    if (body?.length === 32) raws.push(body)
    if (body?.length === 44 && hexOf(body).startsWith(SPKI_PREFIX)) raws.push(body.slice(12))
  }
  return raws
    .filter((raw) => raw !== undefined)
    .slice(0, KEYS_MAX)
    .map((raw) => ({ raw }))
}

/**
 * The keys in a text: those of bareKeysOfText, each with what alk-keys.json says of it:
 * `endorsement` the statement of the key before it, `retiredAt` when it was replaced. An unendorsed
 * one counts for nothing.
 */
export const keysOfText = (text: string): ReadonlyArray<GivenKey> => {
  const keys = bareKeysOfText(text)
  const document = /^[ \t\r\n]*\{/.test(text) && keys.length > 0 ? jsonOf(text) : undefined
  const listed = isObject(document) ? document["keys"] : undefined
  if (!Array.isArray(listed)) return keys
  const said = new Map<string, Readonly<Record<string, unknown>>>()
  for (const jwk of listed as ReadonlyArray<unknown>) {
    const raw = isObject(jwk) ? rawOfJwk(jwk["x"]) : undefined
    if (isObject(jwk) && raw !== undefined && !said.has(hexOf(raw))) said.set(hexOf(raw), jwk)
  }
  return keys.flatMap((key) => {
    const { endorsement, retired_at: retiredAt, trusted } = said.get(hexOf(key.raw)) ?? {}
    if (trusted === "unendorsed") return []
    return [
      {
        ...key,
        ...(typeof endorsement === "string" ? { endorsement } : {}),
        ...(isTime(retiredAt) ? { retiredAt } : {})
      }
    ]
  })
}

/** True if this is a time in the form that the service writes. */
const isTime = (value: unknown): value is string =>
  typeof value === "string" && parseTimestamp(value) === value

/**
 * What the statement of a key says of the next one, its signature unchecked; undefined if it is not one.
 */
export const statementOf = (note: string): Endorsement | undefined => {
  const split = NOT_IN_NOTES.test(note) ? undefined : noteOf(note)
  return split && endorsementIn(split.text)
}

/** A key of a line with what is said of it. */
export type LineKey = NamedKey & {
  readonly root?: boolean
  readonly endorsement?: string | undefined
}

/** Says whether a key has signed a statement that names it. */
const hasSigned = async (
  note: string,
  { keyId, serviceName }: Endorsement,
  key: NamedKey,
  host: Host
): Promise<boolean> => {
  if (serviceName !== key.name || keyId !== key.id) return false
  return (await signatureState(noteOf(note)!, [key], host)).state === "signed"
}

/** The standing of each key, in the order given. A statement counts for the key that signed it. */
export const keyLine = async (
  keys: ReadonlyArray<LineKey>,
  input: Pick<LineInput, "pinned" | "believesRoots">,
  host: Host
): Promise<ReadonlyArray<CheckedKey>> => {
  const lineKeys: Array<LineInput["keys"][number]> = []
  const signed = new Map<string, { said: Endorsement; signers: Set<string> }>()
  for (const { endorsement: note, root = false, vkey } of keys) {
    lineKeys.push({ vkey, root, ...(note === undefined ? {} : { endorsement: note }) })
    const said = note === undefined ? undefined : statementOf(note)
    if (note === undefined || said?.nextVkey !== vkey || signed.has(note)) continue
    const signers = new Set<string>()
    for (const key of keys) if (await hasSigned(note, said, key, host)) signers.add(key.vkey)
    signed.set(note, { said, signers })
  }
  return standingsOf({ keys: lineKeys, ...input }, (note, vkey) => {
    const statement = signed.get(note)
    return statement?.signers.has(vkey) === true ? statement.said : undefined
  })
}
