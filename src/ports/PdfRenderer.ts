/**
 * Turns a finished document into the bytes of a PDF. The document brings everything that it shows
 * (its fonts as data URIs): a renderer runs no script and fetches nothing.
 */
import { Context, type Effect, Schema } from "effect"

/** There is nothing here that can print; `message` says what to install. */
export class PdfUnavailable extends Schema.TaggedError<PdfUnavailable>()("PdfUnavailable", {
  message: Schema.String
}) {}

/** As many documents as may wait are waiting already: ask again later. */
export class PdfBusy extends Schema.TaggedError<PdfBusy>()("PdfBusy", {
  waitingMax: Schema.Int,
  retryAfterSeconds: Schema.Int
}) {}

/** This document could not be printed. */
export class PdfFailed extends Schema.TaggedError<PdfFailed>()("PdfFailed", {
  reason: Schema.Literals(["timeout", "crashed", "too_large", "refused"]),
  message: Schema.String,
  cause: Schema.Defect()
}) {}

/** Characters of `styles` and `body` together at most: what one browser page takes with ease. */
export const DOCUMENT_LENGTH_MAX = 48 * 1_048_576
/** Bytes of a PDF at most. */
export const PDF_BYTES_MAX = 64 * 1_048_576

/** A file that travels inside of a PDF. */
export interface Attachment {
  /** At most 64 of A-Za-z0-9._- */
  readonly name: string
  /** `application/json` */
  readonly mediaType: string
  /** Printable ASCII without brackets and backslashes. */
  readonly description: string
  readonly bytes: Uint8Array
}

/**
 * An HTML document in parts. An element `<span data-page-of="anchor">` receives the number of the
 * page on which the element with the id `anchor` starts, if a link of the document leads there.
 * Pictures are data URIs.
 */
export interface PdfDocument {
  /** Plain text. */
  readonly title: string
  /** BCP 47. */
  readonly language: string
  /** CSS with @page rules (size, margins, running header and footer) and fonts as data URIs. */
  readonly styles: string
  /** Markup in which everything foreign is escaped. */
  readonly body: string
  /** Canonical time: what the PDF says of its creation. */
  readonly createdAt: string
  /** None unless given. */
  readonly attachments?: ReadonlyArray<Attachment>
}

export class PdfRenderer extends Context.Service<
  PdfRenderer,
  {
    /**
     * The document as a tagged PDF with outline. The same document gives the same bytes. At most
     * `PDF_BYTES_MAX` bytes.
     */
    render(document: PdfDocument): Effect.Effect<Uint8Array, PdfUnavailable | PdfBusy | PdfFailed>
  }
>()("alk/PdfRenderer") {}
