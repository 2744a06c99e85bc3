/** A way to a port that can be cut and made slow: what a network does between two machines. */
import { once } from "node:events"
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net"

export class Link {
  readonly #server: Server
  readonly #target: number
  readonly #sockets = new Set<Socket>()
  /** Nothing comes through: open connections end, new ones are refused. */
  #isCut = false
  /** Milliseconds that each piece takes longer. */
  delayMs = 0

  constructor(target: number) {
    this.#target = target
    this.#server = createServer((client) => this.#serve(client))
  }

  static async to(target: number): Promise<Link> {
    const link = new Link(target)
    link.#server.listen(0, "127.0.0.1")
    await once(link.#server, "listening")
    return link
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  cut(): void {
    this.#isCut = true
    for (const socket of this.#sockets) socket.destroy()
  }

  heal(): void {
    this.#isCut = false
  }

  close(): void {
    this.cut()
    this.#server.close()
  }

  #serve(client: Socket): void {
    if (this.#isCut) return void client.destroy()
    const server = connect(this.#target, "127.0.0.1")
    for (const [from, to] of [
      [client, server],
      [server, client]
    ] as const) {
      this.#sockets.add(from)
      from.setNoDelay(true)
      from.on("error", () => undefined)
      from.on("close", () => {
        this.#sockets.delete(from)
        to.destroy()
      })
      from.on("data", (piece) => {
        if (this.delayMs === 0) return void to.write(piece)
        // Timers of the same length fire in order.
        setTimeout(() => to.writable && to.write(piece), this.delayMs)
      })
    }
  }
}
