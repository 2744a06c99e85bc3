/**
 * Reads the files of a ZIP through yauzl, or of a folder: as streams, with their checksums, and
 * never a place outside of it. What the files say is the caller's business.
 */
import { createReadStream } from "node:fs"
import { readdir, stat } from "node:fs/promises"
import { join } from "node:path"
import { crc32 } from "node:zlib"
import { openPromise, type Entry, type ZipFile } from "yauzl"
import { ArchiveUnreadable, FILES_MAX, type ArchiveReader } from "../../ports/Archive.ts"

/** Folders of a pack; what lies elsewhere below it is not looked at. */
const FOLDERS = ["", "checkpoints", "keys", "schema"]

/** An archive and how to let go of it. */
export interface OpenArchive {
  readonly reader: ArchiveReader
  readonly close: () => void
}

const tooMany = () => new ArchiveUnreadable({ message: "it holds more files than any pack" })

const reasonOf = (cause: unknown): string =>
  cause instanceof Error ? cause.message : String(cause)

async function* entryChunks(zip: ZipFile, entry: Entry): AsyncIterable<Uint8Array> {
  let checksum = 0
  try {
    const stream = await zip.openReadStreamPromise(entry)
    for await (const chunk of stream) {
      checksum = crc32(chunk as Buffer, checksum)
      yield chunk as Buffer
    }
  } catch (cause) {
    const message = `${entry.fileName} in the ZIP can't be read: ${reasonOf(cause)}`
    throw new ArchiveUnreadable({ message })
  }
  if (checksum !== entry.crc32) {
    const message = `${entry.fileName} in the ZIP is damaged: its checksum differs`
    throw new ArchiveUnreadable({ message })
  }
}

const readerOf = async (zip: ZipFile): Promise<ArchiveReader> => {
  const entries = new Map<string, Entry>()
  const duplicates = new Set<string>()
  let count = 0
  for await (const entry of zip.eachEntry()) {
    if (entry.fileName.endsWith("/")) continue
    count += 1
    if (count > FILES_MAX) throw tooMany()
    if (entries.has(entry.fileName)) duplicates.add(entry.fileName)
    entries.set(entry.fileName, entry)
  }
  return {
    kind: "zip",
    names: [...entries.keys()],
    duplicates: [...duplicates],
    open: (name) => entryChunks(zip, entries.get(name)!)
  }
}

const readZip = async (path: string): Promise<OpenArchive> => {
  let zip: ZipFile | undefined
  try {
    zip = await openPromise(path, { autoClose: false })
    const opened = zip
    return { reader: await readerOf(opened), close: () => opened.close() }
  } catch (cause) {
    zip?.close()
    if (cause instanceof ArchiveUnreadable) throw cause
    throw new ArchiveUnreadable({ message: "it is no ZIP, or its directory is damaged" })
  }
}

async function* fileChunks(path: string): AsyncIterable<Uint8Array> {
  try {
    for await (const chunk of createReadStream(path)) yield chunk as Buffer
  } catch (cause) {
    throw new ArchiveUnreadable({ message: `${path} can't be read: ${reasonOf(cause)}` })
  }
}

const readFolder = async (folder: string): Promise<OpenArchive> => {
  const names: Array<string> = []
  for (const inner of FOLDERS) {
    const entries = await readdir(join(folder, inner), { withFileTypes: true }).catch(() => [])
    for (const entry of entries) {
      if (entry.isFile()) names.push(inner === "" ? entry.name : `${inner}/${entry.name}`)
    }
  }
  if (names.length > FILES_MAX) throw tooMany()
  const reader: ArchiveReader = {
    kind: "folder",
    names,
    duplicates: [],
    open: (name) => fileChunks(join(folder, name))
  }
  return { reader, close: () => {} }
}

/** A ZIP or a folder; rejects with ArchiveUnreadable. */
export const readArchive = async (path: string): Promise<OpenArchive> => {
  const found = await stat(path).catch(() => undefined)
  if (found === undefined) throw new ArchiveUnreadable({ message: `${path} can't be opened` })
  return found.isDirectory() ? readFolder(path) : readZip(path)
}
