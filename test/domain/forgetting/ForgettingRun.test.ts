/** The counts of a rewriting, as the log has them. */
import { assert, describe, it } from "vitest"
import { forgottenTopics } from "../../../src/domain/forgetting/ForgettingRun.ts"
import { forgettingAct } from "../../../src/services/administration/ForgettingActs.ts"

const segment = {
  topic: "alk.events",
  partition: 0,
  base_offset: 0,
  is_replaced: true,
  records_replaced: 2,
  records_removed: 1,
  bytes_before: 100,
  bytes_after: 80,
  sha256: "ab".repeat(32)
}
const run = {
  id: "run-1",
  started_at: "2026-11-21T12:00:00.000000Z",
  ended_at: null,
  segments: [
    segment,
    { ...segment, base_offset: 9 },
    { ...segment, partition: 1 },
    { ...segment, topic: "alk.commands", records_replaced: 0 },
    { ...segment, topic: "alk.traces", is_replaced: false }
  ]
}

describe("a rewriting", () => {
  it("is counted topic by topic, without what is not certain", () => {
    assert.deepStrictEqual(forgottenTopics(run), [
      {
        topic: "alk.commands",
        partitions: 1,
        segments: 1,
        records_replaced: 0,
        records_removed: 1,
        bytes_before: 100,
        bytes_after: 80
      },
      {
        topic: "alk.events",
        partitions: 2,
        segments: 3,
        records_replaced: 6,
        records_removed: 3,
        bytes_before: 300,
        bytes_after: 240
      }
    ])
  })

  it("is an act that says when and how much, and of how many segments it is not known", () => {
    const { action, id, metadata } = forgettingAct("alk", run)
    assert.deepStrictEqual([action, id], ["topics.forgotten", "forgetting-run-1"])
    assert.strictEqual(metadata["segments_uncertain"], 1)
    const ended = forgettingAct("alk", { ...run, segments: [segment] })
    assert.notProperty(ended.metadata, "segments_uncertain")
    assert.notInclude(JSON.stringify(ended), segment.sha256)
  })
})
