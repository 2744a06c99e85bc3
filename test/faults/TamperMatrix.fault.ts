/** The whole tamper matrix. */
import { describe, it } from "@effect/vitest"
import { cases } from "../tampering/Cases.ts"
import { runMatrix } from "../tampering/Matrix.ts"

describe("the tamper matrix", () => {
  it.live("finds what is changed in tables, through the running service and after a restart", () =>
    runMatrix(cases), 1_800_000)
})
