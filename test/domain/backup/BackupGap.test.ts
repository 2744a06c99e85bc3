/** What a backup lacks of what was signed and kept outside. */
import { assert, describe, it } from "vitest"
import { gapLine, gapOf, type KeptCheckpoint } from "../../../src/domain/backup/BackupGap.ts"

const kept = (treeSize: number, rootHash = `root of ${treeSize}`): KeptCheckpoint => ({
  tenantId: "acme",
  chain: "events",
  treeSize,
  rootHash
})

const reached = (reaches: number) => ({ reaches, rootAt: (size: number) => `root of ${size}` })

describe("the gap between a backup and kept checkpoints", () => {
  it("is nothing where the backup reaches as far or farther", () => {
    const gap = gapOf([kept(80), kept(100)], reached(120))
    assert.strictEqual(gap.missing, 0)
    assert.strictEqual(gap.verdict, "consistent")
    assert.deepStrictEqual(gap.compared, [80, 100])
    assert.include(gapLine(gap), "nothing of it is missing")
  })

  it("is what was signed since, and an older checkpoint shows that the rest is genuine", () => {
    const gap = gapOf([kept(150), kept(100)], reached(120))
    assert.deepInclude(gap, { reaches: 120, kept: 150, missing: 30, verdict: "consistent" })
    assert.deepStrictEqual(gap.compared, [100])
    assert.include(gapLine(gap), "reaches 120; the kept checkpoint covers 150; 30 are missing")
  })

  it("can't be judged where every kept checkpoint is larger than the backup", () => {
    const gap = gapOf([kept(150)], reached(120))
    assert.deepInclude(gap, { missing: 30, verdict: "unknown" })
    assert.include(gapLine(gap), "no root can be compared")
  })

  it("contradicts where one root is not the one that was signed", () => {
    const gap = gapOf([kept(100), kept(110, "another")], reached(120))
    assert.strictEqual(gap.verdict, "contradicts")
    assert.include(gapLine(gap), "NOT THE ONE")
  })

  it("of a chain that the backup lacks is all of it", () => {
    const gap = gapOf([kept(7)], { reaches: 0, rootAt: () => undefined })
    assert.deepInclude(gap, { reaches: 0, missing: 7, verdict: "unknown" })
  })
})
