/**
 * The manifest of a pack that is being checked: what it says of the pack, read with distrust. Its
 * signature and the files that it names are held against it elsewhere.
 */
import { SCHEME } from "../domain/HashChain.ts"
import { ArchiveUnreadable } from "../ports/Archive.ts"
import { HISTORY_FROM, HISTORY_TO } from "../verify/Verifier.ts"
import { exportFormats } from "./ExportScope.ts"
import { packFiles, type PackFindings } from "./PackFindings.ts"
import { jsonOf, type PackFiles } from "./PackFiles.ts"

const FORMAT = exportFormats.pack
const FORMAT_FAMILY = "alk-evidence-pack-v"

type Fields = Readonly<Record<string, unknown>>

export const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export const isSequence = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 1

/** What the checks rely on; the rest may be anything. */
export interface PackManifest {
  readonly tenantId: string
  /** First part of the origin of every note of the pack. */
  readonly service: string
  readonly generatedAt: string
  readonly bounds: Fields & { readonly from: string; readonly to: string }
  readonly isFiltered: boolean
  /** Every event of the span has to be there: neither times nor conditions choose among them. */
  readonly isComplete: boolean
  /** No upper bound was given: the chain ends where the pack does. */
  readonly isOpen: boolean
  readonly first: unknown
  readonly last: unknown
  readonly head: unknown
  readonly counts: Fields
  /** SHA-256 by name. */
  readonly files: ReadonlyMap<string, string>
  /** Bytes of the file itself. */
  readonly bytes: number
}

const isText = (value: unknown): value is string => typeof value === "string"

/** True if nothing bounds the end of the span. */
export const isOpenEnded = (bounds: Fields): boolean =>
  bounds["to"] === HISTORY_TO && bounds["to_sequence"] === null

const describe = (value: Fields, bytes: number): PackManifest | undefined => {
  const { bounds, counts, files, generated_at, scheme, service, tenant_id } = value
  if (!isFields(bounds) || !isText(bounds["from"]) || !isText(bounds["to"])) return undefined
  if (!isFields(counts) || !Array.isArray(files) || scheme !== SCHEME) return undefined
  if (!isText(tenant_id) || !isText(service) || !isText(generated_at)) return undefined
  const listed = new Map<string, string>()
  for (const file of files) {
    if (!isFields(file) || !isText(file["name"]) || !isText(file["sha256"])) return undefined
    listed.set(file["name"], file["sha256"])
  }
  const isFiltered = (value["filter"] ?? null) !== null
  return {
    tenantId: tenant_id,
    service,
    generatedAt: generated_at,
    bounds: bounds as PackManifest["bounds"],
    isFiltered,
    isComplete: !isFiltered && bounds["from"] === HISTORY_FROM && bounds["to"] === HISTORY_TO,
    isOpen: isOpenEnded(bounds),
    first: value["first_sequence_number"],
    last: value["last_sequence_number"],
    head: value["head"] ?? null,
    counts,
    files: listed,
    bytes
  }
}

/**
 * The manifest; undefined if nothing can be held against it, which is a problem of its own.
 * @throws ArchiveUnreadable for a pack of another format version
 */
export const readManifest = async (
  files: PackFiles,
  found: PackFindings
): Promise<PackManifest | undefined> => {
  const text = await files.text(packFiles.manifest)
  const refuse = (expected: string, actual: string): undefined => {
    if (!files.has(packFiles.manifest)) return
    found.problem(packFiles.manifest, null, "content_mismatch", expected, actual)
  }
  const value = jsonOf(text)
  if (!isFields(value) || text === undefined) return refuse("JSON", "bytes that are none")
  const { format } = value
  if (format !== FORMAT) {
    if (isText(format) && format.startsWith(FORMAT_FAMILY)) {
      const message = `its format is ${format}; this program reads ${FORMAT}`
      throw new ArchiveUnreadable({ message })
    }
    return refuse(`format ${FORMAT}`, `format ${String(format ?? "none")}`)
  }
  const manifest = describe(value, Buffer.byteLength(text))
  return manifest ?? refuse(`a manifest of ${FORMAT}`, "something else")
}
