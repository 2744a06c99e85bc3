/**
 * The guide as answers, by what follows `/docs/guide/` in an address: a page as HTML or as its
 * Markdown, or a picture. A page is rendered when it is first asked for. Reads no file.
 */
import type { Effect } from "effect"
import type { HttpServerRequest, HttpServerResponse } from "effect/http"
import { staticAnswer } from "../messages/StaticAnswer.ts"
import {
  type GuideFrame,
  indexDocument,
  missingDocument,
  pageDocument,
  policyOf,
  sourceOf
} from "./GuideDocument.ts"
import type { GuideFolder, GuideText } from "./GuideFolder.ts"
import { guideLinkOf, type Linkable } from "./GuideLinks.ts"
import type { GuidePage } from "./GuidePages.ts"
import { renderMarkdown } from "./Markdown.ts"

export const MARKDOWN_CONTENT = "text/markdown; charset=utf-8"
export const HTML_CONTENT = "text/html; charset=utf-8"

export type Answer = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  never,
  HttpServerRequest.HttpServerRequest
>

/** What an address answers. */
export interface Entry {
  readonly shown: () => Answer
  /** For who asks for Markdown. */
  readonly source?: () => Answer
}

/** What an address that nothing has answers, with 404. */
export interface Missing {
  readonly shown: string
  readonly source: string
  /** Of the document that is shown. */
  readonly headers: Readonly<Record<string, string>>
}

export interface Guide {
  /** The list for programs, as plain text. */
  readonly list: () => Answer
  /** What is at this path below the guide's, the list of pages at the empty one. */
  readonly at: (path: string) => Entry | undefined
  readonly missing: Missing
}

export interface GuideSettings {
  /** CSS of every page. */
  readonly styles: string
  readonly hasConsole: boolean
  /** Of the service, in the list for programs; empty: addresses are relative. */
  readonly baseUrl: string
}

/** Made once, when it is first asked for. */
const lazily = <A>(make: () => A): (() => A) => {
  let made: { readonly value: A } | undefined
  return () => (made ??= { value: make() }).value
}

const listLines = (pages: ReadonlyArray<GuidePage>, baseUrl: string): ReadonlyArray<string> =>
  pages.map((page) => `- [${page.title}](${baseUrl}${sourceOf(page)}): ${page.summary}`)

/** The pages as llmstxt.org lists them: each as Markdown. */
const listText = ({ guide, reference }: GuideFrame, baseUrl: string): string =>
  [
    "# alk",
    "",
    "> An audit log and agent execution traces that prove themselves: hash chains per tenant on Kafka",
    "> and ClickHouse, signed checkpoints, and proofs that need no trust in the operator.",
    "",
    "## Guide",
    "",
    ...listLines(guide, baseUrl),
    "",
    "## Reference",
    "",
    ...listLines(reference, baseUrl),
    `- [HTTP API](${baseUrl}/openapi.json): OpenAPI document of every route, with examples`,
    `- [Topics](${baseUrl}/asyncapi.yaml): AsyncAPI document of the public Kafka topics`,
    ""
  ].join("\n")

const pagesOf = (texts: ReadonlyArray<GuideText>): ReadonlyArray<GuidePage> =>
  texts.map(({ page }) => page)

/** Pictures may style themselves, and nothing else. */
const PICTURE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

const picturesOf = ({ pictures }: GuideFolder): ReadonlyArray<readonly [string, Entry]> =>
  [...pictures].map(([path, text]) => {
    const shown = lazily(() =>
      staticAnswer({
        text,
        contentType: "image/svg+xml",
        headers: { "content-security-policy": PICTURE_POLICY }
      })
    )
    return [path, { shown }]
  })

/** The guide that is made of these files. */
export const makeGuide = (folder: GuideFolder, settings: GuideSettings): Guide => {
  const { baseUrl, hasConsole, styles } = settings
  const { decisions, guide, reference } = folder
  const frame = { styles, hasConsole, guide: pagesOf(guide), reference: pagesOf(reference) }
  const headers = {
    "content-security-policy": policyOf(styles),
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer"
  }
  const all = [...guide, ...reference, ...decisions]
  const linkable: Linkable = {
    names: new Map(all.map(({ page }) => [page.file, page.name])),
    pictures: new Set(folder.pictures.keys())
  }
  const list = listText(frame, baseUrl)
  const asHtml = (text: string) => staticAnswer({ text, contentType: HTML_CONTENT, headers })
  const asMarkdown = (text: string) => staticAnswer({ text, contentType: MARKDOWN_CONTENT })
  const entries = new Map<string, Entry>(picturesOf(folder))
  entries.set("", {
    shown: lazily(() => asHtml(indexDocument(frame))),
    source: lazily(() => asMarkdown(list))
  })
  for (const [index, { markdown, page }] of all.entries()) {
    const neighbours = { before: all[index - 1]?.page, after: all[index + 1]?.page }
    const source = lazily(() => asMarkdown(markdown))
    const rendered = () =>
      renderMarkdown(markdown, (target) => guideLinkOf(target, page.file, linkable))
    const shown = lazily(() => asHtml(pageDocument(frame, page, rendered(), neighbours)))
    entries.set(page.name, { shown, source })
    entries.set(page.file, { shown: source })
  }
  return {
    list: lazily(() => staticAnswer({ text: list, contentType: "text/plain; charset=utf-8" })),
    at: (path) => entries.get(path),
    missing: {
      shown: missingDocument(frame),
      source: `# There is no such page\n\n${list}`,
      headers
    }
  }
}
