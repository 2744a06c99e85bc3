/**
 * Where this process listens, as an address that a client can use. Known before any route is built,
 * so that links never need the address that a request claims.
 */
import { Context, Effect, Layer } from "effect"
import { HttpServer } from "effect/http"
import { ApiSettings } from "../messages/ApiSettings.ts"

/** Where this process listens. */
export class HttpListener extends Context.Service<
  HttpListener,
  {
    readonly port: number
    /** An address of this machine that reaches the port, without a trailing slash. */
    readonly url: string
  }
>()("alk/http/HttpListener") {}

/** Addresses that mean all of the machine's: nothing that a client could connect to. */
const anyAddresses: ReadonlySet<string> = new Set(["0.0.0.0", "::"])

/** `port` of `host`, as an address without a trailing slash that reaches it from this machine. */
export const reachableUrl = (host: string, port: number): string => {
  const reachable = anyAddresses.has(host) ? "127.0.0.1" : host
  return `http://${reachable.includes(":") ? `[${reachable}]` : reachable}:${port}`
}

export const layerListener: Layer.Layer<HttpListener, never, ApiSettings | HttpServer.HttpServer> =
  Layer.effect(
    HttpListener,
    Effect.gen(function* () {
      const { host } = yield* ApiSettings
      const { address } = yield* HttpServer.HttpServer
      if (address._tag === "UnixPathAddress") return yield* Effect.die("listening on no port")
      return HttpListener.of({ port: address.port, url: reachableUrl(host, address.port) })
    })
  )
