/** `alk export`: files that the service makes, written as they come. */
import type { Client } from "../../client/Client.ts"
import type { Choice } from "../Contexts.ts"
import { usage } from "../Failure.ts"
import { type FilterOptions, queryOf } from "../Filters.ts"
import { connect } from "../Session.ts"
import { withOutput } from "../terminal/Output.ts"
import { bytes, Progress } from "../terminal/Progress.ts"

interface ExportOptions extends FilterOptions, Choice {
  readonly quiet?: boolean
  readonly output?: string
  readonly pdf: boolean
}

/** Milliseconds until the first byte: a report is printed before it is sent. */
const FIRST_BYTE_MS = 10 * 60_000

type Fetch = (
  client: Client,
  query: Record<string, string | ReadonlyArray<string>>
) => Promise<Response>

const ofList = (format: "csv" | "parquet" | "ndjson" | "ocsf"): Fetch => {
  return (client, query) =>
    client.open("GET /v1/events", {
      query: { ...query, format },
      accept: "*/*",
      timeoutMs: FIRST_BYTE_MS
    })
}

const KINDS: Readonly<Record<string, Fetch>> = {
  pdf: (client, query) =>
    client.open("GET /v1/export/pdf", { query, accept: "*/*", timeoutMs: FIRST_BYTE_MS }),
  pack: (client, query) =>
    client.open("GET /v1/export/evidence-pack", { query, accept: "*/*", timeoutMs: FIRST_BYTE_MS }),
  csv: ofList("csv"),
  parquet: ofList("parquet"),
  ndjson: ofList("ndjson"),
  ocsf: ofList("ocsf")
}
/** Kinds of files, as `alk export` takes them. */
export const exportKinds: ReadonlyArray<string> = Object.keys(KINDS)
/** Files that a terminal can't show. */
const BINARY: ReadonlyArray<string> = ["pdf", "pack", "parquet"]

/** `alk export`. */
export const exportFile = async (kind: string, options: ExportOptions): Promise<void> => {
  const fetchFile = KINDS[kind]
  if (fetchFile === undefined) {
    throw usage(`kind: must be ${exportKinds.join(", ")}, is ${JSON.stringify(kind)}`)
  }
  const toTerminal = options.output === undefined && process.stdout.isTTY === true
  if (toTerminal && BINARY.includes(kind)) {
    throw usage("a terminal can't show this file", `alk export ${kind} -o FILE`)
  }
  const client = await connect(options)
  const query = {
    ...queryOf(options),
    ...(kind === "pack" && !options.pdf ? { pdf: "false" } : {})
  }
  const progress = new Progress(options.quiet === true)
  await withOutput(options, async (output) => {
    const response = await fetchFile(client, query)
    let received = 0
    for await (const chunk of response.body ?? []) {
      await output.write(chunk)
      received += chunk.length
      progress.at(() => `${kind}: ${bytes(received)}`)
    }
    progress.end(`${kind}: ${bytes(received)}${options.output ? ` in ${options.output}` : ""}`)
  })
}
