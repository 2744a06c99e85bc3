/** The files of a pack: their names, which of them every pack has, and where they are read from. */
import { SCHEME } from "../../domain/events/HashChain.ts"
import { TRACE_SCHEME } from "../../domain/traces/FactText.ts"

export const FORMAT = "alk-evidence-pack-v2"
/** What every pack has; without one of them there is nothing to hold the rest against. */
const required = {
  manifest: "manifest.json",
  signature: "manifest.sig",
  sums: "sha256sums.txt",
  verification: "verification.json",
  events: "events.ndjson",
  links: "links.ndjson",
  erasures: "erasures.ndjson",
  tree: "checkpoints/tree.json",
  proofs: "checkpoints/erasure-proofs.ndjson",
  facts: "facts.ndjson",
  traceLinks: "trace-links.ndjson",
  traceTree: "checkpoints/traces-tree.json",
  executions: "executions.ndjson",
  spans: "spans.ndjson",
  keys: "keys/vkeys.txt"
} as const
export const REQUIRED: ReadonlyArray<string> = Object.values(required)

/** Names of files. */
export const FILE = { ...required, pdf: "evidence.pdf" } as const
/** The statement with which a key endorsed the n-th one of vkeys.txt. */
export const endorsementName = (n: number): string => `keys/endorsement-${n}.txt`

/** The files of a chain, and what it is of. */
export interface ChainFiles {
  readonly edges: string
  readonly links: string
  /** Of its checkpoints: with the size of each. */
  readonly noteName: RegExp
  /** Of the last checkpoint of the n-th key of vkeys.txt: it hands the tree over to the next key. */
  readonly handOverName: RegExp
  readonly noun: "event" | "fact"
  readonly scheme: string
}

export const EVENT_CHAIN: ChainFiles = {
  edges: FILE.tree,
  links: FILE.links,
  noteName: /^checkpoints\/([0-9]{1,15})\.txt$/,
  handOverName: /^checkpoints\/hand-over-([0-9]{1,15})\.txt$/,
  noun: "event",
  scheme: SCHEME
}

export const TRACE_CHAIN: ChainFiles = {
  edges: FILE.traceTree,
  links: FILE.traceLinks,
  noteName: /^checkpoints\/traces-([0-9]{1,15})\.txt$/,
  handOverName: /^checkpoints\/traces-hand-over-([0-9]{1,15})\.txt$/,
  noun: "fact",
  scheme: TRACE_SCHEME
}

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
