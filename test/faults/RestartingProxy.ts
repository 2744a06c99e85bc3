/**
 * A proxy in front of the service that goes away and comes back on the same port, as fast as no
 * program starts: its connections are reset, and new ones are refused meanwhile. Knows no protocol.
 */
import { once } from "node:events"
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"

export class RestartingProxy {
  readonly #target: number
  readonly #sockets = new Set<Socket>()
  readonly #server: Server
  #port = 0

  private constructor(url: string) {
    this.#target = Number(new URL(url).port)
    this.#server = createServer((client) => this.#relay(client))
  }

  /** Passes on to the service at this address. */
  static async start(url: string): Promise<RestartingProxy> {
    const proxy = new RestartingProxy(url)
    await proxy.#listen()
    return proxy
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** Away for so many milliseconds. */
  async restart(awayMs: number): Promise<void> {
    await this.stop()
    await sleep(awayMs)
    await this.#listen()
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, "close")
    this.#server.close()
    for (const socket of this.#sockets) socket.resetAndDestroy()
    await closed
  }

  async #listen(): Promise<void> {
    this.#server.listen(this.#port, "127.0.0.1")
    await once(this.#server, "listening")
    this.#port = (this.#server.address() as AddressInfo).port
  }

  #relay(client: Socket): void {
    const service = connect(this.#target, "127.0.0.1")
    for (const [from, to] of [
      [client, service],
      [service, client]
    ] as const) {
      this.#sockets.add(from)
      from.pipe(to)
      from.on("error", () => to.destroy())
      from.once("close", () => {
        this.#sockets.delete(from)
        to.destroy()
      })
    }
  }
}
