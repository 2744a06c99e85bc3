/**
 * ClickHouse inside this process (chDB): a few connections to one data folder, each used by one
 * statement at a time. Inserts hand their bytes over as they are. The library (500 MB of address
 * space) is loaded only when an engine is opened.
 */
import * as fs from "node:fs"
import { join } from "node:path"
import { Context, Effect, Layer, type Scope } from "effect"
import { openFailure, prepareFolder, StoreFolderUnusable } from "./ChdbFolder.ts"
import { endOnFatalSignals, loadChdb, StoreEngineMissing } from "./ChdbLibrary.ts"
import { bindLiterals } from "./LiteralParameters.ts"
import { closeStandardInput, StandardInputOpen } from "./NullInput.ts"
import { isRead } from "./StatementGuard.ts"

type Chdb = typeof import("chdb/connection")
type ChdbConnection = ReturnType<Chdb["createChdbConnection"]>
type RawInsert = Parameters<ChdbConnection["chdb"]["rawInsert"]>[0]

/** Statements that run at once. Each blocks one of the four threads of libuv's pool. */
const READ_CONNECTIONS = 2
const WRITE_CONNECTIONS = 1
/**
 * Reads of payloads that run at once, one less than there are connections: other
 * statements, the projection's among them, never wait for the end of such a read.
 */
const BULK_READS = READ_CONNECTIONS - 1
/** Statements that wait for a connection at most, per kind and for bulk reads apart. */
const WAITING_MAX = 256
/** Milliseconds after which a read whose client has gone is not waited for. */
const ABANDONED_MS = 2_000
const HELD = "a statement that was given up still runs on the embedded store"

/** Settings of the HTTP layer, without meaning inside a process. */
const HTTP_SETTINGS = new Set([
  "wait_end_of_query",
  "send_progress_in_http_headers",
  "http_headers_progress_interval_ms",
  "cancel_http_readonly_queries_on_client_close",
  "enable_http_compression",
  // Read here: any but 0 makes a statement a bulk read.
  "priority"
])

export type Settings = Readonly<Record<string, string | number | boolean>>

interface Request {
  readonly sql: string
  readonly settings?: Settings
  /** Where tables without a database in their name are. */
  readonly database?: string
  /** Gives up a place in the queue; what runs already, runs to its end. */
  readonly signal?: AbortSignal
}

export interface Statement extends Request {
  readonly parameters?: ReadonlyMap<string, string>
}

/**
 * `sql` is `INSERT INTO t (a, b) FORMAT X`, or `INSERT INTO t (a, b) SELECT … FROM input('…') FORMAT
 * Native`, without its rows.
 */
export interface InsertStatement extends Request {
  readonly rows: Buffer
}

export interface Answer {
  readonly bytes: Buffer
  readonly rowsRead: number
  readonly bytesRead: number
  readonly elapsedSeconds: number
}

export interface Inserted {
  readonly rowsWritten: number
  readonly bytesWritten: number
  readonly elapsedSeconds: number
}

interface Waiting {
  readonly isBulk: boolean
  readonly receive: (connection: ChdbConnection) => void
  readonly refuse: (cause: unknown) => void
}

/** As ClickHouse says it. */
const tooMany = (why: string): Error =>
  new Error(`Code: 202. DB::Exception: ${why}. (TOO_MANY_SIMULTANEOUS_QUERIES)`)

/**
 * Hands out each connection to one statement at a time, first come, first served, but for bulk
 * reads: of them no more than `bulkMax` run at a time.
 */
class Connections {
  readonly #all: ReadonlyArray<ChdbConnection>
  readonly #free: Array<ChdbConnection>
  readonly #bulkMax: number
  #bulk = 0
  /** Of the bulk reads that run, those whose client has gone: none can be stopped. */
  #abandoned = 0
  #waiting: Array<Waiting> = []

  constructor(connections: ReadonlyArray<ChdbConnection>, bulkMax: number) {
    this.#all = connections
    this.#free = [...connections]
    this.#bulkMax = bulkMax
  }

  async use<A>(
    { settings, signal }: Pick<Request, "settings" | "signal">,
    run: (connection: ChdbConnection) => Promise<A>
  ): Promise<A> {
    signal?.throwIfAborted()
    const isBulk = Number(settings?.["priority"] ?? 0) > 0
    const connection = this.#take(isBulk) ?? (await this.#next(isBulk, signal))
    let isAbandoned = false
    let patience: NodeJS.Timeout | undefined
    const abandon = () => {
      patience = setTimeout(() => {
        isAbandoned = true
        this.#abandoned += 1
        this.#refuseBulk()
      }, ABANDONED_MS)
    }
    if (isBulk) signal?.addEventListener("abort", abandon, { once: true })
    try {
      return await run(connection)
    } finally {
      signal?.removeEventListener("abort", abandon)
      clearTimeout(patience)
      if (isAbandoned) this.#abandoned -= 1
      if (isBulk) this.#bulk -= 1
      this.#free.push(connection)
      this.#handOut()
    }
  }

  /** A free connection, if there is one for such a statement. */
  #take(isBulk: boolean): ChdbConnection | undefined {
    if (isBulk && this.#bulk >= this.#bulkMax) return undefined
    const connection = this.#free.pop()
    if (isBulk && connection !== undefined) this.#bulk += 1
    return connection
  }

  /** Give what is free to those that wait, in their order. */
  #handOut(): void {
    this.#waiting = this.#waiting.filter(({ isBulk, receive }) => {
      const connection = this.#take(isBulk)
      if (connection !== undefined) receive(connection)
      return connection === undefined
    })
  }

  #next(isBulk: boolean, signal?: AbortSignal): Promise<ChdbConnection> {
    if (this.#waiting.filter((other) => other.isBulk === isBulk).length >= WAITING_MAX)
      throw tooMany(`${WAITING_MAX} statements wait for the embedded store already`)
    if (isBulk && this.#isHeld()) throw tooMany(HELD)
    return new Promise((resolve, reject) => {
      const receive = (connection: ChdbConnection) => {
        signal?.removeEventListener("abort", leave)
        resolve(connection)
      }
      const refuse = (cause: unknown) => {
        signal?.removeEventListener("abort", leave)
        this.#waiting = this.#waiting.filter((other) => other.receive !== receive)
        reject(cause)
      }
      const leave = () => refuse(signal?.reason)
      signal?.addEventListener("abort", leave, { once: true })
      this.#waiting.push({ isBulk, receive, refuse })
    })
  }

  /** Whether reads whose client has gone take all that bulk reads may take. */
  #isHeld(): boolean {
    return this.#abandoned > 0 && this.#abandoned >= this.#bulkMax
  }

  /** Bulk reads that wait are refused at once. */
  #refuseBulk(): void {
    if (!this.#isHeld()) return
    for (const { isBulk, refuse } of this.#waiting) if (isBulk) refuse(tooMany(HELD))
  }

  /** Closing a busy connection aborts the engine, so each is closed once it is free. */
  async close(): Promise<void> {
    for (let left = this.#all.length; left > 0; left--) {
      const connection = this.#take(false) ?? (await this.#next(false))
      await connection.close()
    }
  }
}

const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]*$/
const DEFAULT_DATABASE = "default"
const INSERT = /^\s*INSERT INTO ([\w.]+)(?: \(([\w, ]+)\))? FORMAT (\w+)\s*$/
const INSERT_NATIVE =
  /^\s*(INSERT INTO [\w.]+ \([\w, ]+\) SELECT .+ FROM) input\('((?:[^'\\]|\\.)*)'\) FORMAT Native\s*$/
/** Rows on their way into the engine; what a killed process has left is written over. */
const NATIVE_FILE = "alk-insert.native"

type Setting = readonly [name: string, value: string | number | boolean]

const identifier = (name: string): string => {
  if (!IDENTIFIER.test(name)) throw new Error(`not a name: ${JSON.stringify(name)}`)
  return name
}

const engineSettings = (settings: Settings | undefined): ReadonlyArray<Setting> =>
  Object.entries(settings ?? {}).filter(([name]) => !HTTP_SETTINGS.has(identifier(name)))

const setStatement = ([name, value]: Setting): string =>
  `SET ${name} = '${String(value).replace(/['\\]/g, (mark) => `\\${mark}`)}'`

/** How many rows were inserted since the engine was opened. */
const INSERTED_ROWS = "SELECT value FROM system.events WHERE event = 'InsertedRows' FORMAT TSV"

const insertedRows = async (connection: ChdbConnection, before = ""): Promise<number> =>
  Number((await connection.chdb.queryAsync(`${before}${INSERTED_ROWS}`)).text())

const runOn = async (
  connection: ChdbConnection,
  { database = DEFAULT_DATABASE, parameters = new Map(), settings: given, sql }: Statement
): Promise<Answer> => {
  const settings = engineSettings(given)
  const use = database === DEFAULT_DATABASE ? [] : [`USE ${identifier(database)}`]
  const statements = [...use, ...settings.map(setStatement), bindLiterals(sql, parameters)]
  try {
    const result = await connection.chdb.queryAsync(statements.join("; "))
    const bytes = result.bytes()
    return {
      bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
      rowsRead: result.rowsRead,
      bytesRead: result.bytesRead,
      elapsedSeconds: result.elapsed
    }
  } finally {
    // A SET or USE outlives its statement, and the next statement here is another's.
    const resets = [
      ...settings.map(([name]) => `SET ${name} = DEFAULT`),
      ...(use.length > 0 ? [`USE ${DEFAULT_DATABASE}`] : [])
    ]
    if (resets.length > 0) await connection.chdb.queryAsync(resets.join("; "))
  }
}

/**
 * The engine takes rows of binary formats from files only. Its own folder holds the file: the
 * connection for writes is one, so there is one file at a time.
 */
const insertNativeOn = async (
  connection: ChdbConnection,
  folder: string,
  { rows, settings, sql }: InsertStatement
): Promise<Inserted> => {
  const [, insertion, structure] = INSERT_NATIVE.exec(sql) ?? []
  const file = join(folder, NATIVE_FILE)
  const source = [file, "Native"].map((text) => `'${text.replace(/['\\]/g, "\\$&")}'`).join(", ")
  const all = engineSettings(settings).map(
    ([name, value]) => `${name} = '${String(value).replace(/['\\]/g, "\\$&")}'`
  )
  try {
    fs.writeFileSync(file, rows, { mode: 0o600 })
    const started = performance.now()
    const before = await insertedRows(connection)
    const withSettings = all.length === 0 ? "" : ` SETTINGS ${all.join(", ")}`
    const statement = `${insertion} file(${source}, '${structure}')${withSettings}; `
    const after = await insertedRows(connection, statement)
    const elapsedSeconds = (performance.now() - started) / 1_000
    return { rowsWritten: after - before, bytesWritten: rows.length, elapsedSeconds }
  } finally {
    fs.rmSync(file, { force: true })
  }
}

const insertOn = async (
  connection: ChdbConnection,
  folder: string,
  statement: InsertStatement
): Promise<Inserted> => {
  if (INSERT_NATIVE.test(statement.sql)) return insertNativeOn(connection, folder, statement)
  const { database = DEFAULT_DATABASE } = statement
  const [, table, columns, format] = INSERT.exec(statement.sql) ?? []
  if (table === undefined || format === undefined) {
    throw new Error(`the embedded store can't insert by: ${statement.sql}`)
  }
  const result = await connection.chdb.rawInsert({
    table: table.includes(".") ? table : `${identifier(database)}.${table}`,
    ...(columns === undefined ? {} : { columns: columns.split(",").map((name) => name.trim()) }),
    format: format as NonNullable<RawInsert["format"]>,
    values: statement.rows,
    settings: Object.fromEntries(engineSettings(statement.settings))
  })
  return {
    rowsWritten: result.rowsWritten,
    bytesWritten: result.bytesWritten,
    elapsedSeconds: result.elapsed
  }
}

const open = async (path: string) => {
  await closeStandardInput()
  // First, so that a machine without an engine gets no folder that nothing can open.
  const { createChdbConnection } = await loadChdb()
  const folder = prepareFolder(path)
  try {
    const connect = () => createChdbConnection({ path: folder })
    const reads = new Connections(Array.from({ length: READ_CONNECTIONS }, connect), BULK_READS)
    const writes = new Connections(Array.from({ length: WRITE_CONNECTIONS }, connect), 1)
    endOnFatalSignals()
    return { folder, reads, writes }
  } catch (cause) {
    throw openFailure(folder, cause)
  }
}

/** Why the engine was not opened; each message is one line with the way out. */
export type EngineNotOpened = StandardInputOpen | StoreEngineMissing | StoreFolderUnusable

export class ChdbEngine extends Context.Service<
  ChdbEngine,
  {
    /** Absolute path of the data. */
    readonly folder: string
    readonly run: (statement: Statement) => Promise<Answer>
    readonly insert: (statement: InsertStatement) => Promise<Inserted>
  }
>()("alk/adapters/clickhouse/ChdbEngine") {
  /** Opens the folder, which one process may do at a time, until the scope closes. */
  static readonly open = (
    path: string
  ): Effect.Effect<ChdbEngine["Service"], EngineNotOpened, Scope.Scope> =>
    Effect.gen(function* () {
      const { folder, reads, writes } = yield* Effect.acquireRelease(
        Effect.tryPromise({
          try: () => open(path),
          catch: (cause) =>
            cause instanceof StandardInputOpen
            || cause instanceof StoreEngineMissing
            || cause instanceof StoreFolderUnusable
              ? cause
              : openFailure(path, cause)
        }),
        (opened) => Effect.promise(() => Promise.all([opened.reads.close(), opened.writes.close()]))
      )
      return ChdbEngine.of({
        folder,
        run: (statement) =>
          (isRead(statement.sql) ? reads : writes).use(statement, (connection) =>
            runOn(connection, statement)
          ),
        insert: (statement) =>
          writes.use(statement, (connection) => insertOn(connection, folder, statement))
      })
    })

  static readonly layer = (path: string): Layer.Layer<ChdbEngine, EngineNotOpened> =>
    Layer.effect(ChdbEngine, ChdbEngine.open(path))
}
