/** Another program with alk's account at the broker ends a transaction of alk: it counts whole, or not. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, type Scope } from "effect"
import { makeTransactionalWriter } from "../../src/adapters/kafka/Writers.ts"
import { SEND_RECORDS_MAX, type TopicKind } from "../../src/domain/records/Topics.ts"
import type { EventLog, TransactionalWriter } from "../../src/ports/EventLog.ts"
import {
  ADD_PARTITIONS_TO_TXN,
  DESCRIBE_PRODUCERS,
  END_TXN,
  type Fate,
  LIST_OFFSETS,
  PRODUCE
} from "../support/FlakyProxy.ts"
import { withLog } from "../support/Log.ts"
import {
  assertTexts,
  endForeign,
  event,
  type ForeignEnd,
  flakyProxy,
  record,
  signingOf,
  state,
  through
} from "./support/Writers.ts"

const written: ReadonlyArray<TopicKind> = ["events", "state", "receipts"]

const cases: ReadonlyArray<ForeignEnd & { readonly what: string }> = [
  { what: "aborted", end: "abort", begins: [] },
  { what: "aborted, and another begun", end: "abort", begins: written },
  { what: "aborted, and another begun for what follows", end: "abort", begins: written.slice(1) },
  { what: "committed", end: "commit", begins: [] },
  { what: "committed, and another begun", end: "commit", begins: written }
]

const start = Effect.fnUntraced(function* (prefix: string) {
  const context = yield* Effect.context<EventLog>()
  const proxy = yield* flakyProxy
  const id = `${prefix}-w`
  const open = makeTransactionalWriter(through(proxy), prefix, id, { placed: signingOf(prefix) })
  /** Until all was written: a refusal asks the coordinator once more. */
  const added = () =>
    proxy.seen
      .slice(0, proxy.seen.lastIndexOf(PRODUCE))
      .filter((apiKey) => apiKey === ADD_PARTITIONS_TO_TXN).length
  /** Before the first request of a kind that follows the event at an offset. */
  const before = (wanted: number, foreign: ForeignEnd & { readonly at: number }) => {
    let isDone = false
    proxy.decide = async (apiKey): Promise<Fate> => {
      if (apiKey !== wanted || isDone) return "forward"
      const end = Effect.provide(endForeign(prefix, id, foreign), context)
      isDone = await Effect.runPromise(end)
      return "forward"
    }
  }
  return { added, before, open, proxy, writer: yield* open }
})

const commit = (writer: TransactionalWriter, value: string, events = [value]) =>
  writer.commit(events.map(event), () => [state(value), record(value, "receipts")])

const assertKept = Effect.fnUntraced(function* (
  { open }: Effect.Success<ReturnType<typeof start>>,
  kept: ReadonlyArray<string>,
  events = kept
) {
  yield* commit(yield* open, "next")
  yield* assertTexts("events", [...events, "next"])
  yield* assertTexts("state", [...kept, "next"])
  yield* assertTexts("receipts", [...kept, "next"])
})

describe("a transaction that has begun to write", () => {
  it.live.each(cases)("its first events, and is $what by another program: it fails", (foreign) =>
    withLog((prefix) =>
      Effect.gen(function* () {
        const started = yield* start(prefix)
        // The place of the first record of alk.state is asked for behind the events.
        started.before(LIST_OFFSETS, { ...foreign, at: 0 })
        const failed = yield* Effect.flip(commit(started.writer, "one"))
        assert.strictEqual(failed._tag, "LogUnavailable")
        assert.strictEqual(started.added(), 1)
        yield* assertKept(started, [], foreign.end === "commit" ? ["one"] : [])
      })
    )
  )

  it.live("its first events, and is replaced by another before the rest: it is written anew", () =>
    withLog((prefix) =>
      Effect.gen(function* () {
        const started = yield* start(prefix)
        started.before(PRODUCE, { end: "abort", begins: written, at: 0 })
        yield* commit(started.writer, "one")
        yield* assertKept(started, ["one"])
      })
    )
  )

  it.live.each(cases)(
    "one part of many, and is $what by another program: whole or not",
    (foreign) =>
      withLog((prefix) =>
        Effect.gen(function* () {
          const started = yield* start(prefix)
          yield* commit(started.writer, "one")
          const large = Array.from({ length: SEND_RECORDS_MAX + 1 }, (_, n) => `two ${n}`)
          // Behind the first event and the mark at its end.
          started.before(PRODUCE, { ...foreign, at: 2 })
          const ended = yield* Effect.exit(commit(started.writer, "two", large))
          // Where the mark has displaced the other part, all is written anew.
          const isAnew = foreign.end === "abort" && foreign.begins.includes("events")
          assert.strictEqual(Exit.isSuccess(ended), isAnew)
          if (isAnew) return yield* assertKept(started, ["one", "two"], ["one", ...large])
          const part = large.slice(0, SEND_RECORDS_MAX)
          yield* foreign.end === "commit"
            ? assertKept(started, ["one", "two"], ["one", ...part])
            : assertKept(started, ["one"])
        })
      )
  )

  it.live("all of its records, and is aborted by another program before its end: it fails", () =>
    withLog((prefix) =>
      Effect.gen(function* () {
        const started = yield* start(prefix)
        yield* commit(started.writer, "one")
        started.before(END_TXN, { end: "abort", begins: [], at: 2 })
        const failed = yield* Effect.flip(commit(started.writer, "two"))
        assert.strictEqual(failed._tag, "LogUnavailable")
        yield* assertKept(started, ["one"])
      })
    )
  )

  it.live("all of its records, and its next owner starts before its end: it is fenced", () =>
    withLog((prefix) =>
      Effect.gen(function* () {
        const started = yield* start(prefix)
        const produced = () => started.proxy.seen.filter((apiKey) => apiKey === PRODUCE).length
        let next: Promise<TransactionalWriter> | undefined
        const open = yield* Effect.map(Effect.context<Scope.Scope>(), (context) =>
          Effect.provide(started.open, context)
        )
        started.proxy.decide = async (apiKey): Promise<Fate> => {
          if (apiKey !== DESCRIBE_PRODUCERS || produced() < 2 || next !== undefined)
            return "forward"
          next = Effect.runPromise(open)
          await next
          return "forward"
        }
        const failed = yield* Effect.flip(commit(started.writer, "one"))
        assert.strictEqual(failed._tag, "WriterFenced")
        yield* commit(yield* Effect.promise(() => next!), "next")
        for (const topic of written) yield* assertTexts(topic, ["next"])
      })
    )
  )

  it.live("takes no record for a partition that it has begun without", () =>
    withLog((prefix) =>
      Effect.gen(function* () {
        const started = yield* start(prefix)
        let asked = 0
        const refused = yield* Effect.flip(
          started.writer.commit([event("one")], () => (asked++ === 0 ? [] : [state("one")]))
        )
        assert.include(String(refused.cause), `the transaction began without ${prefix}.state/0`)
        yield* assertKept(started, [])
      })
    )
  )
})
