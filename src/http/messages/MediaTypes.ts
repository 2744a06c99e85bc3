/**
 * The media types that bodies come in, and the choice between those that a client accepts (RFC
 * 9110, section 12.5.1).
 */
export const JSON_TYPE = "application/json"
export const NDJSON_TYPE = "application/x-ndjson"
export const HTML_TYPE = "text/html"
export const MARKDOWN_TYPE = "text/markdown"
export const CSV_TYPE = "text/csv"
export const SSE_TYPE = "text/event-stream"
export const ZIP_TYPE = "application/zip"
export const PARQUET_TYPE = "application/vnd.apache.parquet"
export const PDF_TYPE = "application/pdf"

/** A name of a list with weights, as `Accept` and `Accept-Encoding` have them. */
interface Weighted {
  /** In lower case. */
  readonly name: string
  /** 0 is refused. */
  readonly quality: number
}

/** The names of such a list; a weight that can't be read refuses. */
export const weighted = (list: string): ReadonlyArray<Weighted> =>
  list.split(",").flatMap((part) => {
    const [name = "", ...parameters] = part.split(";").map((piece) => piece.trim().toLowerCase())
    if (name === "") return []
    const weight = parameters.find((parameter) => parameter.startsWith("q="))
    const quality = weight === undefined ? 1 : Number(weight.slice(2))
    return [{ name, quality: Number.isFinite(quality) ? quality : 0 }]
  })

/** True if a value of `Accept` names the type itself, not only a range that it is in. */
export const namesType = (accept: string, type: string): boolean =>
  weighted(accept).some(({ name }) => name === type)

/** How exactly a range names a type: 0 is not at all. */
const exactness = (range: string, type: string): number => {
  if (range === type) return 3
  if (range === `${type.slice(0, type.indexOf("/"))}/*`) return 2
  return range === "*/*" ? 1 : 0
}

const qualityOf = (ranges: ReadonlyArray<Weighted>, type: string): number => {
  let best = 0
  let quality = 0
  for (const range of ranges) {
    const exact = exactness(range.name, type)
    if (exact > best) {
      best = exact
      quality = range.quality
    }
  }
  return quality
}

/** The type that the client likes best, the earlier one if it likes several; undefined: none. */
export const negotiate = <T extends string>(
  accept: string | undefined,
  offered: readonly [T, ...ReadonlyArray<T>]
): T | undefined => {
  if (accept === undefined || accept.trim() === "") return offered[0]
  const ranges = weighted(accept)
  let chosen: T | undefined
  let best = 0
  for (const type of offered) {
    const quality = qualityOf(ranges, type)
    if (quality > best) {
      best = quality
      chosen = type
    }
  }
  return chosen
}
