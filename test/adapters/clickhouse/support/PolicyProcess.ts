/**
 * A process that opens the folder of an engine with a configuration file, which the program never
 * does, so that users and row policies can be given; runs the statements of its standard input, a
 * JSON list, and answers with a list of `{"answer"}` or `{"error"}`.
 */
import { createRequire } from "node:module"
import { text } from "node:stream/consumers"

interface Engine {
  readonly CreateConnection: (folder: string, settings: ReadonlyArray<string>) => unknown
  readonly CloseConnection: (connection: unknown) => void
  readonly QueryWithConnection: (connection: unknown, sql: string, format: string) => string
}

const [folder = "", configuration = ""] = process.argv.slice(2)
const besideUs = createRequire(import.meta.url)
const engine = createRequire(besideUs.resolve("chdb"))("@chdb/lib-linux-x64-gnu") as Engine

const statements = JSON.parse(await text(process.stdin)) as ReadonlyArray<string>
const connection = engine.CreateConnection(folder, [`--config-file=${configuration}`])
const answers = statements.map((sql) => {
  try {
    return { answer: engine.QueryWithConnection(connection, sql, "JSONEachRow") }
  } catch (error) {
    return { error: (error as Error).message }
  }
})
engine.CloseConnection(connection)
process.stdout.write(JSON.stringify(answers))
