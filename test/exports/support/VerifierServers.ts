/**
 * verify.mjs and verify.py as one process each that checks pack after pack, so that thousands take
 * minutes; and alk verify in this process.
 */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process"
import { join } from "node:path"
import { createInterface, type Interface } from "node:readline"
import { alkVerify, type Report, type Run, type Verifiers } from "./Verifiers.ts"

const NODE = `
import { createInterface } from "node:readline"
const { verify } = await import(process.argv[2])
for await (const line of createInterface({ input: process.stdin })) {
  const answer = await verify(JSON.parse(line)).catch((error) => ({ failed: error.stack }))
  const ascii = JSON.stringify(answer).replace(/[^ -~]/g, (character) =>
    "\\\\u" + character.charCodeAt(0).toString(16).padStart(4, "0"))
  process.stdout.write(ascii + "\\n")
}`

const PYTHON = `
import json, sys, traceback
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import verify
for line in sys.stdin:
    try:
        text, code = verify.verify(json.loads(line), None)
        answer = {"text": text, "exitCode": code}
    except Exception:
        answer = {"failed": traceback.format_exc()}
    print(json.dumps(answer), flush=True)
`

interface Answer {
  readonly text?: string
  readonly exitCode?: number
  readonly failed?: string
}

class Server {
  readonly #process: ChildProcessWithoutNullStreams
  readonly #lines: AsyncIterator<string>
  readonly #reader: Interface
  readonly name: string

  constructor(name: string, command: string, args: ReadonlyArray<string>) {
    this.name = name
    this.#process = spawn(command, [...args], { stdio: ["pipe", "pipe", "pipe"] })
    this.#process.stderr.pipe(process.stderr)
    this.#reader = createInterface({ input: this.#process.stdout })
    this.#lines = this.#reader[Symbol.asyncIterator]()
  }

  async check(args: ReadonlyArray<string>): Promise<Run> {
    this.#process.stdin.write(`${JSON.stringify(args)}\n`)
    const { done, value } = await this.#lines.next()
    if (done === true) throw new Error(`${this.name} has ended`)
    const { exitCode, failed, text } = JSON.parse(value) as Answer
    if (text === undefined || exitCode === undefined) throw new Error(`${this.name}: ${failed}`)
    return { report: JSON.parse(text) as Report, exitCode }
  }

  close(): void {
    this.#process.stdin.end()
    this.#reader.close()
  }
}

export class VerifierServers {
  readonly #servers: ReadonlyArray<Server>

  constructor({ folder }: Verifiers) {
    this.#servers = [
      new Server("verify.mjs", "node", [
        "--input-type=module",
        "-e",
        NODE,
        "no program",
        join(folder, "verify.mjs")
      ]),
      new Server("verify.py", "python3", ["-c", PYTHON, folder])
    ]
  }

  /** What each verifier says, alk verify first. */
  async check(
    args: ReadonlyArray<string>
  ): Promise<ReadonlyArray<Run & { readonly name: string }>> {
    const own = { name: "alk verify", check: alkVerify }
    return Promise.all(
      [own, ...this.#servers].map(async (one) => ({
        ...(await one.check(args)),
        name: one.name
      }))
    )
  }

  close(): void {
    for (const server of this.#servers) server.close()
  }
}
