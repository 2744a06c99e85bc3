/** What an insert of events does before the store sees it. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { StoreClient } from "../../../../src/adapters/clickhouse/client/StoreClient.ts"
import { makeInsertEvents } from "../../../../src/adapters/clickhouse/events/EventInsert.ts"
import { fastSplit } from "../../../../src/adapters/clickhouse/events/fast/FastSplit.ts"
import type { EventRow } from "../../../../src/ports/EventStore.ts"
import { Chain, erasedForm } from "../../../verify/support/Chains.ts"

/** The rows of each insert that the store is asked for. */
const recording = () => {
  const inserts: Array<number> = []
  const insert: StoreClient["insert"] = ({ rows }) => Effect.sync(() => void inserts.push(rows))
  return { inserts, store: { events: "alk.events", insert } as StoreClient }
}

const { bodies } = new Chain("acme").extend(3)
const rowOf = (body: string, offset: number): EventRow => ({
  partition: 0,
  offset,
  body: Buffer.from(body)
})

for (const [name, fast] of [
  ["with the module", fastSplit()],
  ["in TypeScript", undefined]
] as const) {
  describe(`an insert of events, ${name}`, () => {
    it.effect("reads the rows each time that it runs, and not before", () =>
      Effect.gen(function* () {
        const { inserts, store } = recording()
        const rows = bodies.slice(0, 2).map(rowOf)
        const insert = makeInsertEvents(store, fast)(rows)
        assert.deepStrictEqual(inserts, [])
        rows.push(rowOf(bodies[2]!, 2))
        yield* insert
        yield* insert
        assert.deepStrictEqual(inserts, [3, 3])
      })
    )

    it.effect("gives back rows of another form, and inserts the others", () =>
      Effect.gen(function* () {
        const { inserts, store } = recording()
        const wrong = bodies[1]!.replace('"outcome"', '"note":1,"outcome"')
        const erased = erasedForm(bodies[1]!, "2026-11-22T08:00:00.000000Z")
        const rows = [bodies[0]!, wrong, erased, bodies[2]!].map(rowOf)
        const other = rows[1]!
        assert.deepStrictEqual(yield* makeInsertEvents(store, fast)(rows), [other])
        assert.deepStrictEqual(inserts, [3])
        assert.deepStrictEqual(yield* makeInsertEvents(store, fast)([other]), [other])
        assert.deepStrictEqual(inserts, [3])
      })
    )
  })
}
