/**
 * The line of signing keys: which published key may sign which size of a tree. The first key of the
 * service is a root; a later one is endorsed by a statement that its predecessor signed, and from
 * then on the predecessor may sign no tree beyond the checkpoint with which it handed that tree over.
 *
 * Pure, and what the service and the verifiers share: who signed a note is said by the caller. The
 * cases are in `schemas/vectors/key-line.json`.
 */
import { parseTimestamp } from "../Timestamp.ts"

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

/** What the text of a statement says, its signature unchecked; undefined for any other text. */
export const endorsementIn = (text: string): Endorsement | undefined => {
  const [format, serviceName = "", keyId = "", nextVkey = "", time = "", ...more] = text
    .slice(0, -1)
    .split("\n")
  const isStatement =
    format === ENDORSEMENT_FORMAT && parseTimestamp(time) === time && more.length === 0
  return isStatement ? { serviceName, keyId, nextVkey, time } : undefined
}

/** The parts of a vkey, which is one. */
export const partsOfVkey = (vkey: string): { readonly name: string; readonly keyId: string } => {
  const [name = "", keyId = ""] = vkey.split("+", 2)
  return { name, keyId }
}

/** A signed tree as its checkpoint says it. */
export interface TreeClaim {
  readonly origin: string
  readonly treeSize: number
  /** 64 hex digits. */
  readonly rootHash: string
  /** The lines after the root, as they are. */
  readonly extensions: ReadonlyArray<string>
}

/** The key that a checkpoint names as the next one; undefined if it hands nothing over. */
export const nextKeyOf = ({ extensions }: Pick<TreeClaim, "extensions">) => {
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

export interface CheckedKey {
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

/** What a statement says; undefined unless this key signed it and it names the key. */
export type OpenEndorsement = (note: string, vkey: string) => Endorsement | undefined

/**
 * The standing of each key, in the order given, pinned keys that are not listed last. A key endorses
 * one successor: the first in this order.
 */
export const standingsOf = (
  input: LineInput,
  opened: OpenEndorsement
): ReadonlyArray<CheckedKey> => {
  const keys = allKeys(input)
  const standings = new Map<string, CheckedKey>()
  for (const { root = false, vkey } of keys) {
    const isRoot = root && input.believesRoots
    const trusted = isRoot ? "root" : input.pinned.includes(vkey) ? "listed" : "unendorsed"
    standings.set(vkey, { keyId: partsOfVkey(vkey).keyId, vkey, trusted })
  }
  const waiting = keys.map(({ vkey }) => vkey).filter((vkey) => isTrusted(standings.get(vkey)!))
  for (let vkey = waiting.shift(); vkey !== undefined; vkey = waiting.shift()) {
    const found = successorOf(keys, vkey, standings, opened)
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

export const isTrusted = ({ trusted }: CheckedKey): boolean => trusted !== "unendorsed"

/** The first key, not endorsed by another one already, whose endorsement this key has signed. */
const successorOf = (
  keys: ReadonlyArray<LineKey>,
  vkey: string,
  standings: ReadonlyMap<string, CheckedKey>,
  opened: OpenEndorsement
) => {
  for (const key of keys) {
    if (key.endorsement === undefined || key.vkey === vkey) continue
    const endorsement = opened(key.endorsement, vkey)
    const successor = standings.get(key.vkey)!
    if (endorsement?.nextVkey === key.vkey && successor.endorsedBy === undefined) {
      return { endorsement, successor }
    }
  }
  return undefined
}

/** What one tree adds to the line of keys. */
export interface TreeOfKeys {
  /** First line of the tree's checkpoints. */
  readonly origin: string
  /** The checkpoints by this key that name a next one. */
  handOversBy(vkey: string): ReadonlyArray<TreeClaim>
  /**
   * vkey of the key that signs this tree now. Until a successor does, a retired key that has not
   * handed the tree over may still sign it. Without it the newest key counts as signing.
   */
  readonly signer?: string | undefined
}

/** A checkpoint that a key has signed. */
export interface SignedSize {
  readonly vkey: string
  readonly treeSize: number
  /** 64 hex digits. */
  readonly rootHash: string
}

/** The smallest tree with which a retired key has handed over to its successor. */
export const handOverOf = (
  { next, vkey }: CheckedKey,
  { handOversBy, origin }: TreeOfKeys
): TreeClaim | undefined => {
  let smallest: TreeClaim | undefined
  for (const claim of handOversBy(vkey)) {
    if (claim.origin !== origin || nextKeyOf(claim) !== next) continue
    if (smallest === undefined || claim.treeSize < smallest.treeSize) smallest = claim
  }
  return smallest
}

/** True if the key that signs the tree now is this one, or one before it in the line. */
const isStillSigning = (
  line: ReadonlyArray<CheckedKey>,
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
export const refusalOf = (
  line: ReadonlyArray<CheckedKey>,
  tree: TreeOfKeys,
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
  const successor = partsOfVkey(next).keyId
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
