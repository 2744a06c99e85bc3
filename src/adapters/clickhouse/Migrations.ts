/**
 * Brings the store's tables to what this program expects: numbered SQL files, each applied once, in
 * order, and recorded with its checksum. Several processes may do so at the same time, so every
 * statement of a file must bear being run twice.
 */
import { createHash } from "node:crypto"
import { readdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { ClickHouseClient } from "@clickhouse/client"
import type { StorePlace } from "./client/ClickHouseConnection.ts"
import { probeReading } from "./events/ReadingProbe.ts"

export const migrationsFolder = fileURLToPath(
  new URL("../../../schemas/clickhouse/", import.meta.url)
)

/** The store's schema is not one that this program can bring up to date. */
export class MigrationRefused extends Error {
  override readonly name = "MigrationRefused"
}

/** The store has lost rows, so its answers would be wrong. */
export class StoreDamaged extends Error {
  override readonly name = "StoreDamaged"
}

interface Migration {
  readonly version: number
  readonly name: string
  readonly checksum: string
  readonly sql: string
}

interface Applied {
  readonly version: number
  readonly name: string
  readonly checksum: string
}

const FILE_NAME = /^([0-9]{4})_[a-z0-9_]+\.sql$/

const readMigrations = async (folder: string): Promise<ReadonlyArray<Migration>> => {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".sql")).sort()
  return Promise.all(
    names.map(async (name, index) => {
      const version = Number(FILE_NAME.exec(name)?.[1])
      if (version !== index + 1) {
        throw new MigrationRefused(`${name}: the files of ${folder} must be numbered 0001, 0002, …`)
      }
      const sql = await readFile(join(folder, name), "utf8")
      return { version, name, sql, checksum: createHash("sha256").update(sql).digest("hex") }
    })
  )
}

const placeholders = ({ cluster, database }: StorePlace): ReadonlyMap<string, string> =>
  new Map([
    ["{{database}}", database],
    ["{{on_cluster}}", cluster === undefined ? "" : ` ON CLUSTER '${cluster}'`],
    ["{{replicated}}", cluster === undefined ? "" : "Replicated"]
  ])

const fillIn = (sql: string, place: StorePlace): string => {
  const known = placeholders(place)
  return sql.replace(/\{\{\w+\}\}/g, (placeholder) => {
    const value = known.get(placeholder)
    if (value === undefined) throw new MigrationRefused(`unknown placeholder ${placeholder}`)
    return value
  })
}

/** The statements of a file, without its comments: those are lines of their own. */
export const statementsIn = (sql: string): ReadonlyArray<string> =>
  sql
    .replaceAll(/^[ \t]*--.*\n/gm, "")
    .split(/;[ \t]*(?:\n|$)/)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== "")

const LEDGER = [
  "CREATE DATABASE IF NOT EXISTS {{database}}{{on_cluster}}",
  "CREATE TABLE IF NOT EXISTS {{database}}.schema_migrations{{on_cluster}}"
    + " (version UInt32, name String, checksum String, applied_at DateTime64(6, 'UTC'))"
    + " ENGINE = {{replicated}}ReplacingMergeTree ORDER BY (version, checksum)"
]

const readApplied = async (
  client: ClickHouseClient,
  place: StorePlace
): Promise<ReadonlyArray<Applied>> => {
  const answer = await client.query({
    query:
      `SELECT DISTINCT version, name, checksum FROM ${place.database}.schema_migrations`
      + " ORDER BY version"
      + (place.cluster === undefined ? "" : " SETTINGS select_sequential_consistency = 1"),
    format: "JSONEachRow"
  })
  return answer.json<Applied>()
}

const record = (client: ClickHouseClient, { database }: StorePlace, migration: Migration) =>
  client.command({
    query:
      `INSERT INTO ${database}.schema_migrations`
      + " SELECT {version:UInt32}, {name:String}, {checksum:String}, now64(6, 'UTC')",
    query_params: {
      version: migration.version,
      name: migration.name,
      checksum: migration.checksum
    }
  })

const refuseOthers = (
  migrations: ReadonlyArray<Migration>,
  applied: ReadonlyArray<Applied>
): void => {
  for (const { checksum, name, version } of applied) {
    const migration = migrations[version - 1]
    if (migration === undefined) {
      throw new MigrationRefused(
        `the store's schema has version ${version} (${name}), which this program doesn't know:`
          + " start the newer version of it"
      )
    }
    if (version === 1 && migration.name !== name) {
      throw new MigrationRefused(
        "the store was made by a version of alk before the first release, which this one does not read:"
          + " start with a new database (CLICKHOUSE_DATABASE), which is built from the topics"
      )
    }
    if (migration.name !== name || migration.checksum !== checksum) {
      throw new MigrationRefused(
        `schemas/clickhouse/${migration.name} is not the file that was applied to the store`
          + ` (then ${name}, SHA-256 ${checksum}): restore it, and make the change in a new file`
      )
    }
  }
}

/**
 * ClickHouse sets a part that it can't read aside and goes on without its rows. A replica gets the
 * part again from another one; anywhere else the rows are missing from every answer.
 */
const refuseDamage = async (client: ClickHouseClient, place: StorePlace): Promise<void> => {
  if (place.cluster !== undefined) return
  const answer = await client.query({
    query:
      "SELECT table, name FROM system.detached_parts"
      + " WHERE database = {database:String} AND startsWith(reason, 'broken') ORDER BY table, name",
    query_params: { database: place.database },
    format: "JSONEachRow"
  })
  const [first, ...others] = await answer.json<{ readonly table: string; readonly name: string }>()
  if (first === undefined) return
  const more = others.length === 0 ? "" : ` and ${others.length} more`
  throw new StoreDamaged(
    `the store can't read the part ${first.name} of ${place.database}.${first.table}${more}:`
      + ` move its folder away, or drop the database ${place.database}, and the next start builds`
      + " it again from the topics"
  )
}

/** The oldest ClickHouse that alk is tested with; it uses indexes of texts and patches of rows. */
const LEAST_VERSION = [26, 7] as const

/** Whether a version such as 26.7.2.1 is older than that. */
export const isTooOld = (version: string): boolean => {
  const [major = 0, minor = 0] = version.split(".").map(Number)
  if (Number.isNaN(major)) return true
  return major < LEAST_VERSION[0] || (major === LEAST_VERSION[0] && minor < LEAST_VERSION[1])
}

/** The version of the server. */
const supportedVersion = async (client: ClickHouseClient): Promise<string> => {
  const answer = await client.query({ query: "SELECT version()", format: "JSONCompactEachRow" })
  const [[version] = [""]] = await answer.json<[string]>()
  if (!isTooOld(version)) return version
  throw new MigrationRefused(
    `this ClickHouse is ${version || "of an unknown version"}: alk needs ${LEAST_VERSION.join(".")}`
      + " or newer"
  )
}

/**
 * Applies what is missing. Resolves with the version of ClickHouse.
 * @throws MigrationRefused, StoreDamaged, ReadsDifferently, or what the client throws
 */
export const migrate = async (
  client: ClickHouseClient,
  place: StorePlace,
  folder: string = migrationsFolder
): Promise<string> => {
  const migrations = await readMigrations(folder)
  await probeReading(client)
  const version = await supportedVersion(client)
  for (const statement of LEDGER) await client.command({ query: fillIn(statement, place) })
  const applied = await readApplied(client, place)
  refuseOthers(migrations, applied)
  const done = new Set(applied.map(({ version }) => version))
  for (const migration of migrations) {
    if (done.has(migration.version)) continue
    for (const statement of statementsIn(fillIn(migration.sql, place))) {
      await client.command({ query: statement })
    }
    await record(client, place, migration)
  }
  await refuseDamage(client, place)
  return version
}
