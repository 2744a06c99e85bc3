/** The routes of the console: its pages and the files that they load. `/` is with the API. */
import { Effect, type Layer } from "effect"
import { HttpRouter, HttpServerRequest, type HttpServerResponse } from "effect/http"
import { ConsoleFiles } from "../../ports/ConsoleFiles.ts"
import { errorResponse } from "../messages/Answer.ts"
import { notFound } from "../messages/ApiError.ts"
import { ApiSettings } from "../messages/ApiSettings.ts"
import { pathOf } from "../messages/CurrentRequest.ts"
import { withoutQuery } from "../messages/KnownQuery.ts"
import { staticAnswer } from "../messages/StaticAnswer.ts"
import { meantRoute, noSuchRoute } from "../server/MeantRoute.ts"
import { consolePage, toBrowsers } from "./ConsolePage.ts"
import { consolePages, FILES_PATH } from "./ConsolePaths.ts"

/** A name means the same bytes for ever. */
const CACHE = "public, max-age=31536000, immutable"

const typeOf = (name: string): string =>
  name.endsWith(".css") ? "text/css; charset=utf-8" : "text/javascript; charset=utf-8"

type Answer = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  never,
  HttpServerRequest.HttpServerRequest
>

/** Per file, made when it is first asked for. */
const fileAnswers = Effect.gen(function* () {
  const { bundle } = yield* ConsoleFiles
  const answers = new Map<string, Answer>()
  const missing = errorResponse(notFound("file"))
  return (name: string): Answer =>
    Effect.matchEffect(bundle, {
      onFailure: () => missing,
      onSuccess: ({ files }): Answer => {
        const known = answers.get(name)
        if (known !== undefined) return known
        const text = files.get(name)
        if (text === undefined) return missing
        const made = staticAnswer({ text, contentType: typeOf(name), cacheControl: CACHE })
        answers.set(name, made)
        return made
      }
    })
})

/** What programs get at the address of a page. */
const noRoute = Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ url }) =>
  errorResponse(noSuchRoute(meantRoute("GET", pathOf(url))))
)

/** The console, added to the router unless it is off. */
export const layerConsoleRoutes: Layer.Layer<
  never,
  never,
  HttpRouter.HttpRouter | ApiSettings | ConsoleFiles
> = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const { hasConsole } = yield* ApiSettings
    if (!hasConsole) return
    const page = yield* consolePage
    const fileAnswer = yield* fileAnswers
    for (const path of consolePages) yield* router.add("GET", path, toBrowsers(page, noRoute))
    yield* router.add(
      "GET",
      `${FILES_PATH}/:file`,
      withoutQuery(Effect.flatMap(HttpRouter.params, ({ file = "" }) => fileAnswer(file)))
    )
  })
)
