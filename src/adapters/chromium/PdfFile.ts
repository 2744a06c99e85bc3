/**
 * What has to be known of the files that Chromium prints: where its anchors landed, which bytes
 * vary although the content does not, and how a file is attached to them. Reads the plain objects
 * that Skia writes (no object streams); it is no PDF library.
 */
import type { Attachment } from "../../ports/PdfRenderer.ts"

/** Pages nested in pages at most: eight to a node make 8^16 of them. */
const PAGE_TREE_DEPTH_MAX = 16

const STREAM_START = " stream\n"
const STREAM_END = "\nendstream"

/** Start and end of what is not the inside of a stream. */
function* plainParts(text: string): Generator<readonly [number, number]> {
  let from = 0
  for (;;) {
    const start = text.indexOf(STREAM_START, from)
    if (start === -1) break
    yield [from, start]
    const length = /\/Length (\d+)[^/]*$/.exec(text.slice(Math.max(from, start - 100), start))?.[1]
    const end = text.indexOf(STREAM_END, start + STREAM_START.length + Number(length ?? 0))
    if (end === -1) return
    from = end
  }
  yield [from, text.length]
}

const objectsOf = (text: string): Map<string, string> => {
  const objects = new Map<string, string>()
  for (const [start, end] of plainParts(text)) {
    for (const found of text.slice(start, end).matchAll(/(\d+) 0 obj\n(.*?)(?:\nendobj|$)/gs)) {
      objects.set(found[1]!, found[2]!)
    }
  }
  return objects
}

const referencesIn = (list: string): ReadonlyArray<string> =>
  Array.from(list.matchAll(/(\d+) 0 R/g), (found) => found[1]!)

const pagesOf = (objects: Map<string, string>): ReadonlyArray<string> => {
  const pages: Array<string> = []
  const walk = (id: string, depth: number) => {
    const object = objects.get(id)
    if (object === undefined || depth > PAGE_TREE_DEPTH_MAX) return
    const kids = /\/Kids \[([^\]]*)\]/.exec(object)?.[1]
    if (kids === undefined) pages.push(id)
    else for (const kid of referencesIn(kids)) walk(kid, depth + 1)
  }
  for (const object of objects.values()) {
    const root = /\/Type \/Catalog.*?\/Pages (\d+) 0 R/s.exec(object)?.[1]
    if (root !== undefined) walk(root, 0)
  }
  return pages
}

/** The page, from 1, of every anchor that a link of the document leads to. */
export const anchorPages = (pdf: Buffer): ReadonlyMap<string, number> => {
  const objects = objectsOf(pdf.toString("latin1"))
  const numbers = new Map(pagesOf(objects).map((id, index) => [id, index + 1]))
  const anchors = new Map<string, number>()
  for (const object of objects.values()) {
    for (const found of object.matchAll(/\/([A-Za-z0-9_-]+) \[(\d+) 0 R \/XYZ/g)) {
      const page = numbers.get(found[2]!)
      if (page !== undefined) anchors.set(found[1]!, page)
    }
  }
  return anchors
}

/** `D:20261121100001` of 2026-11-21T10:00:01.5Z. */
const pdfTime = (canonical: string): string => `D:${canonical.slice(0, 19).replace(/[-T:]/g, "")}`

/**
 * Writes the given time over the times of creation, and numbers the elements of the structure by
 * their order instead of by what the browser process has counted up to. Every replacement is as
 * long as what it replaces, so that no offset in the file moves.
 */
export const normalizePdf = (pdf: Buffer, createdAt: string): Buffer => {
  const text = pdf.toString("latin1")
  const edits: Array<readonly [number, string]> = []
  const nodes: Array<readonly [number, string]> = []
  for (const [start, end] of plainParts(text)) {
    const part = text.slice(start, end)
    for (const found of part.matchAll(/(?<=\/(?:CreationDate|ModDate) \()D:\d{14}/g)) {
      edits.push([start + found.index, pdfTime(createdAt)])
    }
    for (const found of part.matchAll(/(?<=\(node)\d{8}(?=\))/g)) {
      nodes.push([start + found.index, found[0]])
    }
  }
  const known = [...new Set(nodes.map(([, number]) => number))].sort()
  const places = new Map(known.map((number, index) => [number, String(index).padStart(8, "0")]))
  for (const [at, number] of nodes) edits.push([at, places.get(number)!])
  for (const [at, value] of edits) pdf.write(value, at, "latin1")
  return pdf
}

/** Names that need no escape in a PDF string. */
const ATTACHMENT_NAME = /^[A-Za-z0-9._-]{1,64}$/
/** Printable ASCII that needs no escape in a PDF string. */
const DESCRIPTION = /^[ -'*-[\]-~]*$/
/** `application/json`; a slash in a PDF name is written #2F. */
const MEDIA_TYPE = /^[a-z]+\/[a-z0-9.+-]+$/

/** The end of a file that has never been updated (ISO 32000-1, 7.5.5). */
interface Trailer {
  /** Number of the first object that is not used yet. */
  readonly size: number
  readonly root: string
  /** The dictionary without /Size. */
  readonly rest: string
  /** Offset of the cross-reference table. */
  readonly startxref: number
}

/** Bytes at the end that hold a trailer. */
const TRAILER_BYTES = 1_024

const trailerOf = (pdf: Buffer): Trailer => {
  const end = pdf.toString("latin1", Math.max(0, pdf.length - TRAILER_BYTES))
  const found = /trailer\s*<<([^<>]*)>>\s*startxref\s+(\d+)\s+%%EOF\s*$/.exec(end)
  const size = /\/Size (\d+)\s*/.exec(found?.[1] ?? "")
  const root = /\/Root (\d+) 0 R/.exec(found?.[1] ?? "")
  if (found === null || size === null || root === null || found[1]!.includes("/Prev")) {
    throw new Error("the PDF does not end as Chromium's do")
  }
  return {
    size: Number(size[1]),
    root: root[1]!,
    rest: found[1]!.replace(size[0], "").trim(),
    startxref: Number(found[2])
  }
}

const dictionaryOf = (pdf: Buffer, id: string): string => {
  const object = objectsOf(pdf.toString("latin1")).get(id)?.trim()
  if (object === undefined || !object.startsWith("<<") || !object.endsWith(">>")) {
    throw new Error("the PDF has no catalog of the form that Chromium writes")
  }
  return object.slice(2, -2)
}

/** The stream of an attachment, and what names it. */
const attachmentObjects = (
  { bytes, description, mediaType, name }: Attachment,
  first: number,
  createdAt: string
): ReadonlyArray<readonly [number, ReadonlyArray<Uint8Array>]> => {
  const isPlain =
    ATTACHMENT_NAME.test(name) && MEDIA_TYPE.test(mediaType) && DESCRIPTION.test(description)
  if (!isPlain) {
    throw new Error(`${name} can't be attached: its name, type or description needs an escape`)
  }
  const type = mediaType.replaceAll("/", "#2F")
  const params = `<</Size ${bytes.length} /ModDate (${pdfTime(createdAt)}Z)>>`
  const { length } = bytes
  const stream = `<</Type /EmbeddedFile /Subtype /${type} /Params ${params} /Length ${length}>>`
  const file =
    `<</Type /Filespec /F (${name}) /UF (${name}) /Desc (${description}) `
    + `/AFRelationship /Data /EF <</F ${first} 0 R>>>>`
  return [
    [first, [Buffer.from(`${stream} stream\n`), bytes, Buffer.from("\nendstream")]],
    [first + 1, [Buffer.from(file)]]
  ]
}

/**
 * The PDF with files attached, as an incremental update: the bytes so far stay as they are, the new
 * objects, a catalog that names them and a table of where they are follow (ISO 32000-1, 7.5.6).
 * Throws for a PDF of another form than Chromium's.
 */
export const attachFiles = (
  pdf: Buffer,
  attachments: ReadonlyArray<Attachment>,
  createdAt: string
): Buffer => {
  if (attachments.length === 0) return pdf
  const { rest, root, size, startxref } = trailerOf(pdf)
  const sorted = attachments.toSorted((left, right) => Number(left.name > right.name) - 0.5)
  const files = sorted.flatMap((attachment, index) =>
    attachmentObjects(attachment, size + 2 * index, createdAt)
  )
  const references = sorted.map((_, index) => `${size + 2 * index + 1} 0 R`)
  const names = sorted.map(({ name }, index) => `(${name}) ${references[index]}`).join(" ")
  const catalog =
    `<<${dictionaryOf(pdf, root)}\n/AF [${references.join(" ")}]\n`
    + `/Names <</EmbeddedFiles <</Names [${names}]>>>>>>`
  const parts: Array<Uint8Array> = [pdf]
  let offset = pdf.length
  const add = (bytes: Uint8Array) => {
    parts.push(bytes)
    offset += bytes.length
  }
  const places: Array<string> = []
  for (const [id, content] of [[Number(root), [Buffer.from(catalog)]] as const, ...files]) {
    places.push(`${id} 1\n${String(offset).padStart(10, "0")} 00000 n \n`)
    add(Buffer.from(`${id} 0 obj\n`))
    content.forEach(add)
    add(Buffer.from("\nendobj\n"))
  }
  const table = offset
  const trailer = `<</Size ${size + files.length}\n${rest}\n/Prev ${startxref}>>`
  add(Buffer.from(`xref\n${places.join("")}trailer\n${trailer}\nstartxref\n${table}\n%%EOF\n`))
  return Buffer.concat(parts)
}
