/**
 * What has to be known of the files that Chromium prints: where its anchors landed, and which bytes
 * vary although the content does not. Reads the plain objects that Skia writes (no object streams);
 * it is no PDF library.
 */
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
