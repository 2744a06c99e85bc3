/**
 * The whole program started again and again on one port, as an API and as a process without one,
 * over the broker and the store of the run, while somebody connects all the time.
 */
import { assert } from "vitest"
import { freePort } from "./FreePort.ts"
import { freshFolder, start, TEST_SECRET, testKey } from "./Program.ts"
import { signingKeyIn } from "./SigningKeyFile.ts"
import { StartProbe } from "./StartProbe.ts"

export interface Shared {
  readonly bootstrap: string
  readonly storeUrl: string
}

/** Answers that a probe waits for once the program says that it is ready. */
const ANSWERS_MIN = 4

/**
 * Start and stop the program so many times in this role; whoever connects is answered. Comes back
 * with the probe, which has ended.
 */
export const startedUnderProbe = async (
  role: "api,sequencer,projection" | "sequencer",
  starts: number,
  { bootstrap, storeUrl }: Shared
): Promise<StartProbe> => {
  // The probe connects there before the first start, and between two of them.
  const port = await freePort()
  const name = `starts_${role.replaceAll(",", "")}_${process.pid}`
  const environment = {
    ALK_ROLES: role,
    PORT: String(port),
    ...(role === "sequencer" ? { ALK_WORKER_PORT: String(port) } : {}),
    KAFKA_BROKERS: bootstrap,
    CLICKHOUSE_URL: storeUrl,
    CLICKHOUSE_DATABASE: name,
    ALK_TOPIC_PREFIX: name,
    ALK_PARTITIONS: "1",
    ALK_REPLICATION: "1",
    ALK_SECRET: TEST_SECRET,
    ALK_SIGNING_KEY_FILE: signingKeyIn(freshFolder("starts-key")),
    ALK_BOOTSTRAP_KEYS: `${testKey("starts")}=starts:read+write`
  }
  const probe = StartProbe.begin(port)
  for (let n = 0; n < starts; n++) {
    const program = await start(environment)
    probe.begin()
    await probe.until((answered) => answered >= ANSWERS_MIN)
    assert.strictEqual(await program.stop(), 0)
  }
  await probe.end()
  probe.assertAllAnswered()
  return probe
}
