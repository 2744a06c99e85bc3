/** Servers that start and stop again and again on one port, while somebody connects all the time. */
import { Context, Effect, Exit, Layer, Scope } from "effect"
import { HttpServer } from "effect/http"
import { layerWorkerServer } from "../../../src/http/operations/WorkerServer.ts"
import { freePort } from "../../support/FreePort.ts"
import { StartProbe } from "../../support/StartProbe.ts"
import { TestApi } from "./TestApi.ts"

const STARTS = 20
/** Answers of each server. */
const ANSWERS_MIN = 3

interface Running {
  readonly port: number
  stop(): Promise<void>
}

/** A server without the API; port 0 is any that is free. */
export const startWorker = async (port: number): Promise<Running> => {
  const scope = await Effect.runPromise(Scope.make())
  const layer = layerWorkerServer({ host: "127.0.0.1", port, working: Effect.succeed({ api: [] }) })
  const built = await Effect.runPromise(Layer.buildWithScope(layer, scope))
  const { address } = Context.get(built, HttpServer.HttpServer)
  return {
    port: (address as { readonly port: number }).port,
    stop: () => Effect.runPromise(Scope.close(scope, Exit.void))
  }
}

export const servers: ReadonlyArray<
  readonly [name: string, start: (port: number) => Promise<Running>]
> = [
  ["the API", (port) => TestApi.start({ port })],
  ["a process without the API", startWorker]
]

/** The probe of so many starts, which has ended. */
export const probedStarts = async (
  start: (port: number) => Promise<Running>
): Promise<StartProbe> => {
  const port = await freePort()
  const probe = StartProbe.begin(port)
  for (let n = 0; n < STARTS; n++) {
    const server = await start(port)
    await probe.until((count) => count >= ANSWERS_MIN)
    await server.stop()
    probe.begin()
  }
  await probe.end()
  return probe
}
