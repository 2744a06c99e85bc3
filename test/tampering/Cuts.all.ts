/** Records removed from the start of a topic, as nothing but an administrator of the broker can. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { TopicKind } from "../../src/domain/records/Topics.ts"
import { withView } from "../integration/support/Evidence.ts"
import { asService, markerOf } from "../support/Authenticated.ts"
import { deleteBelow, loseTopic, readAll } from "../support/Log.ts"
import { answersOf, EVENTS, populate, running, verifyTenant, writeMore } from "./World.ts"

const TENANT = "acme"

/** Topics that Kafka lets be shortened: those whose policy deletes. */
const topics: ReadonlyArray<TopicKind> = [
  "events",
  "traces",
  "checkpoints",
  "receipts",
  "commands",
  "quarantine"
]

describe("a topic whose start was removed", () => {
  it.live(
    "loses nothing of what is stored; verification says it where it is kept for ever",
    () =>
      withView((prefix) =>
        asService(
          { prefix },
          Effect.gen(function* () {
            const assertWhole = Effect.fnUntraced(function* (events: number) {
              const report = yield* verifyTenant(TENANT)
              assert.deepStrictEqual(
                [report.valid, report.status, report.assurance, report.events_checked],
                [true, "valid", "signed", events]
              )
              return report
            })
            yield* Effect.scoped(
              Effect.gen(function* () {
                const service = yield* running
                yield* populate([TENANT], () => true)
                const before = yield* assertWhole(EVENTS).pipe(Effect.provideContext(service))
                assert.isUndefined(before.notices)
                for (const topic of topics) {
                  const records = yield* readAll(topic)
                  const middle = records[Math.floor(records.length / 2)]
                  // All of the quarantine, with the marker of the installation.
                  const more = topic === "quarantine" ? 1 : 0
                  if (middle !== undefined) yield* deleteBelow(prefix, topic, middle.offset + more)
                }
                yield* assertWhole(EVENTS).pipe(Effect.provideContext(service))
              })
            )
            assert.lengthOf(yield* readAll("quarantine"), 0)
            const other = yield* Effect.flip(markerOf({ prefix, secret: "another secret" }))
            assert.include(String(other), "the marker of the installation is gone")
            assert.deepStrictEqual(yield* markerOf({ prefix }), yield* markerOf({ prefix }))
            yield* Effect.scoped(
              Effect.gen(function* () {
                const service = yield* running
                const report = yield* assertWhole(EVENTS).pipe(Effect.provideContext(service))
                const notices = [report.notices?.[0], report.traces!.notices?.[0]]
                for (const [index, chain] of ["events", "traces"].entries()) {
                  const expected = new RegExp(`^alk\\.${chain} is kept for ever, but .* deleted`)
                  assert.match(notices[index] ?? "", expected)
                }
                yield* writeMore([TENANT], "x9")
                yield* assertWhole(EVENTS + 1).pipe(Effect.provideContext(service))
              })
            )
          })
        )
      ),
    600_000
  )

  it.live(
    "is rebuilt if it is alk.state, lost as a whole: the numbers go on",
    () =>
      withView((prefix) =>
        asService(
          { prefix },
          Effect.gen(function* () {
            yield* Effect.scoped(
              Effect.andThen(
                running,
                populate([TENANT], () => false)
              )
            )
            yield* loseTopic(prefix, "state")
            yield* Effect.scoped(
              Effect.gen(function* () {
                const service = yield* running
                yield* writeMore([TENANT], "x9")
                const report = yield* verifyTenant(TENANT).pipe(Effect.provideContext(service))
                assert.deepStrictEqual([report.valid, report.assurance], [true, "signed"])
                const sequences = (yield* readAll("events")).map(
                  ({ value }) =>
                    (JSON.parse(value!.toString()) as { sequence_number: number }).sequence_number
                )
                assert.deepStrictEqual(
                  sequences,
                  Array.from({ length: EVENTS + 1 }, (_, index) => index + 1)
                )
              })
            )
          })
        )
      ),
    600_000
  )

  it.live(
    "is written again if it is alk.progress, lost as a whole: nothing is projected twice",
    () =>
      withView((prefix) =>
        asService(
          { prefix },
          Effect.gen(function* () {
            yield* Effect.scoped(
              Effect.andThen(
                running,
                populate([TENANT], () => false)
              )
            )
            yield* loseTopic(prefix, "progress")
            yield* Effect.scoped(
              Effect.gen(function* () {
                const service = yield* running
                yield* writeMore([TENANT], "x9")
                const report = yield* verifyTenant(TENANT).pipe(Effect.provideContext(service))
                assert.deepStrictEqual(
                  [report.valid, report.assurance, report.events_checked],
                  [true, "signed", EVENTS + 1]
                )
                assert.isTrue(
                  (yield* answersOf(TENANT).pipe(Effect.provideContext(service))).isCounted
                )
              })
            )
          })
        )
      ),
    600_000
  )
})
