/** Files with checkpoints that were kept outside are read in the forms that they have. */
import { assert, describe, it } from "vitest"
import { makeCheckpoint } from "../../../src/domain/chain/Checkpoint.ts"
import { Frontier } from "../../../src/domain/chain/MerkleTree.ts"
import { sha256Hex } from "../../../src/domain/Identifiers.ts"
import { keptCheckpoints } from "../../../src/exports/backup/KeptNotes.ts"
import { checkpointSigner } from "../../support/Signer.ts"

const { serviceName, signer } = checkpointSigner

const noteOf = (size: number, chain: "events" | "traces" = "events"): string => {
  const tree = Frontier.empty()
  for (let leaf = 0; leaf < size; leaf++) tree.append(sha256Hex(String(leaf)))
  return makeCheckpoint(signer, serviceName, "acme", tree, "2026-11-25T12:00:00.000000Z", chain)
    .note
}

const sizes = (text: string, vkeys: ReadonlyArray<string> = [signer.vkey]) =>
  keptCheckpoints(text, serviceName, vkeys).map(({ chain, tenantId, treeSize }) => [
    tenantId,
    chain,
    treeSize
  ])

describe("checkpoints that were kept", () => {
  it("are read from the lines of alk chain keep, but for one that a crash has cut off", () => {
    const lines = [noteOf(2), noteOf(5)].map((note) => JSON.stringify({ tree_size: 0, note }))
    const text = `${lines.join("\n")}\n${lines[0]!.slice(0, 20)}`
    assert.deepStrictEqual(sizes(text), [
      ["acme", "events", 2],
      ["acme", "events", 5]
    ])
  })

  it("are read from a note as it is, of either chain", () => {
    assert.deepStrictEqual(sizes(noteOf(3, "traces")), [["acme", "traces", 3]])
  })

  it("are refused where no known key has signed", () => {
    assert.throws(() => sizes(noteOf(3), []), /none of the known keys signed it/)
  })

  it("are refused where they are of another service", () => {
    assert.throws(
      () => keptCheckpoints(noteOf(3), "other", [signer.vkey]),
      /is of alk\/acme, but the backup is of the service other/
    )
  })

  it("are refused where there is none", () => {
    assert.throws(() => sizes("{}\n"), /it holds no checkpoint/)
  })
})
