/**
 * A chain whose beginning was pruned verifies if and only if what is left is honest: it links to the
 * signed point and extends its tree. A point that nobody has signed hides nothing.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import fc from "fast-check"
import { makeCheckpoint } from "../../src/domain/chain/Checkpoint.ts"
import { Frontier } from "../../src/domain/chain/MerkleTree.ts"
import { openPoint, type PrunedPoint } from "../../src/domain/chain/PrunedPoint.ts"
import { EventStore } from "../../src/ports/EventStore.ts"
import { TraceStore } from "../../src/ports/TraceStore.ts"
import { type PointFound, PrunedPoints } from "../../src/verify/PrunedPoints.ts"
import { type SignedCheckpoint, SignedCheckpoints } from "../../src/verify/SignedCheckpoints.ts"
import { layerVerifier, type VerifyReport, type VerifyRequest } from "../../src/verify/Verifier.ts"
import { genuinePoint } from "../support/PrunedPoints.ts"
import { runs } from "../support/Runs.ts"
import { checkpointSigner } from "../support/Signer.ts"
import { Chain } from "./support/Chains.ts"
import { LogWorld, layerLog } from "./support/LogWorld.ts"
import { verify } from "./support/StoredChains.ts"

const TENANT = "acme"
const EVENTS = 40
const chain = new Chain(TENANT).extend(EVENTS, () => ({ metadata: { a: 1 } }))
/** Before every event. */
const OLD = "1970-01-02T00:00:00.000000Z"
const hashes = chain.bodies.map((body): string => JSON.parse(body).hash)

const rootOver = (own: ReadonlyArray<string>, size: number): SignedCheckpoint => {
  const frontier = Frontier.empty()
  for (const hash of own.slice(0, size)) frontier.append(hash)
  const { note, root_hash } = makeCheckpoint(
    checkpointSigner.signer,
    "alk",
    TENANT,
    frontier,
    "2026-11-21T12:00:00.000000Z"
  )
  return { treeSize: size, rootHash: root_hash, note }
}

const pointAt = (size: number, own = hashes): PrunedPoint =>
  genuinePoint(checkpointSigner.signer, "alk", TENANT, own, size)

/** What the service finds of a point: it opens its note as that of its own key. */
const foundOf = (point: PrunedPoint): PointFound => {
  const signed = rootOver(hashes, point.size)
  const end = openPoint(point, signed)
  return typeof end === "string" ? { point, problem: end } : { point, end }
}

interface Given {
  /** Bodies by sequence. */
  readonly rows: ReadonlyMap<number, string>
  readonly point?: PointFound | undefined
  readonly request?: Partial<VerifyRequest>
}

/** The report on a store that holds these rows; the newest checkpoint covers the whole chain. */
const reportOn = ({ point, request, rows }: Given): Promise<VerifyReport> => {
  const world = new LogWorld()
  world.heads.set(TENANT, chain.head!)
  const sequences = [...rows.keys()].toSorted((left, right) => left - right)
  const store = Layer.mock(EventStore, {
    conflicts: () => Effect.succeed([]),
    copies: () => Effect.succeed([]),
    extent: () =>
      Effect.succeed({
        rows: rows.size,
        lowest: sequences[0] ?? 0,
        highest: sequences.at(-1) ?? 0
      }),
    rows: (_, first, last) =>
      Stream.make(
        sequences
          .filter((sequence) => sequence >= first && sequence <= last)
          .map((sequenceNumber) => ({
            sequenceNumber,
            version: 0,
            body: rows.get(sequenceNumber)!,
            wrongColumns: []
          }))
      )
  })
  const newest = rootOver(hashes, EVENTS)
  return Effect.runPromise(
    verify({ tenantId: TENANT, requireHead: true, ...request }).pipe(
      Effect.provide(
        layerVerifier.pipe(
          Layer.provideMerge(
            Layer.mergeAll(
              store,
              layerLog(world),
              Layer.mock(TraceStore, {}),
              Layer.succeed(PrunedPoints, { of: () => Effect.succeed(point) }),
              Layer.succeed(SignedCheckpoints, {
                ...SignedCheckpoints.none,
                published: () => Effect.succeed(newest)
              })
            )
          )
        )
      )
    )
  )
}

const rowsFrom = (first: number): Map<number, string> =>
  new Map(chain.bodies.map((body, index) => [index + 1, body] as const).slice(first - 1))

const reasonsOf = ({ breaks }: VerifyReport) =>
  breaks.map(({ reason, sequence_number }) => [sequence_number, reason])

const size = fc.integer({ min: 1, max: EVENTS - 2 })

describe("a chain whose beginning was pruned", () => {
  it("is valid and signed from any point on, and says where it begins", () =>
    fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: EVENTS }), async (pruned) => {
        const point = foundOf(pointAt(pruned))
        const report = await reportOn({ rows: rowsFrom(pruned + 1), point })
        assert.deepStrictEqual(reasonsOf(report), [])
        assert.strictEqual(report.pruned?.up_to_sequence, pruned)
        assert.strictEqual(report.events_checked, EVENTS - pruned)
        if (pruned < EVENTS) assert.strictEqual(report.assurance, "signed")
      }),
      { numRuns: runs(40) }
    ))

  it("is not, once a row of the rest is missing, changed or another one's", () =>
    fc.assert(
      fc.asyncProperty(
        size,
        fc.nat(EVENTS),
        fc.constantFrom("missing", "changed", "moved"),
        async (pruned, offset, how) => {
          const at = Math.min(EVENTS, pruned + 1 + (offset % (EVENTS - pruned)))
          const rows = rowsFrom(pruned + 1)
          if (how === "missing") rows.delete(at)
          else if (how === "changed") rows.set(at, rows.get(at)!.replace("success", "failure"))
          else rows.set(at, chain.bodies[at === EVENTS ? at - 2 : at]!)
          const report = await reportOn({ rows, point: foundOf(pointAt(pruned)) })
          assert.strictEqual(report.status, "broken", how)
          assert.include(
            report.breaks.map(({ sequence_number }) => sequence_number),
            at
          )
        }
      ),
      { numRuns: runs(60) }
    ))

  it("is not with more removed than the point says, nor with rows that have come back", () =>
    fc.assert(
      fc.asyncProperty(size, async (pruned) => {
        const point = foundOf({ ...pointAt(pruned), removed_at: "2026-11-21T12:00:00.000000Z" })
        const more = await reportOn({ rows: rowsFrom(pruned + 2), point })
        assert.deepStrictEqual(reasonsOf(more)[0], [pruned + 1, "sequence_gap"])
        const back = rowsFrom(pruned + 1).set(pruned, chain.bodies[pruned - 1]!)
        assert.deepStrictEqual(reasonsOf(await reportOn({ rows: back, point })), [
          [pruned, "duplicate_sequence"]
        ])
      }),
      { numRuns: runs(30) }
    ))

  it("is broken without a point, or with one that a signed checkpoint does not prove", () =>
    fc.assert(
      fc.asyncProperty(size, async (pruned) => {
        const rows = rowsFrom(pruned + 1)
        const none = await reportOn({ rows })
        assert.deepStrictEqual(reasonsOf(none)[0], [1, "sequence_gap"])
        const other = pointAt(
          pruned,
          hashes.map((hash) => [...hash].reverse().join(""))
        )
        const forged = await reportOn({ rows, point: foundOf(other) })
        assert.isUndefined(forged.pruned)
        assert.deepInclude(reasonsOf(forged), [1, "sequence_gap"])
        assert.deepInclude(reasonsOf(forged), [pruned, "checkpoint_mismatch"])
      }),
      { numRuns: runs(30) }
    ))

  it("leads to a checkpoint that was kept, unless that is below the point", async () => {
    const rows = rowsFrom(21)
    const point = foundOf(pointAt(20))
    const reportWith = async (kept: number) => {
      const checkpoints = [rootOver(hashes, kept)]
      const { notices, origin, status } = await reportOn({ rows, point, request: { checkpoints } })
      return { status, origin, notices: notices?.length }
    }
    for (const kept of [20, 21, 33, EVENTS]) {
      assert.deepStrictEqual(await reportWith(kept), {
        status: "valid",
        origin: "checked",
        notices: 1
      })
    }
    assert.deepStrictEqual(await reportWith(19), { status: "valid", origin: undefined, notices: 2 })
  })

  it("says what is gone of the period that was asked for, and only of that", async () => {
    const rows = rowsFrom(21)
    const point = foundOf(pointAt(20))
    const noticesOn = async (request: Partial<VerifyRequest>) =>
      (await reportOn({ rows, point, request })).notices
    const gone = /^events 1 to 20 were removed by retention on \S+: /
    for (const request of [{}, { fromSequence: 3, toSequence: 8 }, { to: OLD }, { from: OLD }]) {
      assert.match((await noticesOn(request))?.join() ?? "", gone)
    }
    assert.isUndefined(await noticesOn({ fromSequence: 21 }))
  })
})
