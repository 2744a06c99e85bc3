/** Reads what a person types, or what is sent on standard input. */
import { isUtf8 } from "node:buffer"
import { createInterface } from "node:readline"
import { Writable } from "node:stream"
import { usage } from "../Failure.ts"

const silent = () => new Writable({ write: (_chunk, _encoding, done) => done() })

/** One line from the terminal; `isSecret` shows nothing of it. */
export const ask = (question: string, isSecret = false): Promise<string> =>
  new Promise((resolve, reject) => {
    const output = isSecret ? silent() : process.stderr
    const lines = createInterface({ input: process.stdin, output, terminal: true })
    // Only now does the terminal echo nothing.
    process.stderr.write(question)
    lines.once("SIGINT", () => {
      lines.close()
      process.stderr.write("\n")
      reject(new Error("interrupted"))
    })
    lines.once("line", (line) => {
      lines.close()
      if (isSecret) process.stderr.write("\n")
      resolve(line.trim())
    })
  })

/** All of standard input. Rejects if it is not a text. */
export const standardInput = async (): Promise<string> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer)
  const bytes = Buffer.concat(chunks)
  if (!isUtf8(bytes)) throw usage("standard input: is not UTF-8", "convert it, with iconv")
  return bytes.toString("utf8")
}
