/** The wire between a browser and the service, which can be cut, or carry nothing while it stays. */
import net from "node:net"

export interface Wire {
  readonly url: string
  state: "whole" | "cut" | "silent"
  /** Ends what is open, if it is cut. */
  change(state: Wire["state"]): void
  close(): Promise<void>
}

/** In front of a service on this machine. */
export const openWire = async (serviceUrl: string): Promise<Wire> => {
  const target = Number(new URL(serviceUrl).port)
  const sockets = new Set<net.Socket>()
  const server = net.createServer((browser) => {
    if (wire.state === "cut") {
      browser.destroy()
      return
    }
    const service = net.connect(target, "127.0.0.1")
    const end = (): void => {
      for (const socket of [browser, service]) {
        sockets.delete(socket)
        socket.destroy()
      }
    }
    for (const socket of [browser, service]) {
      sockets.add(socket)
      socket.on("error", end)
      socket.on("close", end)
    }
    browser.on("data", (chunk) => service.write(chunk))
    service.on("data", (chunk) => {
      if (wire.state === "whole") browser.write(chunk)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const wire: Wire = {
    url: `http://127.0.0.1:${(server.address() as net.AddressInfo).port}`,
    state: "whole",
    change: (state) => {
      wire.state = state
      if (state === "cut") for (const socket of sockets) socket.destroy()
    },
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy()
        server.close(() => resolve())
      })
  }
  return wire
}
