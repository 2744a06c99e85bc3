/** The pages of this repository for people, and the fenced blocks in them. */
import { globSync, readFileSync } from "node:fs"

export interface Block {
  readonly page: string
  /** Line of the opening fence, from 1. */
  readonly line: number
  /** First word after the fence. */
  readonly language: string
  /** Second word: the schema that a JSON block has to fit. */
  readonly schema: string | undefined
  readonly text: string
}

/** Paths from the root of the repository. */
export const pages: ReadonlyArray<string> = [
  ...globSync("*.md"),
  ...globSync("docs/**/*.md"),
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
      const [, , language = "", schema] = open.words
      blocks.push({ page, line: open.line, language, schema, text: lines.join("\n") })
      open = undefined
    }
  }
  if (open !== undefined) throw new Error(`${page}:${open.line}: this block has no end`)
  return blocks
}

export const blocks: ReadonlyArray<Block> = pages.flatMap(blocksOf)

/** The text of a page without its fenced blocks. */
export const proseOf = (page: string): string =>
  textOf(page).replaceAll(/^( *)```[\s\S]*?^\1```$/gm, "")
