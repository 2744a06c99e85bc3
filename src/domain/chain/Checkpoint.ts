/**
 * Signed checkpoints: the size and root of a tenant's Merkle tree as a C2SP tlog-checkpoint in a
 * C2SP signed note, with Ed25519. Signs and verifies texts; knows neither where keys are kept nor
 * whether the tree is the right one.
 *
 * One key signs for all tenants, so its name is the service's and the origin names the tenant too.
 */
import {
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  sign as signBytes,
  verify as verifyBytes
} from "node:crypto"
import { Schema } from "effect"
import { form, sequence, sha256, tenant, text, time } from "../Forms.ts"
import { recordDecoder } from "../json/RecordDecoder.ts"
import { type Chain, chains, treeNameOf } from "./Chains.ts"
import type { TreeClaim } from "./KeyStandings.ts"
import { EMPTY_ROOT, type Frontier } from "./MerkleTree.ts"
import {
  claimIn,
  keyIdOf,
  keyIn,
  keyNamed,
  NOT_IN_NOTES,
  type SignedNote,
  splitNote
} from "./NoteText.ts"

/** One record of `alk.checkpoints`. Only the note is signed. */
export const CheckpointRecord = Schema.Struct({
  tenant_id: tenant("Whose chain it is."),
  chain: Schema.optionalKey(
    Schema.Literals(chains).annotate({
      description: "Of which of the tenant's chains: of the events if absent."
    })
  ),
  tree_size: sequence("Events, or trace facts, that the tree covers, from the first."),
  root_hash: sha256("RFC 9162 root over their hashes; each leaf input is the 32 bytes of a hash."),
  created_at: time("When it was signed; not covered by the signature."),
  key_id: form(/^[0-9a-f]{8}$/u, "Which key signed."),
  note: text("The checkpoint itself: a C2SP tlog-checkpoint as signed note, Ed25519.")
})
export type CheckpointRecord = typeof CheckpointRecord.Type

/** A checkpoint within another record. */
export const CheckpointMember = CheckpointRecord.annotate({ identifier: "Checkpoint" })

/** @throws RecordUnreadable */
export const readCheckpoint: (value: Buffer | string) => CheckpointRecord = recordDecoder(
  CheckpointRecord,
  "checkpoint"
)

export interface Signer {
  /** Name of the key: the service's. */
  readonly name: string
  /** 8 hex digits. */
  readonly keyId: string
  /** The public key as C2SP writes it: `<name>+<key id>+<base64 of 0x01 and the key>`. */
  readonly vkey: string
  /** Base64 of the 32 bytes. */
  readonly publicKey: string
  /** The signature line, line feed included, for a text that ends in one. */
  sign(noteText: string): string
}

const KEY_BYTES = 32
const SIGNATURE_BYTES = 64
/** Characters of a note, and signatures on one, at most: ours have far less of both. */
const NOTE_LENGTH_MAX = 1_000_000
const SIGNATURES_MAX = 100

/** Neither white space nor `+`. */
const NAME_FORM = /^[^\s+]+$/u
// PKCS#8 and SPKI of an Ed25519 key are these bytes and then the key (RFC 8410).
const PKCS8_PREFIX = Buffer.from("302e020100300506032b657004220420", "hex")
const SPKI_PREFIX = Buffer.from("302a300506032b6570032100", "hex")

/** A private key that is no Ed25519 key. */
export class SigningKeyInvalid extends Error {
  override readonly name = "SigningKeyInvalid"
}

const publicKeyOf = (raw: Uint8Array): KeyObject =>
  createPublicKey({ key: Buffer.concat([SPKI_PREFIX, raw]), format: "der", type: "spki" })

const privateKeyOf = (key: string | Buffer): KeyObject => {
  if (typeof key !== "string" && key.length !== KEY_BYTES) {
    throw new SigningKeyInvalid(`a seed has ${KEY_BYTES} bytes, not ${key.length}`)
  }
  const read = (): KeyObject =>
    typeof key === "string"
      ? createPrivateKey(key)
      : createPrivateKey({
          key: Buffer.concat([PKCS8_PREFIX, key]),
          format: "der",
          type: "pkcs8"
        })
  let made: KeyObject
  try {
    made = read()
  } catch {
    // The cause may quote the key.
    throw new SigningKeyInvalid("it is not a private key in PKCS#8 PEM")
  }
  if (made.asymmetricKeyType !== "ed25519") {
    throw new SigningKeyInvalid(`it is a key for ${made.asymmetricKeyType}, not for Ed25519`)
  }
  return made
}

/**
 * Who signs with this key: a PKCS#8 PEM, or the seed of 32 bytes.
 * @throws SigningKeyInvalid
 */
export const signerOf = (serviceName: string, pemOrSeed: string | Buffer): Signer => {
  if (!NAME_FORM.test(serviceName)) {
    throw new SigningKeyInvalid(`${JSON.stringify(serviceName)} can't be the name of a key`)
  }
  const privateKey = privateKeyOf(pemOrSeed)
  const spki = createPublicKey(privateKey).export({ format: "der", type: "spki" })
  const raw = spki.subarray(SPKI_PREFIX.length)
  const { id: keyId, vkey } = keyNamed(serviceName, raw)
  const idBytes = Buffer.from(keyId, "hex")
  return {
    name: serviceName,
    keyId,
    vkey,
    publicKey: raw.toString("base64"),
    sign: (noteText) => {
      const signature = signBytes(null, Buffer.from(noteText), privateKey)
      const base64 = Buffer.concat([idBytes, signature]).toString("base64")
      return `\u2014 ${serviceName} ${base64}\n`
    }
  }
}

/** The first line of the checkpoints of a tenant's tree. */
export const originOf = (serviceName: string, tenantId: string, chain: Chain = "events"): string =>
  `${serviceName}/${treeNameOf(tenantId, chain)}`

/** Name of the tree that a checkpoint is of. */
export const treeOfCheckpoint = ({ chain = "events", tenant_id }: CheckpointRecord): string =>
  treeNameOf(tenant_id, chain)

const checkpointText = (
  origin: string,
  size: number,
  root: Buffer,
  extensions: ReadonlyArray<string>
): string =>
  [origin, size, root.toString("base64"), ...extensions].map((line) => `${line}\n`).join("")

/** A text with its signature. `text` ends in a line feed. */
export const signNote = (signer: Signer, text: string): string => `${text}\n${signer.sign(text)}`

/** The signed checkpoint of the tree as it is; `extensions` are lines after the root. */
export const makeCheckpoint = (
  signer: Signer,
  serviceName: string,
  tenantId: string,
  frontier: Frontier,
  createdAt: string,
  chain: Chain = "events",
  extensions: ReadonlyArray<string> = []
): CheckpointRecord => {
  const root = frontier.root()
  const origin = originOf(serviceName, tenantId, chain)
  const text = checkpointText(origin, frontier.size, root, extensions)
  return {
    tenant_id: tenantId,
    ...(chain === "events" ? {} : { chain }),
    tree_size: frontier.size,
    root_hash: root.toString("hex"),
    created_at: createdAt,
    key_id: signer.keyId,
    note: signNote(signer, text)
  }
}

/** What a verified note says. */
export interface OpenedCheckpoint extends TreeClaim {
  /** Which of the known keys signed: each with a valid signature, in the order of the note. */
  readonly keyIds: readonly [string, ...ReadonlyArray<string>]
}

export type NoteRefusal =
  /** Not a signed note, or its text is not a checkpoint. */
  | "malformed"
  /** None of the given keys signed it. */
  | "unknown_key"
  /** One of the given keys is named on it, but did not sign this text. */
  | "bad_signature"

export type OpenedNote =
  | { readonly checkpoint: OpenedCheckpoint }
  | { readonly refusal: NoteRefusal; readonly message: string }

interface KnownKey {
  readonly name: string
  readonly keyId: string
  readonly key: KeyObject
}

/** A key is not `<name>+<key id>+<base64>`, not Ed25519, or its id is not its own. */
export class VkeyInvalid extends Error {
  override readonly name = "VkeyInvalid"
}

/** C2SP allows no white space of any kind in a name. */
const hasSpace = ({ name }: { readonly name: string }): boolean => /\s/u.test(name)

const knownKey = (vkey: string): KnownKey => {
  const key = keyIn(vkey)
  if (key === undefined || hasSpace(key)) {
    throw new VkeyInvalid(`not the verification key of an Ed25519 key: ${vkey.slice(0, 200)}`)
  }
  const { id: keyId, name, raw } = key
  if (keyIdOf(name, raw) !== keyId) {
    throw new VkeyInvalid(`the key id ${keyId} does not belong to the key: ${vkey.slice(0, 200)}`)
  }
  return { name, keyId, key: publicKeyOf(raw) }
}

const noteOf = (text: string): SignedNote | undefined => {
  const note = NOT_IN_NOTES.test(text)
    ? undefined
    : splitNote(text, NOTE_LENGTH_MAX, SIGNATURES_MAX)
  return note?.signatures.some(hasSpace) === true ? undefined : note
}

const parseText = (text: string): TreeClaim | undefined => {
  const claim = claimIn(text)
  if (claim === undefined || claim.extensions.includes("")) return undefined
  return claim.treeSize === 0 && claim.rootHash !== EMPTY_ROOT.toString("hex") ? undefined : claim
}

/** The text of a note and the known keys that signed it, or why it is refused. */
export type OpenedText =
  | { readonly text: string; readonly keyIds: OpenedCheckpoint["keyIds"] }
  | { readonly refusal: NoteRefusal; readonly message: string }

type RefusedNote = Extract<OpenedText, { readonly refusal: NoteRefusal }>

const refusal = (reason: NoteRefusal, message: string): RefusedNote => ({
  refusal: reason,
  message
})

/**
 * The text of a note, if one of the keys signed it and no signature of a given key is wrong.
 * Signatures of other keys are passed over, as C2SP demands.
 * @throws VkeyInvalid if one of the keys given is none
 */
export const openText = (note: string, vkeys: ReadonlyArray<string>): OpenedText => {
  const keys = vkeys.map(knownKey)
  const split = noteOf(note)
  if (split === undefined) return refusal("malformed", "it is not a C2SP signed note")
  const text = Buffer.from(split.text)
  const keyIds: Array<string> = []
  for (const { bytes: signature, id: keyId, name } of split.signatures) {
    const known = keys.filter((key) => key.keyId === keyId && key.name === name)
    if (known.length === 0 || keyIds.includes(keyId)) continue
    const isSigned =
      signature.length === SIGNATURE_BYTES
      && known.some(({ key }) => verifyBytes(null, text, key, signature))
    if (!isSigned) {
      return refusal("bad_signature", `the signature of ${name}+${keyId} is not of this text`)
    }
    keyIds.push(keyId)
  }
  const [first, ...others] = keyIds
  if (first === undefined) return refusal("unknown_key", "none of the known keys signed it")
  return { text: split.text, keyIds: [first, ...others] }
}

/**
 * The checkpoint that a note is, opened with these keys.
 * @throws VkeyInvalid if one of the keys given is none
 */
export const openNote = (note: string, vkeys: ReadonlyArray<string>): OpenedNote => {
  const opened = openText(note, vkeys)
  if ("refusal" in opened) return opened
  const parsed = parseText(opened.text)
  return parsed === undefined
    ? refusal("malformed", "its text is not a checkpoint")
    : { checkpoint: { ...parsed, keyIds: opened.keyIds } }
}

/** True if C2SP's form of a key is one, with its own id. */
export const isVkey = (vkey: string): boolean => {
  try {
    knownKey(vkey)
    return true
  } catch {
    return false
  }
}

/** The parts of a vkey. @throws VkeyInvalid */
export const vkeyParts = (vkey: string): { readonly name: string; readonly keyId: string } => {
  const { keyId, name } = knownKey(vkey)
  return { keyId, name }
}
