/**
 * What a request took of its connection: the bytes since the request before it, heads included, as
 * they were sent. Requests that share a connection at the same time share what they took.
 */
import type { Socket } from "node:net"

export interface ConnectionBytes {
  readonly read: number
  readonly written: number
}

/** What earlier requests of a connection took. */
const counted = new WeakMap<Socket, ConnectionBytes>()

/**
 * The bytes of a request that has ended, the last on its connection so far; undefined where it had
 * no connection of its own, as over gRPC.
 */
export const bytesOf = (socket: Socket | undefined): ConnectionBytes | undefined => {
  if (socket === undefined) return undefined
  const before = counted.get(socket) ?? { read: 0, written: 0 }
  const now = { read: socket.bytesRead, written: socket.bytesWritten }
  counted.set(socket, now)
  return { read: now.read - before.read, written: now.written - before.written }
}
