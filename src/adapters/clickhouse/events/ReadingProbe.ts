/**
 * Texts that are easy to misread, and what has to be read of them: asked of a ClickHouse before
 * it is used, because other versions and builds lower-case by other tables or refuse other numbers,
 * and a filter would then silently miss events.
 */
import type { ClickHouseClient } from "@clickhouse/client"
import { aliases, field, readable, temporariesOf } from "../client/JsonColumns.ts"
import { SEARCH_HOLDS } from "./SearchText.ts"

/** This ClickHouse would read other things from the same bytes than the program does. */
export class ReadsDifferently extends Error {
  override readonly name = "ReadsDifferently"
}

const body =
  '{"id":"10000000000000000000000","timestamp":"2261-12-31T23:59:59.999999Z",'
  + '"metadata":{"N":[100000000000000000000,-1e-7]},"sequence_number":9007199254740991}'

/** Members of that record as facts are read. */
const temporaries = temporariesOf([
  "id String",
  "timestamp DateTime64(6, 'UTC')",
  "metadata String",
  "sequence_number UInt64"
])

/** The columns of an event. */
const columns = Object.entries({
  action: "a.b",
  actor_id: "ΟΔΟΣ",
  actor_email: "",
  resource_id: "r",
  resource_type: "t",
  resource_name: '"\\"\\\\"',
  metadata: '{"K":["İ\\n",{"N":[100000000000000000000,-1e-7]},"x:"],"":"\u{1F600}"}',
  search: 'a.b\0οδος\0\0r\0t\0"\\\0i\u0307\n\0x:\0\u{1F600}'
})

/** What is asked, and what has to be answered. */
const questions = [
  ["id", field("id"), "10000000000000000000000"],
  ["timestamp", field("timestamp"), "2261-12-31 23:59:59.999999"],
  ["sequence_number", field("sequence_number"), "9007199254740991"],
  ["metadata", readable(field("metadata")), '{"N":[100000000000000000000e0,-1e-7]}'],
  ["lower case", "lowerUTF8(actor_id)", "οδος"],
  ["search", SEARCH_HOLDS, "1"]
] as const

/** @throws ReadsDifferently, or what the client throws */
export const probeReading = async (client: ClickHouseClient): Promise<void> => {
  const given = columns.map(([name]) => `{${name}:String} AS ${name}`)
  const asked = questions.map(([, expression]) => `toString(${expression})`)
  const answer = await client.query({
    query:
      `WITH {body:String} AS body, ${[...given, aliases(temporaries)].join(", ")}`
      + ` SELECT [${asked.join(", ")}], version()`,
    query_params: { body, ...Object.fromEntries(columns) },
    format: "JSONCompactEachRow"
  })
  const [row] = await answer.json<readonly [ReadonlyArray<string>, string]>()
  const wrong = questions.filter(([, , expected], index) => row?.[0][index] !== expected)
  if (wrong.length === 0) return
  throw new ReadsDifferently(
    `this ClickHouse (${row?.[1] ?? "unknown version"}) reads events differently`
      + ` (${wrong.map(([name]) => name).join(", ")}): use a version that alk was tested with`
  )
}
