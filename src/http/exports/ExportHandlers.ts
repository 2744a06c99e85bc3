/**
 * Serves the exports: hands on what is asked for.
 */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "../Api.ts"
import { CurrentPrincipal } from "../server/Authorization.ts"
import { HttpListener } from "../server/HttpListener.ts"
import { ExportAnswers } from "./ExportAnswers.ts"

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
        Effect.fnUntraced(function* ({ query, request }) {
          const { keyId, tenantId } = yield* CurrentPrincipal
          const { filter, withPdf } = query
          const order = { tenantId, filter, askedBy: askedWith(keyId), ownUrl }
          return yield* answers.pack(request, order, withPdf)
        })
      )
      .handleRaw(
        "exportPdf",
        Effect.fnUntraced(function* ({ query: filter, request }) {
          const { keyId, tenantId } = yield* CurrentPrincipal
          const order = { tenantId, filter, askedBy: askedWith(keyId), ownUrl }
          return yield* answers.pdf(request, order)
        })
      )
  })
)
