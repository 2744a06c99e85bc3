/**
 * Checkpoints of the pure step: every root is the one that an independent implementation computes
 * of the same hashes, whatever the cuts, the restarts and the moment at which it is asked for.
 */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { advance, stateRecords } from "../../src/actors/sequencer/Changelog.ts"
import {
  CHECKPOINT_INTERVAL_MS,
  stepCheckpoints
} from "../../src/actors/sequencer/SequencerCheckpoints.ts"
import type { StateChanges } from "../../src/actors/sequencer/SequencerDraft.ts"
import {
  emptyReplay,
  emptyState,
  finishReplay,
  replay,
  type SequencerState,
  snapshot
} from "../../src/actors/sequencer/SequencerState.ts"
import { type ReceivedCommand, step } from "../../src/actors/sequencer/SequencerStep.ts"
import { type CheckpointRecord, openNote, signerOf } from "../../src/domain/chain/Checkpoint.ts"
import { sha256Hex } from "../../src/domain/Identifiers.ts"
import type { Command } from "../../src/domain/records/Command.ts"
import { toBatch } from "../../src/domain/records/EventBatch.ts"
import type { StateRecord } from "../../src/domain/records/StateRecords.ts"
import { HEAD_PREFIX } from "../../src/domain/records/StateRecords.ts"
import { formatMicros, microsOf } from "../../src/domain/Timestamp.ts"
import { askIndependentTree } from "../support/IndependentTree.ts"
import { eventsIn } from "../support/PackedEvents.ts"
import { runs } from "../support/Runs.ts"
import { checkpointSigner } from "../support/Signer.ts"
import { startExecution } from "./support/Traces.ts"

const NOW = "2026-11-21T12:00:00.000000Z"
const windows = { dedup: 7, idempotency: 5 }
const { signer } = checkpointSigner
const rotated = { serviceName: "alk", signer: signerOf("alk", Buffer.alloc(32, 8)) }

const later = (milliseconds: number): string => formatMicros(microsOf(NOW) + milliseconds * 1_000)

/** So many events or executions of a tenant, or the wish for a checkpoint. */
interface Wish {
  readonly tenantId: string
  readonly events: number | "checkpoint"
  readonly executions?: number
}

const toArrival = ({ events, executions, tenantId }: Wish, offset: number): ReceivedCommand => {
  const command: Command = {
    kind: executions !== undefined ? "trace" : events === "checkpoint" ? "checkpoint" : "ingest",
    ...(executions === undefined
      ? {}
      : {
          traces: Array.from({ length: executions }, (_, index) =>
            startExecution(`x-${offset}-${index}`, { index })
          )
        }),
    tenantId,
    receiptId: `rcp-${offset}`,
    attempt: `attempt-${offset}`,
    receivedAt: NOW,
    events: toBatch(
      Array.from({ length: events === "checkpoint" ? 0 : events }, (_, index) => ({
        index,
        id: `e-${offset}-${index}`,
        body: `{"id":"e-${offset}-${index}"`,
        contentHash: sha256Hex(`${offset}/${index}`)
      }))
    ),
    errors: [],
    warnings: []
  }
  return { offset, value: null, command }
}

/** A partition with its changelog, driven by hand. */
class Partition {
  state: SequencerState = emptyState(0, 1, windows)
  /** Of each tree, by its name. */
  readonly hashes = new Map<string, Array<string>>()
  /** Those that were made, in order. */
  readonly made: Array<CheckpointRecord> = []
  readonly #records = new Map<string, Buffer>()

  take(changes: StateChanges): StateChanges {
    const ends = {
      eventsNext: this.state.eventsNext + changes.events.count,
      tracesNext: this.state.tracesNext + changes.traces.facts.length,
      strays: []
    }
    this.write(stateRecords(this.state, changes, ends))
    advance(this.state, changes, ends)
    const chained = [
      ...eventsIn(changes).map(({ hash, tenantId }) => [tenantId, hash] as const),
      ...changes.traces.facts.map(({ hash, tenantId }) => [`${tenantId}/traces`, hash] as const)
    ]
    for (const [tree, hash] of chained) {
      const own = this.hashes.get(tree) ?? []
      this.hashes.set(tree, own)
      own.push(hash)
    }
    this.made.push(...changes.checkpoints)
    return changes
  }

  write(records: ReadonlyArray<StateRecord>): void {
    for (const { key, value } of records) {
      if (value === null) this.#records.delete(key)
      else this.#records.set(key, Buffer.from(value))
    }
  }

  apply(wishes: ReadonlyArray<Wish>, by = checkpointSigner, now = NOW): StateChanges {
    const receivedCommands = wishes.map((wish, index) =>
      toArrival(wish, this.state.applied + 1 + index)
    )
    return this.take(step(this.state, receivedCommands, by, now))
  }

  byClock(now: string, by = checkpointSigner): StateChanges | undefined {
    const changes = stepCheckpoints(this.state, by, now)
    return changes && this.take(changes)
  }

  replayed() {
    const gathered = emptyReplay(0, 1, windows)
    for (const [key, value] of this.#records) replay(gathered, key, value)
    return gathered
  }

  restart(): void {
    this.state = finishReplay(this.replayed())
  }
}

const only = ({ receipts }: StateChanges): CheckpointRecord | undefined =>
  receipts[0]?.receipt.checkpoint

/** The roots are those of the first events of each chain, and the notes are signed. */
const assertTrue = (partition: Partition): void => {
  for (const [tree, hashes] of partition.hashes) {
    const own = partition.made.filter(
      ({ chain, tenant_id }) => tree === (chain === "traces" ? `${tenant_id}/traces` : tenant_id)
    )
    const { roots } = askIndependentTree({
      hashes,
      sizes: own.map(({ tree_size }) => tree_size),
      inclusion: [],
      consistency: []
    })
    assert.deepStrictEqual(
      own.map(({ root_hash }) => root_hash),
      roots
    )
    for (const { note, root_hash: rootHash, tree_size: treeSize } of own) {
      assert.deepStrictEqual(openNote(note, [signer.vkey]), {
        checkpoint: {
          origin: `alk/${tree}`,
          treeSize,
          rootHash,
          extensions: [],
          keyIds: [signer.keyId]
        }
      })
    }
  }
}

describe("the command checkpoint", () => {
  const wish: Wish = { tenantId: "acme", events: "checkpoint" }

  it("is answered with a signed checkpoint of the whole chain, and appends nothing", () => {
    const partition = new Partition()
    partition.apply([{ tenantId: "acme", events: 5 }])
    const head = partition.state.heads.get("acme")
    const changes = partition.apply([wish])
    const [{ attempt, probe, receipt }] = changes.receipts as [StateChanges["receipts"][0]]
    assert.deepStrictEqual([attempt, probe, receipt.status], ["attempt-1", true, "committed"])
    assert.deepStrictEqual([changes.events.count, changes.heads.size], [0, 0])
    assert.deepStrictEqual(partition.state.heads.get("acme"), head)
    const checkpoint = only(changes)!
    assert.deepInclude(checkpoint, {
      tenant_id: "acme",
      tree_size: 5,
      created_at: NOW,
      key_id: signer.keyId
    })
    assert.deepStrictEqual(partition.made, [checkpoint])
    assertTrue(partition)
  })

  it("is answered with the newest one while the chain has not grown", () => {
    const partition = new Partition()
    partition.apply([{ tenantId: "acme", events: 3 }])
    const first = only(partition.apply([wish]))
    const again = partition.apply([wish], checkpointSigner, later(3_600_000))
    assert.deepStrictEqual(only(again), first)
    partition.restart()
    assert.deepStrictEqual(only(partition.apply([wish])), first)
    assert.strictEqual(partition.made.length, 1)
    partition.apply([{ tenantId: "acme", events: 1 }])
    assert.strictEqual(only(partition.apply([wish]))?.tree_size, 4)
    assertTrue(partition)
  })

  it("is answered anew once another key signs", () => {
    const partition = new Partition()
    partition.apply([{ tenantId: "acme", events: 3 }])
    const first = only(partition.apply([wish]))!
    const second = only(partition.apply([wish], rotated))!
    assert.deepStrictEqual(
      [second.tree_size, second.root_hash, second.key_id],
      [first.tree_size, first.root_hash, rotated.signer.keyId]
    )
    assert.property(openNote(second.note, [rotated.signer.vkey]), "checkpoint")
    assert.deepInclude(openNote(second.note, [signer.vkey]), { refusal: "unknown_key" })
    assert.deepStrictEqual(only(partition.apply([wish], rotated)), second)
  })

  it("has no checkpoint to give of an empty chain, and knows the tenant no better then", () => {
    const partition = new Partition()
    const changes = partition.apply([wish])
    assert.strictEqual(changes.receipts[0]?.receipt.status, "committed")
    assert.isUndefined(only(changes))
    assert.strictEqual(partition.state.heads.size, 0)
    partition.apply([{ tenantId: "acme", events: 2 }])
    assert.strictEqual(only(partition.apply([wish]))?.tree_size, 2)
    assertTrue(partition)
  })

  it("covers what stands before it in its chunk, and nothing behind it", () => {
    const partition = new Partition()
    const changes = partition.apply([
      { tenantId: "acme", events: 2 },
      wish,
      { tenantId: "globex", events: 4 },
      { tenantId: "acme", events: 3 },
      { tenantId: "globex", events: "checkpoint" }
    ])
    const sizes = changes.receipts.map(({ receipt }) => receipt.checkpoint?.tree_size)
    assert.deepStrictEqual(sizes, [undefined, 2, undefined, undefined, 4])
    assertTrue(partition)
    assert.strictEqual(only(partition.apply([wish]))?.tree_size, 5)
    assertTrue(partition)
  })

  it("is not misled by a command on which the step fails", () => {
    const partition = new Partition()
    const receivedCommands = [0, 1, 2].map((offset) =>
      toArrival({ tenantId: "acme", events: 2 }, offset)
    )
    const poison = receivedCommands[1] as ReceivedCommand & { readonly command: Command }
    const idempotency = { key: "0".repeat(32), body: "0".repeat(32), forgetConflict: false }
    const command = { ...poison.command, idempotency, receivedAt: "yesterday" }
    const chunk = [
      receivedCommands[0]!,
      { ...poison, command },
      receivedCommands[2]!,
      toArrival(wish, 3)
    ]
    const changes = partition.take(step(partition.state, chunk, checkpointSigner, NOW))
    assert.strictEqual(changes.quarantined.length, 1)
    assert.strictEqual(changes.receipts[3]?.receipt.checkpoint?.tree_size, 4)
    assertTrue(partition)
  })
})

describe("the command checkpoint of a tenant with traces", () => {
  const wish: Wish = { tenantId: "acme", events: "checkpoint" }

  it("is answered with a checkpoint of each of its chains", () => {
    const partition = new Partition()
    partition.apply([
      { tenantId: "acme", events: 3 },
      { tenantId: "acme", events: 0, executions: 4 },
      { tenantId: "globex", events: 0, executions: 2 }
    ])
    const facts = partition.hashes.get("acme/traces")!.length
    assert.isAbove(facts, 4)
    const { checkpoint, trace_checkpoint } = partition.apply([wish]).receipts[0]!.receipt
    assert.deepInclude(checkpoint, { tenant_id: "acme", tree_size: 3 })
    assert.notProperty(checkpoint, "chain")
    assert.deepInclude(trace_checkpoint, { tenant_id: "acme", chain: "traces", tree_size: facts })
    partition.restart()
    assert.deepInclude(partition.apply([wish]).receipts[0]!.receipt, {
      checkpoint: checkpoint!,
      trace_checkpoint: trace_checkpoint!
    })
    assert.strictEqual(partition.made.length, 2)
    assertTrue(partition)
  })

  it("has only that of its facts where it has no events", () => {
    const partition = new Partition()
    partition.apply([{ tenantId: "acme", events: 0, executions: 1 }])
    const { receipt } = partition.apply([wish]).receipts[0]!
    assert.isUndefined(receipt.checkpoint)
    assert.strictEqual(receipt.trace_checkpoint?.chain, "traces")
    assertTrue(partition)
  })

  it("by the clock, too", () => {
    const partition = new Partition()
    partition.apply([
      { tenantId: "acme", events: 1 },
      { tenantId: "acme", events: 0, executions: 1 }
    ])
    const made = partition.byClock(NOW)!.checkpoints
    assert.sameMembers(
      made.map(({ chain }) => chain ?? "events"),
      ["events", "traces"]
    )
    assert.isUndefined(partition.byClock(later(CHECKPOINT_INTERVAL_MS)))
    partition.apply([{ tenantId: "acme", events: 0, executions: 1 }])
    const again = partition.byClock(later(CHECKPOINT_INTERVAL_MS + 1))!.checkpoints
    assert.deepStrictEqual(
      again.map(({ chain }) => chain),
      ["traces"]
    )
    assertTrue(partition)
  })
})

describe("the tree of a chain", () => {
  it("is the same however commands are cut, through restarts from the changelog", () => {
    const tenantId = fc.constantFrom("acme", "globex", "initech")
    const wish: fc.Arbitrary<Wish> = fc.oneof(
      fc.record({
        tenantId,
        events: fc.oneof(fc.nat({ max: 9 }), fc.constant("checkpoint" as const))
      }),
      fc.record({ tenantId, events: fc.constant(0), executions: fc.integer({ min: 1, max: 3 }) })
    )
    fc.assert(
      fc.property(
        fc.array(wish, { minLength: 1, maxLength: 40 }),
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 8 }),
        (wishes, cuts) => {
          const whole = new Partition()
          const answers = whole.apply(wishes).receipts.map(({ receipt }) => receipt.checkpoint)
          const cut = new Partition()
          const others: Array<CheckpointRecord | undefined> = []
          for (let at = 0, turn = 0; at < wishes.length; turn++) {
            const part = wishes.slice(at, at + cuts[turn % cuts.length]!)
            at += part.length
            others.push(...cut.apply(part).receipts.map(({ receipt }) => receipt.checkpoint))
            cut.restart()
          }
          assert.deepStrictEqual(others, answers)
          // Whatever somebody was given is published, in whatever chunk it was made.
          const given = answers.filter((checkpoint) => checkpoint !== undefined)
          assert.includeDeepMembers(whole.made, given)
          assert.includeDeepMembers(cut.made, given)
          assertTrue(cut)
        }
      ),
      { numRuns: runs(12) }
    )
  })

  it("survives in a snapshot, as a rebuild writes it", () => {
    const partition = new Partition()
    partition.apply([
      { tenantId: "acme", events: 77 },
      { tenantId: "acme", events: "checkpoint" }
    ])
    const copy = new Partition()
    copy.write(snapshot(partition.state))
    copy.restart()
    assert.deepStrictEqual(copy.state.checkpoints, partition.state.checkpoints)
    for (const [tenantId, hashes] of partition.hashes) copy.hashes.set(tenantId, [...hashes])
    copy.apply([
      { tenantId: "acme", events: 23 },
      { tenantId: "acme", events: "checkpoint" }
    ])
    assert.strictEqual(copy.made[0]?.tree_size, 100)
    assertTrue(copy)
  })

  /** The changelog of a chain of three events whose head has no tree. */
  const withoutTree = (): Partition => {
    const partition = new Partition()
    partition.apply([{ tenantId: "acme", events: 3 }])
    const value = JSON.stringify({ ...partition.state.heads.get("acme"), tree: null })
    partition.write([{ key: `${HEAD_PREFIX}acme`, value }])
    return partition
  }

  it("is missing for good where the start of the chain is gone: no checkpoint is made", () => {
    const partition = withoutTree()
    for (let round = 0; round < 2; round++) {
      partition.restart()
      const changes = partition.apply([
        { tenantId: "acme", events: 2 },
        { tenantId: "acme", events: "checkpoint" }
      ])
      assert.strictEqual(changes.events.count, 2)
      assert.isUndefined(changes.receipts[1]?.receipt.checkpoint)
      assert.isUndefined(partition.byClock(later(3_600_000)))
    }
    assert.strictEqual(partition.state.heads.get("acme")?.sequence_number, 7)
  })
})

describe("checkpoints by the clock", () => {
  it("are made of chains that have grown, not more often than every 10 seconds", () => {
    const partition = new Partition()
    assert.isUndefined(partition.byClock(NOW))
    partition.apply([
      { tenantId: "acme", events: 3 },
      { tenantId: "globex", events: 1 }
    ])
    const first = partition.byClock(NOW)!
    assert.sameMembers(
      first.checkpoints.map((made) => made.tenant_id),
      ["acme", "globex"]
    )
    assert.deepStrictEqual([first.applied, first.receipts.length], [partition.state.applied, 0])
    assert.isUndefined(partition.byClock(later(3_600_000)))
    partition.apply([{ tenantId: "acme", events: 1 }])
    partition.restart()
    assert.isUndefined(partition.byClock(later(CHECKPOINT_INTERVAL_MS - 1)))
    const second = partition.byClock(later(CHECKPOINT_INTERVAL_MS))!
    assert.deepStrictEqual(
      second.checkpoints.map((made) => made.tenant_id),
      ["acme"]
    )
    assert.strictEqual(partition.state.checkpoints.get("acme")?.tree_size, 4)
    assertTrue(partition)
  })

  it("do not stay away for as long as the clock went back", () => {
    const partition = new Partition()
    partition.apply([{ tenantId: "acme", events: 1 }])
    partition.byClock(later(3_600_000))
    partition.apply([{ tenantId: "acme", events: 1 }])
    assert.strictEqual(partition.byClock(NOW)?.checkpoints[0]?.tree_size, 2)
    partition.apply([{ tenantId: "acme", events: 1 }])
    assert.isUndefined(partition.byClock(later(CHECKPOINT_INTERVAL_MS - 1)))
    assert.strictEqual(partition.byClock(later(CHECKPOINT_INTERVAL_MS))?.checkpoints.length, 1)
  })

  it("are made of all chains in the end, a bounded number at a time", () => {
    const partition = new Partition()
    const tenants = Array.from({ length: 1_200 }, (_, index) => `tenant-${index}`)
    partition.apply(tenants.map((tenantId) => ({ tenantId, events: 1 })))
    const counts: Array<number> = []
    for (;;) {
      const changes = partition.byClock(NOW)
      if (changes === undefined) break
      counts.push(changes.checkpoints.length)
      partition.restart()
    }
    assert.strictEqual(
      counts.reduce((sum, count) => sum + count, 0),
      tenants.length
    )
    assert.isAtMost(Math.max(...counts), 500)
    assert.sameMembers(
      partition.made.map(({ tenant_id }) => tenant_id),
      tenants
    )
  })
})
