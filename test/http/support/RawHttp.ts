/**
 * Bytes in, answers out: a connection on which a test writes what it likes, and a reader of HTTP/1.1
 * that shares no code with node's.
 */
import { connect, type Socket } from "node:net"
import { eventuallyAsync } from "../../support/Eventually.ts"

/** Milliseconds that answers are waited for: many times what a busy machine needs. */
const PATIENCE_MS = 60_000

export interface RawAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  /** The body as JSON; undefined if it is none. */
  readonly body: any
}

const headOf = (head: string): Pick<RawAnswer, "headers" | "status"> => {
  const [line = "", ...fields] = head.split("\r\n")
  const headers: Record<string, string> = {}
  for (const field of fields) {
    const colon = field.indexOf(":")
    headers[field.slice(0, colon).toLowerCase()] = field.slice(colon + 1).trim()
  }
  return { status: Number(/^HTTP\/1\.1 (\d{3})/.exec(line)?.[1] ?? 0), headers }
}

/** A chunked body and what follows it; undefined while it is not all there. */
const unchunked = (bytes: string): { text: string; rest: string } | undefined => {
  let text = ""
  let at = 0
  for (;;) {
    const end = bytes.indexOf("\r\n", at)
    if (end < 0) return undefined
    const size = Number.parseInt(bytes.slice(at, end), 16)
    const next = end + 2 + size + 2
    if (bytes.length < next) return undefined
    text += bytes.slice(end + 2, end + 2 + size)
    at = next
    if (size === 0) return { text, rest: bytes.slice(at) }
  }
}

const jsonOf = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The answers in some bytes, those to `HEAD` without a body; interim ones too. */
export const answersIn = (bytes: string, heads = false): ReadonlyArray<RawAnswer> => {
  const answers: Array<RawAnswer> = []
  let rest = bytes
  for (let end = rest.indexOf("\r\n\r\n"); end >= 0; end = rest.indexOf("\r\n\r\n")) {
    const head = headOf(rest.slice(0, end))
    const after = rest.slice(end + 4)
    const length = Number(head.headers["content-length"] ?? 0)
    const isChunked = head.headers["transfer-encoding"] === "chunked" && !heads
    const body = isChunked
      ? unchunked(after)
      : { text: heads ? "" : after.slice(0, length), rest: heads ? after : after.slice(length) }
    if (body === undefined) break
    answers.push({ ...head, text: body.text, body: jsonOf(body.text) })
    rest = body.rest
  }
  return answers
}

/** One connection. */
export class RawConnection {
  readonly socket: Socket
  /** Resolves with what made the connection end: `end` is a clean one, `error` a reset. */
  readonly ended: Promise<"end" | "error">
  #bytes = ""
  #changed: () => void = () => {}

  private constructor(socket: Socket) {
    this.socket = socket
    let how: "end" | "error" = "end"
    socket.on("data", (data) => {
      this.#bytes += data.toString("latin1")
      this.#changed()
    })
    socket.on("error", () => (how = "error"))
    this.ended = new Promise((resolve) =>
      socket.once("close", () => {
        resolve(how)
        this.#changed()
      })
    )
  }

  static open(port: number): Promise<RawConnection> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, "127.0.0.1", () => resolve(new RawConnection(socket)))
      socket.once("error", reject)
    })
  }

  get bytes(): string {
    return this.#bytes
  }

  write(text: string | Buffer): this {
    this.socket.write(text)
    return this
  }

  /** Wait until so many answers are there; fewer if the connection ends before. */
  async answers(count: number): Promise<ReadonlyArray<RawAnswer>> {
    const until = performance.now() + PATIENCE_MS
    for (;;) {
      const answers = answersIn(this.#bytes)
      if (answers.length >= count || this.socket.destroyed) return answers
      const left = until - performance.now()
      if (left <= 0) throw new Error(`${answers.length} of ${count} answers: ${this.#bytes}`)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left)
        this.#changed = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }
}

const connects = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy()
      resolve(true)
    })
    socket.on("error", () => resolve(false))
  })

/** Comes back when nobody listens on the port. */
export const portIsClosed = async (port: number): Promise<void> => {
  await eventuallyAsync(
    `nobody listens on port ${port}`,
    async () => ({ isTaken: await connects(port) }),
    ({ isTaken }) => !isTaken
  )
}

/** Everything that comes back for some bytes until the connection ends, as answers. */
export const exchanged = async (
  port: number,
  sent: string | Buffer
): Promise<ReadonlyArray<RawAnswer>> => {
  const connection = await RawConnection.open(port)
  await connection.write(sent).ended
  return answersIn(connection.bytes)
}
