/**
 * Exports as answers: the ETag in front of the work, a slot for it, and the bytes on their way. How
 * exports are made is the maker's.
 */
import { Context, Effect, Layer, type Scope, Stream } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { ProjectionProgress } from "../../actors/log/ProjectionProgress.ts"
import type { ExportKind } from "../../exports/ExportScope.ts"
import type { Failure } from "../messages/Failure.ts"
import { matchesEtag } from "../messages/StaticAnswer.ts"
import { readableView } from "../messages/StoreView.ts"
import { transfer } from "../messages/Transfer.ts"
import { asFile, CACHE_CONTROL, fileForms } from "./ExportFiles.ts"
import { ExportMaker, type ExportTag } from "./ExportMaker.ts"
import type { ExportOrder } from "./ExportOrder.ts"
import { ExportSlots } from "./ExportSlots.ts"

type Request = HttpServerRequest.HttpServerRequest
type Answered = Effect.Effect<HttpServerResponse.HttpServerResponse, Failure, Scope.Scope>

export class ExportAnswers extends Context.Service<
  ExportAnswers,
  {
    /** The ZIP, with or without the PDF in it. */
    pack(request: Request, order: ExportOrder, withPdf: boolean): Answered
    /** The PDF alone. */
    pdf(request: Request, order: ExportOrder): Answered
  }
>()("alk/http/ExportAnswers") {}

const unchanged = (etag: string) =>
  HttpServerResponse.empty({ status: 304, headers: { etag, "cache-control": CACHE_CONTROL } })

const headersOf = ({ etag, fileName }: ExportTag) => ({
  etag,
  "cache-control": CACHE_CONTROL,
  ...asFile(fileName)
})

/** Exports of the services of this process. */
export const layerExportAnswers = Layer.effect(
  ExportAnswers,
  Effect.gen(function* () {
    const maker = yield* ExportMaker
    const projection = yield* ProjectionProgress
    const slots = yield* ExportSlots

    const answered = Effect.fnUntraced(function* (
      kind: ExportKind,
      request: Request,
      order: ExportOrder
    ) {
      const { tenantId } = order
      const { contentType } = fileForms[kind]
      yield* readableView(projection, tenantId)
      const current = yield* maker.tag(kind, order)
      if (matchesEtag(request.headers["if-none-match"], current.etag)) {
        return unchanged(current.etag)
      }
      // HEAD shows no document: nothing is made and nothing was exported.
      if (request.method === "HEAD") {
        const headers = { ...headersOf(current), "content-type": contentType }
        return HttpServerResponse.empty({ status: 200, headers })
      }
      yield* slots.take(tenantId)
      const line = `${request.method} ${request.url}`
      const made = yield* maker.document(kind, { ...order, line })
      const options = { contentType, headers: headersOf(made) }
      if (!Stream.isStream(made.content)) {
        return HttpServerResponse.uint8Array(made.content, options)
      }
      const of = { operation: "exportEvidencePack", tenantId }
      return HttpServerResponse.stream(transfer(request, made.content, of), options)
    })

    return ExportAnswers.of({
      pack: (request, order, withPdf) =>
        answered(withPdf ? "pack" : "pack-without-pdf", request, order),
      pdf: (request, order) => answered("pdf", request, order)
    })
  })
)
