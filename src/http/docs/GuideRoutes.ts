/**
 * The routes of the guide: its list, its pages and pictures, and the list for programs that read.
 * They need no key and show nothing of a tenant.
 */
import { readFile } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import { Effect, type Layer } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { ApiSettings } from "../messages/ApiSettings.ts"
import { CurrentRequest } from "../messages/CurrentRequest.ts"
import { HTML_TYPE, MARKDOWN_TYPE, namesType, negotiate } from "../messages/MediaTypes.ts"
import {
  type Entry,
  type Guide,
  HTML_CONTENT,
  MARKDOWN_CONTENT,
  type Missing,
  makeGuide
} from "./Guide.ts"
import { readGuideFolder } from "./GuideFolder.ts"
import { GUIDE_PATH, LLMS_PATH } from "./GuidePaths.ts"

const DOCS_FOLDER = fileURLToPath(new URL("../../../docs", import.meta.url))
/** What the pages of the console begin with comes first. */
const STYLE_FILES = ["../../console/base.css", "./guide.css"] as const

const loadGuide = async (hasConsole: boolean, baseUrl: string): Promise<Guide> => {
  const [folder, ...styles] = await Promise.all([
    readGuideFolder(DOCS_FOLDER),
    ...STYLE_FILES.map((file) => readFile(new URL(file, import.meta.url), "utf8"))
  ])
  return makeGuide(folder, { styles: styles.join("\n"), hasConsole, baseUrl })
}

/**
 * True if Markdown is named in `Accept`, and liked no less than HTML: browsers never name it, and
 * programs that read do.
 */
const wantsMarkdown = Effect.gen(function* () {
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const facts = yield* CurrentRequest
  facts.isNegotiated = true
  const { accept = "" } = headers
  return (
    namesType(accept, MARKDOWN_TYPE)
    && negotiate(accept, [MARKDOWN_TYPE, HTML_TYPE]) === MARKDOWN_TYPE
  )
})

const entryAnswer = ({ shown, source }: Entry) =>
  source === undefined
    ? shown()
    : Effect.flatMap(wantsMarkdown, (isSource) => (isSource ? source() : shown()))

const missingAnswer = ({ headers, shown, source }: Missing) =>
  Effect.map(wantsMarkdown, (isSource) =>
    isSource
      ? HttpServerResponse.text(source, { status: 404, contentType: MARKDOWN_CONTENT })
      : HttpServerResponse.text(shown, { status: 404, contentType: HTML_CONTENT, headers })
  )

/** The guide, added to the router; its files are read when it is first asked for. */
export const layerGuideRoutes: Layer.Layer<never, never, HttpRouter.HttpRouter | ApiSettings> =
  HttpRouter.use(
    Effect.fnUntraced(function* (router) {
      const { hasConsole, publicUrl = "" } = yield* ApiSettings
      const guide = yield* Effect.cached(Effect.promise(() => loadGuide(hasConsole, publicUrl)))
      const page = Effect.gen(function* () {
        const { at, missing } = yield* guide
        const { "*": path = "" } = yield* HttpRouter.params
        const entry = at(path)
        return yield* entry === undefined ? missingAnswer(missing) : entryAnswer(entry)
      })
      yield* router.add("GET", `${GUIDE_PATH}/*`, page)
      yield* router.add(
        "GET",
        LLMS_PATH,
        Effect.flatMap(guide, ({ list }) => list())
      )
    })
  )
