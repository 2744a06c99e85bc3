/**
 * Health and metrics of a process that serves no API: a sequencer, a projection, a store. Two routes
 * for whoever supervises it, on a port of their own, and nothing of any tenant.
 */
import { createServer } from "node:http"
import { NodeHttpServer } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { HttpRouter } from "effect/http"
import { json } from "./Answer.ts"
import { metricsAnswer } from "./Metrics.ts"

export interface WorkerServerSettings {
  readonly host: string
  readonly port: number
  /** Partitions that the process works on, by role. */
  readonly working: Effect.Effect<Readonly<Record<string, ReadonlyArray<number>>>>
}

const layerRoutes = ({ working }: WorkerServerSettings) =>
  HttpRouter.use(
    Effect.fnUntraced(function*(router) {
      yield* router.add(
        "GET",
        "/healthz",
        Effect.map(working, (partitions) => json({ status: "ok", partitions }))
      )
      yield* router.add("GET", "/metrics", metricsAnswer)
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
