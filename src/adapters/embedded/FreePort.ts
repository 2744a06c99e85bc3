/**
 * Finds free ports of 127.0.0.1, and tells whether a port of any address is taken. Another process
 * may still take one between the answer and its use, so the user has to expect that.
 */
import { type AddressInfo, connect, createServer } from "node:net"
import { Effect, Schema } from "effect"

export const LOOPBACK = "127.0.0.1"
/** Ports that are tried from the wanted one on. */
export const PORTS_TRIED_MAX = 100
const PORT_MAX = 65_535

/** Binds the port for a moment; undefined if it is taken. 0 binds any free one. */
const bind = (port: number): Effect.Effect<number | undefined> =>
  Effect.callback((resume) => {
    const server = createServer()
    server.once("error", () => resume(Effect.succeed(undefined)))
    server.listen({ port, host: LOOPBACK, exclusive: true }, () => {
      const bound = (server.address() as AddressInfo).port
      server.close(() => resume(Effect.succeed(bound)))
    })
    return Effect.sync(() => server.close())
  })

/** On some systems 127.0.0.1 can be bound although another process listens on all addresses. */
const answers = (port: number): Effect.Effect<boolean> =>
  Effect.callback((resume) => {
    const socket = connect({ port, host: LOOPBACK })
    socket.once("connect", () => {
      socket.destroy()
      resume(Effect.succeed(true))
    })
    socket.once("error", () => resume(Effect.succeed(false)))
    return Effect.sync(() => socket.destroy())
  })

const isFree = Effect.fnUntraced(function* (port: number) {
  return !(yield* answers(port)) && (yield* bind(port)) !== undefined
})

/** Any free port. */
export const anyFreePort: Effect.Effect<number> = bind(0).pipe(
  Effect.flatMap((port) =>
    port === undefined
      ? Effect.die(new Error(`no port is free on ${LOOPBACK}`))
      : Effect.succeed(port)
  )
)

/** The first free port from `wanted` on; undefined if `PORTS_TRIED_MAX` in a row are taken. */
export const freePortFrom = Effect.fnUntraced(function* (wanted: number) {
  if (wanted === 0) return yield* anyFreePort
  const last = Math.min(wanted + PORTS_TRIED_MAX - 1, PORT_MAX)
  for (let port = wanted; port <= last; port++) {
    if (yield* isFree(port)) return port
  }
  return undefined
})

/** Another process listens on the port; `cause` is what the system says. */
export class PortTaken extends Schema.TaggedError<PortTaken>()("PortTaken", {
  cause: Schema.Defect()
}) {
  override get message(): string {
    return (this.cause as Error).message
  }
}

/** Fails if a process listens on the port already, one that would share it too. */
export const portFree = ({
  host,
  port
}: {
  readonly host: string
  readonly port: number
}): Effect.Effect<void, PortTaken> =>
  Effect.callback((resume) => {
    const server = createServer((socket) => socket.destroy())
    server.once("error", (cause) => resume(Effect.fail(new PortTaken({ cause }))))
    server.listen({ port, host, exclusive: true }, () => {
      server.close(() => resume(Effect.void))
    })
  })
