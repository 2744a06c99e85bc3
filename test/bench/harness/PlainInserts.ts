/**
 * What the store takes with nothing before it: rows of the events' table, inserted as they are into
 * an empty table of the same form.
 */

const DATABASE = "alk"
const ROWS = 10_000
/** More than any sequence of the rows that are read. */
const ROUND_SEQUENCES = 1_000_000_000

/** As alk inserts: one part a block, without threads that share it, indexes left to merges. */
const SETTINGS = {
  async_insert: "0",
  insert_deduplicate: "0",
  optimize_on_insert: "0",
  max_threads: "1",
  max_insert_threads: "1",
  materialize_skip_indexes_on_insert: "0"
}

const ask = async (store: string, query: string, body?: Uint8Array): Promise<Uint8Array> => {
  const url = new URL(store)
  for (const [name, value] of Object.entries({ query, ...SETTINGS })) {
    url.searchParams.set(name, value)
  }
  const answer = await fetch(url, { method: "POST", ...(body === undefined ? {} : { body }) })
  const bytes = new Uint8Array(await answer.arrayBuffer())
  if (!answer.ok) throw new Error(`${query}: ${Buffer.from(bytes).toString().slice(0, 500)}`)
  return bytes
}

const askRows = async (store: string, query: string): Promise<ReadonlyArray<any>> =>
  Buffer.from(await ask(store, `${query} FORMAT JSONEachRow`))
    .toString()
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line))

export class PlainInserts {
  readonly #store: string
  readonly #block: Uint8Array
  readonly #columns: string
  readonly #structure: string

  private constructor(store: string, block: Uint8Array, columns: string, structure: string) {
    this.#store = store
    this.#block = block
    this.#columns = columns
    this.#structure = structure
  }

  /** Reads the rows to insert: the table has to have 10,000. */
  static async read(store: string): Promise<PlainInserts> {
    const columns = await askRows(
      store,
      `SELECT name, type FROM system.columns WHERE database = '${DATABASE}' AND table = 'events'`
        + " AND default_kind NOT IN ('ALIAS', 'EPHEMERAL', 'MATERIALIZED')"
    )
    const names = columns.map(({ name }) => name).join(", ")
    const structure = columns.map(({ name, type }) => `${name} ${type}`).join(", ")
    const from = `FROM ${DATABASE}.events LIMIT ${ROWS}`
    const block = await ask(store, `SELECT ${names} ${from} FORMAT Native`)
    return new PlainInserts(store, block, names, structure.replaceAll("'", "\\'"))
  }

  /** Rows a second of so many rows, in blocks of 10,000. */
  async rate(rows: number): Promise<number> {
    const table = `${DATABASE}.bench_${Date.now()}`
    await ask(this.#store, `CREATE TABLE ${table} AS ${DATABASE}.events`)
    const rounds = Math.ceil(rows / ROWS)
    // Rows of equal keys become one when they are merged: each round has sequences of its own.
    const insert = (round: number) => {
      const sequence = `sequence_number + ${round * ROUND_SEQUENCES}`
      const values = this.#columns.replace(/\bsequence_number\b/, sequence)
      return (
        `INSERT INTO ${table} (${this.#columns}) SELECT ${values}`
        + ` FROM input('${this.#structure}') FORMAT Native`
      )
    }
    const started = performance.now()
    for (let round = 0; round < rounds; round++) await ask(this.#store, insert(round), this.#block)
    const seconds = (performance.now() - started) / 1_000
    const [{ stored }] = (await askRows(
      this.#store,
      `SELECT toUInt32(count()) AS stored FROM ${table}`
    )) as [{ readonly stored: number }]
    await ask(this.#store, `DROP TABLE ${table}`)
    if (stored !== rounds * ROWS) throw new Error(`${stored} of ${rounds * ROWS} rows are stored`)
    return stored / seconds
  }
}
