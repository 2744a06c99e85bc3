/** What a file of an export is called and which type it has, for answers and for jobs. */
import { CSV_CONTENT_TYPE } from "../events/EventText.ts"
import { NDJSON_TYPE, PDF_TYPE, ZIP_TYPE } from "../messages/MediaTypes.ts"

interface FileForm {
  readonly noun: string
  readonly extension: string
  readonly contentType: string
}

const pack: FileForm = { noun: "evidence", extension: "zip", contentType: ZIP_TYPE }

/** Every form in which events leave as a file. */
export const fileForms = {
  pack,
  "pack-without-pdf": pack,
  pdf: { noun: "audit-report", extension: "pdf", contentType: PDF_TYPE },
  csv: { noun: "events", extension: "csv", contentType: CSV_CONTENT_TYPE },
  ndjson: { noun: "events", extension: "ndjson", contentType: NDJSON_TYPE },
  ocsf: { noun: "events", extension: "ocsf.ndjson", contentType: NDJSON_TYPE }
} as const satisfies Readonly<Record<string, FileForm>>
export type FileKind = keyof typeof fileForms

const plain = (text: string): string => text.replaceAll(/[^A-Za-z0-9._-]/gu, "-")

/** `alk-evidence-acme-20261121T120000Z.zip` */
export const exportFileName = (
  kind: FileKind,
  service: string,
  tenantId: string,
  time: string
): string => {
  const { extension, noun } = fileForms[kind]
  const compact = `${time.slice(0, 19).replaceAll(/[-:]/gu, "")}Z`
  return `${plain(service)}-${noun}-${plain(tenantId)}-${compact}.${extension}`
}

/** The header that has a browser keep a file under its name. */
export const asFile = (fileName: string) => ({
  "content-disposition": `attachment; filename="${fileName}"`
})

/** The client keeps its copy but asks each time; no cache in between keeps one. */
export const CACHE_CONTROL = "private, no-cache"
