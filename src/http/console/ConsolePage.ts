/**
 * The document of the console: a head that names its files, and an empty body. Nothing of a tenant
 * is in it, so it needs no key; what it shows, it asks the API for.
 */
import { Effect } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { type ConsoleBundle, ConsoleFiles } from "../../ports/ConsoleFiles.ts"
import { errorResponse } from "../messages/Answer.ts"
import { ApiError } from "../messages/ApiError.ts"
import { CurrentRequest } from "../messages/CurrentRequest.ts"
import { HTML_TYPE, JSON_TYPE, negotiate } from "../messages/MediaTypes.ts"
import { FILES_PATH } from "./ConsolePaths.ts"

/**
 * Scripts, styles and answers of this address only, no text is ever code, and no page may frame it.
 */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; worker-src 'self'; "
  + "img-src 'self' data:; font-src 'self'; base-uri 'none'; form-action 'self'; "
  + "frame-ancestors 'none'"

const HEADERS = {
  "content-security-policy": POLICY,
  "cross-origin-opener-policy": "same-origin",
  "referrer-policy": "no-referrer",
  // The files have other names after an upgrade.
  "cache-control": "no-cache"
}

/** Of every page for browsers, as a URL that loads nothing. */
export const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
  + "%3Crect width='16' height='16' rx='4' fill='%231d5fb4'/%3E%3Cpath d='M4 8.5l2.7 2.7L12 5.5' "
  + "fill='none' stroke='%23fff' stroke-width='2'/%3E%3C/svg%3E"

/** The text of the document. */
export const documentOf = (bundle: ConsoleBundle): string => {
  const { entry, layoutWorker, packWorker, preloads, styles } = bundle
  const file = (name: string) => `${FILES_PATH}/${name}`
  return [
    "<!doctype html>",
    '<html lang="en">',
    "<head>",
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="color-scheme" content="light dark">',
    `<meta name="layout-worker" content="${file(layoutWorker)}">`,
    `<meta name="pack-worker" content="${file(packWorker)}">`,
    "<title>alk</title>",
    `<link rel="icon" href="${ICON}">`,
    `<link rel="stylesheet" href="${file(styles)}">`,
    ...preloads.map((name) => `<link rel="modulepreload" href="${file(name)}">`),
    `<script type="module" src="${file(entry)}"></script>`,
    "</head>",
    "<body>",
    '<div id="app"></div>',
    "<noscript>The console needs JavaScript. The API does not: see /docs.</noscript>",
    "</body>",
    "</html>",
    ""
  ].join("\n")
}

const unavailable = new ApiError({
  code: "unavailable",
  message: "the console can't be built here; the log says why. The API works: see /docs"
})

/** The answer that every address of the console has. */
export const consolePage = Effect.gen(function* () {
  const { bundle } = yield* ConsoleFiles
  return Effect.matchEffect(bundle, {
    onFailure: () => errorResponse(unavailable),
    onSuccess: (files) =>
      Effect.succeed(
        HttpServerResponse.text(documentOf(files), {
          contentType: "text/html; charset=utf-8",
          headers: HEADERS
        })
      )
  })
})

type Answer<E> = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  E,
  HttpServerRequest.HttpServerRequest
>

/** The page for a request that likes HTML better, as those of browsers do; else `other`. */
export const toBrowsers = <E>(
  page: Effect.Effect<HttpServerResponse.HttpServerResponse>,
  other: Answer<E>
): Answer<E> =>
  Effect.gen(function* () {
    const { headers } = yield* HttpServerRequest.HttpServerRequest
    const facts = yield* CurrentRequest
    facts.isNegotiated = true
    return yield* negotiate(headers["accept"], [JSON_TYPE, HTML_TYPE]) === HTML_TYPE ? page : other
  })
