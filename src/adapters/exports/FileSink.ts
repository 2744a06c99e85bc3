/**
 * A file that grows piece by piece: hashed, limited, and never at the cost of the last space of the
 * disk.
 */
import { createHash } from "node:crypto"
import type { promises as fs } from "node:fs"
import { ExportFolderUnusable } from "../../ports/ExportFolder.ts"

/** Bytes between two looks at the disk. */
const LOOK_BYTES = 16 * 1_048_576

/** Writes the pieces one after the other, and looks at the disk now and then. */
export class FileSink {
  readonly #hash = createHash("sha256")
  readonly #handle: fs.FileHandle
  readonly #look: () => Promise<void>
  readonly #bytesMax: number
  #lookedAt = 0
  bytes = 0

  constructor(handle: fs.FileHandle, bytesMax: number, look: () => Promise<void>) {
    this.#handle = handle
    this.#bytesMax = bytesMax
    this.#look = look
  }

  async write(piece: Uint8Array): Promise<void> {
    if (this.bytes + piece.length > this.#bytesMax) {
      throw new ExportFolderUnusable({
        reason: "too_large",
        message:
          "the exports of this tenant would be over ALK_EXPORTS_BYTES_MAX: remove some, or ask for "
          + "a shorter period or fewer events"
      })
    }
    if (this.bytes - this.#lookedAt >= LOOK_BYTES) {
      this.#lookedAt = this.bytes
      await this.#look()
    }
    await this.#handle.writeFile(piece)
    this.#hash.update(piece)
    this.bytes += piece.length
  }

  async end(): Promise<string> {
    await this.#handle.sync()
    return this.#hash.digest("hex")
  }
}
