/** A genuine record once more, as the first of its tenant that a projection reads after its start. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  events,
  project,
  rewritten,
  sequence,
  TENANT,
  topicBodies,
  verify,
  withView
} from "../integration/support/Evidence.ts"
import { append } from "../support/Log.ts"

describe("an old record once more while nothing is projected", () => {
  it.live("is no part of the list, and what comes after it is", () =>
    withView(() =>
      Effect.gen(function*() {
        yield* sequence(10, events(10))
        yield* project()
        const bodies = yield* topicBodies
        const last = rewritten(bodies, 10, 11).bodies[10]!
        yield* append([bodies[4]!, last].map((value) =>
          ({ topic: "events", partition: 0, key: TENANT, value })))
        assert.deepStrictEqual((yield* project()).bodies, [...bodies, last])
        assert.deepStrictEqual(
          (yield* verify()).breaks.map(({ reason, sequence_number }) => [sequence_number, reason]),
          [[5, "duplicate_sequence"]]
        )
      })
    )
  )
})
