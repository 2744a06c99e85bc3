/**
 * One event that is easy to misread, and what its columns have to be: asked of a ClickHouse before
 * it is used, because other versions and builds lower-case by other tables or refuse other numbers,
 * and a filter would then silently miss events.
 */
import type { ClickHouseClient } from "@clickhouse/client"
import { aliases } from "../client/JsonColumns.ts"
import { columns, temporaries } from "./EventColumns.ts"

/** This ClickHouse would take other columns from the same bytes than verification and `matches`. */
export class ReadsDifferently extends Error {
  override readonly name = "ReadsDifferently"
}

const body =
  '{"id":"10000000000000000000000","timestamp":"2261-12-31T23:59:59.999999Z",'
  + '"actor":{"id":"ΟΔΟΣ","type":"human"},"action":"a.b",'
  + '"resource":{"id":"r","type":"t","name":"\\"\\\\"},"outcome":"success",'
  + '"metadata":{"K":["İ\\n",{"N":[100000000000000000000,-1e-7]},"x:"],"":"\u{1F600}"},'
  + '"tenant_id":"acme","sequence_number":9007199254740991,'
  + '"created_at":"1970-01-01T00:00:00.000000Z","hash":"h"}'

const expected: Record<string, string> = {
  version: "0",
  tenant_id: "acme",
  sequence_number: "9007199254740991",
  hash: "h",
  id: "10000000000000000000000",
  timestamp: "2261-12-31 23:59:59.999999",
  created_at: "1970-01-01 00:00:00.000000",
  actor_id: "ΟΔΟΣ",
  actor_type: "human",
  action: "a.b",
  resource_id: "r",
  resource_type: "t",
  outcome: "success",
  metadata: '{"K":["İ\\n",{"N":[100000000000000000000e0,-1e-7]},"x:"],"":"\u{1F600}"}',
  search: 'a.b\0οδος\0\0r\0t\0"\\\0i\u0307\n\0x:\0\u{1F600}'
}

/** @throws ReadsDifferently, or what the client throws */
export const probeReading = async (client: ClickHouseClient): Promise<void> => {
  const values = columns.map(([, expression]) => `toString(${expression})`)
  const answer = await client.query({
    query: `WITH {body:String} AS body, ${aliases(temporaries)} SELECT [${values.join(", ")}], version()`,
    query_params: { body },
    format: "JSONCompactEachRow"
  })
  const [row] = await answer.json<readonly [ReadonlyArray<string>, string]>()
  const wrong = columns.filter(([name], index) => row?.[0][index] !== expected[name])
  if (wrong.length === 0) return
  throw new ReadsDifferently(
    `this ClickHouse (${row?.[1] ?? "unknown version"}) reads events differently`
      + ` (${wrong.map(([name]) => name).join(", ")}): use a version that alk was tested with`
  )
}
