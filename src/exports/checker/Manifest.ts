/** What manifest.json says: of what the pack is, and what it claims to hold. */
import { SCHEME } from "../../domain/events/HashChain.ts"
import { type Fields, isObject } from "../../domain/json/Json.ts"
import { HISTORY_FROM, HISTORY_TO } from "../../domain/Timestamp.ts"
import { type Findings, shown } from "./Findings.ts"
import { hasStrings, isSize, jsonOf } from "./Lines.ts"
import { FILE, FILES_MAX, FORMAT, isSafeName, Unreadable } from "./PackFiles.ts"

export interface Bounds extends Fields {
  readonly from: string
  readonly to: string
  readonly from_sequence?: number | null
  readonly to_sequence?: number | null
}

/** Members that are not looked at until they are compared are of any type. */
export interface Manifest extends Fields {
  readonly tenant_id: string
  readonly service: string
  readonly generated_at: string
  readonly bounds: Bounds
  readonly counts: Fields
  readonly files: ReadonlyArray<{ readonly name: string; readonly sha256: string }>
  readonly to_trace_sequence?: number | null
}

const isManifest = (value: Fields): value is Manifest => {
  const { bounds, counts, files, to_trace_sequence: lastFact } = value
  return (
    isObject(bounds)
    && isObject(counts)
    && Array.isArray(files)
    && files.length <= FILES_MAX
    && files.every((file) => hasStrings(file, "name", "sha256"))
    && files.every(({ name }) => isSafeName(name))
    && hasStrings(value, "tenant_id", "service", "generated_at")
    && value["scheme"] === SCHEME
    && hasStrings(bounds, "from", "to")
    && [bounds["from_sequence"], bounds["to_sequence"], lastFact].every(
      (sequence) => (sequence ?? null) === null || isSize(sequence)
    )
  )
}

/**
 * The manifest in a text, or undefined and a problem if nothing can be held against it.
 * @throws Unreadable if it is of another version
 */
export const manifestOf = (text: string | undefined, found: Findings): Manifest | undefined => {
  const said = text === undefined ? undefined : jsonOf(text)
  const bad = (expected: string, actual?: string): undefined => {
    found.mismatch(FILE.manifest, null, expected, actual)
  }
  if (!isObject(said)) return bad("JSON", "bytes that are none")
  const { format } = said
  if (format !== FORMAT) {
    if (typeof format === "string" && format.startsWith("alk-evidence-pack-v")) {
      throw new Unreadable(`its format is ${format}; this program reads ${FORMAT}`)
    }
    return bad(`format ${FORMAT}`, `format ${shown(format)}`)
  }
  return isManifest(said) ? said : bad(`a manifest of ${FORMAT}`)
}

/**
 * What a pack claims to hold. `isWhole`: it is of no period, bounded by sequences alone; `isComplete`:
 * every event of its links is in it.
 */
export const scopeOf = ({ bounds, ...manifest }: Manifest) => {
  const isFiltered = (manifest["filter"] ?? null) !== null
  const isWhole = bounds.from === HISTORY_FROM && bounds.to === HISTORY_TO
  return { isFiltered, isWhole, isComplete: isWhole && !isFiltered }
}
export type Scope = ReturnType<typeof scopeOf>
