/**
 * A proxy in front of a Kafka broker that loses what a network may lose: a request, an answer, half
 * of an answer. It reads the length and the kind of each request and nothing more.
 */
import net from "node:net"

/** Kinds of requests, as the protocol numbers them. */
export const PRODUCE = 0
export const FETCH = 1
export const LIST_OFFSETS = 2
export const ADD_PARTITIONS_TO_TXN = 24
export const END_TXN = 26
export const DESCRIBE_PRODUCERS = 61

/**
 * What becomes of a request: it is forwarded; the connection ends instead of it; the broker gets
 * it, but the connection ends instead of the answer, or in the middle of it.
 */
export type Fate = "forward" | "lose request" | "lose answer" | "halve answer"

export interface FlakyProxy {
  readonly port: number
  /** Decides over each request from now on; while it thinks, the next of the connection wait. */
  decide: (apiKey: number) => Fate | Promise<Fate>
  /** Kinds of the requests that arrived. */
  readonly seen: Array<number>
  close(): Promise<void>
}

const LENGTH_BYTES = 4

/** The whole requests at the front of the bytes, and what is left. */
const split = (bytes: Buffer): { readonly requests: Array<Buffer>; readonly rest: Buffer } => {
  const requests: Array<Buffer> = []
  let at = 0
  while (bytes.length - at >= LENGTH_BYTES) {
    const end = at + LENGTH_BYTES + bytes.readInt32BE(at)
    if (end > bytes.length) break
    requests.push(bytes.subarray(at, end))
    at = end
  }
  return { requests, rest: bytes.subarray(at) }
}

const relay = (proxy: FlakyProxy, client: net.Socket, broker: net.Socket): void => {
  let pending: Buffer = Buffer.alloc(0)
  let losing: Fate | undefined
  let turn = Promise.resolve()
  const end = () => {
    client.destroy()
    broker.destroy()
  }
  client.setNoDelay(true)
  broker.setNoDelay(true)
  for (const socket of [client, broker]) {
    socket.on("error", end)
    socket.on("close", end)
  }
  const pass = async (request: Buffer): Promise<void> => {
    if (losing !== undefined || client.destroyed) return
    const apiKey = request.readInt16BE(LENGTH_BYTES)
    proxy.seen.push(apiKey)
    const fate = await proxy.decide(apiKey)
    if (fate === "lose request") return end()
    if (fate !== "forward") losing = fate
    broker.write(request)
  }
  client.on("data", (chunk) => {
    const { requests, rest } = split(Buffer.concat([pending, chunk]))
    pending = rest
    for (const request of requests) turn = turn.then(() => pass(request)).catch(end)
  })
  broker.on("data", (chunk) => {
    if (losing === undefined) client.write(chunk)
    else if (losing === "lose answer") end()
    else client.end(chunk.subarray(0, Math.floor(chunk.length / 2)), end)
  })
}

/** Listens on a port of the loopback interface and passes on to `address`, a host and port. */
export const startFlakyProxy = (address: string): Promise<FlakyProxy> => {
  const [host, port] = address.split(":") as [string, string]
  const sockets = new Set<net.Socket>()
  const server = net.createServer((client) => {
    const broker = net.connect({ host, port: Number(port) })
    for (const socket of [client, broker]) {
      sockets.add(socket)
      socket.once("close", () => sockets.delete(socket))
    }
    relay(proxy, client, broker)
  })
  let listening = 0
  const proxy: FlakyProxy = {
    get port() {
      return listening
    },
    decide: () => "forward",
    seen: [],
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      })
  }
  return new Promise((resolve, reject) => {
    server.once("error", reject)
    server.listen(0, "127.0.0.1", () => {
      listening = (server.address() as net.AddressInfo).port
      resolve(proxy)
    })
  })
}
