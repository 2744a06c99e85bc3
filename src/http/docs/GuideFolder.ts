/**
 * The files of the guide as they are in `docs`, read by their listed names: a request never becomes
 * a path, and a link in the folder that leads out of it is no file.
 */
import { readdir, readFile, realpath } from "node:fs/promises"
import { join, sep } from "node:path"
import {
  DECISIONS_FOLDER,
  type GuidePage,
  guidePages,
  PICTURES_FOLDER,
  referencePages
} from "./GuidePages.ts"

/** A page and its text. */
export interface GuideText {
  readonly page: GuidePage
  readonly markdown: string
}

/** What of the guide is there. */
export interface GuideFolder {
  /** In the order of their lists. */
  readonly guide: ReadonlyArray<GuideText>
  readonly reference: ReadonlyArray<GuideText>
  /** The pages that the list of decisions leads to. */
  readonly decisions: ReadonlyArray<GuideText>
  /** SVG texts by their paths from `docs` on. */
  readonly pictures: ReadonlyMap<string, string>
}

const isMissing = (error: unknown): boolean => {
  const { code } = error as NodeJS.ErrnoException
  return code === "ENOENT" || code === "ENOTDIR"
}

/** What `reading` gives; undefined if there is no such file or folder. */
const ifThere = async <A>(reading: Promise<A>): Promise<A | undefined> => {
  try {
    return await reading
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

/** The text of a file of the folder; undefined if it is not in it. */
const textIn = async (folder: string, file: string): Promise<string | undefined> => {
  const path = await ifThere(realpath(join(folder, file)))
  return path?.startsWith(`${folder}${sep}`) === true ? readFile(path, "utf8") : undefined
}

const textsOf = async (
  folder: string,
  pages: ReadonlyArray<GuidePage>
): Promise<ReadonlyArray<GuideText>> => {
  const texts = await Promise.all(pages.map(({ file }) => textIn(folder, file)))
  return pages.flatMap((page, index) => {
    const markdown = texts[index]
    return markdown === undefined ? [] : [{ page, markdown }]
  })
}

/** Paths from the folder on of its files below `inner` that end so. */
const filesIn = async (
  folder: string,
  inner: string,
  ending: string
): Promise<ReadonlyArray<string>> => {
  const names = (await ifThere(readdir(join(folder, inner)))) ?? []
  return names
    .filter((name) => name.endsWith(ending))
    .sort()
    .map((name) => `${inner}/${name}`)
}

/** The title is the first line of a decision's page. */
const titleIn = (markdown: string): string => /^# (.*)$/m.exec(markdown)?.[1] ?? ""

const decisionsIn = async (folder: string): Promise<ReadonlyArray<GuideText>> => {
  const files = await filesIn(folder, DECISIONS_FOLDER, ".md")
  const others = files.filter((file) => !referencePages.some((page) => page.file === file))
  const pages = others.map((file) => ({
    name: file.slice(0, -".md".length),
    file,
    title: "",
    summary: "a decision"
  }))
  return (await textsOf(folder, pages)).map(({ markdown, page }) => ({
    page: { ...page, title: titleIn(markdown) },
    markdown
  }))
}

const picturesIn = async (folder: string): Promise<ReadonlyMap<string, string>> => {
  const pictures = new Map<string, string>()
  for (const file of await filesIn(folder, PICTURES_FOLDER, ".svg")) {
    const text = await textIn(folder, file)
    if (text !== undefined) pictures.set(file, text)
  }
  return pictures
}

/** The files of the guide below `docs`. Pages that are not there are left out. */
export const readGuideFolder = async (docs: string): Promise<GuideFolder> => {
  const folder = (await ifThere(realpath(docs))) ?? docs
  const [guide, reference, decisions, pictures] = await Promise.all([
    textsOf(folder, guidePages),
    textsOf(folder, referencePages),
    decisionsIn(folder),
    picturesIn(folder)
  ])
  return { guide, reference, decisions, pictures }
}
