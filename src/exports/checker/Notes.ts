/** Signed notes and checkpoints (C2SP) as a pack may hold them, and the keys that sign them. */
import { sha256 } from "#sha256"
import type { TreeClaim } from "../../domain/chain/KeyStandings.ts"
import { base64Of, bytesOfBase64, concat, hexOf, utf8 } from "./Bytes.ts"
import { hasStrings, jsonOf } from "./Lines.ts"

/** Characters of a signed note or of a text with keys, signatures of one note, keys in one text. */
export const NOTE_LENGTH_MAX = 65_536
const SIGNATURES_MAX = 16

/** What a check needs of the machine that it runs on. */
export interface Host {
  /** Undefined where there is no Ed25519. */
  verifyEd25519(
    key: Uint8Array,
    message: Uint8Array,
    signature: Uint8Array
  ): Promise<boolean | undefined>
}

/** A public key that its service is not known of. */
export interface BareKey {
  /** 32 bytes. */
  readonly raw: Uint8Array
}

/** A key as C2SP writes it. */
export interface NamedKey extends BareKey {
  readonly name: string
  /** 8 hex digits. */
  readonly id: string
  readonly vkey: string
}

const VKEY = /^([^\u0000-\u0020+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)$/u

const keyIdOf = (name: string, raw: Uint8Array): string =>
  sha256(concat(utf8.encode(`${name}\n`), Uint8Array.of(1), raw)).slice(0, 8)

/** Undefined if it is no verification key of C2SP for Ed25519. */
export const keyOfVkey = (text: string): NamedKey | undefined => {
  const [, name = "", id = "", base64] = VKEY.exec(text) ?? []
  const typed = base64 === undefined ? undefined : bytesOfBase64(base64)
  if (typed === undefined || typed.length !== 33 || typed[0] !== 1) return undefined
  const raw = typed.slice(1)
  return keyIdOf(name, raw) === id ? { name, id, raw, vkey: text } : undefined
}

/** The key as a service of this name has it. */
export const namedKey = (key: BareKey | NamedKey, service: string): NamedKey => {
  if ("vkey" in key) return key
  // No note is signed by a name that C2SP does not allow.
  const name = /^[^\u0000-\u0020+\ud800-\udfff]+$/u.test(service) ? service : "?"
  const id = keyIdOf(name, key.raw)
  return { ...key, name, id, vkey: `${name}+${id}+${base64Of(Uint8Array.of(1, ...key.raw))}` }
}

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

/** Undefined if it is no signed note. */
export const splitNote = (note: string): SignedNote | undefined => {
  const at = note.lastIndexOf("\n\n")
  if (at < 0 || !note.endsWith("\n") || note.length > NOTE_LENGTH_MAX) return undefined
  const signatures: Array<Signature> = []
  for (const line of note.slice(at + 2, -1).split("\n")) {
    const [, name = "", base64] =
      /^\u2014 ([^\u0000-\u0020+]+) ([A-Za-z0-9+/=]+)$/u.exec(line) ?? []
    const bytes = base64 === undefined ? undefined : bytesOfBase64(base64)
    if (bytes === undefined || bytes.length <= 4) return undefined
    if (signatures.length === SIGNATURES_MAX) return undefined
    signatures.push({ name, id: hexOf(bytes.slice(0, 4)), bytes: bytes.slice(4) })
  }
  return { text: note.slice(0, at + 1), signatures }
}

/** A signed note that says the size and root of a tree. */
export interface Checkpoint extends SignedNote, TreeClaim {}

/** Undefined if it is no signed checkpoint. */
export const checkpointOf = (note: string): Checkpoint | undefined => {
  const split = splitNote(note)
  if (split === undefined) return undefined
  const [origin, size = "", rootText, ...extensions] = split.text.slice(0, -1).split("\n")
  const root = rootText === undefined ? undefined : bytesOfBase64(rootText)
  const treeSize = Number(size)
  const isSize = /^(?:0|[1-9][0-9]{0,15})$/.test(size) && Number.isSafeInteger(treeSize)
  if (!origin || !isSize || root?.length !== 32) return undefined
  return { ...split, origin, treeSize, rootHash: hexOf(root), extensions }
}

/** The note in a text: the text itself, or the member of a checkpoint as the API answers it. */
export const noteTextOf = (text: string): string => {
  const record = /^[ \t\r\n]*\{/.test(text) ? jsonOf(text) : undefined
  return hasStrings(record, "note") ? record.note : text
}

/** Control characters but line feeds, and unpaired surrogates: neither is in a note. */
export const NOT_IN_NOTES = /[\u0000-\u0009\u000b-\u001f\ud800-\udfff]/u

export interface SignatureState {
  /** `unchecked` where there is no Ed25519. */
  readonly state: "signed" | "unknown_key" | "bad_signature" | "unchecked"
  /** vkeys of the keys whose signatures verify. */
  readonly signers: ReadonlyArray<string>
}

export const signatureState = async (
  note: SignedNote,
  keys: ReadonlyArray<NamedKey>,
  host: Host
): Promise<SignatureState> => {
  const signers: Array<string> = []
  for (const { bytes, id, name } of note.signatures) {
    for (const key of keys.filter((one) => one.id === id && one.name === name)) {
      const isSigned = await host.verifyEd25519(key.raw, utf8.encode(note.text), bytes)
      if (isSigned === undefined) return { state: "unchecked", signers: [] }
      if (!isSigned) return { state: "bad_signature", signers: [] }
      signers.push(key.vkey)
    }
  }
  return { state: signers.length > 0 ? "signed" : "unknown_key", signers }
}
