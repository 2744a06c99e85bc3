/**
 * The black-box tests on the production shape: the real images of Kafka and ClickHouse, and alk's
 * own image in separate roles. Skipped, the reason in the name, where no container engine answers.
 */
import { afterAll, beforeAll, describe } from "vitest"
import { allTenants, blackBox } from "../support/BlackBox.ts"
import { ADMIN_TOKEN, TEST_SECRET, testKey } from "../support/Program.ts"
import { type Started, startContainers, whyNoContainers } from "./Containers.ts"

/** Milliseconds for fetching and building images and for starting seven containers. */
const START_TIMEOUT_MS = 900_000
const STOP_TIMEOUT_MS = 120_000

const reason = await whyNoContainers()
if (reason !== undefined) console.warn(`SKIPPED: the tests on the real images: ${reason}`)

const variables = {
  ALK_SECRET: TEST_SECRET,
  ALK_ADMIN_TOKEN: ADMIN_TOKEN,
  CLICKHOUSE_PASSWORD: "a-password-of-the-tests",
  ALK_BOOTSTRAP_KEYS: allTenants.map((tenant) => `${testKey(tenant)}=${tenant}:read+write`).join()
}

const title = "on the images of Kafka, ClickHouse and alk"

describe.skipIf(reason !== undefined)(
  reason === undefined ? title : `${title} (skipped: ${reason})`,
  () => {
    let started: Started | undefined

    beforeAll(async () => {
      started = await startContainers(variables)
    }, START_TIMEOUT_MS)

    afterAll(async () => {
      await started?.stop()
    }, STOP_TIMEOUT_MS)

    blackBox(() => ({
      urls: started!.urls,
      bootstrap: started!.bootstrap,
      topicPrefix: "alk",
      keyOf: testKey
    }))
  }
)
