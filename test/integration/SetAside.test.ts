/**
 * A view that the topic denies in part, after retention has taken the topic's beginning: what nobody
 * could build again stays listed, and what is denied can still be looked at.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { EventStore } from "../../src/ports/EventStore.ts"
import { append, deleteBelow, loseTopic, readAll } from "../support/Log.ts"
import { intruder, tamper } from "../support/Store.ts"
import {
  events,
  listed,
  project,
  sequence,
  TENANT,
  topicBodies,
  verify,
  withView
} from "./support/Evidence.ts"

/** Events in all, and how many of them retention has removed from the topic. */
const ALL = 40
const GONE = 30

/** Rows that were set aside, by the table they stood in, with the reason and what was in them. */
const setAside = (database: string) =>
  Effect.promise(async () => {
    const client = intruder()
    const answer = await client.query({
      query: `SELECT source, kafka_offset, reason, body FROM ${database}.set_aside FINAL`
        + " ORDER BY source, kafka_offset, reason, body",
      format: "JSONCompactEachRow"
    })
    const rows = await answer.json<[string, string, string, string]>()
    await client.close()
    return rows.map(([source, offset, reason, body]) =>
      ({ source, offset: Number(offset), reason, body }))
  })

/** Forty events in topic and view, of which the topic holds the last ten only. */
const shortened = Effect.fnUntraced(function*(name: string) {
  yield* sequence(ALL, events(ALL))
  const { bodies } = yield* project()
  assert.strictEqual(bodies.length, ALL)
  yield* deleteBelow(name, "events", GONE)
  return bodies
})

/** The list is these events, now and after two more starts. */
const assertStable = Effect.fnUntraced(function*(
  database: string,
  bodies: ReadonlyArray<string>
) {
  const aside = yield* setAside(database)
  for (let start = 0; start < 2; start++) {
    const page = yield* project()
    assert.deepStrictEqual(page.bodies, bodies)
    assert.strictEqual(page.total, bodies.length)
    assert.deepStrictEqual(yield* setAside(database), aside)
  }
})

describe("a view that the topic denies, of a topic whose beginning is gone", () => {
  it.live("keeps its history when a row stands far behind the topic's end", () =>
    withView((name) =>
      Effect.gen(function*() {
        const bodies = yield* shortened(name)
        yield* tamper(
          `INSERT INTO ${name}.events (kafka_partition, kafka_offset, body)
           VALUES (0, 1000000, '{"forged":true}')`
        )
        assert.deepStrictEqual((yield* project()).bodies, bodies)
        assert.deepStrictEqual(yield* setAside(name), [
          { source: "events", offset: 1_000_000, reason: "beyond_end", body: '{"forged":true}' }
        ])
        yield* sequence(ALL - GONE + 5, events(5))
        const all = [...bodies.slice(0, GONE), ...(yield* topicBodies)]
        assert.deepStrictEqual((yield* project()).bodies, all)
        yield* assertStable(name, all)
        assert.isTrue((yield* verify()).valid)
      })
    )
  )
})
