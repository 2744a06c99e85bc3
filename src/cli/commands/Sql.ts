/** `alk sql`: one SELECT of the argument or of standard input; rows as a table or as JSON. */
import type { SqlInput } from "../../client/gen/Api.d.ts"
import type { Choice } from "../Contexts.ts"
import { usage } from "../Failure.ts"
import { connect } from "../Session.ts"
import { type OutputOptions, withOutput } from "../terminal/Output.ts"
import { standardInput } from "../terminal/Prompt.ts"

interface SqlOptions extends OutputOptions, Choice {
  readonly format?: string
}

const FORMATS = ["csv", "parquet", "ndjson"] as const

const formatOf = (format: string): SqlInput["format"] => {
  const found = FORMATS.find((one) => one === format)
  if (found !== undefined) return found
  throw usage(`--format: must be ${FORMATS.join(", ")}, is ${JSON.stringify(format)}`)
}

const textOf = (value: unknown): string =>
  typeof value === "string" ? value : JSON.stringify(value)

const queryOf = async (query: string | undefined): Promise<string> => {
  if (query !== undefined && query !== "-") return query
  if (query === undefined && process.stdin.isTTY === true) {
    throw usage("query: give a SELECT", "alk sql 'SELECT count() FROM events'")
  }
  return standardInput()
}

/** `alk sql`. */
export const runSql = async (given: string | undefined, options: SqlOptions): Promise<void> => {
  const format = options.format === undefined ? undefined : formatOf(options.format)
  const toTerminal = options.output === undefined && process.stdout.isTTY === true
  if (format === "parquet" && toTerminal) {
    throw usage("a terminal can't show this file", "alk sql --format parquet -o FILE 'SELECT …'")
  }
  const query = await queryOf(given)
  const client = await connect(options)
  await withOutput(options, async (output) => {
    if (format !== undefined) {
      const body = { query, format }
      const response = await client.open("POST /v1/sql", { body, accept: "*/*" })
      for await (const chunk of response.body ?? []) await output.write(chunk)
      return
    }
    const { data, meta } = await client.request("POST /v1/sql", { body: { query } })
    const columns = meta.map(({ name, type }) => ({
      title: name,
      text: (row: Readonly<Record<string, unknown>>) => textOf(row[name]),
      isNumber: /^(?:U?Int|Float|Decimal)/.test(type)
    }))
    await output.list(columns, data)
  })
}
