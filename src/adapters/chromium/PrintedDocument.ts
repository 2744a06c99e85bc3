/**
 * Prints one document in a browser context of its own: no script, no network, nothing kept. Prints
 * it twice if it has a table of contents, since only the first printing shows the page numbers.
 */
import type { Browser, BrowserContext, Page } from "playwright-core"
import {
  DOCUMENT_LENGTH_MAX,
  PDF_BYTES_MAX,
  type PdfDocument,
  PdfFailed
} from "../../ports/PdfRenderer.ts"
import { whileConnected } from "./Browser.ts"
import { anchorPages, attachFiles, normalizePdf } from "./PdfFile.ts"

/** Only what is in the document itself: inline styles, fonts and pictures as data URIs. */
const POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; font-src data:; img-src data:; base-uri 'none'; "
  + "form-action 'none'"

const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)

const tooLarge = (message: string) =>
  new PdfFailed({ reason: "too_large", message, cause: undefined })

const markupOf = ({ body, language, styles, title }: PdfDocument): string => {
  if (styles.length + body.length > DOCUMENT_LENGTH_MAX) {
    throw tooLarge(`the document has over ${DOCUMENT_LENGTH_MAX} characters`)
  }
  if (/<\/style/i.test(styles)) {
    const message = "the styles of the document end their own element"
    throw new PdfFailed({ reason: "refused", message, cause: undefined })
  }
  return (
    `<!doctype html><html lang="${escapeHtml(language)}"><head><meta charset="utf-8">`
    + `<meta http-equiv="Content-Security-Policy" content="${POLICY}">`
    + `<title>${escapeHtml(title)}</title><style>${styles}</style></head><body>${body}</body></html>`
  )
}

const print = async (page: Page, tagged: boolean): Promise<Buffer> => {
  const pdf = await page.pdf({
    tagged,
    outline: tagged,
    printBackground: true,
    preferCSSPageSize: true
  })
  if (pdf.length > PDF_BYTES_MAX) throw tooLarge(`the PDF has over ${PDF_BYTES_MAX} bytes`)
  return pdf
}

/** Runs in the page, from outside of it: the document itself can run nothing. */
const fillPageNumbers = (page: Page, pages: ReadonlyMap<string, number>): Promise<void> =>
  page.locator("[data-page-of]").evaluateAll((elements, numbers) => {
    for (const element of elements) {
      const number = numbers[element.getAttribute("data-page-of") ?? ""]
      if (number !== undefined) element.textContent = String(number)
    }
  }, Object.fromEntries(pages))

const printIn = async (context: BrowserContext, document: PdfDocument): Promise<Buffer> => {
  const markup = markupOf(document)
  await context.route("**/*", (route) => route.abort("blockedbyclient"))
  const page = await context.newPage()
  // How long a document may take is the caller's to say.
  page.setDefaultTimeout(0)
  await page.setContent(markup, { waitUntil: "load" })
  await page.evaluate("document.fonts.ready.then(() => undefined)")
  // Tags cost as much as everything else, and the page numbers need none.
  const wanted = await page.locator("[data-page-of]").count()
  if (wanted > 0) await fillPageNumbers(page, anchorPages(await print(page, false)))
  return print(page, true)
}

const printAlone = async (browser: Browser, document: PdfDocument): Promise<Buffer> => {
  const context = await browser.newContext({
    offline: true,
    javaScriptEnabled: false,
    acceptDownloads: false,
    serviceWorkers: "block",
    locale: "en-US",
    timezoneId: "UTC"
  })
  try {
    const { attachments = [], createdAt } = document
    const pdf = normalizePdf(await printIn(context, document), createdAt)
    return attachFiles(pdf, attachments, createdAt)
  } finally {
    await context.close().catch(() => undefined)
  }
}

/** The PDF of a document; rejects when the browser goes away. */
export const printDocument = (browser: Browser, document: PdfDocument): Promise<Buffer> =>
  whileConnected(browser, printAlone(browser, document))
