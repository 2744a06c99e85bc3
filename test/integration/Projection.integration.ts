/** The view against the topic: byte for byte, whatever is delivered twice, denied or forged. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { EventStore } from "../../src/ports/EventStore.ts"
import { append, readAll } from "../support/Log.ts"
import { tamper } from "../support/Store.ts"
import {
  bodiesOf,
  project,
  sequence,
  total,
  verify,
  withView,
  write
} from "./support/ProjectedView.ts"

describe("the projection", () => {
  it.live("stores the topic's bytes, in order, and goes on where it stopped", () =>
    withView(() =>
      Effect.gen(function* () {
        yield* write("acme", 30, 20)
        const first = yield* sequence(50)
        assert.deepStrictEqual((yield* project("acme", 50)).bodies, bodiesOf(first))
        yield* write("acme", 10)
        const all = yield* sequence(60)
        assert.deepStrictEqual((yield* project("acme", 60)).bodies, bodiesOf(all))
      })
    )
  )

  it.live("shows nothing twice when two of them work on the same partition", () =>
    withView((database) =>
      Effect.gen(function* () {
        yield* write("acme", 40)
        const records = yield* sequence(40)
        yield* project("acme", 40)
        // A zombie that starts from an older position inserts everything again.
        const store = yield* EventStore
        yield* store.insertEvents(
          records.map(({ offset, value }) => ({ partition: 0, offset, body: value! }))
        )
        assert.isTrue(yield* store.hasDuplicates(0, 0))
        const page = yield* total("acme")
        assert.strictEqual(page.total, 40)
        assert.deepStrictEqual(page.bodies, bodiesOf(records))
        yield* tamper(`OPTIMIZE TABLE ${database}.events FINAL`)
        assert.isFalse(yield* store.hasDuplicates(0, 0))
      })
    )
  )

  it.live.each([
    ["says that rows are missing", "is a copy of before", 40, true],
    ["hides nothing", "has what it had", 50, false]
  ] as const)("%s where the store %s", ([, , kept, isMissing]) =>
    withView((database) =>
      Effect.gen(function* () {
        yield* write("acme", 50)
        yield* sequence(50)
        yield* project("acme", 50)
        const where = `sequence_number > ${kept} SETTINGS mutations_sync = 2`
        yield* tamper(`ALTER TABLE ${database}.events DELETE WHERE ${where}`)
        yield* write("acme", 5)
        yield* sequence(55)
        const before = (yield* readAll("progress")).length
        yield* project("acme", 55)
        const said = (yield* readAll("progress"))
          .slice(before)
          .map(({ value }) => JSON.parse(value!.toString()).rebuilding as boolean)
        assert.deepStrictEqual([said[0], said.at(-1)], [isMissing, false])
      })
    )
  )

  it.live("keeps a record that does not link out of the lists, and verification names it", () =>
    withView(() =>
      Effect.gen(function* () {
        yield* write("acme", 10)
        const records = yield* sequence(10)
        const forged = bodiesOf(records)[4]!.replace("success", "failure")
        yield* append([{ topic: "events", partition: 0, key: "acme", value: forged }])
        const page = yield* project("acme", 10)
        assert.deepStrictEqual(page.bodies, bodiesOf(records))
        const report = yield* verify("acme")
        assert.isFalse(report.valid)
        assert.deepStrictEqual(
          report.breaks.map(({ reason, sequence_number }) => [sequence_number, reason]),
          [[5, "duplicate_sequence"]]
        )
      })
    )
  )
})
