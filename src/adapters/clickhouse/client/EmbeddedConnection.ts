/**
 * The embedded engine as the interface that `@clickhouse/client` calls a connection, so that one
 * client works on a server and on the engine in this process.
 */
import { randomUUID } from "node:crypto"
import { Readable } from "node:stream"
import { type ClickHouseClientConfigOptions, parseError } from "@clickhouse/client"
import { defined } from "../../../domain/Defined.ts"
import type { Answer, ChdbEngine, Inserted, Settings, Statement } from "./ChdbEngine.ts"

type Connection = NonNullable<ClickHouseClientConfigOptions["connection"]>
type RunParameters = Parameters<Connection["exec"]>[0]

const NANOSECONDS = 1_000_000_000

export const summaryOf = (result: Answer | Inserted) => {
  const [read, written] = "rowsRead" in result ? [result, undefined] : [undefined, result]
  return {
    read_rows: String(read?.rowsRead ?? 0),
    read_bytes: String(read?.bytesRead ?? 0),
    written_rows: String(written?.rowsWritten ?? 0),
    written_bytes: String(written?.bytesWritten ?? 0),
    total_rows_to_read: "0",
    result_rows: String(read?.rowsRead ?? 0),
    result_bytes: String(read?.bytesRead ?? 0),
    elapsed_ns: String(Math.round(result.elapsedSeconds * NANOSECONDS))
  }
}

/** Rows of an insert as one piece: each copy or decoding on the way costs more than the insert. */
const bytesOf = async (values: Readable | string): Promise<Buffer> => {
  if (typeof values === "string") return Buffer.from(values, "utf8")
  const chunks: Array<Buffer> = []
  for await (const chunk of values) {
    chunks.push(typeof chunk === "string" ? Buffer.from(chunk, "utf8") : chunk)
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
}

const statementOf = (
  params: Pick<RunParameters, "query" | "query_params" | "clickhouse_settings" | "abort_signal">
): Statement => ({
  sql: params.query,
  parameters: new Map(
    Object.entries(params.query_params ?? {}).map(([name, value]) => [name, String(value)])
  ),
  settings: (params.clickhouse_settings ?? {}) as Settings,
  ...defined({ signal: params.abort_signal })
})

const asClickHouseError = (cause: unknown): never => {
  const error = parseError(cause instanceof Error ? cause : String(cause))
  if (error !== cause) error.cause = cause
  throw error
}

export const makeEmbeddedConnection = (engine: ChdbEngine["Service"]): Connection => {
  const base = (params: { readonly query_id?: string }) => ({
    query_id: params.query_id ?? randomUUID(),
    response_headers: {},
    http_status_code: 200
  })
  const run = (params: RunParameters) => engine.run(statementOf(params)).catch(asClickHouseError)
  const insert: Connection["insert"] = async (params) => {
    const inserted = await engine
      .insert({ ...statementOf(params), rows: await bytesOf(params.values) })
      .catch(asClickHouseError)
    return { ...base(params), summary: summaryOf(inserted) }
  }
  const exec: Connection["exec"] = async (params) => {
    if (params.values !== undefined) {
      const stored = await insert({ ...params, values: params.values })
      return { ...stored, stream: Readable.from([], { objectMode: false }) }
    }
    const answer = await run(params)
    return {
      ...base(params),
      stream: Readable.from([answer.bytes], { objectMode: false }),
      summary: summaryOf(answer)
    }
  }
  return {
    query: exec,
    exec,
    command: async (params) => ({ ...base(params), summary: summaryOf(await run(params)) }),
    insert,
    ping: async (params) => {
      try {
        await run({ ...params, query: "SELECT 1" })
        return { success: true }
      } catch (error) {
        return { success: false, error: error as Error }
      }
    },
    close: async () => {}
  }
}
