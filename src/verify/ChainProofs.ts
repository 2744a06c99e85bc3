/**
 * That single records are in a tenant's chain of which only a part is checked: each is a leaf of
 * the newest signed tree, or, where that one does not reach so far, the links lead from it to the
 * end that the log has. A row that holds its own hashes may have been made by anyone.
 */
import { Effect, Stream } from "effect"
import { ChainEnds } from "../actors/chainEnds/ChainEnds.ts"
import type { ProjectionProgress } from "../actors/log/ProjectionProgress.ts"
import { linkOf } from "../domain/chain/ChainLink.ts"
import { type ChainKey, type Head, linkHashOf, treeNameOf } from "../domain/chain/Chains.ts"
import { leafHash, verifyInclusion } from "../domain/chain/MerkleTree.ts"
import { SCHEME } from "../domain/events/HashChain.ts"
import { TRACE_SCHEME } from "../domain/traces/FactText.ts"
import type { EventLog, LogUnavailable } from "../ports/EventLog.ts"
import { EventStore, type StoredRow, type StoreUnavailable } from "../ports/EventStore.ts"
import { TraceStore } from "../ports/TraceStore.ts"
import { caughtUp } from "./CaughtUp.ts"
import {
  type SignedCheckpoint,
  type SignedCheckpoints,
  signedCheckpoints
} from "./SignedCheckpoints.ts"

/** A record that was recomputed: its hash covers its tenant, its place and what it says. */
export interface HashedRecord {
  readonly sequenceNumber: number
  readonly hash: string
}

/** The hashes of those among the records that are in the chain. */
export type Chained = (
  records: ReadonlyArray<HashedRecord>
) => Effect.Effect<ReadonlySet<string>, LogUnavailable | StoreUnavailable>

/** The rows of a range of the chain, by sequence. */
type Rows = (
  first: number,
  last: number
) => Stream.Stream<ReadonlyArray<StoredRow>, StoreUnavailable>

/** Those that are leaves of a signed tree; `anew`: of what is stored, not of what is kept of it. */
const inTree = Effect.fnUntraced(function* (
  checkpoints: SignedCheckpoints["Service"],
  tree: string,
  { rootHash, treeSize: size }: SignedCheckpoint,
  records: ReadonlyArray<HashedRecord>,
  anew: boolean
) {
  const found = new Set<string>()
  const root = Buffer.from(rootHash, "hex")
  for (const [at, { hash, sequenceNumber }] of records.entries()) {
    // What is kept of a tree is forgotten once for all of them.
    const proof = yield* checkpoints.inclusion(tree, sequenceNumber, size, anew && at === 0)
    const index = sequenceNumber - 1
    const isLeaf =
      proof !== undefined && verifyInclusion({ leaf: leafHash(hash), index, size, root, proof })
    if (isLeaf) found.add(hash)
  }
  return found
})

/** The hash of a stored row by what it says of its link; undefined if that is of another place. */
const linkAt = ({ chain, tenantId }: ChainKey, { body, sequenceNumber }: StoredRow) => {
  const link = linkOf(Buffer.from(body), chain)
  const isThere = link?.tenantId === tenantId && link.sequenceNumber === sequenceNumber
  if (link === undefined || !isThere) return undefined
  return {
    hash: linkHashOf(chain === "events" ? SCHEME : TRACE_SCHEME, link),
    prevHash: link.prevHash
  }
}

/** Those from which the links lead to the end of the chain. */
const beforeHead = Effect.fnUntraced(function* (
  key: ChainKey,
  rows: Rows,
  head: Head,
  records: ReadonlyArray<HashedRecord>
) {
  const wanted = new Set(records.map(({ hash }) => hash))
  const none: ReadonlyArray<string> = []
  // By the hash of each row of a sequence, and of the one before: the records that lead to it.
  let sequence = 0
  let before = new Map<string, ReadonlyArray<string>>()
  let here = new Map<string, ReadonlyArray<string>>()
  const take = (row: StoredRow) => {
    if (row.sequenceNumber !== sequence) {
      before = row.sequenceNumber === sequence + 1 ? here : new Map()
      here = new Map()
      sequence = row.sequenceNumber
    }
    const link = linkAt(key, row)
    if (link === undefined) return
    const leading = before.get(link.prevHash) ?? none
    here.set(link.hash, wanted.has(link.hash) ? [...leading, link.hash] : leading)
  }
  const first = Math.min(...records.map(({ sequenceNumber }) => sequenceNumber))
  yield* Stream.runForEach(rows(first, head.sequence_number), (chunk) =>
    Effect.sync(() => chunk.forEach(take))
  )
  return sequence === head.sequence_number ? (here.get(head.hash) ?? none) : none
})

const makeChained = Effect.fnUntraced(function* (key: ChainKey, rows: Rows) {
  const ends = yield* ChainEnds
  const checkpoints = yield* signedCheckpoints
  const context = yield* Effect.context<EventLog | ProjectionProgress>()
  const tree = treeNameOf(key.tenantId, key.chain)
  const chained: Chained = Effect.fn("ChainProofs.chained")(function* (records) {
    if (records.length === 0) return new Set<string>()
    const newest = yield* checkpoints.published(tree)
    const head = yield* ends.head(key)
    // Then the store holds all that these two are about.
    yield* caughtUp(key.tenantId, key.chain)
    const size = newest?.treeSize ?? 0
    const covered = records.filter(({ sequenceNumber }) => sequenceNumber <= size)
    const later = records.filter(
      ({ sequenceNumber }) =>
        sequenceNumber > size && sequenceNumber <= (head?.sequence_number ?? 0)
    )
    const found = new Set<string>()
    for (const anew of [false, true]) {
      const left = covered.filter(({ hash }) => !found.has(hash))
      if (newest === undefined || left.length === 0) break
      for (const hash of yield* inTree(checkpoints, tree, newest, left, anew)) found.add(hash)
    }
    if (head !== undefined && later.length > 0) {
      for (const hash of yield* beforeHead(key, rows, head, later)) found.add(hash)
    }
    return found
  }, Effect.provideContext(context))
  return chained
})

/** Of a tenant's events. */
export const chainedEvents = (tenantId: string) =>
  Effect.flatMap(EventStore, (store) =>
    makeChained({ tenantId, chain: "events" }, (first, last) => store.rows(tenantId, first, last))
  )

/** Of a tenant's trace facts. */
export const chainedFacts = (tenantId: string) =>
  Effect.flatMap(TraceStore, (store) =>
    makeChained({ tenantId, chain: "traces" }, (first, last) =>
      store.chainRows(tenantId, first, last)
    )
  )
