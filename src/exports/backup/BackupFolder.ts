/**
 * The folder of a backup on disk: files that are there whole or not at all, named by their hashes,
 * and the manifest that says which of them count.
 */
import { hash } from "node:crypto"
import * as fs from "node:fs"
import { dirname, join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import zlib from "node:zlib"
import {
  type BackupContent,
  type BackupKey,
  type BackupManifest,
  type BackupSegment,
  MANIFEST_FILE,
  manifestText,
  readManifest
} from "../../domain/backup/BackupManifest.ts"
import { readSegmentName, type SegmentName, segmentName } from "../../domain/backup/BackupPlan.ts"
import { type BackupRecord, readSegment } from "../../domain/backup/BackupSegment.ts"
import { inflateSync } from "../../domain/Inflate.ts"
import type { RecordMac } from "../../domain/records/RecordMac.ts"
import { MESSAGE_BYTES_MAX } from "../../domain/records/Topics.ts"

const SEGMENTS = "segments"
const KEYS = "keys"
/** Locked by the run that writes. */
const LOCK = "lock"
/** Ends the name of a file that is being written. */
const PART = ".part"
/** Ends the name of a file with the MAC of a segment that no manifest names yet. */
const MAC = ".mac"

/** Bytes of a segment's records at most: one is ended by the record that makes it large. */
const CONTENT_BYTES_MAX = 4 * MESSAGE_BYTES_MAX

/** Only the owner reads a backup: it holds what the log holds. */
const FILE_MODE = 0o600
const FOLDER_MODE = 0o700

/** The folder is not what it has to be; the message names the file. */
export class BackupUnusable extends Error {
  override readonly name = "BackupUnusable"
}

const sha256 = (bytes: Buffer): string => hash("sha256", bytes, "hex")

const syncFolder = (path: string): void => {
  const descriptor = fs.openSync(path, "r")
  try {
    fs.fsyncSync(descriptor)
  } finally {
    fs.closeSync(descriptor)
  }
}

/** Every file is written by this: anew, so that no link and no file of others is written to. */
const writeWhole = (folder: string, name: string, bytes: string | Buffer): void => {
  const path = join(folder, name)
  fs.rmSync(`${path}${PART}`, { force: true })
  const descriptor = fs.openSync(`${path}${PART}`, "wx", FILE_MODE)
  try {
    fs.writeFileSync(descriptor, bytes)
    fs.fsyncSync(descriptor)
  } finally {
    fs.closeSync(descriptor)
  }
  fs.renameSync(`${path}${PART}`, path)
  syncFolder(dirname(path))
}

/** The bytes of a file if they are what was written; throws BackupUnusable, naming the file. */
const readChecked = (
  folder: string,
  { bytes, file, sha256: expected }: Pick<BackupSegment, "file" | "bytes" | "sha256">
): Buffer => {
  const path = join(folder, file)
  if (!fs.existsSync(path)) throw new BackupUnusable(`${path} is missing from the backup`)
  const content = fs.readFileSync(path)
  if (content.length !== bytes || sha256(content) !== expected) {
    throw new BackupUnusable(
      `${path} is damaged: it has ${content.length} bytes and another SHA-256 than the manifest says`
    )
  }
  return content
}

/** The records of a segment's file. Throws BackupUnusable. */
const contentOf = (file: string, bytes: Buffer): Buffer => {
  try {
    return inflateSync("zstd", bytes, CONTENT_BYTES_MAX)
  } catch (cause) {
    throw new BackupUnusable(`${file} can't be read: ${(cause as Error).message}`, { cause })
  }
}

export class BackupFolder {
  readonly path: string

  constructor(path: string) {
    this.path = path
  }

  /** What the folder holds; undefined if it has no manifest. Throws RecordUnreadable if damaged. */
  manifest(): BackupManifest | undefined {
    const path = join(this.path, MANIFEST_FILE)
    return fs.existsSync(path) ? readManifest(fs.readFileSync(path, "utf8")) : undefined
  }

  /** Makes the folder, and keeps other backups out of it until `release` is called. */
  open(): { readonly release: () => void } {
    if (fs.existsSync(this.path) && this.manifest() === undefined) this.#refuseForeign()
    for (const name of [SEGMENTS, KEYS, LOCK]) this.#refuseLink(name)
    for (const folder of [this.path, join(this.path, SEGMENTS), join(this.path, KEYS)]) {
      fs.mkdirSync(folder, { recursive: true, mode: FOLDER_MODE })
    }
    const database = new DatabaseSync(join(this.path, LOCK))
    try {
      // The kernel drops the lock with the process, however that ends.
      database.exec("PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE")
    } catch {
      database.close()
      throw new BackupUnusable(`${this.path} is being written by another alk backup`)
    }
    return { release: () => database.close() }
  }

  /** Files that a run has left behind before its manifest, each with a MAC that `isOwn` takes. */
  leftBehind(
    known: ReadonlySet<string>,
    isOwn: (file: string, mac: string) => boolean
  ): ReadonlyArray<SegmentName> {
    const files = fs.readdirSync(join(this.path, SEGMENTS), { withFileTypes: true })
    return files.flatMap((entry) => {
      if (!entry.isFile()) return []
      const { name } = entry
      const file = `${SEGMENTS}/${name}`
      const read = known.has(file) ? undefined : readSegmentName(name)
      const macPath = join(this.path, `${file}${MAC}`)
      if (read === undefined || !fs.existsSync(macPath)) return []
      if (!isOwn(file, fs.readFileSync(macPath, "utf8"))) return []
      const bytes = fs.readFileSync(join(this.path, file))
      return sha256(bytes) === read.sha256 ? [read] : []
    })
  }

  /** The segment of a file that was left behind, and its last record. */
  adopt(name: SegmentName) {
    const file = `${SEGMENTS}/${segmentName(name)}`
    const bytes = fs.readFileSync(join(this.path, file))
    const records = readSegment(contentOf(file, bytes))
    const { from, sha256: digest, to } = name
    const size = { records: records.length, bytes: bytes.length }
    const segment: BackupSegment = { file, from, to, ...size, sha256: digest }
    return { segment, last: records.at(-1) }
  }

  /** Writes the records of [from, to). */
  write(
    place: Pick<SegmentName, "topic" | "partition" | "from" | "to">,
    content: Buffer,
    records: number
  ): BackupSegment {
    const bytes = zlib.zstdCompressSync(content)
    const digest = sha256(bytes)
    const name = segmentName({ ...place, sha256: digest })
    writeWhole(join(this.path, SEGMENTS), name, bytes)
    const { from, to } = place
    return { file: `${SEGMENTS}/${name}`, from, to, records, bytes: bytes.length, sha256: digest }
  }

  /** Lets a later run use the segment, should this one break off. */
  keepMac({ file }: BackupSegment, mac: string): void {
    writeWhole(this.path, `${file}${MAC}`, mac)
  }

  /** Throws BackupUnusable or RecordUnreadable. */
  records(segment: BackupSegment): ReadonlyArray<BackupRecord> {
    return readSegment(contentOf(segment.file, readChecked(this.path, segment)))
  }

  /** Throws BackupUnusable unless the file is what was written. */
  check(file: Pick<BackupSegment, "file" | "bytes" | "sha256">): Buffer {
    return readChecked(this.path, file)
  }

  /** `name` without its folder. */
  writeKey(name: string, content: string): BackupKey {
    writeWhole(join(this.path, KEYS), name, content)
    const bytes = Buffer.from(content)
    return { file: `${KEYS}/${name}`, bytes: bytes.length, sha256: sha256(bytes) }
  }

  /** From here on the new content counts; files that it does not name go. */
  complete(content: BackupContent, mac: RecordMac): void {
    writeWhole(this.path, MANIFEST_FILE, manifestText(content, mac))
    const named = new Set([
      ...content.keys.map(({ file }) => file),
      ...content.parts.flatMap(({ segments }) => segments.map(({ file }) => file))
    ])
    for (const folder of [SEGMENTS, KEYS]) {
      for (const file of fs.readdirSync(join(this.path, folder))) {
        if (!named.has(`${folder}/${file}`)) fs.rmSync(join(this.path, folder, file))
      }
    }
  }

  /** A link would lead out of the folder. */
  #refuseLink(name: string): void {
    const path = join(this.path, name)
    if (fs.lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return
    throw new BackupUnusable(`${path} is a link: remove it, or name an empty folder`)
  }

  /** A folder without a manifest is ours if it holds nothing but what a first run has left behind. */
  #refuseForeign(): void {
    const own = new Set([SEGMENTS, KEYS, LOCK, `${MANIFEST_FILE}${PART}`])
    const foreign = fs.readdirSync(this.path).find((name) => !own.has(name))
    if (foreign === undefined) return
    throw new BackupUnusable(
      `${this.path} holds ${foreign}, and is no backup: name an empty folder, or one that alk backup made`
    )
  }
}
