/**
 * The HTML documents of the guide: a page, the list of pages, and what a wrong address gets. They
 * need no script and load nothing but pictures of this address.
 */
import { createHash } from "node:crypto"
import { Html, html, nothing } from "../../exports/report/Html.ts"
import { ICON } from "../console/ConsolePage.ts"
import type { GuidePage } from "./GuidePages.ts"
import { GUIDE_PATH } from "./GuidePaths.ts"
import type { Heading, RenderedPage } from "./Markdown.ts"

/** What is around every page. */
export interface GuideFrame {
  readonly styles: string
  /** The console is served too. */
  readonly hasConsole: boolean
  readonly guide: ReadonlyArray<GuidePage>
  readonly reference: ReadonlyArray<GuidePage>
}

/** The page before and the one after it, if there are any. */
export interface Neighbours {
  readonly before: GuidePage | undefined
  readonly after: GuidePage | undefined
}

/** Runs nothing, loads pictures of this address only, and its only style is the one in it. */
export const policyOf = (styles: string): string => {
  const digest = createHash("sha256").update(styles).digest("base64")
  return (
    `default-src 'none'; style-src 'sha256-${digest}'; img-src 'self' data:; base-uri 'none'; `
    + "form-action 'none'; frame-ancestors 'none'"
  )
}

const addressOf = ({ name }: GuidePage): string => `${GUIDE_PATH}/${name}`
/** Of the page's source. */
export const sourceOf = ({ file }: GuidePage): string => `${GUIDE_PATH}/${file}`

const linkTo = (page: GuidePage): Html => html`<a href="${addressOf(page)}">${page.title}</a>`

const menuItem = (page: GuidePage, current: GuidePage | undefined): Html =>
  page.name === current?.name
    ? html`<li><a href="${addressOf(page)}" aria-current="page">${page.title}</a></li>`
    : html`<li>${linkTo(page)}</li>`

const menu = ({ guide, reference }: GuideFrame, current: GuidePage | undefined): Html => html`
<nav class="pages" aria-label="Pages">
<p>Guide</p>
<ul>${guide.map((page) => menuItem(page, current))}</ul>
<p>Reference</p>
<ul>${reference.map((page) => menuItem(page, current))}</ul>
</nav>`

const documentOf = (
  frame: GuideFrame,
  title: string,
  current: GuidePage | undefined,
  main: Html
): string => {
  const { hasConsole, styles } = frame
  const source =
    current === undefined
      ? nothing
      : html`<link rel="alternate" type="text/markdown" href="${sourceOf(current)}">`
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" href="${new Html(ICON)}">
${source}
<style>${new Html(styles)}</style>
</head>
<body>
<a class="skip" href="#content">To the content</a>
<header class="top">
<a class="brand" href="${GUIDE_PATH}"><strong>alk</strong> guide</a>
<nav aria-label="Service">
<a href="/docs">API reference</a>
${hasConsole ? html`<a href="/">Console</a>` : nothing}
</nav>
</header>
<div class="frame">${menu(frame, current)}
<main id="content" tabindex="-1">
${main}
</main>
</div>
</body>
</html>
`.markup
}

/** Parts, and the parts of each. */
const contents = (headings: ReadonlyArray<Heading>): Html => {
  const lines = headings
    .filter(({ depth }) => depth <= 3)
    .map(({ depth, id, text }) =>
      depth === 3
        ? html`<li class="inner"><a href="#${id}">${text}</a></li>`
        : html`<li><a href="#${id}">${text}</a></li>`
    )
  return lines.length === 0
    ? nothing
    : html`<nav class="contents" aria-label="On this page"><p>On this page</p>
<ul>${lines}</ul></nav>`
}

const turn = ({ after, before }: Neighbours): Html => html`
<nav class="turn" aria-label="Before and after this page">
${before === undefined ? nothing : html`<a rel="prev" href="${addressOf(before)}">← ${before.title}</a>`}
${after === undefined ? nothing : html`<a rel="next" href="${addressOf(after)}">${after.title} →</a>`}
</nav>`

/** A page of the guide. */
export const pageDocument = (
  frame: GuideFrame,
  page: GuidePage,
  rendered: RenderedPage,
  neighbours: Neighbours
): string => {
  const { body, headings, title = page.title } = rendered
  const main = html`<h1>${title}</h1>
${contents(headings)}
<div class="text">
${body}
</div>
<div class="end">${turn(neighbours)}
<p class="faint"><a href="${sourceOf(page)}">This page as Markdown</a></p>
</div>`
  return documentOf(frame, `${page.title} · alk guide`, page, main)
}

const listed = (pages: ReadonlyArray<GuidePage>): Html =>
  html`<ul class="list">${pages.map((page) => html`<li>${linkTo(page)}: ${page.summary}</li>`)}</ul>`

const lists = ({ guide, reference }: GuideFrame): Html => html`<div class="text">
<h2>Guide</h2>
${listed(guide)}
<h2>Reference</h2>
${listed(reference)}
</div>`

/** The list of pages. */
export const indexDocument = (frame: GuideFrame): string =>
  documentOf(
    frame,
    "alk guide",
    undefined,
    html`<h1>The guide</h1>
<p>Every page is there as Markdown too: add <code>.md</code> to its address, or ask for
<code>text/markdown</code>. <a href="/docs">The API reference</a> is a page of its own.</p>
${lists(frame)}`
  )

/** What is shown for an address below the guide's that no page has. */
export const missingDocument = (frame: GuideFrame): string =>
  documentOf(
    frame,
    "No such page · alk guide",
    undefined,
    html`<h1>There is no such page</h1>
<p>The address may be mistyped, or of another version. These are the pages of the guide.</p>
${lists(frame)}`
  )
