/** The entries of a page as texts, no more of them than a page holds. */
import type { Sliced } from "../../domain/Slices.ts"

/** Bytes of the entries of one page, as they are shown; one entry always, then as many as fit. */
export const PAGE_BYTES_MAX = 8 * 1_048_576

/** As many of the entries as fit into a page, as they are shown; one in a step. */
export function* fittingOf<A>(
  entries: ReadonlyArray<A>,
  shownAs: (entry: A) => string
): Sliced<ReadonlyArray<string>> {
  const texts: Array<string> = []
  let bytes = 0
  for (const entry of entries) {
    const text = shownAs(entry)
    bytes += Buffer.byteLength(text)
    if (bytes > PAGE_BYTES_MAX && texts.length > 0) break
    texts.push(text)
    yield
  }
  return texts
}
