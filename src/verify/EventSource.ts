/**
 * The chain of a tenant's audit events as a source of its check: rows recomputed here, or in whole
 * blocks by the store where it can hash. The program recomputes the ends and a random sample of
 * such blocks, and uses only blocks that are perfect by both.
 */
import { Effect, Stream } from "effect"
import type { ProjectionProgress } from "../actors/log/ProjectionProgress.ts"
import { faultOf, type Recomputed, recompute, SCHEME } from "../domain/events/HashChain.ts"
import { inSlices } from "../domain/InSlices.ts"
import { eachInStep } from "../domain/Slices.ts"
import type { ChainRecompute, RecomputedBlock, SequenceRange } from "../ports/ChainRecompute.ts"
import type { EventLog } from "../ports/EventLog.ts"
import { EventStore, type StoredRow } from "../ports/EventStore.ts"
import { chainedEvents } from "./ChainProofs.ts"
import { type ChainSource, contentFault, type Fault, type JudgedRow } from "./ChainSource.ts"
import { type ErasureLookup, type Erasures, erasuresOfRows, learnErasures } from "./Erasures.ts"

/** Rows that the program recomputes of each part, its ends not counted. */
const SAMPLE_EVENTS = 14
const CONFLICTS_MAX = 100
const COPIES_MAX = 100
/** The one column whose value is the store's own once an event is erased. */
const VERSION = "version"

/** What is wrong with an event by itself, wherever it is. */
export const faultsOf = (
  tenantId: string,
  { body, sequenceNumber, wrongColumns }: StoredRow,
  found: Recomputed,
  erasures: Erasures
): ReadonlyArray<Fault> => {
  const { event } = found
  const faults: Array<Fault> = []
  const report = (expected: string, actual: string) => faults.push(contentFault(expected, actual))
  const isErased = erasures.coversEvent(event)
  const columns = wrongColumns.filter((name) => name !== VERSION || !isErased)
  if (columns.length > 0) {
    report("filter columns equal to the stored bytes", `other values in ${columns.join(", ")}`)
  }
  if (event.sequence_number !== sequenceNumber || event.tenant_id !== tenantId) {
    report(
      `tenant ${tenantId}, sequence ${sequenceNumber}`,
      `tenant ${event.tenant_id}, sequence ${event.sequence_number}`
    )
  }
  if (event.erased_at !== undefined && !isErased) {
    report(
      `an erasure event in the chain that names sequence ${sequenceNumber} and its content_hash`,
      `erased at ${event.erased_at} without one`
    )
    return faults
  }
  const fault = faultOf(found, undefined, isErased)
  if (fault !== undefined) faults.push(fault)
  else if (!found.exact) {
    report(
      "the bytes that the sequencer writes for this event",
      `${Buffer.byteLength(body)} other bytes for it, or members that no hash covers`
    )
  }
  return faults
}

/** A row of a tenant's events, judged. */
export const judgedEvent = (tenantId: string, row: StoredRow, erasures: Erasures): JudgedRow => {
  const found = recompute(row.body)
  if (found === undefined) return { row, found: undefined }
  const { event } = found
  return {
    row,
    found: {
      id: event.id,
      hash: event.hash,
      prevHash: event.prev_hash,
      recomputed: found.hash,
      time: event.timestamp,
      isErased: erasures.coversEvent(event),
      faults: faultsOf(tenantId, row, found, erasures)
    }
  }
}

const randomBetween = (first: number, last: number): number =>
  first + Math.floor(Math.random() * (last - first + 1))

/** The sequences that the program recomputes too: both ends, and some at random. */
const sampleOf = (blocks: ReadonlyArray<RecomputedBlock>): ReadonlyArray<number> => {
  const first = blocks[0]?.first
  const last = blocks.at(-1)?.last
  if (first === undefined || last === undefined) return []
  const chosen = Array.from({ length: SAMPLE_EVENTS }, () => {
    const block = blocks[randomBetween(0, blocks.length - 1)]!
    return randomBetween(block.first, block.last)
  })
  return [...new Set([first, last, ...chosen])].sort((left, right) => left - right)
}

/** True if the program finds of these rows what the store has found of their blocks. */
const agrees = (
  tenantId: string,
  wanted: ReadonlyArray<number>,
  rows: ReadonlyArray<StoredRow>,
  lastHash: string | undefined,
  erasures: Erasures
): boolean => {
  if (rows.length !== wanted.length) return false
  const hashes = rows.map((row, index) => {
    const { found } = judgedEvent(tenantId, row, erasures)
    const isFine = row.sequenceNumber === wanted[index] && found?.faults.length === 0
    return isFine ? found.recomputed : undefined
  })
  return !hashes.includes(undefined) && hashes.at(-1) === lastHash
}

/** Over the tenant's rows in the store; `checked`: of which the check goes through every one. */
export const eventSource = Effect.fnUntraced(function* (
  tenantId: string,
  port: ChainRecompute["Service"],
  checked: SequenceRange
) {
  const store = yield* EventStore
  const lookup: ErasureLookup = { tenantId, port, chained: yield* chainedEvents(tenantId), checked }
  const context = yield* Effect.context<EventLog | ProjectionProgress>()
  const trusted: ChainSource["trusted"] = Effect.fnUntraced(function* (
    first,
    last,
    { from, to },
    tree
  ) {
    const range = { tenantId, fromSequence: first, toSequence: last, from, to, tree }
    const perfect = (yield* port.blocks(range)).filter((block) => block.perfect)
    const gone = perfect.flatMap(({ erased }) => erased.map((row) => row.sequenceNumber))
    const erasures = yield* learnErasures(lookup, gone)
    const found = perfect.filter(({ erased }) => erased.every((row) => erasures.covers(row)))
    const wanted = sampleOf(found)
    const rows = yield* port.sample(tenantId, wanted)
    // Some of them may have been erased since.
    const sampled = yield* erasuresOfRows(lookup, rows)
    if (!agrees(tenantId, wanted, rows, found.at(-1)?.lastHash, sampled)) {
      yield* Effect.logError("the store and the program recompute events differently", {
        firstSequence: first,
        lastSequence: last
      })
      return new Map<number, RecomputedBlock>()
    }
    return new Map(found.map((block) => [block.block, block]))
  }, Effect.provideContext(context))
  const source: ChainSource = {
    chain: "events",
    scheme: SCHEME,
    noun: "event",
    rows: (first, last) =>
      store.rows(tenantId, first, last).pipe(
        Stream.mapEffect((rows) =>
          erasuresOfRows(lookup, rows).pipe(
            Effect.flatMap((erasures) =>
              inSlices(() => eachInStep(rows, (row) => judgedEvent(tenantId, row, erasures)))
            ),
            Effect.provideContext(context)
          )
        )
      ),
    trusted,
    extent: store.extent(tenantId),
    copies: (first, last) => store.copies(tenantId, first, last, COPIES_MAX),
    conflicts: store.conflicts(tenantId, CONFLICTS_MAX),
    conclude: () => Effect.succeed([])
  }
  return source
})
