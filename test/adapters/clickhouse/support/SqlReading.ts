/** Whether ClickHouse reads what is run as it reads what was asked. */
import type { ClickHouseClient } from "@clickhouse/client"
import { readStatement } from "../../../../src/adapters/clickhouse/sql/SqlStatement.ts"
import { sqlTableNames } from "../../../../src/domain/sql/SqlTables.ts"

const AT_ONCE = 500

const written = (sql: string): string => readStatement(sql, sqlTableNames).text([])

const isRead = (sql: string): boolean => {
  try {
    return written(sql) !== ""
  } catch {
    return false
  }
}

/** As it is written; undefined if what it makes may be too large, in the words of ClickHouse. */
const writtenAgain = (sql: string): string | undefined => {
  try {
    return written(sql)
  } catch (cause) {
    if (/texts and lists|looks for|the pattern of/.test((cause as Error).message)) return undefined
    throw new Error(`${(cause as Error).message}: ${sql}`, { cause })
  }
}

/** Statements as ClickHouse writes what it has read; null for what it can't read. */
const formatted = async (client: ClickHouseClient, statements: ReadonlyArray<string>) => {
  const texts = statements.map((sql) => `'${Buffer.from(sql).toString("hex")}'`).join(", ")
  const query = `SELECT formatQuerySingleLineOrNull(unhex(arrayJoin([${texts}])))`
  const answer = await client.query({
    query,
    format: "JSONCompactEachRow",
    clickhouse_settings: { max_query_size: "100000000" }
  })
  return (await answer.json<[string | null]>()).map(([text]) => text)
}

/** With the names of tables that the statement of a client has. */
const asAsked = (sql: string): string =>
  sql
    .replaceAll(
      /`(?:view|with \d+) ([^`]+)` AS (`[^`]+`|\w+)/g,
      (_, name: string, alias: string) =>
        alias.replaceAll("`", "") === name ? name : `${name} AS ${alias}`
    )
    .replaceAll(/`with \d+ ([^`]+)` AS \(/g, "$1 AS (")

/** Without spaces and brackets in a literal before `::`, of which ClickHouse keeps the very text. */
const alike = (sql: string): string =>
  sql.replaceAll(/CAST\('[^']*'/g, (cast) =>
    cast.replaceAll(/(?<=')[^']*/g, (text) => text.replaceAll(/[ ()]/g, ""))
  )

/**
 * What ClickHouse reads in another way when it is run than when it is asked, of the statements that are
 * run at all; how many those are. What ClickHouse can't read is no other reading.
 */
export const differentReadings = async (
  client: ClickHouseClient,
  statements: ReadonlyArray<string>
): Promise<{ readonly read: number; readonly different: ReadonlyArray<string> }> => {
  const read = statements.filter(isRead)
  const different: Array<string> = []
  for (let from = 0; from < read.length; from += AT_ONCE) {
    const asked = read.slice(from, from + AT_ONCE)
    const ofAsked = await formatted(client, asked)
    const ofRun = await formatted(client, asked.map(written))
    for (const [at, sql] of asked.entries()) {
      const [one, other] = [ofAsked[at], ofRun[at]]
      // What can't be read is refused by ClickHouse, too, when it is asked.
      if (typeof one !== "string") continue
      if (typeof other !== "string") {
        different.push(`${sql}\n  ${one}\n  is not read when it is run: ${written(sql)}`)
        continue
      }
      // Written once more, both are without the brackets that say nothing.
      const again = [writtenAgain(one), writtenAgain(asAsked(other))] as const
      if (again[0] === undefined || again[1] === undefined) continue
      if (alike(again[0]) !== alike(again[1])) different.push(`${sql}\n  ${one}\n  ${other}`)
    }
  }
  return { read: read.length, different }
}
