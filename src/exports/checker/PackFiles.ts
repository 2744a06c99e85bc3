/** The files of a pack: their names, which of them every pack has, and where they are read from. */

export const FORMAT = "alk-evidence-pack-v2"
export const MANIFEST = "manifest.json"
export const SIGNATURE = "manifest.sig"
export const SUMS = "sha256sums.txt"
export const VERIFICATION = "verification.json"
export const EVENTS = "events.ndjson"
export const LINKS = "links.ndjson"
export const ERASURES = "erasures.ndjson"
export const TREE = "checkpoints/tree.json"
export const PROOFS = "checkpoints/erasure-proofs.ndjson"
export const FACTS = "facts.ndjson"
export const TRACE_LINKS = "trace-links.ndjson"
export const TRACE_TREE = "checkpoints/traces-tree.json"
export const EXECUTIONS = "executions.ndjson"
export const SPANS = "spans.ndjson"
export const KEYS = "keys/vkeys.txt"
export const PDF = "evidence.pdf"
/** The statement with which a key endorsed the n-th one of vkeys.txt. */
export const endorsementName = (n: number): string => `keys/endorsement-${n}.txt`
export const NOTE_NAME = /^checkpoints\/([0-9]{1,15})\.txt$/
export const TRACE_NOTE_NAME = /^checkpoints\/traces-([0-9]{1,15})\.txt$/
/** The last checkpoint of the n-th key of vkeys.txt: it hands the tree over to the next key. */
export const HAND_OVER_NAME = /^checkpoints\/hand-over-([0-9]{1,15})\.txt$/
export const TRACE_HAND_OVER_NAME = /^checkpoints\/traces-hand-over-([0-9]{1,15})\.txt$/

/** What every pack has; without one of them there is nothing to hold the rest against. */
export const REQUIRED: ReadonlyArray<string> = [
  MANIFEST,
  SIGNATURE,
  SUMS,
  VERIFICATION,
  EVENTS,
  LINKS,
  ERASURES,
  TREE,
  PROOFS,
  FACTS,
  TRACE_LINKS,
  TRACE_TREE,
  EXECUTIONS,
  SPANS,
  KEYS
]

/** Files of a ZIP or folder: a pack has fewer than a hundred. */
export const FILES_MAX = 1_000
/** Bytes of one file that is read as a whole. */
export const SMALL_FILE_BYTES_MAX = 16_777_216

/** The pack can't be read at all: no verdict on its content. */
export class Unreadable extends Error {}

/**
 * True if the name is a relative path that every file system takes as it is: letters, digits and
 * "._-", no empty segment, none that ends with a dot.
 */
export const isSafeName = (name: string): boolean =>
  name.length <= 255
  && name.split("/").every((part) => /^[A-Za-z0-9._-]+$/.test(part) && !part.endsWith("."))

/** A file in pieces. */
export type Chunks = AsyncIterable<Uint8Array>

/** The files of one pack. */
export interface PackSource {
  readonly kind: "zip" | "folder"
  readonly names: ReadonlyArray<string>
  /** A file that `names` has, from its beginning. */
  open(name: string): Chunks
  close?(): Promise<void>
}
