/** Reads a PDF with a reader that shares nothing with the printer: text, outline, tags, fonts. */

// The reader draws nothing; without these names it warns that it can't.
Object.assign(globalThis, { DOMMatrix: class {}, Path2D: class {} })
const { getDocument, OPS, VerbosityLevel } = await import("pdfjs-dist/legacy/build/pdf.mjs")

export interface ReadPdf {
  /** The text of each page, runs of white space as one space. */
  readonly pages: ReadonlyArray<string>
  /** Bookmarks, indented by two spaces per level. */
  readonly outline: ReadonlyArray<string>
  readonly title: string
  readonly language: string | null
  readonly createdAt: string
  readonly tagged: boolean
  readonly fonts: ReadonlyArray<string>
  readonly fontsNotEmbedded: ReadonlyArray<string>
  /** Roles of the structure, as often as they occur. */
  readonly roles: ReadonlyMap<string, number>
  /** Texts that stand for pictures. */
  readonly alternatives: ReadonlyArray<string>
  /** Links to addresses outside of the document. */
  readonly outsideLinks: ReadonlyArray<string>
  /** Content of the attached files by name. */
  readonly attachments: ReadonlyMap<string, string>
  /** Pictures that are drawn. */
  readonly pictures: number
}

interface OutlineNode {
  readonly title: string
  readonly items: ReadonlyArray<OutlineNode>
}

const linesOf = (nodes: ReadonlyArray<OutlineNode>, indent = ""): ReadonlyArray<string> =>
  nodes.flatMap(({ items, title }) => [`${indent}${title}`, ...linesOf(items, `${indent}  `)])

interface TagNode {
  readonly role?: string
  readonly alt?: string
  readonly children?: ReadonlyArray<TagNode>
}

const walkTags = (node: TagNode | null, visit: (node: TagNode) => void): void => {
  if (node === null) return
  visit(node)
  for (const child of node.children ?? []) walkTags(child, visit)
}

interface LoadedFont {
  readonly name: string
  readonly missingFile?: boolean
}

/** Fonts and roles, which take most of the time, are read on the first `pagesLookedInto` pages. */
export const readPdf = async (
  bytes: Uint8Array,
  { pagesLookedInto = Infinity } = {}
): Promise<ReadPdf> => {
  const loading = getDocument({
    data: Uint8Array.from(bytes),
    verbosity: VerbosityLevel.ERRORS,
    useSystemFonts: false,
    fontExtraProperties: true
  })
  const pdf = await loading.promise
  const pages: Array<string> = []
  const fonts = new Map<string, boolean>()
  const roles = new Map<string, number>()
  const alternatives: Array<string> = []
  const outsideLinks: Array<string> = []
  let pictures = 0
  for (let number = 1; number <= pdf.numPages; number++) {
    const page = await pdf.getPage(number)
    const { items } = await page.getTextContent()
    const text = items
      .map((item) => ("str" in item ? item.str + (item.hasEOL ? " " : "") : ""))
      .join("")
    pages.push(text.replace(/\s+/g, " ").trim())
    for (const annotation of await page.getAnnotations()) {
      if (annotation.url !== undefined) outsideLinks.push(String(annotation.url))
    }
    if (number > pagesLookedInto) continue
    const operators = await page.getOperatorList()
    operators.fnArray.forEach((operator, index) => {
      if (operator === OPS.paintImageXObject) pictures += 1
      if (operator !== OPS.setFont) return
      const font = page.commonObjs.get((operators.argsArray[index] as [string])[0]) as LoadedFont
      fonts.set(font.name, font.missingFile === true)
    })
    walkTags((await page.getStructTree()) as TagNode | null, ({ alt, role }) => {
      if (role !== undefined) roles.set(role, (roles.get(role) ?? 0) + 1)
      if (alt !== undefined) alternatives.push(alt)
    })
    page.cleanup()
  }
  const { info } = (await pdf.getMetadata()) as unknown as { info: Record<string, string | null> }
  const marks = (await pdf.getMarkInfo()) as unknown as ReadonlyMap<string, boolean> | null
  const attachments = new Map<string, string>()
  for (const [id, { filename }] of (await pdf.getAttachments()) ?? []) {
    const content = await pdf.getAttachmentContent(id)
    attachments.set(filename, Buffer.from(content ?? []).toString("utf8"))
  }
  const read: ReadPdf = {
    pages,
    outline: linesOf(((await pdf.getOutline()) ?? []) as ReadonlyArray<OutlineNode>),
    title: info["Title"] ?? "",
    language: info["Language"] ?? null,
    createdAt: info["CreationDate"] ?? "",
    tagged: marks?.get("Marked") === true,
    fonts: [...fonts.keys()],
    fontsNotEmbedded: [...fonts].filter(([, missing]) => missing).map(([name]) => name),
    roles,
    alternatives,
    outsideLinks,
    pictures,
    attachments
  }
  await loading.destroy()
  return read
}
