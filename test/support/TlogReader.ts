/**
 * A client of C2SP tlog-tiles, made from the specification: reads every tile and entry bundle of a
 * log and recomputes each tile, and the root, from the entries. Shares no code with alk.
 */
import { hash } from "node:crypto"

/** What is behind a path below the prefix of the log. */
export type Fetch = (path: string) => Promise<Buffer>

const WIDTH = 256
const HASH_BYTES = 32

const sha256 = (...parts: ReadonlyArray<Uint8Array>): Buffer =>
  hash("sha256", Buffer.concat(parts), "buffer")

/** `x001/x234/067` */
export const pathOfIndex = (index: number): string => {
  const digits = String(index)
  const padded = digits.padStart(Math.ceil(digits.length / 3) * 3, "0")
  const groups = padded.match(/[0-9]{3}/g)!
  return groups.map((group, at) => (at === groups.length - 1 ? group : `x${group}`)).join("/")
}

/** Index with width of each tile of a level of `count` hashes. */
const tilesOf = (count: number): ReadonlyArray<{ readonly path: string; readonly width: number }> =>
  Array.from({ length: Math.ceil(count / WIDTH) }, (_, index) => {
    const width = Math.min(WIDTH, count - index * WIDTH)
    return { path: pathOfIndex(index) + (width < WIDTH ? `.p/${width}` : ""), width }
  })

/** MTH of RFC 6962, section 2.1, over hashes of leaves. */
const rootOf = (hashes: ReadonlyArray<Buffer>): Buffer => {
  if (hashes.length === 1) return hashes[0]!
  let left = 1
  while (left * 2 < hashes.length) left *= 2
  return sha256(Buffer.from([1]), rootOf(hashes.slice(0, left)), rootOf(hashes.slice(left)))
}

const entriesOf = (bundle: Buffer): ReadonlyArray<Buffer> => {
  const entries: Array<Buffer> = []
  for (let at = 0; at < bundle.length; ) {
    const length = bundle.readUInt16BE(at)
    const entry = bundle.subarray(at + 2, at + 2 + length)
    if (entry.length !== length) throw new Error("a bundle ends within an entry")
    entries.push(entry)
    at += 2 + length
  }
  return entries
}

export interface ReadLog {
  readonly origin: string
  readonly size: number
  /** Base64, as the checkpoint has it. */
  readonly root: string
  readonly entries: ReadonlyArray<Buffer>
  /** Every path that was read, in order. */
  readonly paths: ReadonlyArray<string>
}

/** Reads all of a log; throws where something of it does not fit. Believes the signature. */
export const readLog = async (fetch: Fetch): Promise<ReadLog> => {
  const note = (await fetch("checkpoint")).toString()
  const [origin = "", sizeText, root = ""] = note.split("\n")
  const size = Number(sizeText)
  const paths: Array<string> = []
  const read = (path: string) => {
    paths.push(path)
    return fetch(path)
  }
  const entries: Array<Buffer> = []
  for (const { path, width } of tilesOf(size)) {
    const found = entriesOf(await read(`tile/entries/${path}`))
    if (found.length !== width) throw new Error(`${path}: ${found.length} entries`)
    entries.push(...found)
  }
  const leaves = entries.map((entry) => sha256(Buffer.from([0]), entry))
  let hashes = leaves
  for (let level = 0; hashes.length > 0; level++) {
    for (const [index, { path, width }] of tilesOf(hashes.length).entries()) {
      const expected = Buffer.concat(hashes.slice(index * WIDTH, index * WIDTH + width))
      const found = await read(`tile/${level}/${path}`)
      if (expected.length !== width * HASH_BYTES) throw new Error("not hashes")
      if (!found.equals(expected)) throw new Error(`tile/${level}/${path} is another tile`)
    }
    const full = Math.floor(hashes.length / WIDTH)
    const below = hashes
    hashes = Array.from({ length: full }, (_, index) =>
      rootOf(below.slice(index * WIDTH, (index + 1) * WIDTH))
    )
  }
  if (rootOf(leaves).toString("base64") !== root) throw new Error("the root is another one")
  return { origin, size, root, entries, paths }
}
