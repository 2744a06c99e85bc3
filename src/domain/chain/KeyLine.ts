/**
 * The line of signing keys: which published key may sign which size of a tree. The first key of the
 * service is a root; a later one is endorsed by a statement that its predecessor signed, and from
 * then on the predecessor may sign no tree beyond the checkpoint with which it handed that tree over.
 *
 * Pure, and the definition that the offline verifiers follow; the cases are in
 * `schemas/vectors/key-line.json`.
 */
import { parseTimestamp } from "../Timestamp.ts"
import type { Chain } from "./Chains.ts"
import {
  type CheckpointRecord,
  makeCheckpoint,
  type OpenedCheckpoint,
  openNote,
  openText,
  type Signer,
  signNote,
  vkeyParts
} from "./Checkpoint.ts"
import type { Frontier } from "./MerkleTree.ts"

/** First line of the statement with which a key endorses its successor. */
export const ENDORSEMENT_FORMAT = "alk-key-endorsement-v1"
/** First word of the line of a checkpoint with which a key hands a tree over. */
export const NEXT_KEY = "alk-next-key"

export interface Endorsement {
  readonly serviceName: string
  /** 8 hex digits: the key that signed the statement. */
  readonly keyId: string
  /** The endorsed key as C2SP writes it. */
  readonly nextVkey: string
  /** Canonical microsecond form. */
  readonly time: string
}

/** The statement of a key that the next one is its successor: a C2SP signed note. */
export const endorse = (signer: Signer, nextVkey: string, time: string): string =>
  signNote(
    signer,
    [ENDORSEMENT_FORMAT, signer.name, signer.keyId, nextVkey, time]
      .map((line) => `${line}\n`)
      .join("")
  )

/** What a statement says; undefined unless this key signed it and it names the key. */
export const openEndorsement = (note: string, vkey: string): Endorsement | undefined => {
  const opened = openText(note, [vkey])
  if ("refusal" in opened) return undefined
  const { keyId, name } = vkeyParts(vkey)
  const [format, serviceName, oldKeyId, nextVkey = "", time = "", ...more] = opened.text
    .slice(0, -1)
    .split("\n")
  const isStatement =
    format === ENDORSEMENT_FORMAT
    && serviceName === name
    && oldKeyId === keyId
    && parseTimestamp(time) === time
    && more.length === 0
  return isStatement ? { serviceName: name, keyId, nextVkey, time } : undefined
}

/** The last checkpoint of a tree by this key: it names the key that goes on. */
export const handOver = (
  signer: Signer,
  serviceName: string,
  tenantId: string,
  tree: Frontier,
  createdAt: string,
  nextVkey: string,
  chain: Chain = "events"
): CheckpointRecord => {
  const extensions = [`${NEXT_KEY} ${nextVkey}`]
  return makeCheckpoint(signer, serviceName, tenantId, tree, createdAt, chain, extensions)
}

/** The key that a checkpoint names as the next one; undefined if it hands nothing over. */
export const nextKeyOf = ({ extensions }: Pick<OpenedCheckpoint, "extensions">) => {
  const line = extensions.find((extension) => extension.startsWith(`${NEXT_KEY} `))
  return line?.slice(NEXT_KEY.length + 1)
}

/**
 * Why the signatures of a key count: `root` the service began with it, `endorsed` by a key that
 * counts itself, `listed` by the verifier. Those of an `unendorsed` key are refused.
 */
export type KeyTrust = "root" | "endorsed" | "listed" | "unendorsed"

/** A key as the registry or a document lists it. */
export interface LineKey {
  readonly vkey: string
  /** The service says that it began with this key. */
  readonly root?: boolean
  /** The statement of its predecessor. */
  readonly endorsement?: string
}

export interface KeyStanding {
  /** 8 hex digits. */
  readonly keyId: string
  readonly vkey: string
  readonly trusted: KeyTrust
  /** Key id of the predecessor whose endorsement holds. */
  readonly endorsedBy?: string
  /** vkey of the key that it endorsed. */
  readonly next?: string
  /** When it endorsed that one, in canonical microsecond form. */
  readonly retiredAt?: string
}

export interface LineInput {
  /** In the order of their publication. */
  readonly keys: ReadonlyArray<LineKey>
  /** vkeys that the verifier trusts by itself. */
  readonly pinned: ReadonlyArray<string>
  /** True where `root` comes from a trusted place, such as the service's own registry. */
  readonly believesRoots: boolean
}

/** Every listed and pinned key, each once. */
const allKeys = ({ keys, pinned }: LineInput): ReadonlyArray<LineKey> => {
  const known = new Map<string, LineKey>()
  for (const key of [...keys, ...pinned.map((vkey) => ({ vkey }))]) {
    if (!known.has(key.vkey)) known.set(key.vkey, key)
  }
  return [...known.values()]
}

/**
 * The standing of each key, in the order given, pinned keys that are not listed last. A key endorses
 * one successor: the first in this order.
 * @throws VkeyInvalid if one of the keys is none
 */
export const keyLine = (input: LineInput): ReadonlyArray<KeyStanding> => {
  const keys = allKeys(input)
  const standings = new Map<string, KeyStanding>()
  for (const { root = false, vkey } of keys) {
    const isRoot = root && input.believesRoots
    const trusted = isRoot ? "root" : input.pinned.includes(vkey) ? "listed" : "unendorsed"
    standings.set(vkey, { keyId: vkeyParts(vkey).keyId, vkey, trusted })
  }
  const waiting = keys.map(({ vkey }) => vkey).filter((vkey) => isTrusted(standings.get(vkey)!))
  for (let vkey = waiting.shift(); vkey !== undefined; vkey = waiting.shift()) {
    const found = successorOf(keys, vkey, standings)
    if (found === undefined) continue
    const { endorsement, successor } = found
    const own = standings.get(vkey)!
    standings.set(vkey, { ...own, next: successor.vkey, retiredAt: endorsement.time })
    if (!isTrusted(successor)) waiting.push(successor.vkey)
    const trusted = isTrusted(successor) ? successor.trusted : "endorsed"
    standings.set(successor.vkey, { ...successor, trusted, endorsedBy: own.keyId })
  }
  return keys.map(({ vkey }) => standings.get(vkey)!)
}

export const isTrusted = ({ trusted }: KeyStanding): boolean => trusted !== "unendorsed"

/** The first key, not endorsed by another one already, whose endorsement this key has signed. */
const successorOf = (
  keys: ReadonlyArray<LineKey>,
  vkey: string,
  standings: ReadonlyMap<string, KeyStanding>
) => {
  for (const key of keys) {
    if (key.endorsement === undefined || key.vkey === vkey) continue
    const endorsement = openEndorsement(key.endorsement, vkey)
    const successor = standings.get(key.vkey)!
    if (endorsement?.nextVkey === key.vkey && successor.endorsedBy === undefined) {
      return { endorsement, successor }
    }
  }
  return undefined
}

/** What one tree adds to the line of keys. */
export interface TreeKeys {
  /** First line of the tree's checkpoints. */
  readonly origin: string
  /** Notes of the checkpoints with which keys have handed this tree over. */
  readonly handOvers: ReadonlyArray<string>
  /**
   * vkey of the key that signs this tree now. Until a successor does, a retired key that has not
   * handed the tree over may still sign it. Without it the newest key counts as signing.
   */
  readonly signer?: string
}

/** A checkpoint that a key has signed. */
export interface SignedSize {
  readonly vkey: string
  readonly treeSize: number
  /** 64 hex digits. */
  readonly rootHash: string
}

/** The smallest tree with which a retired key has handed over to its successor. */
const handOverOf = (
  { next, vkey }: KeyStanding,
  { handOvers, origin }: TreeKeys
): OpenedCheckpoint | undefined => {
  let smallest: OpenedCheckpoint | undefined
  for (const note of handOvers) {
    const opened = openNote(note, [vkey])
    if ("refusal" in opened) continue
    const { checkpoint } = opened
    if (checkpoint.origin !== origin || nextKeyOf(checkpoint) !== next) continue
    if (smallest === undefined || checkpoint.treeSize < smallest.treeSize) smallest = checkpoint
  }
  return smallest
}

/** True if the key that signs the tree now is this one, or one before it in the line. */
const isStillSigning = (
  line: ReadonlyArray<KeyStanding>,
  vkey: string,
  signer: string | undefined
): boolean => {
  const seen = new Set<string>()
  let at = signer
  while (at !== undefined && at !== vkey && !seen.has(at)) {
    seen.add(at)
    at = line.find((one) => one.vkey === at)?.next
  }
  return at === vkey
}

/**
 * Why this key may not have signed this tree at this size; undefined if it may. The signature itself
 * is checked elsewhere.
 */
export const signatureRefusal = (
  line: ReadonlyArray<KeyStanding>,
  tree: TreeKeys,
  { rootHash, treeSize, vkey }: SignedSize
): string | undefined => {
  const standing = line.find((one) => one.vkey === vkey)
  if (standing === undefined) return "its key is not published"
  const { keyId, next, retiredAt } = standing
  if (!isTrusted(standing)) {
    return `its key ${keyId} is not endorsed by the key before it and not listed as trusted`
  }
  if (next === undefined) return undefined
  const last = handOverOf(standing, tree)
  const successor = vkeyParts(next).keyId
  if (last === undefined) {
    if (isStillSigning(line, vkey, tree.signer)) return undefined
    return `its key ${keyId} was replaced by ${successor} at ${retiredAt} and never signed this tree`
  }
  if (treeSize > last.treeSize) {
    return (
      `its key ${keyId} was replaced by ${successor} at ${retiredAt}, when the tree had `
      + `${last.treeSize} leaves, not ${treeSize}`
    )
  }
  return treeSize === last.treeSize && rootHash !== last.rootHash
    ? `its key ${keyId} handed over another tree of ${treeSize} leaves to ${successor}`
    : undefined
}

/** Why none of the keys that signed a checkpoint may have; undefined if one of them may. */
export const checkpointRefusal = (
  line: ReadonlyArray<KeyStanding>,
  tree: TreeKeys,
  { keyIds, rootHash, treeSize }: OpenedCheckpoint
): string | undefined => {
  let refusal: string | undefined = "its key is not published"
  for (const { keyId, vkey } of line) {
    if (!keyIds.includes(keyId)) continue
    refusal = signatureRefusal(line, tree, { vkey, treeSize, rootHash })
    if (refusal === undefined) return undefined
  }
  return refusal
}
