/** The scenarios in the order in which they are measured. */
import type { Scenario } from "../Scenario.ts"
import { accept } from "./Accept.ts"
import { eventsPage } from "./Console.ts"
import { erasure } from "./Erasure.ts"
import { exports } from "./Exports.ts"
import { growth } from "./Growth.ts"
import { ingest } from "./Ingest.ts"
import { latency } from "./Latency.ts"
import { lists } from "./Lists.ts"
import { parts } from "./Parts.ts"
import { restartLarge, restartSmall } from "./Restart.ts"
import { runs } from "./Runs.ts"
import { streams } from "./Streams.ts"
import { tenants } from "./Tenants.ts"
import { traces } from "./Traces.ts"
import { verification } from "./Verification.ts"

export const scenarios: ReadonlyArray<Scenario> = [
  parts,
  ingest,
  latency,
  accept,
  traces,
  runs,
  streams,
  tenants,
  restartSmall,
  lists,
  eventsPage,
  verification,
  exports,
  erasure,
  growth,
  restartLarge
]
