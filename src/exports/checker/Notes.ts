/** Signed notes and checkpoints (C2SP) as a pack may hold them, and the keys that sign them. */
import { utf8 } from "../../domain/Bytes.ts"
import type { TreeClaim } from "../../domain/chain/KeyStandings.ts"
import {
  claimIn,
  keyIdOf,
  keyIn,
  keyNamed,
  type NamedKey,
  type SignedNote,
  splitNote
} from "../../domain/chain/NoteText.ts"
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
export type BareKey = Pick<NamedKey, "raw">

/** Undefined if it is no verification key of C2SP for Ed25519. */
export const keyOfVkey = (text: string): NamedKey | undefined => {
  const key = keyIn(text)
  return key !== undefined && keyIdOf(key.name, key.raw) === key.id ? key : undefined
}

/** The key as a service of this name has it. */
export const namedKey = (key: BareKey | NamedKey, service: string): NamedKey => {
  if ("vkey" in key) return key
  // No note is signed by a name that C2SP does not allow.
  const isName = /^[^\u0000-\u0020+\ud800-\udfff]+$/u.test(service)
  return keyNamed(isName ? service : "?", key.raw)
}

/** Undefined if it is no signed note. */
export const noteOf = (text: string): SignedNote | undefined =>
  splitNote(text, NOTE_LENGTH_MAX, SIGNATURES_MAX)

/** A signed note that says the size and root of a tree. */
export interface Checkpoint extends SignedNote, TreeClaim {}

/** Undefined if it is no signed checkpoint. */
export const checkpointOf = (text: string): Checkpoint | undefined => {
  const note = noteOf(text)
  const claim = note && claimIn(note.text)
  return claim && { ...note, ...claim }
}

/** The note in a text: the text itself, or the member of a checkpoint as the API answers it. */
export const noteTextOf = (text: string): string => {
  const record = /^[ \t\r\n]*\{/.test(text) ? jsonOf(text) : undefined
  return hasStrings(record, "note") ? record.note : text
}

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
