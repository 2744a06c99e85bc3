/**
 * The signed part of a pack that is being checked: keys, the manifest's signature, the checkpoints,
 * and the Merkle tree that grows with the links and must lead to the roots that were signed.
 */
import { keyIdOf, openNote, originOf, VkeyInvalid } from "../domain/Checkpoint.ts"
import {
  EMPTY_ROOT,
  leafHash,
  nodeHash,
  verifyInclusion,
  type TreeNode
} from "../domain/MerkleTree.ts"
import { ArchiveUnreadable } from "../ports/Archive.ts"
import { counted, packFiles, sequences, type PackFindings } from "./PackFindings.ts"
import { jsonOf, type PackFiles } from "./PackFiles.ts"
import { isFields, isSequence, type PackManifest } from "./PackManifest.ts"
import { subtreesOf } from "./PackTree.ts"

/** A public key that was given: with its name as C2SP writes it, or bare. */
export type GivenKey = { readonly vkey: string } | { readonly raw: Buffer }

/** A checkpoint that was given, and what to call it. */
export interface GivenCheckpoint {
  readonly label: string
  /** The signed note, or the checkpoint as the API answers it. */
  readonly text: string
}

const noteTextOf = (text: string): string => {
  const record = text.trimStart().startsWith("{") ? jsonOf(text) : undefined
  const note = isFields(record) ? record["note"] : undefined
  return typeof note === "string" ? note : text
}

const SPKI_PREFIX = Buffer.from("302a300506032b6570032100", "hex")
const KEY_BYTES = 32
const ED25519 = 1

const vkeyOf = (name: string, raw: Buffer): string =>
  `${name}+${keyIdOf(name, raw)}+${Buffer.concat([Buffer.from([ED25519]), raw]).toString("base64")}`

const isVkey = (text: string): boolean => {
  try {
    openNote("", [text])
    return true
  } catch (error) {
    if (error instanceof VkeyInvalid) return false
    throw error
  }
}

/** Every public key in a text: C2SP keys, JWKs, a PEM, or 32 bytes in base64. */
export const keysOfText = (text: string): ReadonlyArray<GivenKey> => {
  const named = text.split(/[\s",]+/u).filter(isVkey)
  if (named.length > 0) return named.map((vkey) => ({ vkey }))
  if (text.trim().startsWith("{")) {
    const points = [...text.matchAll(/"x"\s*:\s*"([A-Za-z0-9_-]{43})"/gu)]
    return points.map(([, x]) => ({ raw: Buffer.from(x!, "base64url") }))
  }
  const base64 = text.replaceAll(/-----[^-]+-----/gu, "").replaceAll(/\s+/gu, "")
  const bytes = Buffer.from(base64, "base64")
  if (bytes.toString("base64") !== base64) return []
  if (bytes.length === KEY_BYTES) return [{ raw: bytes }]
  const isSpki =
    bytes.length === SPKI_PREFIX.length + KEY_BYTES &&
    bytes.subarray(0, SPKI_PREFIX.length).equals(SPKI_PREFIX)
  return isSpki ? [{ raw: bytes.subarray(SPKI_PREFIX.length) }] : []
}

interface Note {
  /** File of the pack, or what the checkpoint that was given is called. */
  readonly file: string
  readonly size: number
  readonly root: string
  readonly state: "signed" | "unknown_key"
  readonly isKept: boolean
}

/** What a note says whoever signed it: a checkpoint's lines before any signature is checked. */
const claimOf = (text: string) => {
  const end = text.lastIndexOf("\n\n")
  if (end < 0) return undefined
  const [origin, size, root] = text.slice(0, end).split("\n")
  const hash = root === undefined ? undefined : Buffer.from(root, "base64")
  if (!origin || hash?.length !== 32 || !/^(?:0|[1-9][0-9]{0,15})$/u.test(size ?? "")) {
    return undefined
  }
  return { origin, size: Number(size), root: hash.toString("hex") }
}

type Opened =
  | { readonly state: "malformed" }
  | {
      readonly state: "signed" | "unknown_key" | "bad_signature"
      readonly origin: string
      readonly size: number
      readonly root: string
      readonly signer: string
    }

const HEX = /^[0-9a-f]{64}$/u

const areHashes = (value: unknown): value is ReadonlyArray<string> =>
  Array.isArray(value) && value.every((hash) => typeof hash === "string" && HEX.test(hash))

const isSize = (value: unknown): value is number => value === 0 || isSequence(value)

interface Edge {
  readonly start: number
  readonly end: number
  readonly hashes: ReadonlyArray<string>
}

const NOTE_NAME = /^checkpoints\/([0-9]+)\.txt$/u

/** Complete subtrees from left to right, largest first, growing at the right edge. */
class Peaks {
  size = 0
  readonly #peaks: Array<{ readonly level: number; readonly hash: Buffer }> = []

  push(level: number, hash: Buffer): void {
    this.size += 2 ** level
    let [top, node] = [level, hash]
    while (this.#peaks.at(-1)?.level === top) {
      node = nodeHash(this.#peaks.pop()!.hash, node)
      top += 1
    }
    this.#peaks.push({ level: top, hash: node })
  }

  pushAll(nodes: ReadonlyArray<TreeNode>, hashes: ReadonlyArray<string>): void {
    nodes.forEach(({ level }, at) => this.push(level, Buffer.from(hashes[at]!, "hex")))
  }

  root(): string {
    const hashes = this.#peaks.map(({ hash }) => hash)
    if (hashes.length === 0) return EMPTY_ROOT.toString("hex")
    return hashes.reduceRight((right, left) => nodeHash(left, right)).toString("hex")
  }

  copy(): Peaks {
    const copy = new Peaks()
    for (const { hash, level } of this.#peaks) copy.push(level, hash)
    return copy
  }
}

export class PackSeal {
  /** False once the links, or what stands beside them, make no tree. */
  holds = true
  readonly #files: PackFiles
  readonly #found: PackFindings
  readonly #manifest: PackManifest
  readonly #pinned: ReadonlyArray<GivenKey>
  readonly #notes: Array<Note> = []
  readonly #wanted = new Set<number>()
  readonly #roots = new Map<number, string>()
  readonly #peaks = new Peaks()
  readonly #origin: string
  #own: ReadonlyArray<string> = []
  #vkeys: ReadonlyArray<string> = []
  #right: Edge = { start: 0, end: 0, hashes: [] }

  constructor(
    files: PackFiles,
    found: PackFindings,
    manifest: PackManifest,
    pinned: ReadonlyArray<GivenKey>
  ) {
    this.#files = files
    this.#found = found
    this.#manifest = manifest
    this.#pinned = pinned
    this.#origin = originOf(manifest.service, manifest.tenantId)
  }

  get isPinned(): boolean {
    return this.#pinned.length > 0
  }

  /** Name and id of each key that the pack brings along. */
  get ownKeys(): string {
    return this.#own.map((vkey) => vkey.split("+", 2).join("+")).join(", ")
  }

  /** Leaves of the tree so far. */
  get size(): number {
    return this.#peaks.size
  }

  async readKeys(): Promise<void> {
    const text = (await this.#files.text(packFiles.keys)) ?? ""
    this.#own = text.split(/\s+/u).filter(isVkey)
    const { service } = this.#manifest
    this.#vkeys = this.isPinned
      ? this.#pinned.map((key) => ("vkey" in key ? key.vkey : vkeyOf(service, key.raw)))
      : this.#own
  }

  #open(text: string | undefined): Opened {
    const claim = text === undefined ? undefined : claimOf(text)
    const opened = text === undefined ? undefined : openNote(text, this.#vkeys)
    if (claim === undefined || opened === undefined) return { state: "malformed" }
    if ("checkpoint" in opened) {
      const { keyIds, origin, rootHash, treeSize } = opened.checkpoint
      return { state: "signed", origin, size: treeSize, root: rootHash, signer: keyIds[0] }
    }
    return opened.refusal === "malformed"
      ? { state: "malformed" }
      : { state: opened.refusal, ...claim, signer: "" }
  }

  async checkSignature(): Promise<void> {
    const { signature } = packFiles
    if (!this.#files.has(signature)) return
    const opened = this.#open(await this.#files.text(signature))
    const who = this.isPinned ? "the public key that was given" : `a key of ${packFiles.keys}`
    const bad = (expected: string, actual: string) =>
      this.#found.problem(signature, null, "signature_invalid", expected, actual)
    if (opened.state === "malformed") return bad("a signed note", "something else")
    if (opened.state === "unknown_key") {
      return bad(`a signature by ${who}`, "a signature by another key")
    }
    if (opened.state === "bad_signature") {
      return bad(`a signature by ${who}`, "one that does not verify")
    }
    const digest = this.#files.hashOf(packFiles.manifest)
    const isOfManifest =
      opened.origin === `${this.#origin}/evidence-pack-v1` &&
      opened.size === this.#manifest.bytes &&
      opened.root === digest
    if (!isOfManifest) {
      const wanted = `the SHA-256 of ${packFiles.manifest}, ${digest}`
      return bad(wanted, `${opened.origin} ${opened.root}`)
    }
    const signer = `${this.#manifest.service}+${opened.signer}`
    this.#found.checked.push(`${packFiles.manifest} is signed by ${signer}.`)
  }

  async readTree(): Promise<void> {
    const tree = jsonOf(await this.#files.text(packFiles.tree))
    if (!isFields(tree)) return this.broken("JSON")
    const { left, right } = tree
    const isWhole =
      isFields(left) &&
      isFields(right) &&
      areHashes(left["hashes"]) &&
      areHashes(right["hashes"]) &&
      isSize(left["size"]) &&
      isSize(right["start"]) &&
      isSize(right["end"])
    if (!isWhole) return this.broken("left and right edges")
    const nodes = subtreesOf(0, left["size"] as number)
    const edge = right as unknown as Edge
    const isFitting =
      nodes.length === (left["hashes"] as ReadonlyArray<string>).length &&
      edge.start <= edge.end &&
      subtreesOf(edge.start, edge.end).length === edge.hashes.length
    if (!isFitting) return this.broken("edges of their size")
    this.#peaks.pushAll(nodes, left["hashes"] as ReadonlyArray<string>)
    this.#right = edge
  }

  /** The tree's edges are not what they have to be. */
  broken(expected: string): void {
    this.holds = false
    if (!this.#files.has(packFiles.tree)) return
    this.#found.problem(packFiles.tree, null, "content_mismatch", expected, "something else")
  }

  /** The checkpoints of the pack, and those that were given. */
  async readNotes(kept: ReadonlyArray<GivenCheckpoint>): Promise<void> {
    for (const name of this.#files.names.filter((name) => NOTE_NAME.test(name)).sort()) {
      this.#packNote(name, this.#open(await this.#files.text(name)))
    }
    for (const { label, text } of kept) this.#keptNote(label, this.#open(noteTextOf(text)))
    this.#notes.sort((left, right) => left.size - right.size)
    for (const { size } of this.#notes) this.#wanted.add(size)
  }

  #packNote(name: string, opened: Opened): void {
    const size = Number(NOTE_NAME.exec(name)![1])
    const bad = (expected: string, actual: string) =>
      this.#found.problem(name, size, "checkpoint_mismatch", expected, actual)
    const isAsNamed =
      opened.state !== "malformed" && opened.size === size && opened.origin === this.#origin
    if (!isAsNamed) {
      const actual =
        opened.state === "malformed"
          ? "something else"
          : `one of ${opened.origin} for ${opened.size} events`
      return bad(`a checkpoint of ${this.#origin} for ${size} events`, actual)
    }
    const { root, state } = opened
    if (state === "bad_signature") return bad("a signature that verifies", "one that does not")
    if (state === "unknown_key" && !this.isPinned) {
      return bad(`a signature by a key of ${packFiles.keys}`, "another key's")
    }
    this.#notes.push({ file: name, size, root, state, isKept: false })
  }

  #keptNote(label: string, opened: Opened): void {
    const refuse = (message: string): never => {
      throw new ArchiveUnreadable({ message: `${label} ${message}` })
    }
    if (opened.state === "malformed") return refuse("is no signed checkpoint")
    if (opened.origin !== this.#origin) {
      return refuse(`is a checkpoint of ${opened.origin}, the pack is of ${this.#origin}`)
    }
    if (opened.state === "bad_signature") return refuse("has a signature that does not verify")
    const { root, size, state } = opened
    this.#notes.push({ file: label, size, root, state, isKept: true })
  }

  /** The next link's hash; the roots that were signed are taken on the way. */
  grow(eventHash: string): void {
    if (!this.holds) return
    this.#remember()
    this.#peaks.push(0, leafHash(eventHash))
    this.#remember()
  }

  #remember(): void {
    const { size } = this.#peaks
    if (this.#wanted.has(size)) this.#roots.set(size, this.#peaks.root())
  }

  /** True if a line of the proofs shows that an event stands in a tree that was signed. */
  proves(eventHash: string, sequence: number, treeSize: unknown, proof: ReadonlyArray<string>) {
    const note = this.#notes.find(({ size, state }) => state === "signed" && size === treeSize)
    return (
      note !== undefined &&
      verifyInclusion({
        leaf: leafHash(eventHash),
        index: sequence - 1,
        size: note.size,
        root: Buffer.from(note.root, "hex"),
        proof: proof.map((hash) => Buffer.from(hash, "hex"))
      })
    )
  }

  /** Hold the roots that were signed against the tree of the links `first` to `last`. */
  checkNotes(first: number | undefined, last: number): void {
    const found = this.#found
    let matched = first === undefined ? 0 : first - 1
    let covered = 0
    const agreeing: Array<number> = []
    for (const note of this.#notes) {
      const { file, isKept, root, size, state } = note
      const own = this.#rootAt(size, last)
      const end = Math.min(size, last)
      if (own === undefined) this.#unreached(note, first, last)
      else if (own !== root) {
        found.problem(
          file,
          size,
          "checkpoint_mismatch",
          `root ${root} over ${size} events`,
          `root ${own}: not all of the events ${matched + 1} to ${end} are those that were signed`
        )
      } else {
        matched = Math.max(matched, end)
        agreeing.push(size)
        if (state === "signed" || isKept) covered = Math.max(covered, size)
        if (state === "unknown_key") {
          found.open.push(`The signature of ${file}: by a key that was not given.`)
        }
      }
    }
    this.#conclude(agreeing, Math.max(covered + 1, first ?? 0), last)
  }

  #conclude(agreeing: ReadonlyArray<number>, firstOpen: number, last: number): void {
    const { checked, open } = this.#found
    if (agreeing.length > 0) {
      const shown = agreeing.slice(-5).map((size) => counted(size, "event"))
      checked.push(
        `The Merkle root over the links equals ${counted(agreeing.length, "signed checkpoint")} ` +
          `(${shown.join(", ")}).`
      )
    }
    if (!this.holds) {
      open.push("The checkpoints: the links do not make a tree that could be compared.")
    } else if (last >= firstOpen) {
      const range = sequences(firstOpen, last)
      open.push(`Nothing signed covers ${range}: whoever can write could have rewritten it.`)
    }
  }

  #rootAt(size: number, last: number): string | undefined {
    if (!this.holds) return undefined
    const known = this.#roots.get(size)
    const { end, hashes, start } = this.#right
    const reaches = size === end && start === last && this.#peaks.size === last && size > last
    if (known !== undefined || !reaches) return known
    const peaks = this.#peaks.copy()
    peaks.pushAll(subtreesOf(start, end), hashes)
    return peaks.root()
  }

  #unreached({ file, isKept, size }: Note, first: number | undefined, last: number): void {
    if (!this.holds) return
    const { open } = this.#found
    const events = counted(size, "event")
    if (first === undefined || size < first - 1) {
      open.push(`The checkpoint ${file}: it covers ${events}, none of them in this pack.`)
    } else if (this.#manifest.isOpen || !isKept) {
      const expected = `${sequences(last + 1, size)}, as the checkpoint says`
      this.#found.problem(file, last + 1, "tail_missing", expected, "none")
    } else {
      open.push(`The checkpoint ${file}: it covers ${events}, the pack ends at ${last}.`)
    }
  }
}
