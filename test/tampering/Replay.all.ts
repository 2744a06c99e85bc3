/** Records of other producers, written while nothing runs: old ones once more, and such that link. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { AuditEvent } from "../../src/domain/events/AuditEvent.ts"
import { startExecution } from "../actors/support/Traces.ts"
import {
  events,
  project,
  rewritten,
  sequence,
  sequencing,
  signed,
  submit,
  TENANT,
  topicBodies,
  topicEvents,
  verify,
  wantCheckpoint,
  withView
} from "../integration/support/Evidence.ts"
import { acceptAll } from "../integration/support/Starts.ts"
import { eventually } from "../support/Eventually.ts"
import { append, loseTopic, readAll, readAtLeast } from "../support/Log.ts"
import { tamper } from "../support/Store.ts"
import { traceCommand } from "../support/TracePartition.ts"

const execution = (id: string) => traceCommand(TENANT, [startExecution(id)])

describe("an old record once more while nothing is projected", () => {
  it.live("is no part of the list, and what comes after it is", () =>
    withView(() =>
      Effect.gen(function* () {
        yield* sequence(10, events(10))
        yield* project()
        const bodies = yield* topicBodies
        yield* append([{ topic: "events", partition: 0, key: TENANT, value: bodies[4]! }])
        yield* sequence(12, events(1))
        const last = (yield* topicBodies).at(-1)!
        assert.deepStrictEqual((yield* project()).bodies, [...bodies, last])
        assert.deepStrictEqual(
          (yield* verify()).breaks.map(({ reason, sequence_number }) => [sequence_number, reason]),
          [[5, "duplicate_sequence"]]
        )
      })
    )
  )
})

describe("records that do not link, written while no sequencer runs", () => {
  const written = Effect.gen(function* () {
    yield* submit(execution("first"))
    yield* sequence(10, events(10))
    const bodies = yield* topicBodies
    const facts = yield* readAll("traces")
    const at = (topic: "events" | "traces", value: string | Buffer | null) => ({
      topic,
      partition: 0,
      key: TENANT,
      value
    })
    yield* append([
      at("events", bodies[4]!),
      at("events", "junk"),
      at("events", null),
      at("traces", facts[1]!.value),
      at("traces", "junk")
    ])
    return bodies
  })
  const goesOn = (bodies: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      yield* submit(execution("second"), events(1))
      // Three of the records are the forged ones.
      yield* sequencing(readAtLeast("events", bodies.length + 4))
      const listed = (yield* project()).bodies
      assert.strictEqual(listed.length, bodies.length + 1)
      const last = JSON.parse(listed.at(-1)!) as AuditEvent
      const before = JSON.parse(bodies.at(-1)!) as AuditEvent
      assert.deepStrictEqual(
        [last.sequence_number, last.prev_hash],
        [before.sequence_number + 1, before.hash]
      )
    })

  it.live("do not stop the next one", () => withView(() => Effect.flatMap(written, goesOn)))

  it.live("do not stop one that has to read the chains again", () =>
    withView((prefix) =>
      Effect.gen(function* () {
        const bodies = yield* written
        yield* loseTopic(prefix, "state")
        yield* goesOn(bodies)
      })
    )
  )

  it.live("stop it where a part of the chain is missing", () =>
    withView((prefix) =>
      Effect.gen(function* () {
        const bodies = yield* written
        const later = rewritten(bodies, 10, 12).bodies[11]!
        yield* append([{ topic: "events", partition: 0, key: TENANT, value: later }])
        yield* loseTopic(prefix, "state")
        yield* submit(events(1))
        const refused = yield* Effect.flip(
          sequencing(eventually("the sequencer refuses the damaged topic", Effect.never))
        )
        assert.match(
          String((refused as Error).message),
          /alk\.events is damaged: offset \d+ does not link/
        )
      })
    )
  )
})

describe("records that link", () => {
  const FORGED = new Set<string>()
  /** Ten events of the sequencer, and two of somebody else. */
  const written = Effect.gen(function* () {
    yield* sequence(10, events(10))
    const bodies = yield* topicBodies
    const forged = rewritten(bodies, 10, 12).bodies.slice(10)
    yield* append(
      forged.map((value) => ({ topic: "events" as const, partition: 0, key: TENANT, value }))
    )
    return { bodies, forged }
  })
  const next = Effect.gen(function* () {
    yield* sequence(13, events(1))
    return (yield* topicBodies).at(-1)!
  })
  const places = Effect.map(verify(), ({ breaks, notices }) => ({
    breaks: breaks.map(({ reason, sequence_number }): readonly [number, string] => [
      sequence_number,
      reason
    ]),
    notices
  }))
  const passedOver = (bodies: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      const last = yield* next
      assert.deepStrictEqual((yield* project()).bodies, [...bodies, last])
      assert.deepStrictEqual(yield* places, {
        breaks: [
          [11, "duplicate_sequence"],
          [12, "duplicate_sequence"]
        ],
        notices: undefined
      })
    })

  it.live("are passed over", () =>
    withView(() => Effect.flatMap(written, ({ bodies }) => passedOver(bodies)))
  )

  it.live("are passed over once more where the state has to be made again", () =>
    withView(() =>
      Effect.gen(function* () {
        const { bodies } = yield* written
        yield* append([{ topic: "state", partition: 0, key: `head/${TENANT}`, value: "junk" }])
        yield* passedOver(bodies)
        yield* append([{ topic: "state", partition: 0, key: `head/${TENANT}`, value: "junk" }])
        yield* sequence(14, events(1))
        const bodiesNow = yield* topicBodies
        const genuine = [...bodies, ...bodiesNow.slice(12)]
        assert.deepStrictEqual((yield* project()).bodies, genuine)
        assert.isUndefined((yield* places).notices)
      })
    )
  )

  it.live("are passed over while everything runs, and by a view that is built again", () =>
    withView((name) =>
      Effect.gen(function* () {
        yield* submit(events(2))
        yield* sequencing(
          Effect.gen(function* () {
            yield* readAtLeast("events", 2)
            for (const count of [2, 4]) {
              const genuine = (yield* topicEvents)
                .filter(({ id }) => !FORGED.has(id))
                .map((event) => JSON.stringify(event))
              const forged = rewritten(genuine, genuine.length, genuine.length + 1).bodies.at(-1)!
              FORGED.add((JSON.parse(forged) as AuditEvent).id)
              yield* append([{ topic: "events", partition: 0, key: TENANT, value: forged }])
              yield* submit(events(1))
              yield* readAtLeast("events", count + 2)
            }
          })
        )
        const genuine = (yield* topicBodies).filter(
          (body) => !FORGED.has((JSON.parse(body) as AuditEvent).id)
        )
        const found: Effect.Success<typeof places> = {
          breaks: [
            [3, "duplicate_sequence"],
            [4, "duplicate_sequence"]
          ],
          notices: undefined
        }
        assert.deepStrictEqual((yield* project()).bodies, genuine)
        assert.deepStrictEqual(yield* places, found)
        yield* tamper(`TRUNCATE TABLE ${name}.events`, `TRUNCATE TABLE ${name}.conflicts`)
        assert.deepStrictEqual((yield* project()).bodies, genuine)
        assert.deepStrictEqual(yield* places, found)
      })
    )
  )

  it.live(
    "are refused where they lead to another root than was signed, and broken once accepted",
    () =>
      withView((prefix) =>
        Effect.gen(function* () {
          yield* sequence(10, events(10))
          yield* submit(wantCheckpoint())
          yield* sequencing(signed(10))
          const { bodies } = rewritten(yield* topicBodies, 5, 11)
          yield* loseTopic(prefix, "events", "delete")
          yield* append(
            bodies.map((value) => ({ topic: "events", partition: 0, key: TENANT, value }) as const)
          )
          yield* loseTopic(prefix, "state")
          yield* submit(wantCheckpoint())
          const refused = yield* Effect.flip(sequencing(signed(11)))
          assert.match(
            String((refused as Error).message),
            /another history than was signed: acme of 10/
          )
          yield* acceptAll
          yield* sequencing(signed(11))
          assert.deepStrictEqual((yield* project()).bodies, bodies)
          const { breaks, notices } = yield* verify()
          assert.deepStrictEqual(
            breaks.map(({ reason, sequence_number }) => [sequence_number, reason]),
            [[10, "checkpoint_mismatch"]]
          )
          assert.match(
            notices!.join(),
            /a checkpoint of 10 events of acme .* operator has accepted/
          )
        })
      )
  )

  it.live("are adopted where the state is lost, and that is said for good", () =>
    withView((prefix) =>
      Effect.gen(function* () {
        const { bodies, forged } = yield* written
        yield* loseTopic(prefix, "state")
        const last = yield* next
        assert.deepStrictEqual((yield* project()).bodies, [...bodies, ...forged, last])
        yield* sequence(14, events(1))
        yield* project()
        const { breaks, notices } = yield* places
        assert.deepStrictEqual(breaks, [])
        assert.match(notices?.[0] ?? "", /^alk\.state was lost .* alk\.events before offset 1[0-9]/)
      })
    )
  )
})
