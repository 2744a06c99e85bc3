/**
 * The routes that need no key: landing page, documentation, health, metrics and public keys. None
 * of them shows anything of a tenant, and none is part of the contract.
 */
import { readFile } from "node:fs/promises"
import { Effect, Layer } from "effect"
import { HttpRouter } from "effect/http"
import { HttpApiScalar } from "effect/http-api"
import { LiveFeed } from "../../actors/feeds/LiveFeed.ts"
import type { PublishedKeys } from "../../actors/follower/PublishedKeys.ts"
import type { ConsoleFiles } from "../../ports/ConsoleFiles.ts"
import { API_VERSION, Api, openApiDocument } from "../Api.ts"
import { layerPublicKeys } from "../chain/PublicKeys.ts"
import { consolePage, toBrowsers } from "../console/ConsolePage.ts"
import { GUIDE_PATH } from "../docs/GuidePaths.ts"
import { errorResponse, json } from "../messages/Answer.ts"
import { notFound, RETRY_AFTER_SECONDS } from "../messages/ApiError.ts"
import { ApiSettings } from "../messages/ApiSettings.ts"
import { Bodies } from "../messages/BodyBudget.ts"
import { withoutQuery } from "../messages/KnownQuery.ts"
import { JSON_TYPE } from "../messages/MediaTypes.ts"
import { staticAnswer } from "../messages/StaticAnswer.ts"
import { Draining } from "../server/Draining.ts"
import {
  bodyBytesInFlight,
  liveSubscribers,
  metricsResponse,
  metricsText
} from "../server/Metrics.ts"
import { ProcessGroup } from "../server/ProcessGroup.ts"
import { PUBLIC_KEYS_PATH } from "./OpsContract.ts"
import { Readiness } from "./Readiness.ts"

const ASYNC_API_FILE = new URL("../../../schemas/asyncapi.yaml", import.meta.url)

/**
 * Requests can be tried: a key that is filled in is kept by the open page and nowhere else, and goes
 * to this address only. Without what would load or open something elsewhere.
 */
const referenceOptions = {
  authentication: { preferredSecurityScheme: "api_key" },
  persistAuth: false,
  withDefaultFonts: false,
  hideClientButton: true,
  showDeveloperTools: "never",
  telemetry: false
}

const DOCS_PATH = "/docs"

/** The library's page as text: 3.4 MB that hold the document and the program that shows it. */
const referencePage = Effect.promise(async () => {
  const page = HttpApiScalar.layer(Api, { path: DOCS_PATH, scalar: referenceOptions })
  const { dispose, handler } = HttpRouter.toWebHandler(page, { disableLogger: true })
  const answer = await handler(new Request(`http://localhost${DOCS_PATH}`))
  const text = await answer.text()
  await dispose()
  return text
})

/** Made when it is first asked for. */
const layerReference = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const answer = yield* Effect.cached(
      Effect.map(referencePage, (text) =>
        staticAnswer({ text, contentType: "text/html; charset=utf-8" })
      )
    )
    yield* router.add("GET", DOCS_PATH, Effect.flatten(answer))
  })
)

const layerPages = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const { hasConsole, publicUrl, serviceName } = yield* ApiSettings
    const document = openApiDocument()
    const openApi = staticAnswer({
      text: JSON.stringify(
        publicUrl === undefined ? document : { ...document, servers: [{ url: publicUrl }] }
      ),
      contentType: JSON_TYPE
    })
    const asyncApi = yield* Effect.promise(() =>
      readFile(ASYNC_API_FILE, "utf8").catch(() => undefined)
    )
    const landing = json(
      {
        service: serviceName,
        version: API_VERSION,
        docs: "/docs",
        guide: GUIDE_PATH,
        openapi: "/openapi.json",
        asyncapi: "/asyncapi.yaml",
        health: "/healthz",
        ready: "/readyz",
        metrics: "/metrics",
        keys: PUBLIC_KEYS_PATH
      },
      { headers: { "cache-control": "public, max-age=300" } }
    )
    const page = yield* consolePage
    yield* router.add("GET", "/", hasConsole ? toBrowsers(page, Effect.succeed(landing)) : landing)
    yield* router.add("GET", "/openapi.json", withoutQuery(openApi))
    yield* router.add(
      "GET",
      "/asyncapi.yaml",
      withoutQuery(
        asyncApi === undefined
          ? errorResponse(notFound("document"))
          : staticAnswer({ text: asyncApi, contentType: "application/yaml" })
      )
    )
  })
)

const layerHealth = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const readiness = yield* Readiness
    const feed = yield* LiveFeed
    const bodies = yield* Bodies
    const draining = yield* Draining
    // What probes put behind the question mark is for caches on the way.
    yield* router.add("GET", "/healthz", Effect.succeed(json({ status: "ok" })))
    yield* router.add(
      "GET",
      "/readyz",
      Effect.map(readiness.check, (report) => {
        // A process that stops may still be able to write, but is not to be sent anything.
        const ready = report.ready && !draining.isBegun()
        const body = draining.isBegun() ? { ...report.body, status: "stopping" } : report.body
        return json(body, {
          status: ready ? 200 : 503,
          headers: {
            "cache-control": "no-store",
            ...(ready ? {} : { "retry-after": String(RETRY_AFTER_SECONDS) })
          }
        })
      })
    )
    const { sharedMetrics } = yield* ProcessGroup
    const metrics = sharedMetrics(
      Effect.gen(function* () {
        yield* liveSubscribers(yield* feed.subscribers)
        yield* bodyBytesInFlight(bodies.bytes)
        return yield* metricsText
      })
    )
    yield* router.add("GET", "/metrics", withoutQuery(Effect.map(metrics, metricsResponse)))
  })
)

/** The routes without a key, added to the router. */
export const layerOpsRoutes: Layer.Layer<
  never,
  never,
  | HttpRouter.HttpRouter
  | ApiSettings
  | Bodies
  | ConsoleFiles
  | Draining
  | LiveFeed
  | PublishedKeys
  | Readiness
> = Layer.mergeAll(layerReference, layerPages, layerHealth, layerPublicKeys)
