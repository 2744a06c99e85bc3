/** Signed notes, checkpoints and keys of C2SP as texts; no signature is checked here. */
import { sha256 } from "#sha256"
import { base64Of, bytesOfBase64, concat, hexOf, utf8 } from "../Bytes.ts"
import type { TreeClaim } from "./KeyStandings.ts"

/** The signature type of Ed25519. */
const ED25519 = 1
const KEY_BYTES = 32
const KEY_ID_BYTES = 4
const ROOT_BYTES = 32

/** An Ed25519 key as C2SP writes it. */
export interface NamedKey {
  readonly name: string
  /** 8 hex digits. */
  readonly id: string
  /** 32 bytes. */
  readonly raw: Uint8Array
  readonly vkey: string
}

/** 8 hex digits that C2SP gives an Ed25519 key of this name. */
export const keyIdOf = (name: string, raw: Uint8Array): string =>
  sha256(concat(utf8.encode(`${name}\n`), Uint8Array.of(ED25519), raw)).slice(0, 2 * KEY_ID_BYTES)

/** A key of 32 bytes under a name. */
export const keyNamed = (name: string, raw: Uint8Array): NamedKey => {
  const id = keyIdOf(name, raw)
  return { name, id, raw, vkey: `${name}+${id}+${base64Of(Uint8Array.of(ED25519, ...raw))}` }
}

const VKEY = /^([^\u0000-\u0020+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)$/u

/** The key in a vkey, whether or not the id is its own; undefined for a text without one. */
export const keyIn = (vkey: string): NamedKey | undefined => {
  const [, name = "", id = "", base64 = ""] = VKEY.exec(vkey) ?? []
  const typed = bytesOfBase64(base64)
  return typed?.length === 1 + KEY_BYTES && typed[0] === ED25519
    ? { name, id, raw: typed.slice(1), vkey }
    : undefined
}

/** Control characters but line feeds, and unpaired surrogates: neither is in a note. */
export const NOT_IN_NOTES = /[\u0000-\u0009\u000b-\u001f\ud800-\udfff]/u

interface Signature {
  readonly name: string
  /** 8 hex digits. */
  readonly id: string
  readonly bytes: Uint8Array
}

export interface SignedNote {
  /** What is signed. */
  readonly text: string
  readonly signatures: ReadonlyArray<Signature>
}

const SIGNATURE = /^\u2014 ([^\u0000-\u0020+]+) ([A-Za-z0-9+/=]+)$/u

const signatureIn = (line: string): Signature | undefined => {
  const [, name = "", base64 = ""] = SIGNATURE.exec(line) ?? []
  const bytes = bytesOfBase64(base64)
  if (bytes === undefined || bytes.length <= KEY_ID_BYTES) return undefined
  return { name, id: hexOf(bytes.slice(0, KEY_ID_BYTES)), bytes: bytes.slice(KEY_ID_BYTES) }
}

/** Undefined if it is no signed note, or has more characters or signatures. */
export const splitNote = (
  note: string,
  lengthMax: number,
  signaturesMax: number
): SignedNote | undefined => {
  const at = note.lastIndexOf("\n\n")
  if (at < 0 || !note.endsWith("\n") || note.length > lengthMax) return undefined
  const lines = note.slice(at + 2, -1).split("\n")
  if (lines.length > signaturesMax) return undefined
  const signatures = lines.map(signatureIn).filter((signature) => signature !== undefined)
  return signatures.length === lines.length
    ? { text: note.slice(0, at + 1), signatures }
    : undefined
}

/** What the text of a checkpoint says; undefined if it is not one. */
export const claimIn = (text: string): TreeClaim | undefined => {
  const [origin, size = "", root = "", ...extensions] = text.slice(0, -1).split("\n")
  const hash = bytesOfBase64(root)
  const treeSize = Number(size)
  const isSize = /^(?:0|[1-9][0-9]{0,15})$/.test(size) && Number.isSafeInteger(treeSize)
  if (!origin || !isSize || hash?.length !== ROOT_BYTES) return undefined
  return { origin, treeSize, rootHash: hexOf(hash), extensions }
}
