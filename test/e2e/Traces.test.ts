/**
 * Traces through the real parts: two APIs, two sequencers and a projection as processes of their own,
 * over the shared broker and a store of their own.
 */
import { rmSync } from "node:fs"
import { afterAll, beforeAll, inject } from "vitest"
import { freePort } from "../support/FreePort.ts"
import { freshFolder, start, TEST_SECRET, testKey, type Started } from "../support/Program.ts"
import { signingKeyIn } from "../support/SigningKeyFile.ts"
import { allTraceTenants, traceBlackBox } from "../support/TraceBlackBox.ts"

const folder = freshFolder("traces")
const signingKey = signingKeyIn(freshFolder("traces-key"))
const keyOf = (tenant: string): string => testKey(tenant)
const common = (): Record<string, string> => ({
  ALK_SECRET: TEST_SECRET,
  ALK_TOPIC_PREFIX: `traces${process.pid}`,
  ALK_PARTITIONS: "2",
  ALK_REPLICATION: "1",
  ALK_SIGNING_KEY_FILE: signingKey,
  KAFKA_BROKERS: inject("bootstrap"),
  ALK_BOOTSTRAP_KEYS: allTraceTenants
    .map((tenant) => `${keyOf(tenant)}=${tenant}:read+write`)
    .join(",")
})

let store: Started
let workers: Array<Started>
let apis: Array<Started>

beforeAll(async () => {
  const storePort = await freePort()
  store = await start({
    ...common(),
    ALK_ROLES: "store",
    ALK_DATA_DIR: folder,
    ALK_STORE_PORT: String(storePort)
  })
  const startRole = (role: string): Promise<Started> =>
    start({
      ...common(),
      ALK_ROLES: role,
      ALK_WORKER_PORT: "0",
      CLICKHOUSE_URL: `http://127.0.0.1:${storePort}`
    })
  workers = [await startRole("projection"), await startRole("sequencer"), await startRole("sequencer")]
  apis = [await startRole("api"), await startRole("api")]
})

afterAll(async () => {
  await Promise.all([...apis, ...workers].map((one) => one.stop()))
  await store.stop()
  rmSync(folder, { recursive: true, force: true })
})

traceBlackBox(() => ({ urls: apis.map(({ url }) => url), keyOf }))
