/** Runs `alk` as a process of its own, against a service that a test makes up. */
import { type ChildProcess, spawn } from "node:child_process"
import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

export interface Ended {
  /** The exit code, or the signal that ended it. */
  readonly end: number | NodeJS.Signals | null
  readonly output: string
  readonly errors: string
}

/** A command that runs. */
export interface Running {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
}

const children = new Set<ChildProcess>()

/** Ends the commands that a failed test has left. */
export const endCommands = (): void => {
  for (const child of children) child.kill()
}

/** Gives a program a terminal, on which its output and its errors come together. */
export const TERMINAL = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"

export const begin = (
  args: ReadonlyArray<string>,
  environment: Readonly<Record<string, string>> = {},
  isAtTerminal = false
): Running => {
  const command = [process.execPath, "src/cli/alk.mjs", ...args]
  const [program, ...rest] = isAtTerminal ? ["python3", "-c", TERMINAL, ...command] : command
  const child = spawn(program!, rest, {
    env: { PATH: process.env["PATH"], TERM: "dumb", ...environment }
  })
  children.add(child)
  child.once("close", () => children.delete(child))
  let output = ""
  let errors = ""
  child.stdout.on("data", (chunk) => {
    output += chunk
  })
  child.stderr.on("data", (chunk) => {
    errors += chunk
  })
  child.stdin.end()
  const ended = new Promise<Ended>((resolve) => {
    child.once("close", (code, signal) => resolve({ end: code ?? signal, output, errors }))
  })
  return { child, ended }
}

/** Answers a request to a path with its query. */
export type Handler = (url: URL, response: ServerResponse) => void

export interface MadeUp {
  /** Address and key for `alk`. */
  readonly environment: Readonly<Record<string, string>>
  readonly stop: () => Promise<void>
}

/** A service that answers by one function. */
export const madeUpService = async (handler: Handler): Promise<MadeUp> => {
  const server = createServer((request, response) => {
    request.resume()
    handler(new URL(request.url!, "http://service"), response)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  return {
    environment: { ALK_URL: `http://127.0.0.1:${port}`, ALK_API_KEY: "key" },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
  }
}

export const json = (response: ServerResponse, value: unknown): void => {
  response.writeHead(200, { "content-type": "application/json" })
  response.end(JSON.stringify(value))
}
