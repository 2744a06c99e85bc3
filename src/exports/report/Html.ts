/**
 * Markup that can't be broken out of: whatever is put into a template is escaped unless it is
 * markup made by a template itself. Knows elements only as text.
 */

/** Finished markup. `html` makes it; what makes it otherwise has escaped what is in it. */
export class Html {
  readonly markup: string

  constructor(markup: string) {
    this.markup = markup
  }
}

export type HtmlPart = Html | string | number | ReadonlyArray<Html> | undefined

/** Safe in content and in quoted attributes. */
const escapeHtml = (text: string): string =>
  text.replace(/[&<>"'`]/g, (character) => `&#${character.charCodeAt(0)};`)

const markupOf = (part: HtmlPart): string => {
  if (part === undefined) return ""
  if (part instanceof Html) return part.markup
  if (typeof part === "object") return part.map(({ markup }) => markup).join("")
  return escapeHtml(String(part))
}

/** A template of markup; attributes have to be quoted. */
export const html = (strings: TemplateStringsArray, ...parts: ReadonlyArray<HtmlPart>): Html => {
  let markup = strings[0] ?? ""
  parts.forEach((part, index) => (markup += markupOf(part) + (strings[index + 1] ?? "")))
  return new Html(markup)
}

export const nothing = new Html("")
