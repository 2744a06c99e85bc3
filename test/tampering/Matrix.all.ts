/** The small form of the tamper matrix, that every column has a case, and that the page says so. */
import { assert, describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { withView } from "../integration/support/Evidence.ts"
import { cases, tablesAsAWhole } from "./Cases.ts"
import { runMatrix } from "./Matrix.ts"
import { pageOf } from "./Page.ts"
import { columnsOf } from "./World.ts"

describe("the tamper matrix", () => {
  it.live(
    "finds what is changed, through the running service and after a restart",
    () => runMatrix(cases.filter(({ isSmall }) => isSmall === true)),
    600_000
  )

  it.live("has a case for every column that can be written", () =>
    withView((database) =>
      Effect.gen(function* () {
        const columns = yield* columnsOf(database)
        const written = [...columns].flatMap(([table, all]) =>
          tablesAsAWhole.has(table)
            ? []
            : all
                .filter(({ kind }) => kind !== "MATERIALIZED" && kind !== "ALIAS")
                .map(({ name }) => `${table}.${name}`)
        )
        const covered = cases.flatMap(({ column, on }) =>
          column === undefined ? [] : [`${on.split(" and ").at(-1)}.${column}`]
        )
        assert.sameMembers([...new Set(covered)], written)
        for (const table of tablesAsAWhole.keys()) assert.isTrue(columns.has(table), table)
      })
    )
  )

  it("is what docs/tampering.md says; `vitest run -u` writes it", async () => {
    await expect(pageOf(cases)).toMatchFileSnapshot("../../docs/tampering.md")
  })
})
