/**
 * Markdown as HTML that runs nothing: raw HTML in it is shown as text, and links are those that the
 * caller resolves.
 */
import { lexer, Parser, Renderer, type Tokens, type TokensList, walkTokens } from "marked"
import { Html, html, nothing } from "../../exports/report/Html.ts"
import { makeAnchors } from "./Anchors.ts"
import type { GuideLink } from "./GuideLinks.ts"

/** A heading below the title. */
export interface Heading {
  /** 2 is a part, 3 a part of a part. */
  readonly depth: number
  readonly id: string
  readonly text: string
}

export interface RenderedPage {
  /** The text of the first heading; undefined if the page doesn't begin with one. */
  readonly title: string | undefined
  readonly headings: ReadonlyArray<Heading>
  /** What follows the title. */
  readonly body: Html
}

const COMMENT = /^<!--(?:(?!-->).)*-->\s*$/s

interface Outline {
  readonly title: string | undefined
  readonly headings: ReadonlyArray<Heading>
  readonly ids: ReadonlyMap<Tokens.Heading, string>
}

/** What a heading says, without its markup. */
const plainText = (tokens: ReadonlyArray<Tokens.Generic>): string =>
  tokens
    .map(({ text = "", tokens: inner }) => (inner === undefined ? text : plainText(inner)))
    .join("")

const outlineOf = (tokens: TokensList): Outline => {
  const anchor = makeAnchors()
  const ids = new Map<Tokens.Heading, string>()
  const headings: Array<Heading> = []
  walkTokens(tokens, (token) => {
    if (token.type !== "heading") return
    const heading = token as Tokens.Heading
    const text = plainText(heading.tokens)
    const id = anchor(text)
    ids.set(heading, id)
    headings.push({ depth: heading.depth, id, text })
  })
  const title =
    tokens[0]?.type === "heading" && tokens[0].depth === 1 ? headings.shift() : undefined
  return { title: title?.text, headings, ids }
}

/** Words for a link that can't be followed: what it names is in the repository only. */
const namedFile = (text: Html, plain: string, path: string): Html =>
  plain === path ? html`<code>${path}</code>` : html`${text} (<code>${path}</code>)`

const codeBlock = ({ lang = "", text }: Tokens.Code): Html => {
  const block = html`<pre tabindex="0"><code>${text}</code></pre>`
  return lang === "mermaid"
    ? html`<figure>${block}<figcaption>A diagram, written in Mermaid</figcaption></figure>`
    : block
}

const cellOf = (tag: "td" | "th", align: Tokens.TableCell["align"], inner: string): Html =>
  new Html(
    align === "right" ? `<${tag} class="number">${inner}</${tag}>` : `<${tag}>${inner}</${tag}>`
  )

/** Writes the tokens of one page. */
class PageRenderer extends Renderer {
  readonly #ids: Outline["ids"]
  readonly #linkOf: (target: string) => GuideLink

  constructor(ids: Outline["ids"], linkOf: (target: string) => GuideLink) {
    super()
    this.#ids = ids
    this.#linkOf = linkOf
  }

  /** Raw HTML is text; a comment is for who writes. */
  override html({ text }: Tokens.HTML | Tokens.Tag): string {
    return COMMENT.test(text) ? "" : html`${text}`.markup
  }

  override code(token: Tokens.Code): string {
    return `${codeBlock(token).markup}\n`
  }

  override heading(token: Tokens.Heading): string {
    const { depth, tokens } = token
    const id = this.#ids.get(token) ?? ""
    const link = html`<a class="anchor" href="#${id}" aria-label="Link to this part">#</a>`
    const words = new Html(this.parser.parseInline(tokens))
    return `<h${depth} ${html`id="${id}">${words} ${link}`.markup}</h${depth}>\n`
  }

  override link({ href, tokens }: Tokens.Link): string {
    const words = new Html(this.parser.parseInline(tokens))
    const link = this.#linkOf(href)
    return link.is === "address"
      ? html`<a href="${link.href}">${words}</a>`.markup
      : namedFile(words, plainText(tokens), link.path).markup
  }

  override image({ href, text }: Tokens.Image): string {
    const link = this.#linkOf(href)
    return link.is === "address"
      ? html`<img src="${link.href}" alt="${text}" loading="lazy">`.markup
      : namedFile(html`${text}`, text, link.path).markup
  }

  override table({ header, rows }: Tokens.Table): string {
    const cell = (tag: "td" | "th", { align, tokens }: Tokens.TableCell): Html =>
      cellOf(tag, align, this.parser.parseInline(tokens))
    // A heading without words is no heading.
    const isNamed = header.some(({ text }) => text !== "")
    const headings = header.map((one) => cell(one.text === "" ? "td" : "th", one))
    const head = isNamed ? html`<thead><tr>${headings}</tr></thead>` : nothing
    const body = rows.map((row) => html`<tr>${row.map((one) => cell("td", one))}</tr>`)
    const table = html`<table>${head}<tbody>${body}</tbody></table>`
    const scrolls = html`<div class="scrolls" role="group" aria-label="Table" tabindex="0">`
    return `${scrolls.markup}${table.markup}</div>\n`
  }
}

/** The ids of the headings of a page, its title's too. */
export const anchorsOf = (markdown: string): ReadonlySet<string> =>
  new Set(outlineOf(lexer(markdown)).ids.values())

/** The page of a Markdown text, whose links lead where `linkOf` says. */
export const renderMarkdown = (
  markdown: string,
  linkOf: (target: string) => GuideLink
): RenderedPage => {
  const tokens = lexer(markdown)
  const { headings, ids, title } = outlineOf(tokens)
  const parser = new Parser({ renderer: new PageRenderer(ids, linkOf) })
  const body = parser.parse(title === undefined ? tokens : tokens.slice(1))
  return { title, headings, body: new Html(body) }
}
