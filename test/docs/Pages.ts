/** The pages of this repository for people, and the fenced blocks in them. */
import { globSync, readFileSync } from "node:fs"

import { type GuidePage, guidePages, referencePages } from "../../src/http/docs/GuidePages.ts"

export interface Block {
  readonly page: string
  /** Line of the opening fence, from 1. */
  readonly line: number
  /** First word after the fence. */
  readonly language: string
  /** Second word: how the block is tested where its language leaves that open, or its schema. */
  readonly kind: string | undefined
  readonly text: string
}

const filesOf = (listed: ReadonlyArray<GuidePage>): ReadonlyArray<string> =>
  listed.map(({ file }) => `docs/${file}`)

/** The twelve pages: each has one reader and one question. */
export const GUIDE = filesOf(guidePages)

/** What is looked up, not read; `docs/decisions` beside it. */
export const REFERENCE = filesOf(referencePages).filter((page) => !page.includes("decisions"))

/** Paths from the root of the repository. */
export const pages: ReadonlyArray<string> = [
  ...globSync("*.md"),
  ...globSync("docs/**/*.md"),
  ...globSync("test/examples/**/README.md", { exclude: ["**/node_modules/**"] }),
  "schemas/README.md"
].sort()

export const textOf = (page: string): string => readFileSync(page, "utf8")

const FENCE = /^( *)```(\S*)(?: (\S+))?$/

export const blocksOf = (page: string): ReadonlyArray<Block> => {
  const blocks: Array<Block> = []
  let open: { readonly line: number; readonly words: RegExpExecArray } | undefined
  let lines: Array<string> = []
  for (const [index, line] of textOf(page).split("\n").entries()) {
    const words = FENCE.exec(line)
    if (open === undefined) {
      if (words !== null) open = { line: index + 1, words }
      lines = []
    } else if (words === null) {
      lines.push(line)
    } else {
      const [, , language = "", kind] = open.words
      blocks.push({ page, line: open.line, language, kind, text: lines.join("\n") })
      open = undefined
    }
  }
  if (open !== undefined) throw new Error(`${page}:${open.line}: this block has no end`)
  return blocks
}

export const blocks: ReadonlyArray<Block> = pages.flatMap(blocksOf)

/** The language and the kind of a block, as its fence has them. */
export const fenceOf = ({ kind, language }: Block): string =>
  kind === undefined ? language : `${language} ${kind}`

/** Where a block is, for the texts of failures. */
export const placeOf = ({ line, page }: Block): string => `${page}:${line}`

/** The text of a page without its fenced blocks. */
export const proseOf = (page: string): string =>
  textOf(page).replaceAll(/^( *)```[\s\S]*?^\1```$/gm, "")
