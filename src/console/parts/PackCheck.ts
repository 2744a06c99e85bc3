/** What the page and the worker that checks packs say to each other. Knows neither of them. */
import type { PackReport, UnreadablePack } from "../../exports/checker/Report.ts"

export type Report = PackReport | UnreadablePack

export interface PackQuestion {
  readonly pack: Blob
  /** Public keys that the person has from elsewhere; may be empty. */
  readonly key: string
}

/** A report in the words of the program that packs carry. */
export interface CheckedPack {
  readonly report: Report
  readonly word: string
  readonly sentence: string
  readonly keys: ReadonlyArray<string>
  /** Whether what was given as a key holds one. */
  readonly isKeyKnown: boolean
}

export type PackAnswer =
  | { readonly is: "progress"; readonly file: string; readonly bytes: number }
  | { readonly is: "failed"; readonly message: string }
  | { readonly is: "done"; readonly checked: CheckedPack }
