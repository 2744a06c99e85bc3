/**
 * What is removed when, in which order, and what a stop, a hold or a broken chain in between does to
 * it: the steps over doubles that decide as the single writer does.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Logger, Redacted, Stream } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { AdminRefused } from "../../../src/actors/follower/Keys.ts"
import { RegistryView } from "../../../src/actors/follower/LogFollower.ts"
import { ProjectionProgress } from "../../../src/actors/log/ProjectionProgress.ts"
import { makeCheckpoint } from "../../../src/domain/chain/Checkpoint.ts"
import { Frontier } from "../../../src/domain/chain/MerkleTree.ts"
import { openPoint } from "../../../src/domain/chain/PrunedPoint.ts"
import type { JsonObject } from "../../../src/domain/json/Json.ts"
import { noProgress } from "../../../src/domain/records/Progress.ts"
import { decide } from "../../../src/domain/registry/Registry.ts"
import { RegistryTable } from "../../../src/domain/registry/RegistryTable.ts"
import { formatMicros } from "../../../src/domain/Timestamp.ts"
import { EventLog } from "../../../src/ports/EventLog.ts"
import { EventStore, StoreUnavailable } from "../../../src/ports/EventStore.ts"
import { HashTree } from "../../../src/ports/HashTree.ts"
import { StoreRemoval } from "../../../src/ports/StoreRemoval.ts"
import { TraceStore } from "../../../src/ports/TraceStore.ts"
import { SystemAuditLog } from "../../../src/services/administration/SystemAuditLog.ts"
import { Checkpoints } from "../../../src/services/checkpoints/Checkpoints.ts"
import { Ingest } from "../../../src/services/ingest/Ingest.ts"
import {
  cutOffOf,
  pruneChain,
  type StretchReport
} from "../../../src/services/retention/Pruning.ts"
import { TestChain } from "../../exports/support/Chains.ts"
import { nodesOver } from "../../support/PrunedPoints.ts"
import { runs } from "../../support/Runs.ts"
import { checkpointSigner } from "../../support/Signer.ts"

const DAY_MS = 86_400_000
const settings = { secret: Redacted.make("a secret of these tests"), serviceName: "alk" }
const key = { tenantId: "acme", chain: "events" } as const

const timeOf = (ms: number) => formatMicros(ms * 1_000)

/** A chain whose events were recorded at these times, signed at these sizes. */
class Installation {
  readonly registry = new RegistryTable()
  readonly recordedAt: ReadonlyArray<number>
  readonly signed: ReadonlyArray<number>
  readonly hashes: ReadonlyArray<string>
  readonly bodies: ReadonlyArray<string>
  /** What the store says of their times, where it says something else. */
  claimed: ReadonlyArray<number> | undefined
  /** What was done, in order. */
  readonly done: Array<string> = []
  first = 1
  report: Partial<StretchReport> = {}
  final = false
  /** Run when the rows are about to go. */
  beforeRemoval: Effect.Effect<void, StoreUnavailable> = Effect.void
  /** Run after an act was decided. */
  afterAct: (op: string) => void = () => {}

  constructor(
    recordedAt: ReadonlyArray<number>,
    signed: ReadonlyArray<number>,
    metadata: JsonObject = {}
  ) {
    this.recordedAt = recordedAt
    this.signed = signed
    const chain = new TestChain("acme")
    for (const at of recordedAt) chain.add({ recordedAt: timeOf(at), metadata })
    this.bodies = chain.bodies
    this.hashes = chain.bodies.map((_, index) => chain.event(index + 1).hash)
  }

  keepFor(days: number): this {
    return this.decide({ op: "set_retention", tenant_id: "acme", days, changed_at: timeOf(1) })
  }

  hold(): this {
    const hold = { reason: "case 7", by: "admin", since: timeOf(2) }
    return this.decide({ op: "hold", tenant_id: "acme", hold })
  }

  release(): this {
    return this.decide({ op: "release_hold", tenant_id: "acme", changed_at: timeOf(3) })
  }

  decide(operation: Parameters<typeof decide>[1]): this {
    const decision = decide(this.registry, operation)
    if (!decision.granted) throw new Error(decision.message)
    this.registry.take(decision.entries)
    return this
  }

  checkpoint(size: number) {
    const frontier = Frontier.empty()
    for (const hash of this.hashes.slice(0, size)) frontier.append(hash)
    return makeCheckpoint(checkpointSigner.signer, "alk", "acme", frontier, timeOf(1))
  }

  get point() {
    return this.registry.pruned("acme")
  }

  get layer() {
    const node = nodesOver(this.hashes)
    return Layer.mergeAll(
      Layer.succeed(
        RegistryView,
        RegistryView.of({
          registry: () => this.registry,
          until: () => Effect.never,
          caughtUp: Effect.void
        })
      ),
      Layer.mock(EventLog, { partitions: 1, bootstrap: "nowhere", partitionOf: () => 0 }),
      Layer.mock(ProjectionProgress, {
        of: () => noProgress(0),
        partition: () => ({ ...noProgress(0), final: this.final, rebuilding: false })
      }),
      Layer.mock(HashTree, {
        nodes: () => Effect.succeed({ node, eventHash: (index) => this.hashes[index]! })
      }),
      Layer.mock(Checkpoints, {
        list: (_tree, { beforeSize = Infinity }) =>
          Effect.sync(() => {
            const size = this.signed.findLast((one) => one < beforeSize)
            return { checkpoints: size === undefined ? [] : [this.checkpoint(size)] }
          })
      }),
      Layer.mock(SystemAuditLog, {
        record: (operation) =>
          Effect.suspend(() => {
            const decision = decide(this.registry, operation)
            if (!decision.granted) {
              const { code, message } = decision
              return Effect.fail(new AdminRefused({ code, message }))
            }
            this.registry.take(decision.entries)
            this.done.push(operation.op)
            this.afterAct(operation.op)
            return Effect.void
          })
      }),
      Layer.mock(Ingest, {
        ingest: () =>
          Effect.sync(() => {
            this.afterAct("ingest")
            return { kind: "undecided" } as never
          })
      }),
      Layer.mock(EventStore, {
        rows: (_tenant, first, last) =>
          Stream.make(
            this.bodies.slice(first - 1, last).map((body, index) => ({
              sequenceNumber: first + index,
              version: 0,
              body,
              wrongColumns: []
            }))
          ),
        scan: ({ filter: { toSequence } }) => Stream.make(this.bodies.slice(0, toSequence))
      }),
      Layer.mock(TraceStore, {}),
      Layer.mock(StoreRemoval, {
        recordedBefore: (_key, time) =>
          Effect.sync(() => {
            const times = this.claimed ?? this.recordedAt
            const later = times.findIndex((at) => timeOf(at) >= time)
            return later === -1 ? this.recordedAt.length : later
          }),
        prune: (_key, size) =>
          Effect.andThen(
            this.beforeRemoval,
            Effect.sync(() => {
              this.done.push(`rows ${this.first} to ${size}`)
              this.first = size + 1
            })
          )
      })
    )
  }

  prune() {
    return pruneChain(
      settings,
      ({ fromSequence, toSequence }) => {
        const events_checked = toSequence - fromSequence + 1
        return Effect.succeed({ status: "valid" as const, events_checked, ...this.report })
      },
      key
    ).pipe(
      Effect.catchTag("AdminRefused", ({ code }) => Effect.sync(() => this.done.push(code))),
      Effect.provide(this.layer),
      Effect.provide(Logger.layer([]))
    )
  }
}

const days = (...ages: ReadonlyArray<number>) => ages.map((age) => age * DAY_MS)
const atDay = (day: number) => TestClock.setTime(day * DAY_MS)

describe("pruning", () => {
  it.effect("says what goes, removes it, and says that it is gone, in this order", () =>
    Effect.gen(function* () {
      const one = new Installation(days(1, 1, 2, 2, 8), [2, 3, 5]).keepFor(5)
      yield* atDay(9)
      yield* one.prune()
      assert.deepStrictEqual(one.done, ["prune", "rows 1 to 3", "note_removed"])
      const point = one.point!
      const rootHash = one.checkpoint(3).root_hash
      assert.notStrictEqual(typeof openPoint(point, { treeSize: 3, rootHash }), "string")
      assert.strictEqual(point.removed_at, timeOf(9 * DAY_MS))
      // Nothing is left to do until more is old enough.
      yield* one.prune()
      assert.lengthOf(one.done, 3)
      yield* atDay(14)
      yield* one.prune()
      assert.deepStrictEqual(one.done.slice(3), ["prune", "rows 4 to 5", "note_removed"])
    })
  )

  it.effect("removes no event before what was kept apart of its metadata is erased", () =>
    Effect.gen(function* () {
      const metadata = { large: { $ref: `sha256:${"a".repeat(64)}` } }
      const one = new Installation(days(1, 1), [2], metadata).keepFor(5)
      yield* atDay(9)
      // No sequencer decides.
      const failed = yield* Effect.exit(one.prune())
      assert.isTrue(Exit.isFailure(failed))
      assert.deepStrictEqual(one.done, ["prune"])
    })
  )

  it.effect("removes nothing of what does not verify, is not whole, or may come back", () =>
    Effect.gen(function* () {
      const one = new Installation(days(1, 1, 2), [3]).keepFor(5)
      yield* atDay(30)
      const reports = [
        { status: "broken" },
        { status: "incomplete" },
        { status: "empty" },
        { events_checked: 2 }
      ] as const
      for (const report of reports) {
        one.report = report
        assert.isTrue(yield* one.prune(), JSON.stringify(report))
      }
      one.report = {}
      one.final = true
      assert.isFalse(yield* one.prune())
      assert.deepStrictEqual(one.done, [])
      one.final = false
      assert.isFalse(yield* one.prune())
      assert.deepStrictEqual(one.done, ["prune", "rows 1 to 3", "note_removed"])
    })
  )

  it.effect("goes by the times that the hashes cover, whatever the store says of them", () =>
    Effect.gen(function* () {
      const one = new Installation(days(1, 28, 29), [3]).keepFor(5)
      one.claimed = days(1, 1, 2)
      yield* atDay(30)
      assert.isTrue(yield* one.prune())
      assert.deepStrictEqual(one.done, [])
    })
  )

  it.effect("ends what a stop has broken off, and decides nothing twice", () =>
    Effect.gen(function* () {
      const one = new Installation(days(1, 1, 2), [3]).keepFor(5)
      yield* atDay(30)
      const cause = new Error("down")
      one.beforeRemoval = Effect.fail(new StoreUnavailable({ operation: "prune", cause }))
      const failed = yield* Effect.exit(one.prune())
      assert.strictEqual(failed._tag, "Failure")
      assert.deepStrictEqual(one.done, ["prune"])
      assert.isUndefined(one.point?.removed_at)
      one.beforeRemoval = Effect.void
      yield* one.prune()
      assert.deepStrictEqual(one.done, ["prune", "rows 1 to 3", "note_removed"])
    })
  )

  it.effect.each([
    ["a hold", "prune", "legal_hold"],
    ["a hold", "ingest", "legal_hold"],
    ["a longer retention", "prune", "id_conflict"],
    ["a longer retention", "ingest", "id_conflict"]
  ] as const)("stops at %s that comes during %s", ([what, during, code]) =>
    Effect.gen(function* () {
      const one = new Installation(days(1, 1, 2), [3]).keepFor(5)
      yield* atDay(30)
      one.afterAct = (op) => {
        if (op !== during) return
        if (what === "a hold") one.hold()
        else one.keepFor(300)
      }
      yield* one.prune()
      yield* one.prune()
      assert.deepStrictEqual(one.done, ["prune", code, code])
      one.afterAct = () => {}
      if (what === "a hold") one.release()
      else one.keepFor(5)
      yield* one.prune()
      assert.deepStrictEqual(one.done.slice(3), ["rows 1 to 3", "note_removed"])
    })
  )

  it.effect("goes up to the largest signed size that is old enough, whatever the times", () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(
          fc.array(fc.integer({ min: 0, max: 20 }), { minLength: 1, maxLength: 20 }),
          fc.uniqueArray(fc.integer({ min: 1, max: 20 }), { maxLength: 6 }),
          fc.integer({ min: 1, max: 20 }),
          async (recorded, sizes, keep) => {
            const signed = sizes.filter((size) => size <= recorded.length).toSorted((a, b) => a - b)
            const one = new Installation(days(...recorded), signed).keepFor(keep)
            await Effect.runPromise(
              Effect.andThen(atDay(20), one.prune()).pipe(Effect.provide(TestClock.layer()))
            )
            const isKept = (day: number) => day >= 20 - keep
            const kept = recorded.findIndex(isKept)
            const oldest = kept === -1 ? recorded.length : kept
            const wanted = signed.findLast((size) => size <= oldest)
            assert.strictEqual(one.point?.size, wanted)
            assert.strictEqual(one.first, (wanted ?? 0) + 1)
          }
        ),
        { numRuns: runs(60) }
      )
    )
  )
})

describe("the time before which records go", () => {
  it("is none without a retention, under a hold, of a deleted tenant and of the service itself", () => {
    const one = new Installation([], [])
    assert.isUndefined(cutOffOf(one.registry, "acme", 0))
    one.keepFor(2)
    assert.strictEqual(cutOffOf(one.registry, "acme", 5 * DAY_MS), timeOf(3 * DAY_MS))
    one.hold()
    assert.isUndefined(cutOffOf(one.registry, "acme", 5 * DAY_MS))
    one.release()
    one.decide({ op: "set_retention", tenant_id: "_system", days: 1, changed_at: timeOf(1) })
    assert.isUndefined(cutOffOf(one.registry, "_system", 5 * DAY_MS))
  })
})
