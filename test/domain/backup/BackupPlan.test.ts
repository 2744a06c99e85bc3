/** What a backup reads when the folder holds a part already. */
import { assert, describe, it } from "vitest"
import type { BackupPart, BackupSegment } from "../../../src/domain/backup/BackupManifest.ts"
import {
  leftBehind,
  planPart,
  readSegmentName,
  type SegmentName,
  segmentName
} from "../../../src/domain/backup/BackupPlan.ts"

const sha256 = "d".repeat(64)

const segment = (from: number, to: number): BackupSegment => ({
  file: `segments/events-0-${from}-${to}-${sha256}`,
  from,
  to,
  records: to - from,
  bytes: 1,
  sha256
})

const part = (
  topic: BackupPart["topic"],
  from: number,
  to: number,
  ...segments: ReadonlyArray<BackupSegment>
): BackupPart => ({ topic, partition: 0, from, to, segments })

const cut = (topic: BackupPart["topic"], from: number, to: number) => ({
  topic,
  partition: 0,
  from,
  to
})

describe("the plan of a backup", () => {
  it("of an empty folder reads all that the topic has", () => {
    const plan = planPart(undefined, cut("events", 3, 20))
    assert.deepStrictEqual(plan, { ...cut("events", 3, 20), kept: [], readFrom: 3 })
  })

  it("reads on from where the last backup ended, and keeps its files", () => {
    const files = [segment(0, 5), segment(5, 12)]
    const plan = planPart(part("events", 0, 12, ...files), cut("events", 0, 20))
    assert.deepStrictEqual(plan, { ...cut("events", 0, 20), kept: files, readFrom: 12 })
  })

  it("reads nothing where nothing is new", () => {
    const plan = planPart(part("events", 0, 12, segment(0, 12)), cut("events", 0, 12))
    assert.strictEqual(plan.readFrom, plan.to)
  })

  it("keeps what retention has taken from the topic since", () => {
    const plan = planPart(part("events", 0, 12, segment(0, 12)), cut("events", 8, 20))
    assert.strictEqual(plan.from, 0)
    assert.strictEqual(plan.readFrom, 12)
  })

  it("begins anew where retention has taken what would be between", () => {
    const plan = planPart(part("events", 0, 12, segment(0, 12)), cut("events", 15, 20))
    assert.deepStrictEqual(plan, { ...cut("events", 15, 20), kept: [], readFrom: 15 })
  })

  for (const topic of ["commands", "receipts"] as const) {
    it(`drops files of ${topic} that have been applied, or have expired, since`, () => {
      const files = [segment(0, 5), segment(5, 12)]
      const plan = planPart(part(topic, 0, 12, ...files), cut(topic, 7, 20))
      assert.deepStrictEqual(plan, { ...cut(topic, 7, 20), kept: [files[1]!], readFrom: 12 })
    })
  }

  it("refuses a topic that ends before the folder does", () => {
    assert.throws(
      () => planPart(part("events", 0, 12), cut("events", 0, 11)),
      /holds events of partition 0 up to offset 12, but the topic ends at 11/
    )
  })
})

describe("files that a run has left behind", () => {
  const name = (from: number, to: number): SegmentName => ({
    topic: "events",
    partition: 0,
    from,
    to,
    sha256
  })
  const plan = planPart(part("events", 0, 12), cut("events", 0, 20))

  it("have names that say what they are", () => {
    assert.deepStrictEqual(readSegmentName(segmentName(name(12, 15))), name(12, 15))
    assert.strictEqual(readSegmentName("events-0-12-15.part"), undefined)
  })

  it("are used as far as they continue the plan without a gap", () => {
    const names = [name(15, 18), name(12, 15), name(19, 20)]
    assert.deepStrictEqual(leftBehind(plan, names), [name(12, 15), name(15, 18)])
  })

  it("are not used beyond the cut, nor of another partition or a keyed topic", () => {
    assert.deepStrictEqual(leftBehind(plan, [name(12, 21)]), [])
    assert.deepStrictEqual(leftBehind(plan, [{ ...name(12, 15), partition: 1 }]), [])
    const keyed = planPart(undefined, cut("state", 0, 20))
    assert.deepStrictEqual(leftBehind(keyed, [{ ...name(0, 15), topic: "state" }]), [])
  })
})
