/** What the files of an encrypted connection hold, read when the process starts. */
import { readFileSync } from "node:fs"
import { Effect, Schema } from "effect"
import type { TlsFiles } from "../config/Config.ts"
import { defined } from "../domain/Defined.ts"

/** One line that names the variable and the file. */
export class TlsFileUnreadable extends Schema.TaggedError<TlsFileUnreadable>()(
  "TlsFileUnreadable",
  { message: Schema.String }
) {}

const read = (variable: string, file: string | undefined) =>
  Effect.try({
    try: () => (file === undefined ? undefined : readFileSync(file)),
    catch: (cause) =>
      new TlsFileUnreadable({
        message:
          `${variable}: ${file} can't be read (${(cause as NodeJS.ErrnoException).code}):`
          + " name a file that is there and that this user may read"
      })
  })

/** `of` is the first part of the names of the variables. */
export const contentOf = Effect.fnUntraced(function* (
  of: "KAFKA" | "CLICKHOUSE",
  { caFile, certFile, keyFile }: TlsFiles
) {
  const ca = yield* read(`${of}_TLS_CA_FILE`, caFile)
  const certificate = yield* read(`${of}_TLS_CERT_FILE`, certFile)
  const key = yield* read(`${of}_TLS_KEY_FILE`, keyFile)
  return defined({ ca, certificate, key })
})
