/**
 * One chain of a pack: its links, the Merkle tree that grows with them, and the checkpoints that
 * were signed of it.
 */
import { GENESIS_HASH, linkHashOf, linkLine } from "../../domain/chain/Chains.ts"
import { nextKeyOf, refusalOf, type TreeClaim } from "../../domain/chain/KeyStandings.ts"
import { NOT_IN_NOTES } from "../../domain/chain/NoteText.ts"
import { isObject } from "../../domain/json/Json.ts"
import { counted, type Findings, range } from "./Findings.ts"
import { hasStrings, isHash, isSequence, isSize, jsonOf } from "./Lines.ts"
import { type Checkpoint, checkpointOf } from "./Notes.ts"
import type { OpenPack } from "./OpenPack.ts"
import { type ChainFiles, FILE } from "./PackFiles.ts"
import { admitted, type Refuse, type Signers, type TakenNote } from "./Signers.ts"
import { subtreeLevels, Tree } from "./Tree.ts"

const SEQUENCE_MAX = Number.MAX_SAFE_INTEGER

/** The place of a record in its chain. */
export interface Link {
  readonly sequence_number: number
  readonly created_at: string
  readonly content_hash: string
  readonly prev_hash: string
  readonly hash: string
}

/** The link of a line; undefined unless the line is the very text that a link is written as. */
const linkOf = (line: string): Link | undefined => {
  const value = jsonOf(line)
  if (!hasStrings(value, "created_at", "content_hash", "prev_hash", "hash")) return undefined
  const { content_hash, created_at, hash, prev_hash, sequence_number } = value
  if (!isSequence(sequence_number) || !isHash(hash)) return undefined
  const link = { sequence_number, created_at, content_hash, prev_hash, hash }
  try {
    return linkLine(placeOf(link)) === line ? link : undefined
  } catch {
    return undefined
  }
}

const placeOf = (link: Link) => ({
  sequenceNumber: link.sequence_number,
  createdAt: link.created_at,
  contentHash: link.content_hash,
  prevHash: link.prev_hash,
  hash: link.hash
})

/** A chain of a pack. */
interface ChainOfPack {
  readonly pack: OpenPack
  readonly signers: Signers
  readonly tenant: string
  readonly files: ChainFiles
  /** Of its checkpoints. */
  readonly origin: string
  /** Its first sequence, as the manifest says it. */
  readonly first: unknown
}

/** The right edge of a tree: complete subtrees of the leaves from `start` to `end`. */
interface Edge {
  readonly start: number
  readonly end: number
  readonly hashes: ReadonlyArray<string>
}

const areHashes = (list: unknown): list is ReadonlyArray<string> =>
  Array.isArray(list) && list.every(isHash)

export class PackChain {
  readonly files: ChainFiles
  readonly origin: string
  readonly #pack: OpenPack
  readonly #signers: Signers
  readonly #found: Findings
  readonly #tenant: string
  /** The first sequence, as the manifest says it. */
  readonly #expectedFirst: unknown
  #notes: Array<TakenNote> = []
  /** Those with which keys have handed the tree over. */
  readonly #handOvers: Array<TakenNote> = []
  #tree = new Tree()
  #right: Edge = { start: 0, end: 0, hashes: [] }
  #treeHolds = true
  /** Sizes of trees whose roots are asked for, and the roots that the links make of them. */
  #wanted: ReadonlySet<number> = new Set()
  readonly #roots = new Map<number, string>()
  /** Roots by size that the links make and a key has signed. */
  readonly agreed = new Map<number, string>()
  /** Size of the largest tree that agrees and that a key of now, or a kept checkpoint, shows. */
  shown = 0
  /** Lines of its file. */
  links = 0
  first: Link | undefined
  last: Link | undefined
  /**
   * The sequences that the pack claims to hold, as far as its links and a tree can show it:
   * undefined where times decide it, `ends` SEQUENCE_MAX if nothing bounds its end.
   */
  begins: number | undefined
  ends: number | undefined
  /** Sequences outside of which it may hold none. */
  least = 1
  most = SEQUENCE_MAX
  /** The events up to here were removed for good before the pack was made. */
  removed = 0
  /** Is told of each link. */
  onLink: (link: Link) => void = () => {}

  constructor({ files, first, origin, pack, signers, tenant }: ChainOfPack) {
    this.#pack = pack
    this.#signers = signers
    this.#found = pack.found
    this.#tenant = tenant
    this.files = files
    this.origin = origin
    this.#expectedFirst = first
  }

  /** The last sequence; 0 without links. */
  get end(): number {
    return this.last?.sequence_number ?? 0
  }

  get signer(): string | undefined {
    return this.#signers.treeSigner
  }

  /** The checkpoints with which a key has handed the tree over. */
  readonly handOversBy = (vkey: string): ReadonlyArray<TreeClaim> =>
    this.#handOvers.filter(({ signers }) => signers.includes(vkey))

  async readTree(): Promise<void> {
    const tree = jsonOf((await this.#pack.text(this.files.edges)) ?? "")
    if (!isObject(tree)) return this.#badTree("JSON")
    const { left, right } = tree
    if (!isObject(left) || !isObject(right)) return this.#badTree("left and right edges")
    const [{ size }, { end, start }] = [left, right]
    const isWhole = [size, start, end].every(isSize)
    const [before, after] = [left["hashes"], right["hashes"]]
    if (!isWhole || !areHashes(before) || !areHashes(after)) {
      return this.#badTree("left and right edges")
    }
    const edge = { start: start as number, end: end as number, hashes: after }
    const levels = subtreeLevels(0, size as number)
    const isFitting =
      levels.length === before.length
      && edge.start <= edge.end
      && subtreeLevels(edge.start, edge.end).length === after.length
    if (!isFitting) return this.#badTree("edges of their size")
    for (const [at, level] of levels.entries()) this.#tree.push(level, before[at]!)
    this.#right = edge
  }

  #badTree(expected: string): void {
    this.#treeHolds = false
    if (this.#pack.has(this.files.edges)) this.#found.mismatch(this.files.edges, null, expected)
  }

  async readNotes(): Promise<void> {
    const { handOverName, noteName } = this.files
    const named = (pattern: RegExp) =>
      this.#pack.source.names.filter((name) => pattern.test(name)).sort()
    for (const name of named(noteName)) {
      await this.#readNote(name, Number(noteName.exec(name)![1]))
    }
    for (const name of named(handOverName)) await this.#readNote(name)
  }

  /** `wanted`: the size that the name of the file says; undefined for a tree handed over. */
  async #readNote(name: string, wanted?: number): Promise<void> {
    const {
      files: { noun },
      origin
    } = this
    const text = await this.#pack.text(name)
    const note = text === undefined ? undefined : checkpointOf(text)
    const size = wanted ?? note?.treeSize ?? null
    const bad = this.#refusing(name, size)
    if (note === undefined || note.treeSize !== size || note.origin !== origin) {
      const actual =
        note === undefined
          ? "something else"
          : `one of ${note.origin} for ${note.treeSize} ${noun}s`
      const of = wanted === undefined ? "" : ` for ${wanted} ${noun}s`
      return bad(`a checkpoint of ${origin}${of}`, actual)
    }
    const isHandOver = wanted === undefined
    if (isHandOver && nextKeyOf(note) === undefined) {
      return bad("a checkpoint that names the next key", "one that names none")
    }
    await this.#admit(note, { file: name, isHandOver }, bad)
  }

  #refusing(file: string, size: number | null): Refuse {
    return (expected, actual) =>
      this.#found.problem(file, size, "checkpoint_mismatch", expected, actual)
  }

  /** Adds a note of the pack if its signature verifies, and says whether it did. */
  async #admit(
    note: Checkpoint,
    of: Pick<TakenNote, "file" | "isHandOver">,
    bad: Refuse
  ): Promise<boolean> {
    const state = await admitted(note, this.#signers, bad)
    if (state !== undefined) this.add({ ...note, ...of, ...state, isKept: false })
    return state !== undefined
  }

  /** The point up to which the beginning of the claimed sequences was removed, if it was. */
  async readRemoved(pruned: unknown): Promise<void> {
    const {
      files: { noun },
      origin
    } = this
    const size = isObject(pruned) ? pruned["up_to_sequence"] : undefined
    if (this.begins === undefined || !isSequence(size) || size < this.begins) return
    const isText = hasStrings(pruned, "checkpoint") && !NOT_IN_NOTES.test(pruned.checkpoint)
    const note = isText ? checkpointOf(pruned.checkpoint) : undefined
    const root = isObject(pruned) ? pruned["root_hash"] : undefined
    const bad = this.#refusing(FILE.verification, size)
    if (note?.origin !== origin || note.treeSize !== size || note.rootHash !== root) {
      bad(`a checkpoint of ${origin} for ${size} ${noun}s`, "something else")
    } else if (await this.#admit(note, { file: FILE.verification, isHandOver: false }, bad)) {
      this.removed = size
      this.begins = size + 1
    }
  }

  add(note: TakenNote): void {
    this.#notes.push(note)
    if (nextKeyOf(note) !== undefined) this.#handOvers.push(note)
  }

  /** Leaves out what its key may not have signed. */
  judgeNotes(): void {
    const { line } = this.#signers
    this.#notes = this.#notes.filter(({ file, rootHash, signers, state, treeSize }) => {
      if (state !== "signed") return true
      const refusals = signers.map((vkey) => refusalOf(line, this, { vkey, treeSize, rootHash }))
      const [refusal] = refusals
      if (refusal === undefined || refusals.includes(undefined)) return true
      this.#refusing(file, treeSize)("a signature by a key that may sign it", refusal)
      return false
    })
  }

  /** The links one by one, each held against the one before it. */
  async *checkedLinks(): AsyncGenerator<Link, undefined> {
    const found = this.#found
    const { links: file, noun, scheme } = this.files
    this.#notes.sort((left, right) => left.treeSize - right.treeSize)
    this.#wanted = new Set(this.#notes.map(({ treeSize }) => treeSize))
    const first = this.#expectedFirst
    let expected = isSequence(first) ? first : this.#tree.size + 1
    if (expected !== this.#tree.size + 1 && this.#treeHolds) {
      this.#badTree(`the tree of ${expected - 1} ${noun}s on the left`)
    }
    let previous: Link | undefined
    for await (const line of this.#pack.lines(file)) {
      this.links += 1
      const link = line === undefined ? undefined : linkOf(line)
      if (link === undefined) {
        found.mismatch(file, expected, `the link of ${noun === "event" ? "an event" : "a fact"}`)
        this.#treeHolds = false
        previous = undefined
        expected += 1
        continue
      }
      const sequence = link.sequence_number
      if (sequence > expected) {
        found.problem(file, expected, "sequence_gap", range(expected, sequence - 1), "none")
        this.#treeHolds = false
      } else if (sequence < expected) {
        const reason = sequence === expected - 1 ? "duplicate_sequence" : "out_of_order"
        found.problem(file, sequence, reason, `sequence ${expected}`, `sequence ${sequence}`)
        this.#treeHolds = false
        continue
      }
      const isNext = previous?.sequence_number === sequence - 1
      const before = sequence === 1 ? GENESIS_HASH : isNext ? previous?.hash : undefined
      const hash = linkHashOf(scheme, { tenantId: this.#tenant, ...placeOf(link) })
      if (before !== undefined && link.prev_hash !== before) {
        found.problem(file, sequence, "prev_hash_mismatch", before, link.prev_hash)
      } else if (link.hash !== hash) {
        found.problem(file, sequence, "hash_mismatch", hash, link.hash)
      }
      this.#grow(link)
      previous = link
      expected = sequence + 1
      yield link
    }
  }

  #grow(link: Link): void {
    this.last = link
    this.first ??= link
    this.onLink(link)
    if (!this.#treeHolds) return
    // The tree after what is on the left, before the first link, may be asked for too.
    this.#keepRoot()
    this.#tree.leaf(link.hash)
    this.#keepRoot()
  }

  #keepRoot(): void {
    const { size } = this.#tree
    if (this.#wanted.has(size) && !this.#roots.has(size)) this.#roots.set(size, this.#tree.root())
  }

  /** The links against the sequences that the bounds name, where they were not cut off. */
  checkSpan(): void {
    if (this.first === undefined) return
    const { begins, end: last } = this
    const { links: file } = this.files
    const first = this.first.sequence_number
    const start = isSequence(this.#expectedFirst) ? this.#expectedFirst : first
    if (begins !== undefined && start > begins) {
      this.#found.problem(file, begins, "sequence_gap", range(begins, start - 1), "none")
    }
    const outside = [...(first < this.least ? [first] : []), ...(last > this.most ? [last] : [])]
    for (const sequence of outside) {
      this.#found.mismatch(file, sequence, "a sequence within the bounds", `sequence ${sequence}`)
    }
  }

  /** First and last of what the pack claims to hold of a tree and ends before, or undefined. */
  missingTo(size: number): readonly [number, number] | undefined {
    const start = this.last === undefined ? this.begins : this.end + 1
    if (start === undefined || this.ends === undefined) return undefined
    const end = Math.min(this.ends, size)
    return end < start ? undefined : [start, end]
  }

  /** The roots that were signed against the tree of the links. */
  checkNotes(): void {
    const found = this.#found
    const { links: file, noun } = this.files
    const matches = { to: (this.first?.sequence_number ?? 1) - 1, covered: 0 }
    const agreeing = this.#notes.filter((note) => this.#checkNote(note, matches))
    if (agreeing.length > 0) {
      const sizes = agreeing.slice(-5).map(({ treeSize }) => counted(treeSize, noun))
      found.checked.push(
        `The Merkle root over ${file} equals ${counted(agreeing.length, "signed checkpoint")} `
          + `(${sizes.join(", ")}).`
      )
    }
    if (this.first !== undefined && this.end > matches.covered && this.#treeHolds) {
      const from = Math.max(matches.covered + 1, this.first.sequence_number)
      found.open.push(
        `Nothing signed covers ${range(from, this.end)} of ${file}: it could have been rewritten.`
      )
    }
    if (!this.#treeHolds) {
      found.open.push(
        `The checkpoints of ${file}: its links do not make a tree that could be compared.`
      )
    }
  }

  /** True if a checkpoint agrees; moves what matches, and what is covered by a signature. */
  #checkNote(note: TakenNote, matches: { to: number; covered: number }): boolean {
    const found = this.#found
    const { noun } = this.files
    const { end: last } = this
    const { file, isKept, rootHash: root, signers, state, treeSize: size } = note
    const own = this.#rootAt(size)
    const missing = this.#treeHolds ? this.missingTo(size) : undefined
    if (missing !== undefined) {
      const expected = `${range(...missing)}, as the checkpoint says`
      found.problem(file, missing[0], "tail_missing", expected, "none")
    } else if (isKept && this.#treeHolds && last > 0 && last < size) {
      found.open.push(
        `The checkpoint ${file}: it covers ${counted(size, noun)}, the pack ends at ${last}.`
      )
    }
    if (own === undefined) {
      if (missing === undefined) this.#unreached(note)
      return false
    }
    if (own !== root) {
      const places = `${matches.to + 1} to ${Math.min(size, last)}`
      this.#refusing(file, size)(
        `root ${root} over ${size} ${noun}s`,
        `root ${own}: not all of the ${noun}s ${places} are those that were signed`
      )
      return false
    }
    matches.to = Math.max(matches.to, Math.min(size, last))
    if (state === "signed" || state === "unchecked") this.agreed.set(size, own)
    if (state === "signed" || isKept) matches.covered = Math.max(matches.covered, size)
    const isShown = state === "signed" && (isKept || this.#signers.areKnown(signers))
    if (isShown) this.shown = Math.max(this.shown, size)
    if (state === "unknown_key") {
      found.open.push(`The signature of ${file}: by a key that was not given.`)
    }
    return true
  }

  #rootAt(size: number): string | undefined {
    if (!this.#treeHolds) return undefined
    if (this.#roots.has(size)) return this.#roots.get(size)
    const { end, hashes, start } = this.#right
    const isEdge = size === end && start === this.end && this.#tree.size === start && size > start
    if (!isEdge) return undefined
    const tree = new Tree(this.#tree)
    for (const [at, level] of subtreeLevels(start, end).entries()) tree.push(level, hashes[at]!)
    return tree.root()
  }

  #unreached({ file, isHandOver, isKept, treeSize: size }: TakenNote): void {
    const { noun } = this.files
    // A tree that was handed over outside of the links only bounds what its key may sign.
    if (!this.#treeHolds || isHandOver) return
    if (this.first === undefined || size < this.first.sequence_number - 1) {
      this.#found.open.push(
        `The checkpoint ${file}: it covers ${counted(size, noun)}, none of them in this pack.`
      )
      return
    }
    if (isKept) return
    const expected = `${range(this.end + 1, size)}, as the checkpoint says`
    this.#found.problem(file, this.end + 1, "tail_missing", expected, "none")
  }
}
