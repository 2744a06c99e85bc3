/** The pure parts of the benchmark's harness. */
import { assert, describe, it } from "vitest"
import { ACTORS, actorOf, batchBody, eventText, HOT_ACTOR } from "./Events.ts"
import { bodiesOf, pathOf } from "./Load.ts"
import { MarkCounter } from "./Subscribers.ts"
import { groupOf } from "./Threads.ts"

describe("the events of the load", () => {
  it("have the sizes that the report says", () => {
    const sizes = Array.from({ length: 1_000 }, (_, n) => eventText(n * 31_337).length)
    assert.isTrue(sizes.every((size) => size > 380 && size < 420))
    assert.approximately(eventText(7, "4 KB").length, 4_000, 50)
  })

  it("are JSON, alone and in batches, and the same for the same number", () => {
    assert.deepStrictEqual(JSON.parse(eventText(123_456)), JSON.parse(eventText(123_456)))
    const { events } = JSON.parse(batchBody(1_000, 100).toString())
    assert.strictEqual(events.length, 100)
    assert.strictEqual(events[1].metadata.request.n, 1_001)
  })

  it("have every actor in turn, and one of them often", () => {
    const actors = Array.from({ length: ACTORS * 30 }, (_, n) => actorOf(n))
    const hot = actors.filter((actor) => actor === HOT_ACTOR).length
    assert.strictEqual(hot, ACTORS)
    assert.isAbove(new Set(actors).size, 0.99 * ACTORS)
  })

  it("are prepared as bodies of one size, in memory that is bounded", () => {
    const shape = { batch: 1_000, size: "4 KB", sync: false, clients: 1 } as const
    const bytes = bodiesOf(shape).reduce((sum, body) => sum + body.length, 0)
    assert.isBelow(bytes, 70e6)
    assert.strictEqual(pathOf({ batch: 1, sync: true }), "/v1/events?sync=true")
    assert.strictEqual(pathOf({ batch: 2, sync: false }), "/v1/events/batch")
  })
})

describe("a reader of the stream", () => {
  it("counts events wherever chunks are cut", () => {
    const stream = Buffer.from(
      ': ok\n\nid: 1\nevent: audit\ndata: {"a":"data: x"}\n\nid: 2\ndata: {}\n\n: \n\nid: 3\ndata: {}\n\n'
    )
    for (let cut = 0; cut <= stream.length; cut++) {
      const counter = new MarkCounter()
      counter.take(stream.subarray(0, cut))
      counter.take(stream.subarray(cut))
      assert.strictEqual(counter.count, 3, `cut at ${cut}`)
    }
    const counter = new MarkCounter()
    for (const byte of stream) counter.take(Buffer.from([byte]))
    assert.strictEqual(counter.count, 3)
  })
})

describe("threads", () => {
  it("are grouped by their names", () => {
    assert.strictEqual(groupOf("MainThread", "program"), "main thread")
    assert.strictEqual(groupOf("MainThread", "worker"), "main threads of workers")
    assert.strictEqual(groupOf("sh", "worker"), "other")
    assert.strictEqual(groupOf("libuv-worker", undefined), "libuv pool")
    assert.strictEqual(groupOf("V8Worker", undefined), "garbage collection")
    assert.strictEqual(groupOf("MergeMutate", undefined), "merges")
    assert.strictEqual(groupOf("ThreadPool", undefined), "chDB pool")
    assert.strictEqual(groupOf("unheard of", undefined), "other")
  })
})
