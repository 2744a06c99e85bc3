/** Where units come from: a file from a place on, or standard input. */
import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import { type Format, type Place, type Unit, UnitReader } from "./Units.ts"

/** Bytes that are read at once. */
const CHUNK_BYTES = 1024 * 1024

/** Units of a stream of bytes that begins at a place. */
export async function* unitsOf(
  chunks: AsyncIterable<unknown>,
  format: Format,
  place?: Place
): AsyncGenerator<Unit, void> {
  const reader = new UnitReader(format, place)
  for await (const chunk of chunks) yield* reader.read(chunk as Buffer)
  yield* reader.end()
}

/** Units of the first `size` bytes of a file, from a place on. */
export const unitsOfFile = (
  file: string,
  format: Format,
  size: number,
  place?: Place
): AsyncGenerator<Unit, void> => {
  const start = place?.offset ?? 0
  if (start >= size) return unitsOf((async function* () {})(), format, place)
  const bytes = createReadStream(file, { start, end: size - 1, highWaterMark: CHUNK_BYTES })
  return unitsOf(bytes, format, place)
}

/** SHA-256 of the first `size` bytes of a file; of all of it without a size. */
export const contentHash = async (file: string, size?: number): Promise<string> => {
  const hash = createHash("sha256")
  if (size === 0) return hash.digest("hex")
  const range = size === undefined ? {} : { end: size - 1 }
  for await (const chunk of createReadStream(file, { ...range, highWaterMark: CHUNK_BYTES })) {
    hash.update(chunk as Buffer)
  }
  return hash.digest("hex")
}
