/** Whose keys a pack has, which of them count, and what they may have signed. */
import {
  type CheckedKey,
  handOverOf,
  isTrusted,
  partsOfVkey,
  type TreeOfKeys
} from "../../domain/chain/KeyStandings.ts"
import type { NamedKey, SignedNote } from "../../domain/chain/NoteText.ts"
import { bareKeysOfText, type GivenKey, keyLine, type LineKey, statementOf } from "./Keys.ts"
import type { Manifest } from "./Manifest.ts"
import {
  type Checkpoint,
  checkpointOf,
  type Host,
  namedKey,
  type SignatureState,
  signatureState
} from "./Notes.ts"
import type { OpenPack } from "./OpenPack.ts"
import { endorsementName, FILE } from "./PackFiles.ts"
import type { PackKey } from "./Report.ts"

export const isReplaced = ({ retiredAt }: CheckedKey): boolean => retiredAt !== undefined

/** `name+id` of a key, as reports name it. */
export const shortName = (vkey: string): string => {
  const { keyId, name } = partsOfVkey(vkey)
  return `${name}+${keyId}`
}

/** A key of the pack, as a line of its own keys has it. */
type OwnKey = LineKey & { readonly root: boolean }
/** A key that was given, with what the pack says of it besides. */
type NamedGivenKey = LineKey & Pick<GivenKey, "retiredAt">

export class Signers {
  readonly #pack: OpenPack
  readonly #host: Host
  readonly #pinned: ReadonlyArray<GivenKey>
  #named: ReadonlyMap<string, NamedKey> = new Map()
  ownKeys: ReadonlyArray<OwnKey> = []
  /** The line of keys, and the line that starts with what is known from elsewhere. */
  line: ReadonlyArray<CheckedKey> = []
  #originLine: ReadonlyArray<CheckedKey> = []
  /** vkeys that signed the manifest, and those that signed a checkpoint from elsewhere. */
  #ofManifest: ReadonlyArray<string> = []
  readonly #ofKept = new Set<string>()
  /** vkey that signs the trees now. */
  treeSigner: string | undefined

  constructor(pack: OpenPack, host: Host, pinned: ReadonlyArray<GivenKey>) {
    this.#pack = pack
    this.#host = host
    this.#pinned = pinned
  }

  /** True if keys were given. */
  get arePinned(): boolean {
    return this.#pinned.length > 0
  }

  /** Who signed a note, of the keys that count. */
  async stateOf(note: SignedNote): Promise<SignatureState> {
    const keys = this.line.filter(isTrusted).map(({ vkey }) => this.#named.get(vkey)!)
    return signatureState(note, keys, this.#host)
  }

  /**
   * The keys of the pack and those given, and the line that they make: from the keys given, or else
   * from what the pack itself says.
   */
  async read({ service }: Manifest): Promise<void> {
    this.ownKeys = await this.#readOwnKeys()
    const given = new Map<string, NamedGivenKey>()
    const said = new Map<string, LineKey>(this.ownKeys.map((key) => [key.vkey, key]))
    for (const key of this.#pinned) {
      const named = namedKey(key, service)
      const { vkey } = named
      given.set(vkey, { ...said.get(vkey), ...given.get(vkey), ...key, ...named })
    }
    const keys = [...given.values(), ...this.ownKeys.map((key) => unlessReplaced(key, given))]
    this.#named = new Map([...keys].reverse().map((key) => [key.vkey, key]))
    const input = { pinned: [...given.keys()], believesRoots: !this.arePinned }
    const line = await keyLine(keys, input, this.#host)
    // The caller may know of a replacement without the statement that made it.
    this.line = line.map((standing) => {
      const retiredAt = standing.retiredAt ?? given.get(standing.vkey)?.retiredAt
      return retiredAt === undefined ? standing : { ...standing, retiredAt }
    })
  }

  async #readOwnKeys(): Promise<ReadonlyArray<OwnKey>> {
    const keys: Array<OwnKey> = []
    for (const key of bareKeysOfText((await this.#pack.text(FILE.keys)) ?? "")) {
      if (!("vkey" in key)) continue
      const name = endorsementName(keys.length + 1)
      const endorsement = await this.#pack.text(name)
      keys.push({ ...key, endorsement, root: !this.#pack.has(name) })
    }
    return keys
  }

  /** Adds who signed a checkpoint that was given: the key of the service. */
  keep(signers: ReadonlyArray<string>): void {
    for (const signer of signers) this.#ofKept.add(signer)
  }

  /** The line that starts with the keys given, or with those that signed a kept checkpoint. */
  async readOrigin(): Promise<void> {
    const kept = this.line.map(({ vkey }) => vkey).filter((vkey) => this.#ofKept.has(vkey))
    this.#originLine = this.arePinned
      ? this.line
      : await keyLine(this.ownKeys, { pinned: kept, believesRoots: false }, this.#host)
  }

  /** The standing of a key in the line from elsewhere, if it counts there. */
  #standingOf(vkey: string): CheckedKey | undefined {
    return this.#originLine.find((one) => one.vkey === vkey && isTrusted(one))
  }

  /** True if one of the signers is known from elsewhere, and a key of now. */
  areKnown(signers: ReadonlyArray<string>): boolean {
    return signers.some((vkey) => {
      const standing = this.#standingOf(vkey)
      return standing !== undefined && !isReplaced(standing)
    })
  }

  /** The standing of the key known from elsewhere that signed the manifest, one of now first. */
  get origin(): CheckedKey | undefined {
    const standings = this.#ofManifest
      .map((vkey) => this.#standingOf(vkey))
      .filter((standing) => standing !== undefined)
    return standings.find((standing) => !isReplaced(standing)) ?? standings[0]
  }

  /** The signature of the manifest, `bytes` long, of a pack of this origin. */
  async checkManifest(manifest: Manifest, origin: string, bytes: number): Promise<void> {
    const { found, hashes } = this.#pack
    const text = await this.#pack.text(FILE.signature)
    if (!this.#pack.has(FILE.signature)) return
    const note = text === undefined ? undefined : checkpointOf(text)
    const bad = (expected: string, actual: string): void =>
      found.problem(FILE.signature, null, "signature_invalid", expected, actual)
    if (note === undefined) return bad("a signed note", "something else")
    const { signers, state } = await this.stateOf(note)
    const who = this.arePinned
      ? "the public key that was given, or one that it endorsed"
      : `a key of ${FILE.keys}`
    if (state === "unknown_key") return bad(`a signature by ${who}`, "a signature by another key")
    if (state === "bad_signature") return bad(`a signature by ${who}`, "one that does not verify")
    const digest = hashes.get(FILE.manifest)
    const isOfManifest =
      note.origin === `${origin}/evidence-pack-v2`
      && note.treeSize === bytes
      && note.rootHash === digest
    if (!isOfManifest) {
      return bad(`the SHA-256 of ${FILE.manifest}, ${digest}`, `${note.origin} ${note.rootHash}`)
    }
    if (state === "unchecked") {
      found.open.push("The signatures: Ed25519 is not available here.")
      return
    }
    this.#ofManifest = signers
    const { tree_signer: treeSigner } = manifest
    this.treeSigner = typeof treeSigner === "string" ? treeSigner : signers[0]
    const [signer] = note.signatures
    found.checked.push(`${FILE.manifest} is signed by ${signer!.name}+${signer!.id}.`)
  }

  /** The line of keys as a report lists it. `trees`: of events, and of traces. */
  keysOfReport([events, traces]: readonly [TreeOfKeys, TreeOfKeys]): ReadonlyArray<PackKey> {
    const isKnown = this.arePinned || this.#ofKept.size > 0
    const line = isKnown ? this.#originLine : this.line
    return line.map((standing, at) => {
      const { endorsedBy, keyId, next, retiredAt, trusted, vkey } = standing
      return {
        name: partsOfVkey(vkey).name,
        key_id: keyId,
        vkey,
        trusted: trusted === "root" && at > 0 ? "unendorsed" : trusted,
        pinned: trusted === "listed",
        endorsed_by: endorsedBy ?? null,
        next: next === undefined ? null : partsOfVkey(next).keyId,
        retired_at: retiredAt ?? null,
        handed_over: {
          events: handOverOf(standing, events)?.treeSize ?? null,
          traces: handOverOf(standing, traces)?.treeSize ?? null
        },
        signs_manifest: this.#ofManifest.includes(vkey)
      }
    })
  }
}

/** A key of the pack, without the statement of a key that the caller knows to be replaced. */
const unlessReplaced = (key: OwnKey, given: ReadonlyMap<string, NamedGivenKey>): LineKey => {
  const statement = key.endorsement === undefined ? undefined : statementOf(key.endorsement)
  const isOld = [...given.values()].some(
    ({ id, name, retiredAt }) =>
      retiredAt !== undefined && id === statement?.keyId && name === statement.serviceName
  )
  return isOld ? { ...key, endorsement: undefined } : key
}

/** A checkpoint that was taken in, and who signed it. */
export interface TakenNote extends Checkpoint, SignatureState {
  /** Its file, or what it is called that was given. */
  readonly file: string
  /** It only hands a tree over. */
  readonly isHandOver: boolean
  /** It was given, not found in the pack. */
  readonly isKept: boolean
}

/** Says why a checkpoint of the pack does not hold. */
export type Refuse = (expected: string, actual: string) => void

/** Who signed a note of the pack; undefined, and refused, if its signature does not hold. */
export const admitted = async (
  note: Checkpoint,
  signers: Signers,
  refuse: Refuse
): Promise<SignatureState | undefined> => {
  const state = await signers.stateOf(note)
  if (state.state === "bad_signature") refuse("a signature that verifies", "one that does not")
  else if (state.state === "unknown_key" && !signers.arePinned) {
    refuse(`a signature by a key of ${FILE.keys}`, "another key's")
  } else return state
  return undefined
}
