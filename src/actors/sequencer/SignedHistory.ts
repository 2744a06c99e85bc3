/**
 * What this service has signed, against the chains that a start goes on with. Where the log was put
 * back, numbers that were given out, and signed, would be given out once more; where its topics were
 * written anew, another history would be signed beside the first. Only what a key of the service has
 * signed which has not handed its trees over counts, and the last checkpoints of those that have.
 */
import { Effect, Option } from "effect"
import type { ChainLink } from "../../domain/chain/ChainLink.ts"
import { chainOfTree, chains, treeNameOf } from "../../domain/chain/Chains.ts"
import {
  type CheckpointRecord,
  openNote,
  readCheckpoint,
  treeOfCheckpoint
} from "../../domain/chain/Checkpoint.ts"
import { NEXT_KEY } from "../../domain/chain/KeyStandings.ts"
import { Frontier } from "../../domain/chain/MerkleTree.ts"
import { openPoint, type PrunedEnd } from "../../domain/chain/PrunedPoint.ts"
import { openRecord } from "../../domain/chain/SignedRecord.ts"
import { CHECKPOINT_PREFIX } from "../../domain/records/StateRecords.ts"
import { RegistryTable } from "../../domain/registry/RegistryTable.ts"
import { CHECKPOINTS_LIST_MAX } from "../../ports/CheckpointStore.ts"
import type { LogUnavailable, OffsetOutOfRange } from "../../ports/EventLog.ts"
import type { StoreResult } from "../../ports/EventStore.ts"
import { takeAll } from "../log/Malformed.ts"
import { isPlacedHere } from "./Misplaced.ts"
import {
  giveUp,
  type Restoring,
  readRegistry,
  type SignedCheckpoints,
  writeState
} from "./Restoring.ts"
import { givenUpRecord, handOverName, headsOf, type SequencerState } from "./SequencerState.ts"

/** Time that a start waits for the store. */
const ASKED_TIMEOUT = "5 seconds"
/** Losses that one refusal names. */
const NAMED_MAX = 3

/** Up to which size checkpoints of a tree are expected. */
const sizeOf = (state: SequencerState, tree: string): number => {
  const { chain, tenantId } = chainOfTree(tree)
  return headsOf(state, chain).get(tenantId)?.sequence_number ?? 0
}

/** The same of all trees, as it is now. */
export const sizesOf = (state: SequencerState): ReadonlyMap<string, number> =>
  new Map(
    chains.flatMap((chain) =>
      [...headsOf(state, chain)].map(([tenantId, head]) => [
        treeNameOf(tenantId, chain),
        head.sequence_number
      ])
    )
  )

/** True of what an operator has accepted as lost; what was signed of the tree since counts. */
const isGivenUp = ({ givenUp }: SequencerState, one: CheckpointRecord): boolean => {
  const accepted = givenUp.get(treeOfCheckpoint(one))
  return (
    accepted !== undefined
    && one.tree_size <= accepted.tree_size
    && one.created_at <= accepted.created_at
  )
}

/** Of each tree the one that says most: the largest that was accepted, and the newest time. */
const acceptedOf = (lost: ReadonlyArray<CheckpointRecord>) => {
  const accepted = new Map<string, CheckpointRecord>()
  for (const one of lost) {
    const tree = treeOfCheckpoint(one)
    const known = accepted.get(tree) ?? one
    const largest = one.tree_size > known.tree_size ? one : known
    const created_at = one.created_at > known.created_at ? one.created_at : known.created_at
    accepted.set(tree, { ...largest, created_at })
  }
  return accepted
}

const named = (lost: ReadonlyArray<readonly [one: CheckpointRecord, found: string]>): string =>
  lost
    .slice(0, NAMED_MAX)
    .map(([one, found]) => {
      const { root_hash, tree_size } = one
      return `${treeOfCheckpoint(one)} of ${tree_size} records with the root ${root_hash}, and ${found}`
    })
    .join("; ")

/** The registry as its topic has it, and the keys that may have signed. */
const readKeys = Effect.fnUntraced(function* (restoring: Restoring) {
  const registry = new RegistryTable()
  yield* readRegistry(restoring, registry)
  const published = [...registry.allSigningKeys()].map(({ vkey }) => vkey)
  return { registry, vkeys: [...new Set([...published, ...restoring.vkeys])] }
})

/** What the store answers; undefined where it does not. */
const answered = <A>(question: StoreResult<A>): Effect.Effect<A | undefined> =>
  question.pipe(
    Effect.timeoutOption(ASKED_TIMEOUT),
    Effect.catch(() => Effect.succeedNone),
    Effect.map(Option.getOrUndefined)
  )

/** The largest of a tree below a size that was signed: others may have made up larger ones. */
const readBelow = Effect.fnUntraced(function* (
  { list }: SignedCheckpoints,
  tree: string,
  size: number,
  counts: (one: CheckpointRecord) => boolean
) {
  for (let beforeSize = size; ; ) {
    const page = yield* list(tree, { beforeSize, limit: CHECKPOINTS_LIST_MAX })
    const found = page.find(counts)
    if (found !== undefined || page.length < CHECKPOINTS_LIST_MAX) return found
    beforeSize = page.at(-1)!.tree_size
  }
})

/** What the store holds that the topic does not; undefined where it does not answer. */
const readStored = Effect.fnUntraced(function* (
  restoring: Restoring,
  state: SequencerState,
  isSignedNow: Effect.Effect<(one: CheckpointRecord) => boolean, LogUnavailable | OffsetOutOfRange>
) {
  const { checkpoints, log, partition } = restoring
  if (checkpoints === undefined) return []
  const bounds = yield* log.bounds("checkpoints", partition)
  const all = yield* answered(checkpoints.outside(partition, bounds))
  const isHere = isPlacedHere(log, partition, state)
  const isOwn = (one: CheckpointRecord) => isHere(one.tenant_id) && !isGivenUp(state, one)
  const found = all?.filter(isOwn)
  if (found === undefined || found.length === 0) return found
  const isSigned = yield* isSignedNow
  const signed = found.filter(isSigned)
  const trees = new Set(signed.map(treeOfCheckpoint))
  const smallest = new Map(found.map((one) => [treeOfCheckpoint(one), one.tree_size]))
  for (const [tree, size] of smallest) {
    if (trees.has(tree)) continue
    const counts = (one: CheckpointRecord) => isOwn(one) && isSigned(one)
    const below = yield* answered(
      Effect.map(readBelow(checkpoints, tree, size, counts), Option.fromUndefinedOr)
    )
    if (below === undefined) return undefined
    if (Option.isSome(below)) signed.push(below.value)
  }
  return signed
})

const signedBy =
  (serviceName: string, vkeys: ReadonlyArray<string>, replaced: ReadonlySet<string>) =>
  (one: CheckpointRecord): boolean => {
    const opened = openRecord(serviceName, treeOfCheckpoint(one), one, vkeys)
    return opened?.keyIds.some((keyId) => !replaced.has(keyId)) === true
  }

const replacedIn = (handOvers: ReadonlyMap<string, CheckpointRecord>): ReadonlySet<string> =>
  new Set([...handOvers.values()].map(({ key_id }) => key_id))

/**
 * What `alk.checkpoints` says of tenants of this partition: the largest of each tree and key, and the
 * trees that were handed over.
 */
const readPublished = Effect.fnUntraced(function* (
  { log, partition, reader, serviceName }: Restoring,
  state: SequencerState,
  vkeys: ReadonlyArray<string>
) {
  const handOvers = new Map<string, CheckpointRecord>()
  const largest = new Map<string, CheckpointRecord>()
  const isHere = isPlacedHere(log, partition, state)
  yield* takeAll(log, reader, { topic: "checkpoints", partition }, ({ value }) => {
    if (value === null) return
    const checkpoint = readCheckpoint(value)
    if (!isHere(checkpoint.tenant_id)) return
    const tree = treeOfCheckpoint(checkpoint)
    const name = handOverName(checkpoint.key_id, tree)
    if (openRecord(serviceName, tree, checkpoint, vkeys) === undefined) return
    const isHandOver = checkpoint.note.includes(`\n${NEXT_KEY} `)
    if (isHandOver && !handOvers.has(name)) handOvers.set(name, checkpoint)
    const known = largest.get(name)
    if (isGivenUp(state, checkpoint)) return
    if (known === undefined || known.tree_size <= checkpoint.tree_size) {
      largest.set(name, checkpoint)
    }
  })
  const replaced = replacedIn(handOvers)
  const counting = [...handOvers.values(), ...largest.values()].filter(
    (one) => !(isGivenUp(state, one) || (replaced.has(one.key_id) && !isHandOverOf(handOvers, one)))
  )
  const checkpoints = new Map<string, CheckpointRecord>()
  for (const one of counting) {
    const tree = treeOfCheckpoint(one)
    if ((checkpoints.get(tree)?.tree_size ?? 0) <= one.tree_size) checkpoints.set(tree, one)
  }
  return { checkpoints, handOvers }
})

const isHandOverOf = (handOvers: ReadonlyMap<string, CheckpointRecord>, one: CheckpointRecord) =>
  handOvers.get(handOverName(one.key_id, treeOfCheckpoint(one)))?.note === one.note

/** Ends of chains of which the tree is known, by its name: a tree goes on from there. */
class KnownEnds {
  readonly #ends = new Map<string, Array<Pick<PrunedEnd, "frontier" | "headHash" | "size">>>()

  add(tree: string, end: Pick<PrunedEnd, "frontier" | "headHash" | "size">): void {
    this.#ends.set(tree, [...(this.#ends.get(tree) ?? []), end])
  }

  #find(tree: string, size: number, hash: string): Frontier | undefined {
    const ends = this.#ends.get(tree)
    return ends?.find((end) => end.size === size && end.headHash === hash)?.frontier.clone()
  }

  /** The tree once it has a link; undefined as long as what is before it is not known. */
  grow(
    tree: string,
    grown: Frontier | undefined,
    { hash, prevHash, sequenceNumber }: ChainLink
  ): Frontier | undefined {
    const before =
      sequenceNumber === 1
        ? Frontier.empty()
        : (grown ?? this.#find(tree, sequenceNumber - 1, prevHash))
    if (before === undefined) return this.#find(tree, sequenceNumber, hash)
    before.append(hash)
    return before
  }
}

/** What trees that are read from a topic have to lead to. */
export interface SignedTrees {
  /** What the changelog says. */
  readonly state: SequencerState
  readonly ends: KnownEnds
  /** Sizes of which the root is asked for, by tree. */
  readonly sizes: ReadonlyMap<string, ReadonlySet<number>>
  readonly signed: ReadonlyArray<CheckpointRecord>
  /** The newest of each tree on `alk.checkpoints`. */
  readonly checkpoints: Map<string, CheckpointRecord>
  readonly handOvers: Map<string, CheckpointRecord>
  /** False where the store did not answer. */
  readonly isAll: boolean
}

/** Everything that was signed, before the chains are read. */
export const readSignedTrees = Effect.fnUntraced(function* (
  restoring: Restoring,
  state: SequencerState
) {
  const { serviceName } = restoring
  const { registry, vkeys } = yield* readKeys(restoring)
  const { checkpoints, handOvers } = yield* readPublished(restoring, state, vkeys)
  const replaced = replacedIn(new Map([...handOvers, ...state.handOvers]))
  const isSigned = signedBy(serviceName, vkeys, replaced)
  const stored = yield* readStored(restoring, state, Effect.succeed(isSigned))
  const own = [...state.checkpoints.values()].filter((one) => !isGivenUp(state, one))
  const all = [...checkpoints.values(), ...own, ...(stored ?? [])]
  const signed = [...new Map(all.map((one) => [one.note, one])).values()]
  const sizes = new Map<string, Set<number>>()
  for (const one of signed) {
    const tree = treeOfCheckpoint(one)
    sizes.set(tree, (sizes.get(tree) ?? new Set()).add(one.tree_size))
  }
  const ends = new KnownEnds()
  for (const [tree, frontier] of state.trees) {
    const { chain, tenantId } = chainOfTree(tree)
    const head = headsOf(state, chain).get(tenantId)
    if (head?.sequence_number === frontier.size) {
      ends.add(tree, { size: frontier.size, headHash: head.hash, frontier })
    }
  }
  for (const [tree, point] of registry.prunedPoints) {
    const opened = openNote(point.note, vkeys)
    if ("refusal" in opened || opened.checkpoint.origin !== `${serviceName}/${tree}`) continue
    const end = openPoint(point, opened.checkpoint)
    if (typeof end !== "string") ends.add(tree, end)
  }
  const read: SignedTrees = {
    ...{ state, ends, sizes, signed, checkpoints, handOvers },
    isAll: stored !== undefined
  }
  return read
})

/** The name of a root among those that were taken. */
export const rootName = (tree: string, size: number): string => `${size} ${tree}`

/** Chains that were read, as far as what was signed of them needs. */
export interface ReadTrees {
  readonly isProven: boolean
  readonly roots: ReadonlyMap<string, string>
  /** The last number of a chain. */
  readonly sizeOf: (tree: string) => number
}

/**
 * Refuses chains that do not lead to what was signed of them, unless an operator accepts that; those
 * that are too short for it are for `checkSigned`. What the changelog says of a chain has no need of
 * it: its head leads back to everything before.
 */
export const checkRoots = Effect.fnUntraced(function* (
  partition: number,
  acceptsLoss: boolean,
  state: SequencerState,
  { checkpoints, signed }: SignedTrees,
  { isProven, roots, sizeOf: sizeRead }: ReadTrees
) {
  const lost = signed.flatMap((one): ReadonlyArray<readonly [CheckpointRecord, string]> => {
    const tree = treeOfCheckpoint(one)
    if (one.tree_size > sizeRead(tree)) return []
    const root = roots.get(rootName(tree, one.tree_size))
    if (root === one.root_hash) return []
    if (root !== undefined) return [[one, `the root there is ${root}`]]
    if (isProven || one.tree_size <= sizeOf(state, tree)) return []
    return [[one, "what is left of the topic does not say which root is there"]]
  })
  if (lost.length === 0) return
  yield* giveUp(
    partition,
    acceptsLoss,
    `the topics hold another history than was signed: ${named(lost)}`
  )
  for (const [tree, one] of acceptedOf(lost.map(([one]) => one))) {
    state.givenUp.set(tree, one)
    checkpoints.delete(tree)
  }
})

/**
 * Refuses a partition whose log ends before what was signed of it, or has another root there, unless
 * an operator accepts that: then it is written down. False where the store could not be asked. The
 * store's are held against the sizes that the chains had at the start.
 */
export const checkSigned = Effect.fnUntraced(function* (
  restoring: Restoring,
  state: SequencerState,
  acceptsLoss: boolean,
  sizeBefore: (tree: string) => number = (tree) => sizeOf(state, tree)
) {
  const { partition, serviceName } = restoring
  const isSigned = Effect.map(readKeys(restoring), ({ vkeys }) =>
    signedBy(serviceName, vkeys, replacedIn(state.handOvers))
  )
  const stored = yield* readStored(restoring, state, isSigned)
  const known = [...state.checkpoints.values()].filter((one) => !isGivenUp(state, one))
  const isOther = (one: CheckpointRecord): boolean => {
    const tree = state.trees.get(treeOfCheckpoint(one))
    return tree?.size === one.tree_size && tree.root().toString("hex") !== one.root_hash
  }
  const lost = [
    ...known.filter((one) => one.tree_size > sizeOf(state, treeOfCheckpoint(one)) || isOther(one)),
    ...(stored ?? []).filter(
      (one) => one.tree_size > sizeBefore(treeOfCheckpoint(one)) || isOther(one)
    )
  ]
  if (lost.length > 0) {
    const largest = acceptedOf(lost)
    const told = [...largest].map(
      ([tree, one]) => [one, `${sizeOf(state, tree)} are left`] as const
    )
    const text = `checkpoints that were signed are beyond the end of the log: ${named(told)}`
    yield* giveUp(partition, acceptsLoss, text)
    yield* writeState(restoring, [
      ...[...largest.values()].map(givenUpRecord),
      ...[...largest.keys()].map((tree) => ({ key: `${CHECKPOINT_PREFIX}${tree}`, value: null }))
    ])
    for (const [tree, one] of largest) {
      state.givenUp.set(tree, one)
      state.checkpoints.delete(tree)
    }
  }
  return stored !== undefined
})
