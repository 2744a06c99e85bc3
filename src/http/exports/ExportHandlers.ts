/**
 * Serves the exports: reads what is asked for, and refuses what is not a parameter of theirs.
 */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "../Api.ts"
import { toFilter } from "../events/EventParameters.ts"
import { answering } from "../messages/Answer.ts"
import { refusable } from "../messages/ApiError.ts"
import { readQuery } from "../messages/QueryParameters.ts"
import { CurrentPrincipal } from "../server/Authorization.ts"
import { HttpListener } from "../server/HttpListener.ts"
import { ExportAnswers } from "./ExportAnswers.ts"
import { packParameters, pdfParameters } from "./ExportContract.ts"

const askedWith = (id: string) => ({ kind: "API key" as const, id })

/** The handlers of ExportApi. */
export const layerExportHandlers = HttpApiBuilder.group(
  Api,
  "Export",
  Effect.fnUntraced(function* (handlers) {
    const answers = yield* ExportAnswers
    const { url: ownUrl } = yield* HttpListener

    return handlers
      .handleRaw(
        "exportEvidencePack",
        answering(
          Effect.fnUntraced(function* ({ request }) {
            const { keyId, tenantId } = yield* CurrentPrincipal
            const { filter, withPdf } = yield* refusable(() => {
              const { metadata, values } = readQuery(request.url, packParameters, {
                metadata: true
              })
              return { filter: toFilter(values, metadata), withPdf: values.pdf ?? true }
            })
            const order = { tenantId, filter, askedBy: askedWith(keyId), ownUrl }
            return yield* answers.pack(request, order, withPdf)
          })
        )
      )
      .handleRaw(
        "exportPdf",
        answering(
          Effect.fnUntraced(function* ({ request }) {
            const { keyId, tenantId } = yield* CurrentPrincipal
            const filter = yield* refusable(() => {
              const { metadata, values } = readQuery(request.url, pdfParameters, {
                metadata: true
              })
              return toFilter(values, metadata)
            })
            const order = { tenantId, filter, askedBy: askedWith(keyId), ownUrl }
            return yield* answers.pdf(request, order)
          })
        )
      )
  })
)
