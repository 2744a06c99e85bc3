/**
 * Health and metrics of a process that serves no API: a sequencer, a projection, a store. Two routes
 * for whoever supervises it, on a port of their own, and nothing of any tenant.
 */
import { createServer } from "node:http"
import { NodeHttpServer } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { PrometheusMetrics } from "effect/observability"
import { json } from "./Answer.ts"

export interface WorkerServerSettings {
  readonly host: string
  readonly port: number
  /** Partitions that the process works on, by role. */
  readonly working: Effect.Effect<Readonly<Record<string, ReadonlyArray<number>>>>
}

const PROMETHEUS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

const layerRoutes = ({ working }: WorkerServerSettings) =>
  HttpRouter.use(
    Effect.fnUntraced(function*(router) {
      yield* router.add(
        "GET",
        "/healthz",
        Effect.map(working, (partitions) => json({ status: "ok", partitions }))
      )
      yield* router.add(
        "GET",
        "/metrics",
        Effect.map(PrometheusMetrics.format(), (text) =>
          HttpServerResponse.text(text, { contentType: PROMETHEUS_TYPE })
        )
      )
    })
  )

/** Listens when the layer is built. */
export const layerWorkerServer = (settings: WorkerServerSettings) =>
  HttpRouter.serve(layerRoutes(settings), { disableListenLog: true, disableLogger: true }).pipe(
    Layer.provideMerge(
      NodeHttpServer.layer(createServer, {
        host: settings.host,
        port: settings.port,
        gracefulShutdownTimeout: "1 second"
      })
    )
  )
