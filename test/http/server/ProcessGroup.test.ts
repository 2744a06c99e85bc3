import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { WorkerChannel } from "../../../src/adapters/embedded/WorkerChannel.ts"
import {
  type FirstQuestion,
  firstOfGroup,
  type WorkerQuestion,
  workerOfGroup
} from "../../../src/http/server/ProcessGroup.ts"
import { TokenBuckets } from "../../../src/http/server/TokenBuckets.ts"

const bucket = () => new TokenBuckets({ perSecond: 0.001, capacity: 3, namesMax: 10 })

/** A first process and a worker, with a channel in memory that carries JSON. */
const group = (drain: Effect.Effect<void> = Effect.void) => {
  const first = firstOfGroup(
    Effect.suspend(() =>
      Effect.map(toWorker.ask({ ask: "metrics" }), (text) => [{ worker: 1, text: String(text) }])
    )
  )
  const toWorker: WorkerChannel = new WorkerChannel({
    send: (message) => queueMicrotask(() => toFirst.receive(JSON.parse(JSON.stringify(message)))),
    answer: (question) => Effect.runPromise(first.answer(question as WorkerQuestion))
  })
  const toFirst: WorkerChannel = new WorkerChannel({
    send: (message) => queueMicrotask(() => toWorker.receive(JSON.parse(JSON.stringify(message)))),
    answer: (question) => Effect.runPromise(worker.answer(question as FirstQuestion))
  })
  const worker = workerOfGroup((question) => toFirst.ask(question), drain)
  return { first: first.processes, worker: worker.processes, toWorker }
}

describe("processes of one port", () => {
  it.live("take tokens of the same buckets, told apart by limit and name", () =>
    Effect.gen(function* () {
      const { first, worker } = group()
      const here = first.sharedBuckets("events", bucket())
      first.sharedBuckets("failed_keys", bucket())
      const there = worker.sharedBuckets("events", bucket())
      const keys = worker.sharedBuckets("failed_keys", bucket())
      const taken = [yield* here("a", 1), yield* there("a", 1), yield* there("a", 1)]
      assert.deepStrictEqual(
        [...taken, yield* there("a", 1), yield* here("a", 1)].map(({ admitted }) => admitted),
        [true, true, true, false, false]
      )
      assert.isTrue((yield* there("b", 1)).admitted)
      assert.isTrue((yield* keys("a", 1)).admitted)
    })
  )

  it.live("show the metrics of all, whichever is asked", () =>
    Effect.gen(function* () {
      const { first, worker } = group()
      const own = (count: number) => Effect.succeed(`# TYPE a counter\na ${count}\n`)
      const here = first.sharedMetrics(own(1))
      const there = worker.sharedMetrics(own(2))
      const merged = `# TYPE a counter\na{worker="0"} 1\na{worker="1"} 2\n`
      assert.deepStrictEqual([yield* here, yield* there], [merged, merged])
    })
  )

  it.live("end when they are asked to serve no more", () =>
    Effect.gen(function* () {
      let served = true
      const { toWorker } = group(
        Effect.sync(() => {
          served = false
        })
      )
      yield* toWorker.ask({ ask: "alive" })
      assert.isTrue(served)
      yield* toWorker.ask({ ask: "drain" })
      assert.isFalse(served)
    })
  )

  it.effect("count for themselves when the first one takes too long", () =>
    Effect.gen(function* () {
      const worker = workerOfGroup(() => Effect.never, Effect.void)
      const take = worker.processes.sharedBuckets("events", bucket())
      const taking = yield* Effect.forkChild(take("a", 3))
      yield* TestClock.adjust("2 seconds")
      assert.isTrue((yield* Fiber.join(taking)).admitted)
      const again = yield* Effect.forkChild(take("a", 1))
      yield* TestClock.adjust("2 seconds")
      assert.isFalse((yield* Fiber.join(again)).admitted)
    })
  )

  it.live("say so when the other one fails to answer", () =>
    Effect.gen(function* () {
      const { worker } = group()
      const take = worker.sharedBuckets("events", bucket())
      const exit = yield* Effect.exit(take("a", 1))
      assert.isTrue(Exit.isFailure(exit))
      assert.include(String(exit), "the first process does not count events")
    })
  )
})
