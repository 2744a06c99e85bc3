/** What browser.mjs gives to pages that check packs. */
import type { PackKey, PackReport, UnreadablePack } from "./verify.mjs"

export interface CheckedFile {
  readonly report: PackReport | UnreadablePack
  /** Whether the text holds a public key. */
  readonly isKeyKnown: boolean
}

/**
 * Checks the ZIP in a file. `text` holds public keys that are known from elsewhere, or is empty.
 * `progress` is told of each part that was read, by the name of its file in the pack.
 */
export const checkFile: (
  file: Blob,
  text: string,
  progress: (name: string, bytes: number) => void
) => Promise<CheckedFile>

/** What is said of a key, in one line. */
export const keyText: (key: PackKey) => string

/** What is said of a report, in some sentences. */
export const sentenceOf: (report: PackReport | UnreadablePack) => string

/** A verdict in words. */
export const words: Readonly<Record<PackReport["verdict"] | "unreadable", string>>
