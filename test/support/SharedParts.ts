/** Settings of a program that works on the machine of the run, on topics and a database of its own. */
import { inject } from "vitest"
import { freshFolder, TEST_SECRET } from "./Program.ts"
import { signingKeyIn } from "./SigningKeyFile.ts"

/** `name`: letters and digits. */
export const sharedParts = (name: string): Readonly<Record<string, string>> => ({
  ALK_SECRET: TEST_SECRET,
  ALK_SIGNING_KEY_FILE: signingKeyIn(freshFolder(`${name}-key`)),
  ALK_TOPIC_PREFIX: `${name}${process.pid}`,
  CLICKHOUSE_DATABASE: `${name}${process.pid}`,
  ALK_REPLICATION: "1",
  ALK_PARTITIONS: "2",
  KAFKA_BROKERS: inject("bootstrap"),
  CLICKHOUSE_URL: inject("storeUrl")
})
