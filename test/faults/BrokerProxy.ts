/**
 * A proxy in front of the broker that knows just enough of Kafka's protocol to act at an exact
 * moment: when a certain request arrives, or when its answer does. It advertises itself in place of
 * the broker, so that no client goes round it.
 */
import { once } from "node:events"
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net"

/** Numbers of the requests that a transaction is made of. */
export const apiKeys = { produce: 0, addPartitions: 24, endTransaction: 26 }
/** Answers that name the broker's address. */
const METADATA = 3
const FIND_COORDINATOR = 10

const LENGTH_BYTES = 4
const HOST = Buffer.from("127.0.0.1")

export interface Moment {
  readonly apiKey: number
  readonly side: "request" | "response"
  /** Matching frames that pass before. */
  readonly skip?: number
}

/** Calls back with every whole frame, its length field included. */
const eachFrame = (socket: Socket, take: (frame: Buffer) => void): void => {
  let rest = Buffer.alloc(0)
  socket.on("data", (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    while (rest.length >= LENGTH_BYTES) {
      const length = LENGTH_BYTES + rest.readInt32BE(0)
      if (rest.length < length) return
      take(rest.subarray(0, length))
      rest = rest.subarray(length)
    }
  })
}

/** What can be done at a moment; without either the frame is swallowed and all stays open. */
export interface Held {
  /** Send the frame on after all. */
  readonly pass: () => void
  /** Close every connection. */
  readonly cut: () => void
}

export class BrokerProxy {
  readonly #server: Server
  readonly #target: number
  readonly #sockets = new Set<Socket>()
  #armed:
    | { readonly moment: Moment; skip: number; readonly hit: (pass: () => void) => void }
    | undefined

  constructor(bootstrap: string) {
    this.#target = Number(bootstrap.split(":").at(-1))
    this.#server = createServer((client) => this.#serve(client))
  }

  static async start(bootstrap: string): Promise<BrokerProxy> {
    const proxy = new BrokerProxy(bootstrap)
    proxy.#server.listen(0, "127.0.0.1")
    await once(proxy.#server, "listening")
    return proxy
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get bootstrap(): string {
    return `127.0.0.1:${this.port}`
  }

  /**
   * At the next such moment call `act`. Unless it passes the frame on, a request does not reach the
   * broker and an answer does not reach the client.
   */
  async at(moment: Moment, act: (held: Held) => void | Promise<void>): Promise<void> {
    const held = await new Promise<Held>((resolve) => {
      this.#armed = {
        moment,
        skip: moment.skip ?? 0,
        hit: (pass) => resolve({ pass, cut: () => this.#cut() })
      }
    })
    await act(held)
  }

  close(): void {
    this.#cut()
    this.#server.close()
  }

  #cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  #isNow(apiKey: number | undefined, side: Moment["side"], pass: () => void): boolean {
    const armed = this.#armed
    if (armed === undefined || armed.moment.apiKey !== apiKey || armed.moment.side !== side) {
      return false
    }
    if (armed.skip-- > 0) return false
    this.#armed = undefined
    armed.hit(pass)
    return true
  }

  #serve(client: Socket): void {
    const broker = connect(this.#target, "127.0.0.1")
    const asked = new Map<number, number>()
    for (const [one, other] of [
      [client, broker],
      [broker, client]
    ] as const) {
      this.#sockets.add(one)
      one.setNoDelay(true)
      one.on("error", () => undefined)
      one.on("close", () => {
        this.#sockets.delete(one)
        other.destroy()
      })
    }
    eachFrame(client, (frame) => {
      const apiKey = frame.readInt16BE(LENGTH_BYTES)
      asked.set(frame.readInt32BE(LENGTH_BYTES + 4), apiKey)
      const pass = () => void broker.write(frame)
      if (!this.#isNow(apiKey, "request", pass)) pass()
    })
    eachFrame(broker, (frame) => {
      const correlation = frame.readInt32BE(LENGTH_BYTES)
      const apiKey = asked.get(correlation)
      asked.delete(correlation)
      const names = apiKey === METADATA || apiKey === FIND_COORDINATOR
      const pass = () => void client.write(names ? this.#inPlaceOfTheBroker(frame) : frame)
      if (!this.#isNow(apiKey, "response", pass)) pass()
    })
  }

  /** The same answer with our port wherever the broker's address stands. */
  #inPlaceOfTheBroker(frame: Buffer): Buffer {
    const ours = Buffer.from(frame)
    for (let at = ours.indexOf(HOST); at >= 0; at = ours.indexOf(HOST, at + 1)) {
      const port = at + HOST.length
      if (ours.readInt32BE(port) === this.#target) ours.writeInt32BE(this.port, port)
    }
    return ours
  }
}
