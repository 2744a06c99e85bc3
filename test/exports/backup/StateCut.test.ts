/** Where the changelog cuts a partition, and which records of other topics are after that. */

import { assert, describe, it } from "vitest"
import type { BackupRecord } from "../../../src/domain/backup/BackupSegment.ts"
import { chains } from "../../../src/domain/chain/Chains.ts"
import { makeCheckpoint, signerOf } from "../../../src/domain/chain/Checkpoint.ts"
import { digestOfSum } from "../../../src/domain/chain/HeadsDigest.ts"
import { Frontier } from "../../../src/domain/chain/MerkleTree.ts"
import { sha256Hex } from "../../../src/domain/Identifiers.ts"
import { everythingOwn } from "../../../src/domain/records/OwnOffsets.ts"
import {
  beyondCut,
  type StateCut,
  stateCutOf,
  takeKeyed
} from "../../../src/exports/backup/StateCut.ts"
import { checkpointSigner } from "../../support/Signer.ts"
import { storedProgress } from "../../support/StoredProgress.ts"

const NOW = 1_800_000_000_000
const hash = sha256Hex("the head")

const record = (
  offset: number,
  key: string,
  value: unknown,
  headers: Record<string, string> = {}
): BackupRecord => ({
  offset,
  timestamp: NOW,
  key: Buffer.from(key),
  value: value === null ? null : Buffer.from(JSON.stringify(value)),
  headers: Object.fromEntries(
    Object.entries(headers).map(([name, text]) => [name, Buffer.from(text)])
  )
})

const keyed = (...records: ReadonlyArray<BackupRecord>): Map<string, BackupRecord> => {
  const map = new Map<string, BackupRecord>()
  for (const one of records) takeKeyed(map, one)
  return map
}

const applied = (command: number, events: number, traces: number) =>
  storedProgress({
    command_offset: command,
    events_next: events,
    traces_next: traces,
    heads_digest: hash
  })

const head = (sequence: number) => ({
  sequence_number: sequence,
  hash,
  created_at: "2026-11-25T12:00:00.000000Z",
  tree: null
})

describe("records of a keyed topic", () => {
  it("are the newest of each key, in the order of their offsets, without those removed", () => {
    const map = keyed(record(1, "a", 1), record(2, "b", 1), record(3, "a", 2), record(4, "b", null))
    assert.deepStrictEqual(
      [...map.values()].map(({ offset }) => offset),
      [3]
    )
  })
})

describe("the cut of a partition", () => {
  it("is where the newest record of what was applied says", () => {
    const cut = stateCutOf(
      keyed(
        record(1, "applied", applied(3, 5, 0)),
        record(2, "head/acme", head(4)),
        record(3, "trace-head/acme", head(7)),
        record(4, "applied", applied(9, 12, 8)),
        record(4, "signer", { vkey: "alk+key", previous: null }),
        record(5, "strays/events/3", { next: 5 })
      )
    )
    assert.strictEqual(cut.applied, 9)
    assert.deepStrictEqual(cut.ends, { events: 12, traces: 8 })
    assert.deepStrictEqual(cut.signers, ["alk+key"])
    assert.deepStrictEqual(
      [2, 3, 4, 5, 11, 12].map((offset) => cut.own.isOwn("events", offset)),
      [true, false, false, true, true, false]
    )
    assert.deepStrictEqual(
      chains.map((chain) => cut.heads[chain].get("acme")?.sequence_number),
      [4, 7]
    )
    assert.strictEqual(cut.headsDigest, hash)
  })

  it("of a partition that nothing was applied to is before everything", () => {
    const cut = stateCutOf(keyed(record(0, "meta", { format: 1, partitions: 2 })))
    assert.deepInclude(cut, { applied: -1, signers: [], headsDigest: digestOfSum(0n) })
    assert.deepStrictEqual(cut.heads, { events: new Map(), traces: new Map() })
    assert.deepStrictEqual(cut.ends, { events: undefined, traces: undefined })
  })
})

describe("a record that no changelog names", () => {
  const cut: StateCut = {
    applied: 9,
    ends: { events: 12, traces: 0 },
    heads: { events: new Map([["acme", { sequence_number: 2, hash }]]), traces: new Map() },
    own: everythingOwn,
    headsDigest: hash,
    signers: [],
    at: NOW
  }
  const { serviceName, signer } = checkpointSigner
  const published = { serviceName, vkeys: [signer.vkey] }
  const answer = (command: string) => record(0, "acme", {}, { "alk-command": command })
  const signed = (tenant: string, size: number, by = signer) => {
    const tree = Frontier.empty()
    for (let leaf = 0; leaf < size; leaf++) tree.append(sha256Hex(String(leaf)))
    const time = "2026-11-25T12:00:00.000000Z"
    return record(0, tenant, makeCheckpoint(by, serviceName, tenant, tree, time))
  }

  it("is beyond the cut where it answers a later command", () => {
    const isBeyond = beyondCut("receipts", cut, published)
    assert.isFalse(isBeyond(answer("9")))
    assert.isTrue(isBeyond(answer("10")))
    assert.isFalse(isBeyond(record(0, "authenticated-from", {})), "the marker answers none")
  })

  it("is beyond the cut where it signs a larger tree, or one of a tenant that is not in it", () => {
    const isBeyond = beyondCut("checkpoints", cut, published)
    assert.isFalse(isBeyond(signed("acme", 2)))
    assert.isTrue(isBeyond(signed("acme", 3)))
    assert.isTrue(isBeyond(signed("other", 1)))
    assert.isFalse(isBeyond(record(0, "acme", { no: "checkpoint" })))
  })

  it("is not beyond it if it was written long before", () => {
    const old = { ...signed("acme", 3), timestamp: NOW - 7_200_000 }
    assert.isFalse(beyondCut("checkpoints", cut, published)(old))
  })

  it("is not beyond it if the service has not written it, whatever it says", () => {
    for (const topic of ["receipts", "quarantine"] as const) {
      const forged = { ...answer("10"), refused: "it has no MAC" }
      assert.isFalse(beyondCut(topic, cut, published)(forged), topic)
    }
    const other = signerOf(serviceName, Buffer.alloc(32, 9))
    const isBeyond = beyondCut("checkpoints", cut, published)
    assert.isFalse(isBeyond(signed("acme", 3, other)))
    const { value } = signed("acme", 2)
    const larger = { ...JSON.parse(value!.toString()), tree_size: 3 }
    assert.isFalse(isBeyond(record(0, "acme", larger)), "its note says another size")
  })

  it("is beyond it if the key of the changelog has signed it, published or not yet", () => {
    const other = signerOf(serviceName, Buffer.alloc(32, 9))
    const isBeyond = beyondCut("checkpoints", { ...cut, signers: [other.vkey] }, published)
    assert.isTrue(isBeyond(signed("acme", 3, other)))
    assert.isTrue(isBeyond(signed("acme", 3)))
  })
})
