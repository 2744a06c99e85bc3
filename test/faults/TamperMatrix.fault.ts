/** The whole tamper matrix, a batch of cases at a time: each case is a tenant that is written. */
import { describe, it } from "@effect/vitest"
import { cases } from "../tampering/Cases.ts"
import { runMatrix } from "../tampering/Matrix.ts"

const BATCH = 40
const batches = Array.from({ length: Math.ceil(cases.length / BATCH) }, (_, index) =>
  cases.slice(index * BATCH, (index + 1) * BATCH)
)

describe("the tamper matrix", () => {
  batches.forEach((batch, index) => {
    const range = `${index * BATCH + 1} to ${index * BATCH + batch.length} of ${cases.length}`
    it.live(
      `finds what is changed in tables, running and after a restart: cases ${range}`,
      () => runMatrix(batch),
      600_000
    )
  })
})
